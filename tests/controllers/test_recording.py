"""The record of decisions: bounded in memory and on disk, private, never full from the start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairway.clock import VirtualClock
from fairway.controllers.scheduling.planner import InlinePlanner
from fairway.controllers.scheduling.planner_state import Fed, Planned
from fairway.controllers.scheduling.record import NoSink, RecordingPlanner
from fairway.core.plan import Admit
from fairway.hub.decision_log import FileSink, read_segment, segments
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

NOW = 1_800_000_000.0


class Busy(InlinePlanner):
    """One that decides as much as it may each time it is asked."""

    async def plan(self, now: float, budget: int) -> Planned:
        return Planned(
            now=now,
            steps=tuple(
                Admit(workload=f"a/{index}", placed=(), form="") for index in range(budget)
            ),
        )


async def test_what_was_decided_lately_is_bounded_by_its_steps() -> None:
    planner = RecordingPlanner(Busy, NoSink())
    for number in range(100):
        await planner.plan(NOW + number, 300)
    assert sum(len(decision["steps"]) for decision in planner.decisions) <= 20_000
    assert planner.decisions[-1]["now"] == NOW + 99


async def test_a_fleet_larger_than_a_segment_does_not_fill_it(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, segment_bytes=1_000)
    planner = RecordingPlanner(InlinePlanner, sink)

    def everything() -> Sequence[Fed]:
        return [
            Fed(
                b'{"apiVersion":"fairway.dev/v1alpha1","kind":"Flavor","metadata":{"name":"%032x"}}'
                % (index * 0x9E3779B97F4A7C15)
            )
            for index in range(200)
        ]

    await planner.restart(everything, 50)
    await planner.plan(NOW, 10)
    assert sink._written > 1_000
    assert not planner.wants_restart
    for number in range(2_000):
        await planner.plan(NOW + number, 10)
    assert planner.wants_restart
    sink.close()
    assert len(list(read_segment(segments(tmp_path)[-1]))) == 4 + 1 + 2_000


def test_others_cannot_read_a_record(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "decisions")
    sink.begin()
    sink.close()
    (segment,) = segments(tmp_path / "decisions")
    assert segment.stat().st_mode & 0o077 == 0
    assert segment.parent.stat().st_mode & 0o077 == 0


async def test_what_was_decided_and_not_written_is_told_to_nobody() -> None:
    planner = RecordingPlanner(Busy, NoSink())
    await planner.plan(NOW, 1)
    await planner.plan(NOW + 1, 3)
    planner.take_back({"a/0", "a/2"}, NOW + 1)
    assert [step["workload"] for made in planner.decisions for step in made["steps"]] == [
        "a/0",
        "a/1",
    ]
    planner.take_back({"a/1"}, NOW + 1)
    planner.take_back({"a/0"}, NOW + 2)  # of another plan
    assert [(decision["now"], len(decision["steps"])) for decision in planner.decisions] == [
        (NOW, 1)
    ]


async def test_a_claim_that_waits_for_a_finalizer_is_one_decision(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(job("train").replace(", finalizers: [fairway.dev/works]", ""))
        await fleet.until("train", "Running", 30)
        decided = await fleet.plane.decisions("default/train", 100)
        assert [step["action"] for made in decided for step in made["steps"]] == ["Admit"]
