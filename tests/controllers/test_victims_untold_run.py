"""Victims whose claim was written and is not told of yet: it counts until they yield it.

News of workloads may come late, by seconds where a server is busy. Whoever is claimed for meanwhile
holds its place in the eyes of whoever plans, also when it could not be made to yield; else its
place would be given a second time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.errors import Unavailable
from fairway.api.meta import JsonObject
from fairway.clock import VirtualClock
from fairway.controllers.scheduling.commit import Outcome
from fairway.controllers.scheduling.planner_state import Planned
from fairway.core.plan import Admit, Preempt
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_faulty_stores_run import FaultyStore, claims
from tests.controllers.test_running import FLEET, job

HUMBLE, URGENT = "default/humble", "default/urgent"


def policy(cluster: str) -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: chosen}}
spec: {{selector: {{names: [{cluster}]}}}}
"""


class News:
    """What the scheduler writes of one who is claimed for and then to yield.

    From its claim on, no news of workloads come through; its yielding fails so many times.
    """

    def __init__(self, store: FaultyStore, failures: int) -> None:
        self.failures = failures
        self.failed = 0
        self._store = store

    def __call__(self, body: JsonObject) -> None:
        if body["metadata"]["name"] != "humble":
            return
        if claims(body):
            self._store.open.clear()
        elif body["status"].get("releasing") and self.failed < self.failures:
            self.failed += 1
            raise Unavailable("not now")


def decided_in(fleet: Fleet) -> list[tuple[str, str, tuple[str, ...]]]:
    """What is decided from now on: what, for whom, and who must be gone first."""
    found: list[tuple[str, str, tuple[str, ...]]] = []

    def note(planned: Planned, _outcome: Outcome, _term: int) -> None:
        for step in planned.steps:
            if isinstance(step, Admit):
                found.append(("Admit", step.workload, step.waits_for))
            elif isinstance(step, Preempt):
                found.append(("Preempt", step.workload, ()))

    fleet.plane.scheduler.observers.append(note)
    return found


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param(0, id="it yields at once"),
        pytest.param(1, id="it yields when the store answers again"),
        pytest.param(4, id="the store is away for longer"),
    ],
)
async def test_the_place_of_a_victim_is_given_only_once_it_yields_its_claim(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, failures: int
) -> None:
    faulty = FaultyStore(store)
    news = News(faulty, failures)
    urgent = job("urgent", pods=2, priority=10).replace("  queue:", "  policy: chosen\n  queue:")
    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(f"{FLEET}---{policy('nowhere')}---{urgent}")
        await clock.advance(30)
        decided = decided_in(fleet)
        faulty.before = news
        await fleet.apply(job("humble", pods=2, seconds=600))
        await clock.advance(5)
        assert decided == [("Admit", HUMBLE, ())]
        assert not faulty.open.is_set()

        await fleet.apply(policy("hangzhou"))
        await clock.advance(30)
        tried = [("Preempt", HUMBLE, ()), ("Admit", URGENT, (HUMBLE,))]
        assert decided[1:] == tried * (failures + 1)
        assert news.failed == failures
        assert (await fleet.workload("humble")).status.claim is None

        faulty.before = lambda _: None
        faulty.open.set()
        await fleet.until("urgent", "Succeeded")
        ended = await fleet.until("humble", "Succeeded", 1_200)
        assert [item.reason for item in ended.status.history] == [
            "PreemptedWithinQueue",
            "Succeeded",
        ]
