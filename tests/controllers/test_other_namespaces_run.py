"""Who preempts across namespaces waits for its victim, and neither is told the other's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.claim import WorkloadMention
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import WORKLOADS
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

THEIRS = "apiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n---\n"
SAVES = "  checkpoint: {graceSeconds: 300}\n  runSeconds"


def _saving(name: str) -> str:
    """A job that takes its time to go."""
    text = job(name, pods=2, seconds=3600).replace("  runSeconds", SAVES, 1)
    return text.replace("namespace: default", "namespace: theirs")


@pytest.mark.parametrize("is_deleted", [False, True], ids=["it goes", "it is deleted meanwhile"])
async def test_a_claim_waits_for_a_victim_of_another_namespace(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, *, is_deleted: bool
) -> None:
    slow = FLEET.replace("simulated:\n", "simulated:\n    stopSeconds: 120\n")
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(f"{slow}---\n{THEIRS}{_saving('victim')}")
        await clock.advance(30)
        assert await fleet.phase("victim", "theirs") == "Running"
        await fleet.apply(job("urgent", pods=2, priority=10))
        urgent = await fleet.until("urgent", "Claimed", 30)
        victim = await fleet.workload("victim", "theirs")
        assert urgent.status.claim is not None
        mentions = [item.workload for item in urgent.status.claim.waits_for]
        assert mentions == [WorkloadMention(uid=victim.metadata.uid)]
        assert victim.status.history[-1].preempted_by == WorkloadMention(
            uid=urgent.metadata.uid, queue="research", priority=10
        )
        if is_deleted:
            await store.delete(WORKLOADS, "victim", namespace="theirs", write=Write(user="zoe"))
        await clock.advance(60)
        assert await fleet.phase("urgent") == "Claimed"
        assert await fleet.pods("hangzhou") == 2  # the victim's
        await fleet.until("urgent", "Running", 180)
