"""What a change of a workload adds to counters, and gauges from what is known, as tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fairway.api.amounts import Quantity
from fairway.api.fleet import BreakerStatus
from fairway.api.fleet_metrics import (
    AGENT_AGE,
    BREAKER_OPEN,
    CLUSTERS,
    FORECAST_ERROR,
    GPUS,
    MOVES,
    OLDEST_WAIT,
    PAUSED,
    PLANNER_OBJECTS,
    PREEMPTIONS,
    SHARE,
    USED,
    WAITING,
)
from fairway.api.reasons import Code, Reason
from fairway.clock import timestamp
from fairway.controllers.fleet_metrics.numbers import UNKNOWN, Facts, Waiting, numbers
from fairway.controllers.fleet_metrics.turns import Seen, decided, seen_of, turns
from fairway.controllers.glance import Glance
from fairway.core.explain.extent import Extent
from fairway.core.explain.samples import Gauges, HoldingGauge, PlaceGauge, QueueGauge
from fairway.core.model import Placed
from fairway.core.plan import Admit, Move, Preempt, Provision

NOW = 1_794_729_600.0
Json = dict[str, Any]


def at(seconds: float) -> str:
    return timestamp(NOW + seconds)


def workload(status: Json | None = None, uid: str = "u-1") -> Glance:
    metadata = {"namespace": "team", "name": "train", "uid": uid, "creationTimestamp": at(0)}
    body = {"metadata": metadata, "spec": {"queue": "research"}, "status": status or {}}
    return msgspec.convert(body, Glance)


def claim(*clusters: str, decided: float = 30, ready: float | None = None) -> Json:
    pods = [{"count": 2, "requests": {"nvidia.com/gpu": 4}}]
    placements = [{"cluster": cluster, "podSets": pods} for cluster in clusters or ("east",)]
    found = {"queue": "research", "decidedAt": at(decided), "placements": placements}
    return {**found, "readyAt": at(ready)} if ready is not None else found


def past(reason: str, attempt: int = 1, *, ended: float = 100, **more: Any) -> Json:
    clusters = ["east"]
    return {
        "attempt": attempt,
        "reason": reason,
        "endedAt": at(ended),
        "clusters": clusters,
        **more,
    }


RUNS = {"phase": "Running", "claim": claim(ready=40)}


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        pytest.param(
            {}, {"phase": "Waiting", "reason": "DoesNotFit"}, [], id="waiting adds nothing"
        ),
        pytest.param(
            {},
            {"phase": "Claimed", "claim": claim()},
            [("fairway_admission_wait_seconds", ("research",), 30.0)],
            id="a claim ends the wait for admission",
        ),
        pytest.param(
            {"phase": "Claimed", "claim": claim()},
            RUNS,
            [("fairway_start_wait_seconds", ("research",), 40.0)],
            id="ready pods end the wait for a start",
        ),
        pytest.param(RUNS, {**RUNS, "pods": {"ready": 2}}, [], id="what runs on adds nothing"),
        pytest.param(
            {"history": [past("NodeLost")], "queuedAt": at(0)},
            {"history": [past("NodeLost")], "queuedAt": at(0), "claim": claim(decided=130)},
            [("fairway_admission_wait_seconds", ("research",), 30.0)],
            id="the run of an earlier attempt is no wait",
        ),
        pytest.param(
            {"queuedAt": at(50)},
            {"queuedAt": at(50), "claim": claim(decided=130)},
            [("fairway_admission_wait_seconds", ("research",), 80.0)],
            id="a wait begins when it is queued",
        ),
        pytest.param(
            RUNS,
            {"phase": "Stopping", "history": [past("DoesNotAnswer", blame="Place")]},
            [("fairway_evictions", ("research", "other", "Place"), 1.0)],
            id="a code that is not known is other",
        ),
        pytest.param(
            RUNS,
            {"history": [past("ClusterLost", blame="Place", lostSeconds=60)]},
            [
                ("fairway_evictions", ("research", "ClusterLost", "Place"), 1.0),
                ("fairway_moves", ("research", "ClusterLost"), 1.0),
                ("fairway_lost_gpu_seconds", ("research", "ClusterLost"), 480.0),
            ],
            id="a lost cluster evicts, moves and loses the work of all GPUs",
        ),
        pytest.param(
            {"claim": claim("east", "west", ready=40)},
            {
                "claim": claim("west", ready=40),
                "history": [past("OutOfMemory", blame="Program", lostSeconds=10)],
            },
            [
                ("fairway_evictions", ("research", "OutOfMemory", "Program"), 1.0),
                ("fairway_lost_gpu_seconds", ("research", "OutOfMemory"), 80.0),
            ],
            id="only what the lost part of a claim held is lost",
        ),
        pytest.param(
            {**RUNS, "history": [past("ClusterLost")]},
            {"phase": "Stopping", "history": [past("ClusterLost"), past("Cancelled", 2)]},
            [("fairway_evictions", ("research", "Cancelled", "Unknown"), 1.0)],
            id="an attempt counts once",
        ),
        *(
            pytest.param(RUNS, {"phase": "Succeeded", "history": [past(done)]}, [], id=done)
            for done in ("Succeeded", "TasksDone", "CopiesDone")
        ),
    ],
)
def test_what_a_change_adds(before: Json, after: Json, added: list[Any]) -> None:
    seen = seen_of(workload(before))
    assert seen is not None
    found = turns(seen, workload(after))
    assert [(turn.metric.name, turn.labels, turn.value) for turn in found] == added


@pytest.mark.parametrize(
    ("forecast", "labels", "seconds"),
    [
        pytest.param(10, ("late",), 30, id="it started after the time that was forecast"),
        pytest.param(100, ("early",), 60, id="it started before it"),
        pytest.param(40, ("late",), 0, id="it started on time"),
    ],
)
def test_how_wrong_a_forecast_was(forecast: float, labels: tuple[str], seconds: float) -> None:
    found = [
        turn
        for turn in turns(Seen(), workload(RUNS), NOW + forecast)
        if turn.metric is FORECAST_ERROR
    ]
    assert [(turn.labels, turn.value) for turn in found] == [(labels, seconds)]


def test_steps_that_were_written_count_preemptions_and_moves() -> None:
    why = (Reason(code=Code.PREEMPTED_TO_RECLAIM),)
    home = (Reason(code=Code.RETURNS_HOME),)
    placed = Placed(cluster="east", pods=())
    steps = [
        Preempt(workload="a/low", for_="a/high", reasons=why),
        Admit(workload="a/high", placed=(placed,)),
        Admit(workload="a/chat", placed=(placed,), leaving=1, reasons=home),
        Move(workload="a/chat", source="west", placed=placed, count=1, reasons=home),
        Provision(workload="a/high", cluster="east", pool="gpu", count=1),
    ]
    queues = {"a/low": "research", "a/chat": "product"}
    assert [(turn.metric, turn.labels) for turn in decided(steps, queues)] == [
        (PREEMPTIONS, ("research", "PreemptedToReclaim")),
        (MOVES, ("product", "ReturnsHome")),
        (MOVES, ("product", "ReturnsHome")),
    ]


@pytest.mark.parametrize(
    ("status", "waits_for"),
    [
        pytest.param({}, "NotYetKnown", id="a new one"),
        pytest.param({"phase": "Waiting", "reason": "QuotaExceeded"}, "QuotaExceeded", id="waits"),
        pytest.param({"phase": "Waiting", "reason": "Whatever"}, "other", id="of an unknown code"),
        pytest.param({"phase": "Held", "reason": "Held"}, None, id="is held"),
        pytest.param(RUNS, None, id="runs"),
    ],
)
def test_why_a_workload_waits(status: Json, waits_for: str | None) -> None:
    seen = seen_of(workload(status))
    assert seen is not None
    assert seen.waits_for == waits_for


def test_what_is_over_is_not_kept() -> None:
    assert seen_of(workload({"phase": "Failed"})) is None


def queue(parent: str = "", nominal: float = 8, used: float = 0, share: int | None = 0) -> Any:
    holding = HoldingGauge("h100", "nvidia.com/gpu", nominal, used, max(0, used - nominal), 0)
    return QueueGauge(parent, 1, 1, share, used, used, (holding,))


FACTS = Facts(
    now=NOW,
    gauges=Gauges(
        queues={"small": queue("all", 2, 4, None), "all": queue("", 10, 4), "big": queue("all", 8)},
        places={
            ("east", "h100"): PlaceGauge(16, 10, 4, 6, 0),
            ("west", ""): PlaceGauge(8, 2, 8, 6, 0),
            ("cloud", "h100"): PlaceGauge(0, 0, 0, 0, 32),
        },
    ),
    extent=Extent(
        workloads=5,
        queues=3,
        clusters=3,
        nodes=4,
        closed=frozenset({"west"}),
        unready={("east", "h100"): 8_000},
    ),
    waiting=Waiting(
        [
            Seen(queue="small", waits_for="DoesNotFit", since=NOW - 50),
            Seen(queue="small", waits_for="DoesNotFit", since=NOW - 90),
            Seen(queue="small", waits_for="BackOff"),
            Seen(queue="big", since=NOW - 900),
        ]
    ),
    phases={"east": "Ready", "west": "Lost", "cloud": "Ready", "new": ""},
    silent_seconds={"east": 2.0, "west": 400.0},
    breakers=(
        BreakerStatus(
            name="Moves", past_hour=Quantity.of(1), open_since=datetime(2026, 1, 1, tzinfo=UTC)
        ),
        BreakerStatus(name="Price", past_hour=Quantity.of(0)),
    ),
)


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        (WAITING, {("small", "DoesNotFit"): 2, ("small", "BackOff"): 1}),
        (OLDEST_WAIT, {("all",): 0, ("big",): 0, ("small",): 90}),
        (
            USED,
            {
                ("all", "", "h100", "nvidia.com/gpu"): 4,
                ("big", "all", "h100", "nvidia.com/gpu"): 0,
                ("small", "all", "h100", "nvidia.com/gpu"): 4,
            },
        ),
        (SHARE, {("all", ""): 0, ("big", "all"): 0, ("small", "all"): float("inf")}),
        (
            GPUS,
            {
                ("east", "h100", "allocated"): 6,
                ("east", "h100", "starting"): 4,
                ("east", "h100", "idle"): 6,
                ("east", "h100", "closed"): 0,
                ("east", "h100", "unready"): 8,
                ("west", "-", "allocated"): 0,
                ("west", "-", "starting"): 2,
                ("west", "-", "idle"): 0,
                ("west", "-", "closed"): 6,
            },
        ),
        (CLUSTERS, {("Ready",): 2, ("Lost",): 1, ("Pending",): 1}),
        (AGENT_AGE, {("east",): 2, ("west",): 400}),
        (BREAKER_OPEN, {("Moves",): 1, ("Price",): 0}),
        (PAUSED, {(): 0}),
        (
            PLANNER_OBJECTS,
            {("workloads",): 5, ("queues",): 3, ("clusters",): 3, ("nodes",): 4},
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_gauges_say_how_the_fleet_stands(metric: Any, values: dict[Any, float]) -> None:
    assert numbers(FACTS)[metric] == values


def test_roots_and_large_queues_come_first_since_labels_are_bounded() -> None:
    assert [queue for queue, *_ in numbers(FACTS)[USED]] == ["all", "big", "small"]


def test_every_gauge_is_set_and_can_be_taken_back() -> None:
    assert numbers(FACTS).keys() == UNKNOWN.keys()
    assert numbers(replace(FACTS, is_paused=True))[PAUSED] == {(): 1}
