"""What was decided lately: bounded, without what was not written, and known to the next hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.kept_lines import NoLineKeeper
from fairway.controllers.scheduling.decisions import Decisions, merge
from fairway.controllers.scheduling.planner_state import Planned
from fairway.core.plan import Admit, Preempt
from fairway.hub.line_log import LineFile
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_full_disks import full_disk
from tests.controllers.test_running import FLEET, job

NOW = 1_800_000_000.0


def planned(count: int, now: float = NOW) -> Planned:
    steps = (Admit(workload=f"a/{index}", placed=(), form="") for index in range(count))
    return Planned(now=now, steps=tuple(steps))


def test_they_are_bounded_by_their_steps() -> None:
    decisions = Decisions(NoLineKeeper())
    for number in range(100):
        decisions.note(planned(300, NOW + number), ())
    known = decisions.latest("", 1_000)
    assert sum(len(decision["steps"]) for decision in known) == 66 * 300  # of at most 20,000
    assert known[-1]["now"] == NOW + 99


def test_what_was_not_written_is_told_to_nobody() -> None:
    decisions = Decisions(NoLineKeeper())
    decisions.note(planned(3), {"a/0", "a/2"})
    decisions.note(planned(1, NOW + 1), {"a/0"})
    (known,) = decisions.latest("", 10)
    assert [step["workload"] for step in known["steps"]] == ["a/1"]


def test_those_on_one_workload_are_what_it_got_and_what_gave_way_to_it() -> None:
    decisions = Decisions(NoLineKeeper())
    victim = Preempt(workload="a/1", for_="a/0", cluster="east", reasons=())
    decisions.note(Planned(now=NOW, steps=(victim, *planned(3).steps)), ())
    (known,) = decisions.latest("a/0", 10)
    assert [(step["action"], step["workload"]) for step in known["steps"]] == [
        ("Preempt", "a/1"),
        ("Admit", "a/0"),
    ]


def test_the_next_hub_takes_them_up_and_a_truncated_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "decided"
    file = LineFile(path)
    decisions = Decisions(file)
    for number in range(3):
        decisions.note(planned(2, NOW + number), ())
    file.close()
    path.write_bytes(path.read_bytes()[:-10])  # as a machine that lost its power may leave it
    file = LineFile(path)
    again = Decisions(file)
    assert again.latest("", 10) == decisions.latest("", 10)[:2]
    again.note(planned(1, NOW + 9), ())
    file.close()
    moments = [decision["now"] for decision in Decisions(LineFile(path)).latest("", 10)]
    assert moments == [NOW, NOW + 1, NOW + 9]
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_of_lines_is_bounded_by_its_bytes_too(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    file = LineFile(path, lines_most=1_000, bytes_most=100)
    for number in range(500):
        file.keep(b"%09d" % number)
        assert path.stat().st_size <= 210
    file.close()
    last = [b"%09d" % number for number in range(490, 500)]
    assert list(LineFile(path, lines_most=1_000, bytes_most=100).read()) == last


def test_a_full_disk_stops_no_decision(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = LineFile(tmp_path / "decided")
    decisions = Decisions(file)
    decisions.note(planned(1), ())
    with full_disk():
        decisions.note(planned(50, NOW + 1), ())
        decisions.note(planned(50, NOW + 2), ())
    assert caplog.text.count("a decision is not kept for the next hub") == 2
    decisions.note(planned(1, NOW + 3), ())
    file.close()
    moments = [decision["now"] for decision in decisions.latest("", 10)]
    assert moments == [NOW, NOW + 1, NOW + 2, NOW + 3]
    kept = Decisions(LineFile(tmp_path / "decided")).latest("", 10)
    assert [decision["now"] for decision in kept] == [NOW, NOW + 3]


def test_those_of_several_replicas_are_told_in_the_order_in_which_they_were_made() -> None:
    first, second = Decisions(NoLineKeeper()), Decisions(NoLineKeeper())
    for number, leader in enumerate((first, second, second, first)):
        leader.note(planned(1, NOW + number), ())
    known = merge(first.latest("", 10), second.latest("", 10), most=3)
    assert [decision["now"] for decision in known] == [NOW + 1, NOW + 2, NOW + 3]


# On a hub.


async def told(fleet: Fleet, workload: str) -> list[str]:
    known = await fleet.plane.decisions(workload, 100)
    return [f"{step['action']} {step['workload']}" for made in known for step in made["steps"]]


async def test_a_hub_that_is_started_again_knows_what_was_decided_before(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    expected = [
        "Admit default/victim",
        "Preempt default/victim",
        "Admit default/urgent",
    ]
    for is_first in (True, False):
        keeper = LineFile(tmp_path / "decided")
        async with running(store, clock, tmp_path / "clusters", decisions=keeper) as fleet:
            if is_first:
                await fleet.apply(FLEET)
                await fleet.apply(job("victim", pods=2, seconds=3600))
                await fleet.until("victim", "Running", 60)
                await fleet.apply(job("urgent", pods=2, priority=10, seconds=3600))
                await fleet.until("urgent", "Running", 60)
                before = await fleet.plane.decisions("", 100)
            await clock.advance(5)
            assert await told(fleet, "") == expected
            assert await told(fleet, "default/urgent") == expected[1:]
            assert await fleet.plane.decisions("", 100) == before
        keeper.close()


async def test_the_fleet_says_for_how_long_decisions_are_in_the_history(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    short = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {historySeconds: 600}
"""
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET + "---" + short)
        await fleet.apply(job("train", seconds=3600))
        await fleet.until("train", "Running", 60)
        assert await told(fleet, "") == ["Admit default/train"]
        await clock.advance(600)
        assert await told(fleet, "") == []


async def test_a_claim_that_waits_for_a_finalizer_is_one_decision(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(job("train").replace(", finalizers: [fairway.dev/works]", ""))
        await fleet.until("train", "Running", 30)
        assert await told(fleet, "default/train") == ["Admit default/train"]
