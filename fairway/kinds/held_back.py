"""How an object on the hub is held back from the hub's own controllers, kind by kind.

A hub on Kubernetes may run the same controllers as its members. An object that names a queue must
run in members and nowhere else, so each kind needs a means to make the controllers on the hub
ignore it. A means must not touch a field that people write: an object that is kept in a repository
would show a difference. Kinds without such a means are refused; they run inside the template of a
Workload.

The server applies this table by admission policies that are generated from it. No workload is
created for an object that is not held back, however it was admitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairway.api.meta import JsonObject
from fairway.kinds.interface import Kind
from fairway.kinds.job import FLEET_CONTROLLERS
from fairway.kinds.plain import child, maps_at, text
from fairway.kinds.pod import GATE
from fairway.kinds.registry import KnownKinds
from fairway.kinds.rules.kind import RuleKind

HUB_CONTROLLER = FLEET_CONTROLLERS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """One way to hold an object back."""

    name: str
    path: tuple[str, ...] = ()  # the field to set
    value: Any = None  # the value that we write there
    also: tuple[Any, ...] = ()  # other values that hold it back as well
    # Whether it works on an object that its controller already runs.
    works_late: bool = False
    why: str = ""

    @property
    def is_possible(self) -> bool:
        return bool(self.path)

    @property
    def field(self) -> str:
        return ".".join(self.path)


MANAGED = Means(
    name="managedBy",
    path=("spec", "managedBy"),
    value=HUB_CONTROLLER,
    also=FLEET_CONTROLLERS[1:],
    why="its controller leaves it alone, status and all",
)
PAUSED = Means(
    name="paused",
    path=("spec", "paused"),
    value=True,
    why="its controller makes no pods for a revision that came while it was paused",
)
GATED = Means(
    name="scheduling gate",
    path=("spec", "schedulingGates"),
    value=GATE,
    why="no scheduler looks at it; the object is there, and nothing runs",
)
NO_REPLICAS = "only its number of replicas could hold it, which people write themselves"

_IN_CODE: Mapping[str, Means] = {
    "Job": MANAGED,
    "JobSet": MANAGED,
    "Deployment": PAUSED,
    "Pod": GATED,
    "StatefulSet": Means(name="wrapped", why=NO_REPLICAS),
    "LeaderWorkerSet": Means(name="wrapped", why=NO_REPLICAS),
}
_NONE = Means(name="wrapped", why="it has no field that would hold it")
_BY_ANNOTATION = Means(
    name="wrapped",
    why="only an annotation could hold it, which a controller may not know",
)


def means_of(kind: Kind) -> Means:
    """The means for a kind; for a kind from a rule, as the rule says."""
    if not isinstance(kind, RuleKind):
        is_volcano = kind.api_versions[0].startswith("batch.volcano.sh/")
        return _NONE if is_volcano else _IN_CODE.get(kind.name, _NONE)
    if kind.rule.spec.hold is None:
        return _NONE
    fields = list(leaves(kind.rule.spec.hold.held))
    if len(fields) != 1 or fields[0][0][0] != "spec":
        return _BY_ANNOTATION
    path, value = fields[0]
    why = "its controller makes no pods, and stops those that it had made"
    return Means(name="suspend", path=path, value=value, works_late=True, why=why)


def is_held_back(manifest: JsonObject, kind: Kind) -> bool:
    """Whether the hub's own controllers ignore an object."""
    means = means_of(kind)
    if not means.is_possible:
        return False
    if means is GATED:
        gates = maps_at(manifest, *means.path)
        return any(text(gate, "name") == GATE for gate in gates)
    known = child(manifest, *means.path[:-1]).get(means.path[-1])
    return any(known == item and type(known) is type(item) for item in (means.value, *means.also))


def advice(kind: Kind) -> str:
    """What to do with an object that is not held back."""
    means = means_of(kind)
    if not means.is_possible:
        return (
            f"a {kind.name} cannot be held back from the hub's own controllers: {means.why}; "
            "submit a Workload that has it in spec.template.manifests"
        )
    shown = f"the gate {GATE}" if means is GATED else str(means.value).lower()
    late = "" if means.works_late else ", from the moment it is made"
    return (
        f"the hub's own controllers would run it, and so would a cluster; it must have "
        f"{shown} in {means.field}{late}, or be in a Workload's spec.template.manifests"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Kinds that are held back by the same means."""

    means: Means
    kinds: tuple[tuple[str, str], ...] = field(default=())  # API version and kind, in order


def groups(kinds: KnownKinds) -> Sequence[Group]:
    """All kinds grouped by their means; kinds that need a Workload come last."""
    result: dict[Means, list[tuple[str, str]]] = {}
    for api_version, name in kinds.names():
        kind = kinds.of({"apiVersion": api_version, "kind": name})
        if kind is not None:
            result.setdefault(means_of(kind), []).append((api_version, name))
    made = [Group(means=means, kinds=tuple(names)) for means, names in result.items()]
    return sorted(
        made, key=lambda group: (not group.means.is_possible, group.means.field, group.kinds)
    )


def leaves(patch: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The paths and values of a nested map."""
    for key, value in patch.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
