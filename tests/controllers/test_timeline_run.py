"""The timeline of a hub that runs: who had which GPUs when, and who is expected next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.glance import Glance, glance
from fairway.controllers.timeline.picture import By, Drawn, Wanted, picture
from fairway.controllers.timeline.spans import Span, ending_of
from fairway.core.forecast import starts
from fairway.hub.line_log import LineFile
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Stored, Write
from fairway.store.keys import WORKLOADS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job

_USER = Write(user="ada", manager="test")


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    keeper = LineFile(tmp_path / "spans")
    async with running(store, clock, tmp_path / "clusters", spans=keeper) as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found
    keeper.close()


async def told(fleet: Fleet, *, by: By = "cluster", most: int = 100, sees: bool = True) -> Any:
    now = fleet.clock.now()
    wanted = Wanted(by=by, start=now - 3600, end=now + 3600, most=most)
    await fleet.clock.advance(5)  # what the planner said is kept for a while
    found = await fleet.plane.timeline.answer(wanted, lambda namespace: sees)
    return next(group for group in found["groups"] if group["spans"] or group["more"])


def short(group: dict[str, Any]) -> list[tuple[str, str, float, str]]:
    return [
        (span.get("workload", ""), span["sort"], span["gpus"], span.get("ended", ""))
        for span in group["spans"]
    ]


async def test_what_ran_runs_and_is_expected_is_told_with_the_room_there_is(fleet: Fleet) -> None:
    await fleet.apply(job("short", pods=1, seconds=30))
    await fleet.apply(job("long", pods=1, seconds=600))
    await fleet.until("long", "Running", 30)
    await fleet.apply(job("large", pods=2, seconds=60))
    await fleet.until("short", "Succeeded", 120)
    found = await told(fleet)
    assert (found["name"], found["room"]) == ("hangzhou", {"h100": 16.0})
    assert short(found) == [
        ("default/long", "runs", 8.0, ""),
        ("default/short", "ran", 8.0, "Succeeded"),
        ("default/large", "reserved", 16.0, ""),
    ]
    long, _, large = found["spans"]
    assert large["from"] == pytest.approx(long["until"], abs=1)
    assert large["until"] == pytest.approx(large["from"] + 60)
    assert long["from"] <= long["ready"] <= fleet.clock.now()


async def test_a_preempted_workload_and_the_one_it_gave_way_to_are_told_by_queue(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("victim", pods=2, seconds=600))
    await fleet.until("victim", "Running", 30)
    await fleet.apply(job("urgent", pods=2, priority=10, seconds=60))
    await fleet.until("urgent", "Running", 60)
    found = await told(fleet, by="queue")
    assert (found["name"], found["room"]) == ("research", {"h100": 32.0})
    ends = {name: ended for name, sort, _, ended in short(found) if sort in ("ran", "runs")}
    assert ends == {"default/victim": "Preempted", "default/urgent": ""}


async def test_a_deleted_workload_is_remembered_and_outlives_the_hub(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    for is_first in (True, False):
        keeper = LineFile(tmp_path / "spans")
        async with running(store, clock, tmp_path / "clusters", spans=keeper) as fleet:
            if is_first:
                await fleet.apply(FLEET + "---" + job("gone", seconds=20))
                await fleet.until("gone", "Succeeded", 90)
                await store.delete(WORKLOADS, "gone", namespace="default", write=_USER)
                began = clock.now()
            await clock.advance(30)
            assert short(await told(fleet)) == [("default/gone", "ran", 8.0, "Succeeded")]
            assert fleet.plane.timeline.spans.since < began
        keeper.close()


async def test_names_go_and_areas_stay_where_the_caller_may_not_know(fleet: Fleet) -> None:
    await fleet.apply(job("secret", seconds=600))
    await fleet.until("secret", "Running", 30)
    found = await told(fleet, sees=False)
    assert short(found) == [("", "runs", 8.0, "")]
    assert "secret" not in str(found)


async def test_past_a_size_nobody_is_foreseen_and_reservations_stay(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "LOOKS_MOST", 3)
    await fleet.apply(job("long", pods=2, seconds=600))
    await fleet.until("long", "Running", 30)
    await fleet.apply(job("large", pods=2, seconds=60))
    reserved = await fleet.until("large", lambda item: item.status.reservation is not None, 60)
    assert reserved.status.reservation is not None
    assert reserved.status.reservation.starts_at is not None
    _, large = short(await told(fleet))
    assert large == ("default/large", "reserved", 16.0, "")


def seen(reason: str, **status: Any) -> Glance:
    past = {"endedAt": "2027-01-15T08:00:10Z", "reason": reason}
    result = glance(Stored(json.dumps({"status": {"history": [past], **status}}).encode()))
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        (None, "Cancelled"),
        (seen("Succeeded"), "Succeeded"),
        (seen("PreemptedToReclaim"), "Preempted"),
        (seen("ClusterLost"), "Moved"),
        (seen("Cancelled"), "Cancelled"),
        (seen("Drained"), "Stopped"),
        (seen("Failed"), "Failed"),
        (seen("Failed", history=[], claim={}), "Moved"),
        (seen("Failed", history=[], phase="Held"), "Stopped"),
        (seen("Failed", history=[{"endedAt": "2020-01-01T00:00:00Z"}], claim={}), "Moved"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_how_a_span_ended_is_told_by_its_workload(told: Glance | None, ending: str) -> None:
    span = Span(
        workload="a/b", cluster="c", queue="q", flavor="f", gpus=1000, decided_at=1_800_000_000.0
    )
    assert ending_of(span, told) == ending


def drawn(name: str, gpus: int, start: float, end: float) -> Drawn:
    return Drawn(
        workload=f"default/{name}",
        cluster="east",
        queue="team",
        flavor="h100",
        gpus=gpus * 1000,
        start=start,
        end=end,
        sort="ran",
    )


@pytest.mark.parametrize("most", [0, 1, 2, 3])
async def test_the_area_is_the_same_however_many_are_told_one_by_one(most: int) -> None:
    spans = [drawn("a", 8, -50, 33.3), drawn("b", 1, 10, 90), drawn("c", 4, 20, 400)]
    wanted = Wanted(by="cluster", start=0, end=120, most=most)
    (group,) = (await picture(spans, wanted, rooms={}, may_name=lambda _: True))["groups"]
    told = sum(
        span["gpus"] * (min(span["to"], 120) - max(span["from"], 0)) for span in group["spans"]
    )
    summed = sum(sum(item["gpus"]) for item in group["more"])  # a second each
    assert len(group["spans"]) == most
    assert told + summed == pytest.approx(8 * 33.3 + 80 + 4 * 100)


def test_a_file_of_spans_is_shortened_and_a_broken_last_line_left_out(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "spans", lines_most=3)
    for at in range(8):
        file.keep(b"%d" % at)
    file.close()
    assert list(LineFile(tmp_path / "spans", lines_most=3).read()) == [b"5", b"6", b"7"]
    assert (tmp_path / "spans").read_bytes().count(b"\n") < 7
    with (tmp_path / "spans").open("ab") as broken:
        broken.write(b"half of a li")
    assert list(LineFile(tmp_path / "spans", lines_most=3).read()) == [b"5", b"6", b"7"]


async def test_the_timeline_and_the_explanation_expect_the_same_start(fleet: Fleet) -> None:
    """Three wait in one queue behind a job that tells its end; each is asked for by itself."""
    await fleet.apply(job("long", pods=2, seconds=600))
    await fleet.until("long", "Running", 30)
    for name in ("first", "second", "third"):
        await fleet.apply(job(name, pods=2, seconds=60))
    await fleet.clock.advance(2)
    shown = {
        span["workload"]: span["from"]
        for span in (await told(fleet))["spans"]
        if span["sort"] in ("expected", "reserved")
    }
    assert len(shown) == 3
    for key, start in shown.items():
        explained = await fleet.plane.explain(*key.split("/"))
        assert explained["expected"]["start"] == pytest.approx(start, abs=1), key
