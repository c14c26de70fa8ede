"""Two versions of one kind, on every store: each reads what the other wrote, and what is kept in
one is brought into the other while everybody goes on.

On Kubernetes a hub answers the server's questions; the store under test is that of a client.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.api import versions
from fairway.api.errors import Conflict
from fairway.app import HubOptions, OnKubernetes, open_hub, prepare_store
from fairway.controllers.migrations import Migrations
from fairway.loops import end
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Store, Stored, Write
from fairway.store.keys import DEFINITIONS
from fairway.store.mirrors import Mirror
from tests.contracts.test_leaders import RealTimes, Times, VirtualTimes
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.sweeping import sweep

OLD, NEW = (ResourceKey("fairway.dev", item, "flavors") for item in ("v1alpha1", "v1beta1"))
NAME = "flavors.fairway.dev"
ADA, BOB = Write(user="ada", manager="ada"), Write(user="bob", manager="bob")
Json = dict[str, Any]
KeptAs = Callable[[], Awaitable[set[str]]]


@pytest.fixture
async def times(
    store: Store, virtual: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Times]:
    """The store as a hub has it, and its time."""
    if isinstance(store, EmbeddedStore):
        await prepare_store(store)
        yield VirtualTimes(virtual)
        return
    plane: ControlPlane = request.getfixturevalue("real")
    where = OnKubernetes(kubeconfig=str(plane.kubeconfig))
    async with open_hub(HubOptions(data=tmp_path / "hub", port=0, kubernetes=where)):
        times = RealTimes()
        await sweep(store)
        await keep_in(store, "v1alpha1")
        await times.until(lambda: answers(store), "the server converts")
        yield times
        await sweep(store)
        await keep_in(store, "v1alpha1")


@pytest.fixture
def kept_as(store: Store, request: pytest.FixtureRequest) -> KeptAs:
    """The versions in which flavors are on disk."""

    async def on_embedded() -> set[str]:
        shelf = store._shelves.shelf(("fairway.dev", "flavors"))
        return {record.kept_as for record in shelf.records.values()}

    async def in_etcd() -> set[str]:
        return await asyncio.to_thread(_kept_in_etcd, request.getfixturevalue("real"))

    return on_embedded if isinstance(store, EmbeddedStore) else in_etcd


def _kept_in_etcd(plane: ControlPlane) -> set[str]:
    """What etcd itself holds, asked without the server in front of it."""
    url = next(item for item in plane.commands["etcd"] if item.startswith("--listen-client-urls="))
    first = b"/registry/fairway.dev/flavors/"
    asked = {"key": first, "range_end": first[:-1] + b"0"}
    body = json.dumps({name: base64.b64encode(value).decode() for name, value in asked.items()})
    with urllib.request.urlopen(url.partition("=")[2] + "/v3/kv/range", body.encode()) as told:
        found = json.loads(told.read()).get("kvs", [])
    return {json.loads(base64.b64decode(item["value"]))["apiVersion"] for item in found}


async def answers(store: Store) -> bool:
    """Whether the server gets its objects converted."""
    trial = Write(user="ada", manager="ada", dry_run=True)
    try:
        await store.create(NEW, flavor("trial", capacity="Reserved"), write=trial)
    except Exception:
        return False
    return True


async def keep_in(store: Store, version: str) -> None:
    """As the next release, or the one before, would say it."""
    definition = (await store.get(DEFINITIONS, NAME)).object()
    kept = [
        {**other, "storage": other["name"] == version} for other in definition["spec"]["versions"]
    ]
    patch = Patch(type="merge", body={"spec": {"versions": kept}})
    await store.patch(DEFINITIONS, NAME, patch, write=Write())


async def stored_versions(store: Store) -> list[str]:
    found: list[str] = (await store.get(DEFINITIONS, NAME)).object()["status"]["storedVersions"]
    return found


def flavor(name: str, version: str = "v1beta1", **spec: Any) -> Json:
    api_version = f"fairway.dev/{version}"
    return {"apiVersion": api_version, "kind": "Flavor", "metadata": {"name": name}, "spec": spec}


async def spec_of(store: Store, kind: ResourceKey, name: str) -> Json:
    found = (await store.get(kind, name)).object()
    assert found["apiVersion"] == f"fairway.dev/{kind.version}"
    spec: Json = found["spec"]
    return spec


async def test_each_version_reads_what_the_other_wrote(store: Store, times: Times) -> None:
    price = {"resource": "nvidia.com/gpu", "perHour": "2.5"}
    await store.create(NEW, flavor("b", capacity="Reserved", prices=[price]), write=ADA)
    await store.create(OLD, flavor("a", "v1alpha1", nodeLabels={"gpu": "h100"}), write=ADA)
    old = {"interruptible": False, "prices": {"nvidia.com/gpu": "2.5"}, "speed": 1}
    new = {"capacity": "Reserved", "prices": [price], "speed": 1}
    assert await spec_of(store, OLD, "b") == old
    assert await spec_of(store, NEW, "b") == new
    assert await spec_of(store, NEW, "a") == {"nodes": {"labels": {"gpu": "h100"}}, "speed": 1}
    listed = (await store.list(NEW)).items
    assert [item.object()["spec"] for item in listed] == [
        await spec_of(store, NEW, item) for item in "ab"
    ]


async def test_a_change_in_one_version_keeps_what_only_the_other_says(
    store: Store, times: Times
) -> None:
    await store.create(NEW, flavor("a", capacity="Reserved"), write=ADA)
    before = (await store.get(OLD, "a")).object()
    before["spec"]["description"] = "reserved until May"
    await store.update(OLD, before, write=BOB)
    assert await spec_of(store, NEW, "a") == {
        "capacity": "Reserved",
        "description": "reserved until May",
        "speed": 1,
    }
    patch = Patch(type="merge", body={"spec": {"interruptible": True}})
    await store.patch(OLD, "a", patch, write=BOB)
    assert (await spec_of(store, NEW, "a"))["capacity"] == "Spot"


async def test_whoever_applies_owns_fields_in_whichever_version(store: Store, times: Times) -> None:
    async def applied(kind: ResourceKey, write: Write, **spec: Any) -> None:
        patch = Patch(type="apply", body=flavor("a", kind.version, **spec))
        await store.patch(kind, "a", patch, write=write)

    await applied(NEW, ADA, nodes={"labels": {"gpu": "h100"}}, description="ours")
    await applied(OLD, BOB, clusterLabels={"site": "north"})
    with pytest.raises(Conflict):
        await applied(OLD, BOB, clusterLabels={"site": "north"}, nodeLabels={"gpu": "a100"})
    await applied(NEW, ADA, description="ours")  # it no longer says anything of nodes
    assert await spec_of(store, OLD, "a") == {
        "clusterLabels": {"site": "north"},
        "description": "ours",
        "speed": 1,
    }


async def test_a_write_that_changes_nothing_is_none_in_either_version(
    store: Store, times: Times
) -> None:
    made = (await store.create(NEW, flavor("a", capacity="Reserved"), write=ADA)).object()
    for kind in (NEW, OLD):
        body = (await store.get(kind, "a")).object()
        after = (await store.update(kind, body, write=BOB)).object()
        assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


class Writers:
    """People who go on writing, some in the old version and some in the new one."""

    def __init__(self, store: Store, times: Times) -> None:
        self._store, self._times = store, times
        self.written: dict[tuple[str, str], Any] = {}  # what was last answered for, by name, field
        # What was not answered for: whoever ends amid a write does not know whether it was done.
        self.under_way: dict[tuple[str, str], Any] = {}
        self.count = 0

    async def run(self) -> None:
        while True:
            number = self.count
            name = f"flavor-{number % 20}"
            if number % 2:
                await self._say(OLD, name, "speed", 1 + number)
            else:
                price = {"resource": f"r{number}", "perHour": str(number)}
                first = {"resource": "zz", "perHour": "1"}
                await self._say(NEW, name, "prices", [first, price])
            if number % 50 == 0:
                body = flavor(f"new-{number}", capacity="Reserved")
                await self._store.create(NEW, body, write=ADA)
                self.written[f"new-{number}", "capacity"] = "Reserved"
            self.count += 1
            await self._times.clock.sleep(0.02)

    async def _say(self, kind: ResourceKey, name: str, field: str, value: Any) -> None:
        patch = Patch(type="merge", body={"spec": {field: value}})
        self.under_way = {(name, field): value}
        await self._store.patch(kind, name, patch, write=ADA)
        self.written[name, field] = value


class Watcher:
    """All flavors as one who watches them in a version believes them to be.

    A real server ends its watches when a definition changes; one who follows takes them up again.
    """

    def __init__(self, store: Store, times: Times, kind: ResourceKey) -> None:
        self._mirror = Mirror(store, kind, clock=times.clock)
        self._said = {f"fairway.dev/{kind.version}"}
        self.versions: set[str] = set()
        self._mirror.followers.append(self._see)

    def _see(self, _name: object, stored: Stored | None) -> None:
        if stored is not None:
            self.versions.add(stored.object()["apiVersion"])

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        following = asyncio.ensure_future(self._mirror.run())
        try:
            yield
            assert self.versions == self._said
        finally:
            await end([following])

    def believed(self) -> dict[str, Json]:
        return {name[1]: stored.object() for name, stored in self._mirror.items()}


async def test_objects_are_brought_into_another_version_while_everybody_goes_on(
    store: Store, times: Times, kept_as: KeptAs
) -> None:
    for number in range(20):
        await store.create(NEW, flavor(f"flavor-{number}", capacity="Reserved"), write=ADA)
    assert await kept_as() == {"fairway.dev/v1alpha1"}
    writers = Writers(store, times)
    as_old, as_new = Watcher(store, times, OLD), Watcher(store, times, NEW)
    async with as_old.watching(), as_new.watching():
        writing = asyncio.ensure_future(writers.run())
        for target in ("v1beta1", "v1alpha1"):  # there, and back as after an upgrade undone
            await _migrate(store, times, target)
            assert await kept_as() == {f"fairway.dev/{target}"}
        assert not writing.done()
        await end([writing])
        assert writers.count > 100
        await _check(store, times, writers, as_old, as_new)


async def test_a_change_is_given_time_to_be_known_though_an_earlier_one_was_due(
    store: Store, times: Times
) -> None:
    await store.create(NEW, flavor("a"), write=ADA)
    await keep_in(store, "v1beta1")
    migrating = asyncio.ensure_future(Migrations(store=store, clock=times.clock).run())
    soon = times.clock.now() + 8

    async def is_soon() -> bool:
        return times.clock.now() > soon

    await times.until(is_soon, "the first change is almost known everywhere")
    await keep_in(store, "v1alpha1")
    changed = times.clock.now()

    async def is_over() -> bool:
        return await stored_versions(store) == ["v1alpha1"]

    await times.until(is_over, "all are written")
    assert times.clock.now() - changed > 9.9
    await end([migrating])


async def _migrate(store: Store, times: Times, target: str) -> None:
    """Another version is to be kept; who migrates is interrupted once, and begins anew."""
    await keep_in(store, target)
    both = {"v1alpha1", "v1beta1"}
    assert set(await stored_versions(store)) == both
    slow = asyncio.ensure_future(Migrations(store=store, clock=times.clock, per_second=2).run())
    until = times.clock.now() + 13

    async def is_midway() -> bool:
        return times.clock.now() > until

    await times.until(is_midway, "some are written")
    await end([slow])
    quick = asyncio.ensure_future(Migrations(store=store, clock=times.clock).run())

    async def is_over() -> bool:
        return await stored_versions(store) == [target]

    await times.until(is_over, "all are written")
    await end([quick])


async def _check(
    store: Store,
    times: Times,
    writers: Writers,
    as_old: Watcher,
    as_new: Watcher,
) -> None:
    """Nothing that was answered for is lost, and whoever watched knows it."""
    old = {
        item.object()["metadata"]["name"]: item.object() for item in (await store.list(OLD)).items
    }
    new = {
        item.object()["metadata"]["name"]: item.object() for item in (await store.list(NEW)).items
    }

    async def is_told() -> bool:
        return _plain(as_old.believed()) == _plain(old) and _plain(as_new.believed()) == _plain(new)

    await times.until(is_told, "watchers know everything")
    assert {versions.convert(value, "fairway.dev/v1alpha1")["spec"] == old[name]["spec"]
            for name, value in new.items()} == {True}  # fmt: skip
    assert {item["spec"].get("capacity") for item in new.values()} == {"Reserved"}
    for (name, field), value in writers.written.items():
        found = old if field == "speed" else new
        assert found[name]["spec"][field] in (value, writers.under_way.get((name, field), value))


def _plain(objects: dict[str, Json]) -> dict[str, Json]:
    """Without who owns which field, which stores tell in lists and watches at their leisure."""
    return {
        name: {**object_, "metadata": {**object_["metadata"], "managedFields": None}}
        for name, object_ in objects.items()
    }
