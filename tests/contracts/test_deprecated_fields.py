"""Fields that are about to leave a kind, on every store.

For one minor version a deprecated field stays: what is there already passes with a warning, and a
new value is refused with what to use instead. Each test has a kind of its own, made from types as
ours are, of which objects are stored before its fields are deprecated.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from msgspec import defstruct

from fairway.api.crds import definition_of
from fairway.api.doc import Count, Deprecated, Label, Rule, Text, doc, rules
from fairway.api.errors import Invalid
from fairway.api.kinds import Column, Kind
from fairway.api.meta import Object, Part
from fairway.clock import SystemClock
from fairway.store.interface import Patch, ResourceKey, Store, Write
from fairway.store.keys import DEFINITIONS
from fairway.store.kubernetes.admission import policies_of
from fairway.store.kubernetes.definitions import await_definitions
from fairway.store.kubernetes.deprecated import NAME, warn_of_deprecated
from fairway.store.kubernetes.store import KubernetesStore
from tests.contracts.conftest import Settled

Json = dict[str, Any]
_numbers = itertools.count(1)
LEAVES = Deprecated(since="0.2.0", use="spec.size")
PIECE_LEAVES = Deprecated(since="0.2.0", use="spec.parts[*].size")


@rules(Rule("!has(self.wide) || !has(self.high) || self.wide >= self.high", "wide is most"))
class Extent(Part, frozen=True, kw_only=True):
    """A size in two numbers."""

    wide: Annotated[Count, doc("Width.")] = 0
    high: Annotated[Count, doc("Height.")] = 0


class PieceBefore(Part, frozen=True, kw_only=True):
    """A part, as it was."""

    name: Annotated[Label, doc("Name.")]
    size: Annotated[Count, doc("Size.")] = 0
    former: Annotated[Text, doc("Size in words.")] = ""


class Piece(PieceBefore, frozen=True, kw_only=True):
    """A part."""

    former: Annotated[Text, doc("Size in words.", deprecated=PIECE_LEAVES)] = ""


class Before(Part, frozen=True, kw_only=True):
    """The spec of the kind, as it was."""

    size: Annotated[Count, doc("Size.")] = 0
    former: Annotated[Text, doc("Size in words.")] = ""
    extent: Annotated[Extent | None, doc("Size in two numbers.")] = None
    parts: Annotated[
        tuple[PieceBefore, ...],
        doc("Parts.", max_items=8, list_type="map", list_map_keys=["name"]),
    ] = ()


class After(Before, frozen=True, kw_only=True):
    """The spec of the kind, with fields that are about to leave."""

    former: Annotated[Text, doc("Size in words.", deprecated=LEAVES)] = "medium"
    extent: Annotated[Extent | None, doc("Size in two numbers.", deprecated=LEAVES)] = None
    parts: Annotated[
        tuple[Piece, ...],
        doc("Parts.", max_items=8, list_type="map", list_map_keys=["name"]),
    ] = ()


class Status(Part, frozen=True, kw_only=True):
    """What is."""

    ready: Annotated[Count, doc("Ready.")] = 0


def definition(name: str, spec: type[Part], default: Part | None = None) -> Json:
    """The definition of a kind of this name, made from types as those of ours."""
    fields = [("spec", spec, default or spec()), ("status", Status, Status())]
    struct = defstruct(name, fields, bases=(Object,), frozen=True, kw_only=True, rename="camel")
    kind = Kind(
        struct=struct,  # type: ignore[arg-type]  # made of Object
        plural=f"{name.lower()}s",
        short_names=(),
        is_namespaced=True,
        columns=(Column("Size", ".spec.size", "integer"),),
    )
    return definition_of(kind)


class Shelf:
    """A kind of its own in a store, first with fields and then with deprecated ones."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kind = f"Trinket{next(_numbers)}"
        self.plural = f"{self.kind.lower()}s"
        self.key = ResourceKey("fairway.dev", "v1alpha1", self.plural)
        self.warned: list[str] = []

    async def define(self, spec: type[Part]) -> None:
        body = definition(self.kind, spec)
        patch = Patch(type="apply", body=body, force=True)
        await self.store.patch(DEFINITIONS, body["metadata"]["name"], patch, write=Write())
        if isinstance(self.store, KubernetesStore):
            await await_definitions(self.store, [body], clock=SystemClock())
            await warn_of_deprecated(self.store, [body])

    async def create(self, name: str, spec: Json) -> Json:
        body = {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        write = self.write()
        made = await self.store.create(self.key, body, namespace="default", write=write)
        return made.object()

    async def patch(self, name: str, body: Json, **more: Any) -> Json:
        patch = Patch(type="merge", body=body)
        where = {"namespace": "default", "write": more.pop("write", None) or self.write(), **more}
        return (await self.store.patch(self.key, name, patch, **where))[0].object()

    async def get(self, name: str) -> Json:
        return (await self.store.get(self.key, name, "default")).object()

    def write(self) -> Write:
        self.warned = []
        return Write(user="alice", manager="alice", warnings=self.warned)

    @property
    def told(self) -> list[str]:
        """What was warned of, without the name of the policy that a real server puts in front."""
        return sorted(item.split("': ")[-1] for item in self.warned)


@pytest.fixture
async def shelf(store: Store, settled: Settled) -> AsyncIterator[Shelf]:
    found = Shelf(store)
    await found.define(Before)
    await found.create("plain", {"size": 1})
    await found.create("one", {"former": "large", "parts": [{"name": "a", "former": "small"}]})
    await found.create("extended", {"extent": {"wide": 2, "high": 1}})
    await found.define(After)

    async def is_warned() -> bool:
        write = replace(found.write(), dry_run=True)
        await found.patch("one", {"metadata": {"labels": {"tried": "yes"}}}, write=write)
        return bool(found.warned)

    await settled(is_warned, True)
    yield found
    for stored in (await store.list(found.key)).items:
        name = stored.object()["metadata"]["name"]
        await store.delete(found.key, name, namespace="default", write=Write())
    await store.delete(DEFINITIONS, f"{found.plural}.fairway.dev", write=Write())
    if isinstance(store, KubernetesStore):
        for sort in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            await store.delete(policies_of(sort), NAME, write=Write())


WARNED = [
    "spec.former: deprecated since 0.2.0; use spec.size instead",
    "spec.parts[*].former: deprecated since 0.2.0; use spec.parts[*].size instead",
]


async def test_what_is_there_passes_with_a_warning(shelf: Shelf, store: Store) -> None:
    after = await shelf.patch("one", {"spec": {"size": 2}})
    assert (after["spec"]["size"], after["spec"]["former"]) == (2, "large")
    assert shelf.told == WARNED
    after["spec"]["size"] = 3
    write = shelf.write()
    await store.update(shelf.key, after, namespace="default", write=write)
    assert shelf.told == WARNED
    await shelf.patch("extended", {"spec": {"size": 2}})
    assert shelf.told == ["spec.extent: deprecated since 0.2.0; use spec.size instead"]


async def test_who_has_none_of_them_is_not_warned(shelf: Shelf) -> None:
    after = await shelf.patch("plain", {"spec": {"size": 2, "parts": [{"name": "a", "size": 1}]}})
    assert shelf.warned == []
    assert "former" not in after["spec"]


async def test_a_status_is_written_without_a_warning(shelf: Shelf) -> None:
    after = await shelf.patch("one", {"status": {"ready": 2}}, subresource="status")
    assert after["status"]["ready"] == 2
    assert after["spec"]["former"] == "large"
    assert shelf.warned == []


REFUSED = {
    "another value": ("one", {"former": "huge"}, "spec.former"),
    "a value where there was none": ("plain", {"former": "large"}, "spec.former"),
    "a value in a new part": (
        "one",
        {"parts": [{"name": "a", "former": "small"}, {"name": "b", "former": "small"}]},
        r"spec.parts\[1\].former",
    ),
    "another value in a part that is a group of fields": (
        "extended",
        {"extent": {"wide": 3}},
        "spec.extent",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_new_value_is_refused_with_what_to_use_instead(shelf: Shelf, what: str) -> None:
    name, spec, path = REFUSED[what]
    before = await shelf.get(name)
    with pytest.raises(Invalid, match=rf"{path}: .*deprecated since 0.2.0; use spec\..* instead"):
        await shelf.patch(name, {"spec": spec})
    assert await shelf.get(name) == before


async def test_nothing_new_is_created_with_it_and_no_default_sets_it(shelf: Shelf) -> None:
    with pytest.raises(Invalid, match=r"use spec\.size instead"):
        await shelf.create("new", {"former": "large"})
    made = await shelf.create("new", {"size": 1})
    assert "former" not in made["spec"]


async def test_what_is_taken_out_is_not_put_back(shelf: Shelf) -> None:
    await shelf.patch("one", {"spec": {"former": None, "parts": []}})
    await shelf.patch("one", {"spec": {"size": 2}})
    assert shelf.warned == []
    with pytest.raises(Invalid, match=r"use spec\.size instead"):
        await shelf.patch("one", {"spec": {"former": "large"}})


def test_the_definition_says_so_beside_the_rules_of_the_field_itself() -> None:
    version = definition("Trinket", After)["spec"]["versions"][0]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert [other["message"] for other in fields["extent"]["x-kubernetes-validations"]] == [
        "wide is most",
        "deprecated since 0.2.0; use spec.size instead",
    ]
    described = "Size in words. Deprecated since 0.2.0: use spec.size instead."
    assert fields["former"]["description"] == described


def test_a_required_field_cannot_be_deprecated() -> None:
    class Wrong(Part, frozen=True, kw_only=True):
        """A spec that nobody could write."""

        former: Annotated[Text, doc("Size in words.", deprecated=LEAVES)]

    with pytest.raises(AssertionError, match="former is deprecated and required"):
        definition("Wrong", Wrong, Wrong(former=""))
