"""Spans as workloads are told of: late, anew under the same name, and by a hub started again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock, timestamp
from fairway.controllers.cache import Cache
from fairway.controllers.timeline import spans as spans_module
from fairway.controllers.timeline.picture import Drawn, Wanted, picture
from fairway.controllers.timeline.spans import Span, Spans
from fairway.hub.line_log import LineFile
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS

NOW = 1_800_000_000.0


class Told:
    """Spans of which the mirror of workloads tells."""

    def __init__(self, store: EmbeddedStore, clock: VirtualClock, path: Path) -> None:
        cache = Cache(store, clock=clock)
        self.clock = clock
        self.keeper = LineFile(path)
        self.spans = Spans(cache, clock, self.keeper)
        self._follow = cache.mirror(WORKLOADS).followers[-1]

    def tell(self, name: str, body: dict[str, Any] | None) -> None:
        raw = Stored(json.dumps(body).encode()) if body is not None else None
        self._follow(("default", name), raw)

    def areas(self) -> dict[str, float]:
        """GPU-seconds of each until now, those that last among them."""
        found: dict[str, float] = {}
        for item in (*self.spans.open_spans(), *self.spans.ended_after(0)):
            end = item.ended_at if item.ended_at is not None else self.clock.now()
            area = item.gpus / 1000 * (end - item.decided_at)
            found[item.workload] = found.get(item.workload, 0.0) + area
        return found


def holds(gpus: int, *, since: float = NOW, uid: str = "1") -> dict[str, Any]:
    pods = {"count": 1, "requests": {"nvidia.com/gpu": gpus}, "flavors": {"nvidia.com/gpu": "h100"}}
    placement = {"cluster": "east", "podSets": [pods]}
    claim = {"decidedAt": timestamp(since), "readyAt": timestamp(since), "placements": [placement]}
    return {"metadata": {"uid": uid}, "spec": {"queue": "team"}, "status": {"claim": claim}}


def over(ended_at: float) -> dict[str, Any]:
    past = {"endedAt": timestamp(ended_at), "reason": "Succeeded"}
    return {"metadata": {"uid": "1"}, "status": {"phase": "Succeeded", "history": [past]}}


@pytest.fixture
def told(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path) -> Iterator[Told]:
    found = Told(store, clock, tmp_path / "spans")
    yield found
    found.keeper.close()


def names(spans: Iterable[Span]) -> set[str]:
    return {span.workload for span in spans}


async def test_an_end_that_is_told_late_hides_nobody_else(told: Told) -> None:
    for name in ("cut-off", "short"):
        told.tell(name, holds(8))
    await told.clock.advance(4000)
    told.tell("short", over(told.clock.now()))
    told.tell("cut-off", over(NOW + 100))  # its cluster could not be reached since
    assert names(told.spans.ended_after(told.clock.now() - 3600)) == {"default/short"}


async def test_one_that_came_anew_under_a_name_is_another(told: Told) -> None:
    told.tell("train", holds(8))
    await told.clock.advance(60)
    # The watch began anew, so nobody tells that the first was deleted.
    told.tell("train", holds(8, since=NOW + 50, uid="2"))
    (lasting,) = told.spans.open_spans()
    (ended,) = told.spans.ended_after(0)
    assert (lasting.decided_at, ended.decided_at) == (NOW + 50, NOW)
    assert ended.ended == "Cancelled"


async def test_a_hub_that_is_started_again_counts_nothing_twice(
    told: Told, store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    told.tell("shrinks", holds(8))
    await clock.advance(100)
    told.tell("shrinks", holds(4))
    await clock.advance(100)
    told.keeper.close()
    again = Told(store, clock, tmp_path / "spans")
    again.tell("shrinks", holds(4))
    assert again.areas() == told.areas() == {"default/shrinks": 1200}


async def test_a_line_that_was_cut_short_costs_no_other(
    told: Told, store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    path = tmp_path / "spans"
    told.tell("first", holds(8))
    told.tell("first", None)
    told.keeper.close()
    with path.open("ab") as broken:
        broken.write(b'{"workload": "default/ha')
    for name in ("second", "third"):
        again = Told(store, clock, path)
        again.tell(name, holds(8))
        again.tell(name, None)
        again.keeper.close()
    found = names(Told(store, clock, path).spans.ended_after(0))
    assert found == {"default/first", "default/second", "default/third"}


async def test_what_was_dropped_is_not_said_to_be_known(
    told: Told,
    store: EmbeddedStore,
    clock: VirtualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told.tell("long", holds(8))
    ends = []
    for at in range(5):
        await clock.advance(100)
        told.tell(f"short-{at}", holds(1, since=clock.now()))
        told.tell(f"short-{at}", None)
        ends.append(clock.now())
    told.tell("long", None)
    told.keeper.close()
    monkeypatch.setattr(spans_module, "_ENDED_MOST", 3)
    again = Told(store, clock, tmp_path / "spans")
    assert names(again.spans.ended_after(0)) == {
        "default/short-3",
        "default/short-4",
        "default/long",
    }
    assert ends[2] <= again.spans.since <= ends[3]


async def test_many_of_one_queue_are_summed() -> None:
    spans = [
        Drawn(
            workload=f"default/job-{at}",
            cluster="east",
            queue="team",
            flavor="h100",
            gpus=8000,
            start=-9000.0 + at % 3000,
            end=float("inf"),
            sort="runs",
        )
        for at in range(5_000)
    ]
    wanted = Wanted(by="queue", start=-3600, end=900)
    (group,) = (await picture(spans, wanted, rooms={}, may_name=lambda _: True))["groups"]
    (rest,) = group["more"]
    assert rest["gpus"] == pytest.approx([4_900 * 8.0] * 120)
