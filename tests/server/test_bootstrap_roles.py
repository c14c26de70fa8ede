"""A hub of a newer version brings what its roles lack, and takes nothing away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.server.access.bootstrap_roles import bootstrap_objects, complete
from fairway.server.access.rbac_rules import Rule, uncovered_rules
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write

ROLES = ResourceKey("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = ResourceKey("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
OWN = {"verbs": ["get"], "apiGroups": ["own.example"], "resources": ["things"]}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    journal = SqliteJournal(tmp_path / "fairway.db", is_inline=True)
    found = EmbeddedStore(journal, standard_catalogue(), clock=VirtualClock())
    found.start()
    await prepare_store(found)
    yield found
    await found.close()


async def _change(store: EmbeddedStore, kind: ResourceKey, name: str, body: Any) -> None:
    await store.patch(kind, name, Patch(type="merge", body=body), write=Write(user="admin"))


async def _rules(store: EmbeddedStore, name: str) -> list[Rule]:
    stored = await store.get(ROLES, name)
    return [Rule.of(rule) for rule in stored.object().get("rules") or ()]


def _started_with(name: str) -> dict[str, Any]:
    objects = bootstrap_objects()
    return next(object_ for object_ in objects if object_["metadata"]["name"] == name)


async def test_a_role_of_an_older_hub_gets_the_rules_it_lacks_and_keeps_its_own(
    store: EmbeddedStore,
) -> None:
    name = "system:aggregate-to-view"
    wanted = _started_with(name)["rules"]
    await _change(store, ROLES, name, {"rules": [*wanted[:2], OWN]})
    await prepare_store(store)
    found = await _rules(store, name)
    assert uncovered_rules(found, map(Rule.of, wanted)) == []
    assert Rule.of(OWN) in found


async def test_a_role_that_is_not_to_be_updated_stays_as_it_is(store: EmbeddedStore) -> None:
    name = "system:aggregate-to-view"
    annotations = {"annotations": {AUTOUPDATE: "false"}}
    await _change(store, ROLES, name, {"metadata": annotations, "rules": [OWN]})
    await prepare_store(store)
    assert await _rules(store, name) == [Rule.of(OWN)]


async def test_a_binding_gets_the_subjects_it_lacks(store: EmbeddedStore) -> None:
    somebody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}
    await _change(store, BINDINGS, "cluster-admin", {"subjects": [somebody]})
    await prepare_store(store)
    found = (await store.get(BINDINGS, "cluster-admin")).object()
    assert [subject["name"] for subject in found["subjects"]] == ["ada", "system:masters"]


async def test_a_start_of_the_same_version_writes_nothing(store: EmbeddedStore) -> None:
    for wanted in bootstrap_objects():
        kind = ROLES if wanted["kind"] == "ClusterRole" else BINDINGS
        stored = (await store.get(kind, wanted["metadata"]["name"])).object()
        assert complete(stored, wanted) is None
