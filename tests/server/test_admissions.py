"""What a hub answers an API server that asks about a write: the same as an embedded store would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import yaml

from fairway.api import crds
from fairway.api.errors import ApiError, BadRequest, Unavailable
from fairway.api.submission import CREATED_BY, HUB, SUBMITTED_BY
from fairway.clock import SystemClock
from fairway.controllers.cache import Cache
from fairway.hub.admission import Admission
from fairway.resources.catalogue import Catalogue, standard_catalogue
from fairway.server.wire.admissions import Admissions
from fairway.server.wire.exchange import Request
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import NAMESPACES, resource_of

Json = dict[str, Any]

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
kind: Queue
metadata: {name: closed}
spec: {submitters: {users: [ada], groups: [lab]}}
---
kind: Queue
metadata: {name: below}
spec: {parent: closed}
---
kind: Queue
metadata: {name: full}
spec: {waitingWorkloadsMax: 1}
---
kind: Queue
metadata: {name: limited}
spec: {userLimits: [{name: each, waitingWorkloads: 0}]}
---
kind: Workload
metadata: {name: pending, namespace: default}
spec: {queue: full, podSets: [{name: main}]}
---
apiVersion: governance.fairway.dev/v1alpha1
kind: FleetPolicy
metadata: {name: ours}
spec: {namespaces: {names: [default]}, registries: [ghcr.io]}
---
apiVersion: governance.fairway.dev/v1alpha1
kind: FleetPolicy
metadata: {name: soon}
spec: {namespaces: {names: [default]}, priority: {max: 5}, enforcement: Warn}
---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {fairway.dev/default-queue: closed}}
"""


def workload(queue: str = "open", image: str = "ghcr.io/a", **spec: Any) -> Json:
    template = {"manifests": [job(image=image)]}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"queue": queue, "template": template, **spec},
    }


def job(namespace: str = "default", image: str = "ghcr.io/a", **labels: str) -> Json:
    containers = [{"name": "main", "image": image}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    }


def placement(*expressions: str) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "near", "namespace": "default"},
        "spec": {"groups": [{"name": "g", "selector": {"expressions": list(expressions)}}]},
    }


@dataclass(frozen=True, kw_only=True)
class Server:
    """A store that refuses by itself, and a hub that is asked about the same objects."""

    store: EmbeddedStore
    admissions: Admissions

    async def ask(
        self,
        body: Json,
        before: Json | None = None,
        *,
        user: str = "eve",
        groups: tuple[str, ...] = (),
    ) -> Json:
        """What the hub answers a server that asks about a write."""
        resource = key_of(body)
        asked = {
            "uid": "7",
            "resource": {"group": resource.group, "version": resource.version,
                         "resource": resource.plural},
            "operation": "CREATE" if before is None else "UPDATE",
            "namespace": body["metadata"].get("namespace", ""),
            "userInfo": {"username": user, "groups": list(groups)},
            "object": body,
            "oldObject": before,
            "dryRun": False,
        }  # fmt: skip
        response = await self.admissions.answer(
            question({"request": asked}, self.admissions.path())
        )
        assert response is not None
        review = json.loads(response.body)
        assert (review["kind"], review["response"].pop("uid")) == ("AdmissionReview", "7")
        return dict(review["response"])

    async def create(self, body: Json, **who: Any) -> Json:
        """What the store answers by itself, in the words of a review."""
        write = Write(dry_run=True, **who)
        body = json.loads(json.dumps(body))
        try:
            namespace = body["metadata"].get("namespace", "")
            await self.store.create(key_of(body), body, namespace=namespace, write=write)
        except ApiError as fault:
            return {"allowed": False, "status": fault.status()}
        return {"allowed": True, "warnings": write.warnings}


def key_of(body: Json) -> ResourceKey:
    if body["kind"].endswith("Policy"):
        group, _, version = body["apiVersion"].rpartition("/")
        return ResourceKey(group, version, body["kind"].lower().replace("policy", "policies"))
    return resource_of(body["apiVersion"], body["kind"])


def question(body: Any, path: str) -> Request:
    return Request(method="POST", path=path, body=json.dumps(body).encode())


@cache
def our_catalogue() -> Catalogue:
    """The kinds of every hub, parsed once for all tests."""
    catalogue = standard_catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(definition)
    return catalogue


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    clock = SystemClock()
    store = EmbeddedStore(MemoryJournal(), our_catalogue(), clock=clock)
    store.start()
    for body in yaml.safe_load_all(OBJECTS):
        body.setdefault("apiVersion", "fairway.dev/v1alpha1")
        namespace = body["metadata"].get("namespace", "")
        await store.create(key_of(body), body, namespace=namespace, write=Write(user="ada"))
    cache = Cache(store, clock=clock)
    admissions = Admissions(lambda: b"secret")
    admissions.check = Admission(cache, store.catalogue, own_name="hub").check
    following = asyncio.ensure_future(cache.run())
    try:
        with pytest.raises(Unavailable, match="still reads"):
            await Server(store=store, admissions=admissions).ask(workload())
        await cache.complete()
        yield Server(store=store, admissions=admissions)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()


