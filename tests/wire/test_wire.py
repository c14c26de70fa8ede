"""A hub works with the agents of the version before: what was said then is understood now.

Conversations are recorded once for each version and kept. The one of this version pins the wire: a
change of what an agent sends shows here first, and the conversations of before say whether a hub of
today still takes it.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway import __version__
from fairway.agent.hub import Hub
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.fleet import Fleet
from fairway.api.report import ClusterReport
from fairway.api.schemas import schema_of
from fairway.api.work import Work
from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.controllers.work_states import States
from fairway.loops import end
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import CLUSTERS, NAMESPACES, REPORTS, WORKS
from fairway.store.mirrors import Mirror
from tests.upgrade.record import WIRE
from tests.upgrade.story import HERE
from tests.wire.record import Plain, conversation, work

RECORDED = sorted(HERE.glob(f"*/{WIRE}"))
EACH = pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
HUB = Write(user="hub", manager="hub")
FIELD = "ofAnotherVersion"
STRUCTS = {"Work": Work, "Cluster": Cluster, "ClusterReport": ClusterReport, "Fleet": Fleet}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    """The store of a hub of today, with the cluster of the conversations."""
    journal = SqliteJournal(tmp_path / "fairway.db", is_inline=True)
    store = EmbeddedStore(journal, standard_catalogue(), clock=VirtualClock())
    store.start()
    await prepare_store(store)
    await store.create(NAMESPACES, {"metadata": {"name": "fairway-cluster-here"}}, write=HUB)
    yield store
    await store.close()


def read(path: Path) -> Plain:
    said: Plain = json.loads(path.read_text())
    return said


async def say(store: EmbeddedStore, call: Plain, agent: Write) -> None:
    """Sends one call of an agent, as its version of the client sends it."""
    kind, body = ResourceKey(*call["kind"]), copy.deepcopy(call.get("body"))
    where = {"namespace": call["namespace"], "write": agent}
    match call["verb"]:
        case "patch":
            patch = Patch(type=call["type"], body=body, force=call["type"] == "apply")
            await store.patch(kind, call["name"], patch, subresource=call["subresource"], **where)
        case "update":
            assert body is not None
            found = (await store.get(kind, body["metadata"]["name"], call["namespace"])).object()
            body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            await store.update(kind, body, subresource=call["subresource"], **where)
        case "create":
            assert body is not None
            await store.create(kind, body, **where)
        case verb:
            raise AssertionError(f"no conversation has {verb} yet")


async def begin(store: EmbeddedStore, said: Plain) -> None:
    """What the hub had said by then; the work that it lost is not there any more."""
    for body in copy.deepcopy(said["hub"]):
        body.pop("status", None)
        for field in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"):
            body["metadata"].pop(field, None)
        if body["kind"] == "Cluster":
            await store.create(CLUSTERS, body, write=HUB)
        elif body["metadata"]["name"] != "default.lost":
            namespace = body["metadata"]["namespace"]
            await store.create(WORKS, body, namespace=namespace, write=HUB)


def agent_write() -> Write:
    """As agents write: what a hub does not know it may leave out."""
    return Hub(None, "here", clock=VirtualClock(), epoch=1)._write  # type: ignore[arg-type]  # unused


async def told(store: EmbeddedStore) -> dict[str, str]:
    """The phases of works as the controllers of a hub read them."""
    mirror = Mirror(store, REPORTS, clock=VirtualClock())
    states = States(mirror)
    following = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    await end([following])
    return {name: value.phase for name, value in sorted(states.of_cluster("here").items())}


@EACH
async def test_a_hub_of_today_takes_all_that_an_agent_of_then_says(
    path: Path, store: EmbeddedStore
) -> None:
    said = read(path)
    await begin(store, said)
    for call in said["agent"]:
        await say(store, call, agent_write())
    assert await told(store) == said["told"]
    put_back = decode((await store.get(WORKS, "default.lost", "fairway-cluster-here")).raw, Work)
    assert put_back.spec == decode(work("lost"), Work).spec
    status = decode((await store.get(CLUSTERS, "here")).raw, Cluster).status
    assert (status.nodes, status.ready_nodes) == (3, 3)


async def test_an_agent_of_today_says_what_was_recorded_of_its_version() -> None:
    recorded = read(HERE / __version__ / WIRE)
    said = json.loads(json.dumps(await conversation()))
    assert unnumbered(said["agent"]) == unnumbered(recorded["agent"]), (
        "what agents send has changed: is it understood by the hubs of the version before? "
        "Then: record it, under another version if this one was released"
        " (docs/checklists/new-version.md)"
    )


@EACH
async def test_an_agent_of_today_does_what_a_hub_of_then_says(path: Path) -> None:
    recorded = read(path)
    works = [item for item in recorded["hub"] if item["kind"] == "Work"]
    assert (await conversation(works))["told"] == recorded["told"]


def unnumbered(value: Any) -> Any:
    """Without versions of objects: those are the store's, and count whatever else it holds."""
    if isinstance(value, dict):
        return {key: unnumbered(other) for key, other in value.items() if key != "resourceVersion"}
    return [unnumbered(item) for item in value] if isinstance(value, list) else value


def strewn(value: Any, schema: Plain) -> Any:
    """With a field that nobody knows in every part of an object that has fields of its own."""
    if isinstance(value, dict):
        fields, further = schema.get("properties"), schema.get("additionalProperties") or {}
        found = {
            key: strewn(other, (fields or {}).get(key, further)) for key, other in value.items()
        }
        return {**found, FIELD: {"some": ["thing"]}} if fields else found
    if isinstance(value, list):
        return [strewn(item, schema.get("items") or {}) for item in value]
    return value


def objects(said: Plain) -> Iterator[Plain]:
    """Whole objects of a conversation, in either direction."""
    yield from said["hub"]
    for call in said["agent"]:
        body = call.get("body")
        if isinstance(body, dict) and body.get("kind") in STRUCTS:
            yield body


@EACH
def test_fields_of_a_later_version_are_passed_over_by_whoever_reads(path: Path) -> None:
    found = list(objects(read(path)))
    assert {item["kind"] for item in found} >= {"Work", "Cluster", "ClusterReport"}
    for body in found:
        struct = STRUCTS[body["kind"]]
        later = strewn(body, schema_of(struct))
        later["metadata"] = {**body["metadata"], FIELD: True}
        assert len(str(later)) > len(str(body)) + 100
        assert decode(later, struct) == decode(body, struct)


@EACH
async def test_what_a_later_agent_says_beyond_what_a_hub_knows_is_left_out(
    path: Path, store: EmbeddedStore
) -> None:
    said = read(path)
    await begin(store, said)
    for call in said["agent"]:
        if call.get("type") == "apply":
            await say(
                store, call, agent_write()
            )  # any server refuses to apply what it does not know
            continue
        body = copy.deepcopy(call["body"])
        part = body["spec"] if isinstance(body, dict) and "spec" in body else body
        if isinstance(part, list):
            part = part[0]["value"]
        elif "status" in part:
            part = part["status"]
        part[FIELD] = {"some": ["thing"]}
        await say(store, {**call, "body": body}, agent_write())
    assert await told(store) == said["told"]
