"""Objects from one version of their kind to another, and back, without loss.

Fields of a spec in one version that correspond to other fields in another version are a passage:
two pure functions. What one version can express and the other cannot is kept in an annotation for
each version. It is restored as long as its converted form is unchanged: a price changed in the old
version is changed, and everything else is as it was.

Nothing is refused here. A part of unexpected shape (a server also converts parts of objects, to
find out which manager owns which field) is kept in the annotation like anything that cannot be
expressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.api import flavor_v1beta1
from fairway.api.equality import same
from fairway.api.meta import GROUP, VERSION, JsonObject

Turn = Callable[[JsonObject], JsonObject]
_NOTE = f"{GROUP}/said-in-"
# What reading a part of unexpected shape raises.
_OTHER_SHAPE = (TypeError, ValueError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The fields of a passage in one version, and how to convert to them."""

    fields: tuple[str, ...]
    reach: Turn  # converts the other version's part to this version's


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Fields with the same meaning in two versions."""

    by_version: Mapping[str, Side]


def note_of(version: str) -> str:
    """The annotation with what only this version can express."""
    return _NOTE + version


def has_versions(group: str, kind: str) -> bool:
    return (group, kind) in _PASSAGES


def knows(group: str, kind: str, version: str) -> bool:
    """Whether a kind has this version among several."""
    return any(version in passage.by_version for passage in _PASSAGES.get((group, kind), ()))


def convert(body: JsonObject, api_version: str) -> JsonObject:
    """The object in another version of its kind; unchanged parts are shared with it."""
    said = str(body.get("apiVersion", ""))
    if said == api_version:
        return body
    result = {**body, "apiVersion": api_version}
    kind = str(body.get("kind", ""))
    (group, _, to), (said_group, _, was) = api_version.rpartition("/"), said.rpartition("/")
    is_known = said_group == group and knows(group, kind, to) and knows(group, kind, was)
    if not is_known or not has_room(body):
        return result
    notes = _Notes(body)
    noted = notes.take(to)
    unsaid: JsonObject = {}
    if isinstance(spec := body.get("spec"), dict):
        result["spec"], unsaid = _spec(spec, _PASSAGES[group, kind], was, to, noted)
    notes.put(was, unsaid)
    if notes.has_changed:
        result["metadata"] = notes.metadata()
    return result


def has_room(body: JsonObject) -> bool:
    """Whether notes can be kept with it: its metadata and annotations have the right types."""
    metadata = body.get("metadata")
    if metadata is None:
        return True
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else ""
    return annotations is None or isinstance(annotations, dict)


def _spec(
    spec: JsonObject, passages: Sequence[Passage], was: str, to: str, noted: JsonObject
) -> tuple[JsonObject, JsonObject]:
    """A spec in another version, and the part that the version cannot express."""
    made: JsonObject = {}
    unsaid: JsonObject = {}
    left = dict(spec)
    for passage in passages:
        here, there = passage.by_version[was], passage.by_version[to]
        part = {field: left.pop(field) for field in here.fields if field in left}
        known = {field: noted[field] for field in there.fields if field in noted}
        if known and same(_reach(here, known), part):
            made.update(known)
            continue
        reached = _reach(there, part)
        made.update(reached)
        if not same(_reach(here, reached), part):
            unsaid.update(part)
    ours = {field for passage in passages for field in passage.by_version[was].fields}
    theirs = {field for passage in passages for field in passage.by_version[to].fields}
    # A field that only the other version has is kept in the note as it is.
    unsaid.update({field: left.pop(field) for field in sorted(theirs & set(left))})
    left.update({field: noted[field] for field in sorted((ours - theirs) & set(noted))})
    return {**left, **made}, unsaid


def _reach(side: Side, part: JsonObject) -> JsonObject:
    """A part in this side's form; empty if it cannot be read."""
    try:
        return side.reach(part) if part else {}
    except _OTHER_SHAPE:
        return {}


class _Notes:
    """The notes in the annotations of one object."""

    def __init__(self, body: JsonObject) -> None:
        self._metadata: JsonObject = body.get("metadata") or {}
        self._annotations: JsonObject = dict(self._metadata.get("annotations") or {})
        self.has_changed = False

    def take(self, version: str) -> JsonObject:
        """Takes out the note of a version; from now on the object itself has its content."""
        text = self._annotations.pop(note_of(version), None)
        self.has_changed = self.has_changed or text is not None
        try:
            notes = msgspec.json.decode(text) if isinstance(text, str) else {}
        except msgspec.DecodeError:
            return {}
        return notes if isinstance(notes, dict) else {}

    def put(self, version: str, unsaid: JsonObject) -> None:
        name = note_of(version)
        before = self._annotations.pop(name, None)
        if unsaid:
            text = msgspec.json.encode(unsaid, order="deterministic").decode()
            self._annotations[name] = text
        self.has_changed = self.has_changed or before is not None or bool(unsaid)

    def metadata(self) -> JsonObject:
        rest = {key: value for key, value in self._metadata.items() if key != "annotations"}
        return {**rest, "annotations": self._annotations} if self._annotations else rest


# Flavors.


def _gather(field: str, names: Mapping[str, str]) -> Turn:
    """Several fields as parts of one."""
    return lambda part: {field: {names[name]: value for name, value in part.items()}}


def _spread(field: str, names: Mapping[str, str]) -> Turn:
    """The parts of one field as several."""
    back = {value: key for key, value in names.items()}
    return lambda part: {back[name]: value for name, value in part[field].items()}


def _group(field: str, names: Mapping[str, str]) -> Passage:
    return Passage(
        by_version={
            VERSION: Side(fields=tuple(names), reach=_spread(field, names)),
            flavor_v1beta1.VERSION: Side(fields=(field,), reach=_gather(field, names)),
        }
    )


_CAPACITY = {True: "Spot", False: "OnDemand"}
_INTERRUPTIBLE = {"Spot": True, "OnDemand": False, "Reserved": False}


def _bought(part: JsonObject) -> JsonObject:
    value: Any = part["interruptible"]
    if not isinstance(value, bool):
        raise TypeError
    return {"capacity": _CAPACITY[value]}


def _interrupt(part: JsonObject) -> JsonObject:
    return {"interruptible": _INTERRUPTIBLE[part["capacity"]]}


def _list(part: JsonObject) -> JsonObject:
    """Prices sorted by name: a map has no lasting order."""
    prices = sorted(part["prices"].items())
    return {"prices": [{"resource": name, "perHour": price} for name, price in prices]}


def _map(part: JsonObject) -> JsonObject:
    return {"prices": {price["resource"]: price["perHour"] for price in part["prices"]}}


_FLAVOR = (
    _group("nodes", {"nodeLabels": "labels", "nodeTaints": "taints"}),
    _group("clusters", {"clusterLabels": "labels"}),
    Passage(
        by_version={
            VERSION: Side(fields=("interruptible",), reach=_interrupt),
            flavor_v1beta1.VERSION: Side(fields=("capacity",), reach=_bought),
        }
    ),
    Passage(
        by_version={
            VERSION: Side(fields=("prices",), reach=_map),
            flavor_v1beta1.VERSION: Side(fields=("prices",), reach=_list),
        }
    ),
)
_PASSAGES: Mapping[tuple[str, str], tuple[Passage, ...]] = {(GROUP, "Flavor"): _FLAVOR}
