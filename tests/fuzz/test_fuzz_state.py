"""Any sequence of requests leaves a right store: memory, disk, lists, tables and watches agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairway.resources.resource import Resource
from tests.fuzz import promises, shapes
from tests.fuzz.budget import budget
from tests.fuzz.driver import Driver
from tests.fuzz.test_fuzz_objects import KINDS, changes_of

PLACES = st.sampled_from(["default", "pond", "gone"])
TRIED = [
    KINDS[name]
    for name in (
        "namespaces",
        "configmaps",
        "pods",
        "deployments.apps",
        "rolebindings.rbac.authorization.k8s.io",
        "queues.fairway.dev",
        "workloads.fairway.dev",
    )
]


@st.composite
def _calls(draw: st.DrawFn) -> tuple[Resource, str, Any]:
    """A kind, a namespace, and an object for it."""
    resource = draw(st.sampled_from(TRIED))
    return resource, draw(PLACES), draw(shapes.objects_of(resource, spoiled=1))


@st.composite
def _changes(draw: st.DrawFn) -> tuple[Resource, str, str, tuple[str, dict[str, str], Any]]:
    resource = draw(st.sampled_from(TRIED))
    return resource, draw(PLACES), draw(shapes.NAMES), draw(changes_of(resource))


class AnySequence(RuleBasedStateMachine):
    """Writes of all sorts, by a client that also restarts the hub."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fairway-fuzz-"))
        self.driver = Driver(self.folder)
        self.driver.send("POST", "/api/v1/namespaces", {"metadata": {"name": "pond"}})
        self.begun = {
            item.qualified: self.driver.json("GET", promises.address(item)) for item in TRIED
        }
        self.checked = -1

    @rule(call=_calls(), dry=st.booleans())
    def create(self, call: tuple[Resource, str, Any], dry: bool) -> None:
        resource, namespace, body = call
        before = self.driver.hub.store.version
        query = {"dryRun": "All"} if dry else {}
        self.driver.send("POST", promises.address(resource, namespace), body, query=query)
        assert not dry or self.driver.hub.store.version == before

    @rule(call=_calls(), name=shapes.NAMES, is_current=st.booleans())
    def replace(self, call: tuple[Resource, str, Any], name: str, is_current: bool) -> None:
        resource, namespace, body = call
        path = promises.address(resource, namespace, name)
        present = self.driver.send("GET", path)
        metadata = body.get("metadata") if isinstance(body, dict) else None
        if is_current and present.status == 200 and isinstance(metadata, dict):
            metadata["name"] = name
            metadata["resourceVersion"] = msgspec.json.decode(present.body)["metadata"][
                "resourceVersion"
            ]
        self.driver.send("PUT", path, body)

    @rule(change=_changes())
    def patch(self, change: tuple[Resource, str, str, tuple[str, dict[str, str], Any]]) -> None:
        resource, namespace, name, (kind, query, body) = change
        path = promises.address(resource, namespace, name)
        self.driver.send("PATCH", path, body, query=query, kind=kind)

    @rule(
        resource=st.sampled_from(TRIED),
        namespace=PLACES,
        name=shapes.NAMES,
        policy=st.sampled_from(["", "Orphan", "Foreground", "Background"]),
    )
    def delete(self, resource: Resource, namespace: str, name: str, policy: str) -> None:
        path = promises.address(resource, namespace, name)
        self.driver.send("DELETE", path, query={"propagationPolicy": policy} if policy else {})

    @rule(
        resource=st.sampled_from(TRIED),
        owner=st.sampled_from(TRIED),
        names=st.tuples(shapes.NAMES, shapes.NAMES),
    )
    def own(self, resource: Resource, owner: Resource, names: tuple[str, str]) -> None:
        """Makes one object the dependent of another, be it itself or in a circle."""
        found = self.driver.send("GET", promises.address(owner, "default", names[0]))
        if found.status != 200:
            return
        reference = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": names[0],
            "uid": msgspec.json.decode(found.body)["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        change = {"metadata": {"ownerReferences": [reference]}}
        path = promises.address(resource, "default", names[1])
        self.driver.send("PATCH", path, change, kind="application/merge-patch+json")

    @rule()
    def empty_the_pond(self) -> None:
        self.driver.send("DELETE", "/api/v1/namespaces/pond")

    @precondition(lambda self: self.driver.hub.store.version != self.checked)
    @rule()
    def restart(self) -> None:
        before = promises.contents(self.driver)
        version = self.driver.hub.store.version
        self.driver.restart()
        assert self.driver.hub.store.version >= version, "versions went back"
        assert promises.contents(self.driver) == before, "a restart wrote something"
        self.checked = self.driver.hub.store.version

    @invariant()
    def everything_kept_is_right(self) -> None:
        for resource in TRIED:
            promises.check_kind(self.driver, resource)

    def teardown(self) -> None:
        try:
            for resource in TRIED:
                self._check_watch(resource)
            promises.check_store(self.driver)
            self.restart()
        finally:
            self.driver.close()
            shutil.rmtree(self.folder)

    def _check_watch(self, resource: Resource) -> None:
        """The list at the start with all events since is the list now."""
        path = promises.address(resource)
        begun, now = self.begun[resource.qualified], self.driver.json("GET", path)
        kept = {item["metadata"]["uid"]: item for item in begun["items"]}
        for event in self.driver.watch(path, begun["metadata"]["resourceVersion"]):
            uid = event["object"]["metadata"]["uid"]
            assert (uid in kept) == (event["type"] != "ADDED"), event
            kept[uid] = event["object"]
            if event["type"] == "DELETED":
                del kept[uid]
        assert kept == {item["metadata"]["uid"]: item for item in now["items"]}


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = budget(6, steps=20)
