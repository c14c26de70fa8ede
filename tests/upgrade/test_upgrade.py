"""Every later version goes on with what an earlier one left: its data, its records, its wire.

Each folder beside this file is what one version wrote (`record`); a new version adds its own. What
agents and hubs of two versions say to each other is tested in `tests/wire`.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairway.api import codec
from fairway.api.kinds import KINDS
from fairway.api.rollout import Rollout
from fairway.api.schemas import schema_of
from fairway.app import HubOptions, open_hub
from fairway.app.restore import restore_folder
from fairway.clock import VirtualClock
from fairway.controllers.history.answers import Asked
from fairway.controllers.scheduling.record import replay
from fairway.hub.decision_log import read_segment, segments
from fairway.hub.encryption_keys import KeySource
from fairway.resources.resource import Resource
from fairway.sealing import Keyring
from fairway.server.access.private_files import write_private
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import ROLLOUTS, WORKLOADS
from tests.controllers.fleets import Fleet
from tests.controllers.test_running import job
from tests.upgrade.record import BACKUP, DATA, KEY, STORY, unpack
from tests.upgrade.story import HERE, Plain, hub
from tests.wire.test_wire import FIELD, strewn

VERSIONS = sorted(path.parent for path in HERE.glob(f"*/{DATA}"))
EACH = pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
# Versions whose decisions come out differently now, and why that is meant.
DECIDED_OTHERWISE: dict[str, str] = {}
# A later hub may bring more of these from the start.
FROM_THE_START = (
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "namespaces",
)
STRUCTS = {kind.qualified: kind.struct for kind in KINDS}
UNKNOWN_IN = {  # and in versions before
    "fleetpolicies.governance.fairway.dev": "0.3.0",
    "scorers.scores.fairway.dev": "0.5.0",
    "clusterscores.scores.fairway.dev": "0.5.0",
}
WITHOUT_BACKUPS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0")
WITHOUT_DECIDED = ("0.1.0", "0.2.0", "0.3.0")  # they kept no decisions for the next hub
USER = Write(user="ada", manager="ada")


def story(version: Path) -> Plain:
    found: Plain = json.loads((version / STORY).read_text())
    return found


def later(version: Path) -> VirtualClock:
    """A minute after the version stopped: events live for an hour."""
    return VirtualClock(story(version)["now"] + 60)


def resources(store: EmbeddedStore) -> list[Resource]:
    """Every version of every kind that is kept."""
    return [item for item in store.catalogue if item.is_stored]


def key_of(resource: Resource) -> ResourceKey:
    return ResourceKey(resource.group, resource.version, resource.plural)


@EACH
async def test_a_hub_opens_the_data_and_every_object_can_be_read(
    version: Path, tmp_path: Path
) -> None:
    wanted = story(version)["kinds"]
    kinds = {kind for kind in STRUCTS if version.name > UNKNOWN_IN.get(kind, "")}
    assert kinds <= set(wanted), "the story has an object of each of our kinds"
    await _read_all(version, unpack(version, tmp_path))


@pytest.mark.parametrize(
    "version",
    [path for path in VERSIONS if path.name not in WITHOUT_BACKUPS],
    ids=lambda path: path.name,
)
async def test_a_hub_opens_what_is_restored_from_a_backup(version: Path, tmp_path: Path) -> None:
    lines = (version / BACKUP).read_bytes().splitlines(keepends=True)
    key = tmp_path / "key"
    write_private(key, base64.b64encode(KEY))
    await restore_folder(lambda: iter(lines), tmp_path / "hub", Keyring([KEY]))
    await _read_all(version, tmp_path / "hub", keys=KeySource(file=key))


async def _read_all(version: Path, data: Path, keys: KeySource | None = None) -> None:
    """Opens a hub, and reads every object that the version left."""
    wanted = story(version)["kinds"]
    options = HubOptions(data=data, port=0, has_controllers=False, keys=keys or KeySource())
    async with open_hub(options, clock=later(version)) as opened:
        store = opened.store
        assert isinstance(store, EmbeddedStore)
        counts = store.counts()
        for kind, count in wanted.items():
            assert counts[kind] == count or (kind in FROM_THE_START and counts[kind] > count), kind
        for resource in resources(store):
            for stored in (await store.list(key_of(resource))).items:
                metadata = stored.object()["metadata"]
                again = await store.get(
                    key_of(resource), metadata["name"], metadata.get("namespace", "")
                )
                assert again.raw == stored.raw
                if resource.qualified in STRUCTS:
                    found = codec.decode(stored.raw, STRUCTS[resource.qualified])
                    assert found.metadata.name == metadata["name"]


@EACH
async def test_every_object_can_be_written_in_each_way(version: Path, tmp_path: Path) -> None:
    options = HubOptions(data=unpack(version, tmp_path), port=0, has_controllers=False)
    async with open_hub(options, clock=later(version)) as opened:
        store = opened.store
        assert isinstance(store, EmbeddedStore)
        for resource in resources(store):
            for stored in (await store.list(key_of(resource))).items:
                await _write(store, resource, stored.object())


async def _write(store: EmbeddedStore, resource: Resource, body: Plain) -> None:
    """Replaces, patches and applies an object, and replaces its status."""
    key, name = key_of(resource), body["metadata"]["name"]
    where: Plain = {"namespace": body["metadata"].get("namespace", ""), "write": USER}
    body["metadata"].setdefault("labels", {})["replaced"] = "now"
    await store.update(key, body, **where)
    label = {"metadata": {"labels": {"patched": "now"}}}
    await store.patch(key, name, Patch(type="merge", body=label), **where)
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    applied = {**named, "metadata": {"name": name, "labels": {"applied": "now"}}}
    patch = Patch(type="apply", body=applied, force=True)
    found = (await store.patch(key, name, patch, **where))[0].object()
    assert {"replaced", "patched", "applied"} <= set(found["metadata"]["labels"])
    if resource.has_status:
        after = (await store.update(key, found, subresource="status", **where)).object()
        assert after.get("status") == body.get("status")
    for part in set(body) - {"metadata", "status"}:
        assert found[part] == body[part]


def with_former_fields(data: Path) -> Path:
    """The data as a version left it that had one more field in every part of each of our kinds."""
    with closing(sqlite3.connect(data / "fairway.db")) as journal, journal:
        for place, group, plural, name, raw in journal.execute(
            "SELECT version, api_group, plural, name, value FROM log"
        ).fetchall():
            body = json.loads(raw)
            if name in STRUCTS and plural == "customresourcedefinitions":
                for version in body["spec"]["versions"]:
                    _add_field(version["schema"]["openAPIV3Schema"])
            elif f"{plural}.{group}" in STRUCTS:
                schema = schema_of(STRUCTS[f"{plural}.{group}"])
                for part in {"spec", "status"} & set(body):
                    body[part] = strewn(body[part], schema["properties"][part])
            journal.execute(
                "UPDATE log SET value = ? WHERE version = ?", (json.dumps(body).encode(), place)
            )
    return data


def _add_field(schema: Plain) -> None:
    for part in (*schema.get("properties", {}).values(), schema.get("items"),
                 schema.get("additionalProperties")):  # fmt: skip
        if isinstance(part, dict):
            _add_field(part)
    if "properties" in schema:
        schema["properties"][FIELD] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }


@EACH
async def test_a_hub_goes_on_with_objects_that_have_fields_which_are_gone(
    version: Path, tmp_path: Path
) -> None:
    data = with_former_fields(unpack(version, tmp_path))
    clock = VirtualClock(story(version)["now"] + 5)
    async with hub(data, clock, seed=1) as fleet:
        for kind in KINDS:
            key = ResourceKey(kind.struct.api_group, "v1alpha1", kind.plural)
            for stored in (await fleet.store.list(key)).items:
                assert FIELD.encode() not in stored.raw, stored.raw
        await fleet.until("humble", "Succeeded", 900)
        await fleet.until("waits", "Succeeded", 300)
        for resource in resources(fleet.store):
            for stored in (await fleet.store.list(key_of(resource))).items:
                await _write(fleet.store, resource, stored.object())


@EACH
async def test_the_hub_goes_on_where_it_was(version: Path, tmp_path: Path) -> None:
    left = story(version)
    clock = VirtualClock(left["now"] + 5)  # as long as the new version took to start
    async with hub(unpack(version, tmp_path), clock, seed=1) as fleet:
        await clock.advance(5)
        for name, was in left["workloads"].items():
            await _is_as_it_was(fleet, name, was)
        await fleet.until("humble", "Succeeded", 900)
        await fleet.until("waits", "Succeeded", 300)
        await fleet.apply(job("new", seconds=30))
        await fleet.until("new", "Succeeded", 120)
        await fleet.until("chat", "Running", 300)
        rollout = codec.decode((await fleet.store.get(ROLLOUTS, "chat", "default")).raw, Rollout)
        assert rollout.status.phase == "Completed", rollout.status
        asked = Asked(series="clusters", names=("hangzhou",), since=3600, points=1000)
        past = fleet.plane.history.answer(asked)
        values = next(iter(past["found"][0]["values"].values()))
        known = [at for at, value in zip(past["times"], values, strict=True) if value is not None]
        assert known[0] < left["now"]
        if version.name not in WITHOUT_DECIDED:
            decided = await fleet.plane.decisions("default/urgent", 100)
            assert any(entry["now"] < left["now"] for entry in decided), decided[:1]


async def _is_as_it_was(fleet: Fleet, name: str, was: Plain) -> None:
    """A claim is kept, and what ended has ended; what waits may have been admitted."""
    namespace, _, short = name.partition("/")
    found = await fleet.workload(short, namespace)
    if was["claim"] is not None:
        assert found.status.claim is not None, name
        claim = codec.to_plain(found.status.claim)
        for field in ("attempt", "queue", "placements", "decidedAt"):
            assert claim[field] == was["claim"][field], (name, field)
    elif was["phase"] != "Waiting":
        assert found.status.phase == was["phase"], name


@EACH
async def test_a_record_of_decisions_is_replayed(version: Path, tmp_path: Path) -> None:
    (path,) = segments(unpack(version, tmp_path) / "decisions")
    found = replay(read_segment(path))
    assert found.plans > 10
    assert found.decisions >= len(story(version)["workloads"])
    if version.name in DECIDED_OTHERWISE:
        assert found.differences, f"{version.name} decides as before: it need not be listed"
    else:
        assert found.differences == []


@EACH
async def test_a_record_that_lacks_an_answer_is_replayed_and_differs(
    version: Path, tmp_path: Path
) -> None:
    (path,) = segments(unpack(version, tmp_path) / "decisions")
    entries = [json.loads(line) for line in read_segment(path)]
    plans = [entry for entry in entries if entry["call"] == "plan"]
    for entry in plans:
        del entry["reservations"]
    found = replay(json.dumps(entry).encode() for entry in entries)
    assert found.plans == len(plans)
    assert found.differences[0]["recorded"]["reservations"] is None


@EACH
async def test_workloads_of_then_can_be_deleted(version: Path, tmp_path: Path) -> None:
    clock = VirtualClock(story(version)["now"] + 5)
    async with hub(unpack(version, tmp_path), clock, seed=1) as fleet:
        await clock.advance(5)
        for name in story(version)["workloads"]:
            namespace, _, short = name.partition("/")
            if "-" not in short:  # the others follow native objects
                await fleet.store.delete(WORKLOADS, short, namespace=namespace, write=USER)
        await clock.advance(60)
        left = [
            item.object()["metadata"]["name"] for item in (await fleet.store.list(WORKLOADS)).items
        ]
        assert all("-" in name for name in left), left
        assert await fleet.pods("hangzhou") == 0