WRITES: dict[str, tuple[Json, str]] = {
    "nothing is wrong": (workload(), ""),
    "a stranger": (workload("closed"), "queue closed takes no workloads of eve in namespace"),
    "a stranger to the queue above": (workload("below"), "queue closed takes no workloads of eve"),
    "a full queue": (workload("full"), "its maximum of 1 pending workloads"),
    "a user's limit": (workload("limited"), "its maximum of 0 pending workloads of eve"),
    "an image": (workload(image="evil.io/x"), "fleet policy ours does not allow image evil.io/x"),
    "a priority that is warned about": (workload(priority=6), ""),
    "a native object with a queue": (
        job(**{"fairway.dev/queue": "closed"}), "metadata.labels[fairway.dev/queue]: queue closed"),
    "a native object and a policy": (
        job(image="evil.io/x", **{"fairway.dev/queue": "open"}), "does not allow image evil.io/x"),
    "a native object in the default queue of its namespace": (job("team"), "queue closed"),
    "a native object without a queue": (job(image="evil.io/x"), ""),
    "an expression that does not compile": (
        placement("cluster.name == 'a'", "cluster.na ="),
        "spec.groups[0].selector.expressions[1]: not a valid CEL expression: 1:12:"),
    "an expression that does": (placement("cluster.name == 'a'"), ""),
}  # fmt: skip


@pytest.mark.parametrize(("body", "said"), WRITES.values(), ids=WRITES)
async def test_a_hub_that_is_asked_answers_what_an_embedded_store_would(
    server: Server, body: Json, said: str
) -> None:
    answer = await server.ask(body)
    assert answer == await server.create(body, user="eve")
    assert answer["allowed"] == (not said)
    assert said in answer.get("status", {}).get("message", "")
    if body["spec"].get("priority"):
        (warning,) = answer["warnings"]
        assert warning.startswith("fleet policy soon does not allow priority 6")


@pytest.mark.parametrize("who", [{"user": "ada"}, {"user": "eve", "groups": ("all", "lab")}])
async def test_submitters_are_the_users_and_groups_that_the_server_names(
    server: Server, who: Any
) -> None:
    assert await server.ask(workload("closed"), **who) == {"allowed": True, "warnings": []}


def labelled(body: Json) -> Json:
    """An object with another change."""
    return {**body, "metadata": {**body["metadata"], "labels": {"a": "b"}}}


BAD, BROKEN = workload("closed", image="evil.io/x"), placement("cluster.na =")
CHANGES = {
    "nothing is added": (BAD, labelled(BAD), True),
    "a queue": (workload("open"), workload("closed"), False),
    "an image": (BAD, workload("closed", image="evil.io/y"), False),
    "an expression stays as it is": (BROKEN, labelled(BROKEN), True),
    "an expression": (BROKEN, placement("cluster.na !"), False),
}


@pytest.mark.parametrize(("before", "after", "is_allowed"), CHANGES.values(), ids=CHANGES)
async def test_a_change_is_refused_for_what_it_adds(
    server: Server, before: Json, after: Json, is_allowed: bool
) -> None:
    assert (await server.ask(after, before))["allowed"] is is_allowed


async def test_the_hub_creates_for_users_and_for_itself(server: Server) -> None:
    body = workload("closed")
    for notes, allowed in (
        ({CREATED_BY: "eve", SUBMITTED_BY: "eve\npeople"}, False),
        ({CREATED_BY: "eve", SUBMITTED_BY: "eve\nlab"}, True),
        ({CREATED_BY: "ada"}, True),
        ({CREATED_BY: HUB}, True),
        ({CREATED_BY: "hub"}, True),
    ):
        body["metadata"]["annotations"] = notes
        assert (await server.ask(body, user="hub"))["allowed"] is allowed, notes
    # Others cannot say for whom they write.
    body["metadata"]["annotations"] = {CREATED_BY: "ada", SUBMITTED_BY: "ada"}
    assert not (await server.ask(body))["allowed"]


async def test_a_queue_of_kueue_is_left_to_kueue(server: Server) -> None:
    body = job(**{"kueue.x-k8s.io/queue-name": "closed"})
    assert (await server.ask(body))["allowed"]
    assert not (await server.create(body, user="eve"))["allowed"]


async def test_a_namespace_that_was_just_created_is_known(server: Server) -> None:
    body = {"metadata": {"name": "late", "labels": {"fairway.dev/default-queue": "closed"}}}
    await server.store.create(NAMESPACES, body, write=Write())
    assert not (await server.ask(job("late")))["allowed"]


async def test_only_the_server_finds_the_path_and_what_it_asks_is_read(server: Server) -> None:
    admissions, path = server.admissions, server.admissions.path()
    for wrong in ("/admit/", "/admit", path[:-1], path + "0", "/admit/é", "/convert"):
        assert not admissions.is_asked(question({}, wrong))
    assert not admissions.is_asked(Request(method="GET", path=path))
    assert admissions.is_asked(question({}, path))
    for body in ({}, [], {"request": {"uid": "7"}}):
        with pytest.raises(BadRequest, match="no AdmissionReview"):
            await admissions.answer(question(body, path))
    assert Admissions(lambda: b"secret").path() == path
    assert Admissions(lambda: b"another").path() != path
    assert not Admissions(lambda: b"secret").is_asked(question({}, path))  # embedded
