"""The last replicas of a service in a cluster stop after the traffic has gone elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.fleet import FleetDefaults, FleetSpec
from fairway.controllers.lifecycle.case import LifecycleCase, PodsSeen, Settings
from fairway.controllers.lifecycle.leaving_replicas import let_go, placements_now
from tests.controllers.lives import NOW, case, replicas, running, seen, text

SERVICE = {"mode": "Divided", "replicas": 4}
BOTH = [{"cluster": "a", "weight": 500}, {"cluster": "b", "weight": 500}]
MOVED = [{"cluster": "a", "weight": 1000}]


def moving(
    *held: dict[str, Any], leaving: dict[str, Any], traffic: list[Any], seconds: int = 10
) -> LifecycleCase:
    """A service whose replicas are ready wherever they are."""
    fleet = FleetSpec(defaults=FleetDefaults(traffic_seconds=seconds))
    service = running(*held, spec=SERVICE, releasing=[leaving], traffic=traffic)
    ready = {
        name: seen("Running", pods=PodsSeen(ready=count)) for name, count in (("a", 4), ("b", 2))
    }
    return case(service, ready, settings=Settings(fleet=fleet))


def two(**how: Any) -> dict[str, Any]:
    return replicas("b", 2, **how)


ALL = replicas("a", 4)
CASES: dict[str, tuple[LifecycleCase, list[tuple[str, int, float | None]]]] = {
    "replaced replicas wait for the traffic": (
        moving(ALL, leaving=two(leaves="WhenReplaced"), traffic=BOTH),
        [("AfterTraffic", 2, None)],
    ),
    "those that get none stop at once": (
        moving(ALL, leaving=two(leaves="WhenReplaced"), traffic=MOVED),
        [("Now", 2, None)],
    ),
    "no time is given to gateways": (
        moving(ALL, leaving=two(leaves="WhenReplaced"), traffic=BOTH, seconds=0),
        [("Now", 2, None)],
    ),
    "others go on answering there": (
        moving(
            replicas("a", 3),
            replicas("b", 1),
            leaving=replicas("b", 1, leaves="WhenReplaced"),
            traffic=BOTH,
        ),
        [("Now", 1, None)],
    ),
    "the time does not begin while the cluster has a weight": (
        moving(ALL, leaving=two(leaves="AfterTraffic"), traffic=BOTH),
        [("AfterTraffic", 2, None)],
    ),
    "the time begins when the cluster has none": (
        moving(ALL, leaving=two(leaves="AfterTraffic"), traffic=MOVED),
        [("AfterTraffic", 2, NOW + 10)],
    ),
    "after that they stop": (
        moving(ALL, leaving=two(leaves="AfterTraffic", leavesBy=text(NOW)), traffic=MOVED),
        [("Now", 2, None)],
    ),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_when_replicas_that_leave_stop(
    given: LifecycleCase, expected: list[tuple[str, int, float | None]]
) -> None:
    after = let_go(given, given.workload.status)
    assert [
        (
            placement.leaves,
            placement.replicas,
            placement.leaves_by and placement.leaves_by.timestamp(),
        )
        for placement in after.releasing
    ] == expected


def test_what_waits_for_its_traffic_runs_and_is_sure_to_stop() -> None:
    status = moving(ALL, leaving=two(leaves="AfterTraffic"), traffic=BOTH).workload.status
    now = {item.cluster: item.replicas for item in placements_now(status.claim, status.releasing)}
    assert now == {"a": 4, "b": 2}
    assert [placement.cluster for placement in status.stopping] == ["b"]
