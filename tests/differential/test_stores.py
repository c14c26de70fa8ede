"""The embedded store does what the one on a real kube-apiserver does, but for a committed list.

Controllers and agents know a store by its interface alone, so the same calls are made on both, and
every answer and every refusal is compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairway.api import crds
from fairway.app.embedded_store import open_store, prepare_store
from fairway.clock import SystemClock
from fairway.kubeapi import KubeApi, load_access
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.kubernetes.definitions import define
from fairway.store.kubernetes.store import KubernetesStore
from tests.differential import comparison, stores
from tests.differential.store_steps import STEPS
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.demand import demand
from tests.kubernetes.test_hub import AS_THEY_ARE


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[EmbeddedStore]:
    store = open_store(folder)
    try:
        await prepare_store(store)
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def on_kubernetes(folder: Path) -> AsyncIterator[KubernetesStore]:
    with control_plane.running(folder) as plane:
        store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
        try:
            await define(store, crds.definitions(), clock=SystemClock())
            store.stamps = AS_THEY_ARE
            yield store
        finally:
            await store.close()


@pytest.mark.real
async def test_both_stores_answer_alike(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    (tmp_path / "real").mkdir()
    (tmp_path / "ours").mkdir()
    async with on_kubernetes(tmp_path / "real") as store:
        real = await stores.outcomes(store)
    async with embedded(tmp_path / "ours") as store:
        ours = await stores.outcomes(store)
    assert [say for say, value in real.items() if "never" in value] == []
    found = list(comparison.differences(real, ours))
    entries = comparison.accepted(comparison.STORES)
    new = [each for each in found if not any(entry.covers(each) for entry in entries)]
    gone = [entry for entry in entries if not any(entry.covers(each) for each in found)]
    assert not new, f"{len(new)} differences are not in the list:\n" + "\n".join(map(str, new))
    assert not gone, "listed differences that no longer occur:\n" + "\n".join(map(str, gone))


def test_every_sentence_is_its_own() -> None:
    sentences = [step.say for step in STEPS]
    assert len(set(sentences)) == len(sentences)
