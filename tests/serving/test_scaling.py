"""How many replicas metrics ask for, case by case, and what holds the count back."""

from __future__ import annotations

import pytest

from fairway.serving.scaling.decide import decide
from fairway.serving.scaling.model import (
    AverageValue,
    Limits,
    Memory,
    Metric,
    Rate,
    Recommendation,
    Rules,
    ScaleDecision,
    ScaleEvent,
    ServiceObservation,
    Utilization,
)
from fairway.serving.scaling.proposals import NoProposal, Proposal, propose
from tests.serving.scalings import (
    DOWN,
    NOW,
    UP,
    cpu,
    level,
    limits,
    of_all,
    of_pods,
    played,
    pods,
    ruled,
    seen,
    total,
)

ANY = limits(most=1000)
_YOUNG = {"started_at": NOW - 60, "ready_changed_at": NOW - 40}
_NEW = {"started_at": NOW - 60, "ready_changed_at": NOW - 10}


@pytest.mark.parametrize(
    ("at", "metric", "expected"),
    [
        pytest.param(seen(3), cpu([300, 500, 700], 30), 5, id="50% where 30% is wanted"),
        pytest.param(seen(5), cpu([100] * 5, 50), 1, id="a fifth of the target"),
        pytest.param(seen(3), cpu([540] * 3, 50), 3, id="8% above is within the tolerance"),
        pytest.param(seen(3), cpu([450] * 3, 50), 3, id="10% below is within the tolerance"),
        pytest.param(seen(3), cpu([559] * 3, 50), 3, id="whole percents are compared, rounded off"),
        pytest.param(seen(3), cpu([569] * 3, 50), 4, id="12% above is not"),
        pytest.param(
            seen(4), cpu([600, 600], 50), 4, id="missing pods are idle where there would be more"
        ),
        pytest.param(
            seen(4), cpu([100, 100], 50), 4, id="missing pods are busy where there would be fewer"
        ),
        pytest.param(
            seen(4), cpu([900, 900, 900], 50), 6, id="more are needed even if a missing one is idle"
        ),
        pytest.param(
            seen(4, facts=(*pods(2), *pods(2, cluster="b", phase="Pending"))),
            cpu([1200, 1200], 50),
            5,
            id="pods that have no node yet are idle where there would be more",
        ),
        pytest.param(
            seen(4, facts=(*pods(2), *pods(2, cluster="b", phase="Pending"))),
            cpu([200, 200], 50),
            1,
            id="and count for nothing where there would be fewer",
        ),
        pytest.param(
            seen(3, facts=(*pods(2), *pods(1, cluster="b", is_leaving=True))),
            of_pods({"a/p0": 1000, "a/p1": 1000, "b/p0": 9000}, AverageValue(value=500)),
            4,
            id="a pod that leaves is not measured",
        ),
        pytest.param(
            seen(3, facts=(*pods(2), *pods(1, cluster="b", phase="Failed"))),
            of_pods({"a/p0": 1000, "a/p1": 1000, "b/p0": 9000}, AverageValue(value=500)),
            4,
            id="nor is one that failed",
        ),
        pytest.param(
            seen(2, facts=(*pods(1), *pods(1, cluster="b", **_YOUNG))),
            of_pods({"a/p0": 900, "b/p0": 900}, Utilization(percent=60), resource="cpu"),
            3,
            id="a young pod that was ready for a whole window counts",
        ),
        pytest.param(
            seen(2, facts=(*pods(1), *pods(1, cluster="b", **_NEW))),
            of_pods({"a/p0": 900, "b/p0": 900}, Utilization(percent=60), resource="cpu"),
            2,
            id="one that was ready for less than a window does not",
        ),
        pytest.param(
            seen(2, facts=(*pods(1), *pods(1, cluster="b", **_NEW))),
            of_pods({"a/p0": 900, "b/p0": 900}, AverageValue(value=600)),
            3,
            id="for metrics other than the processor's it does",
        ),
        pytest.param(seen(3), of_pods([20, 10, 30], AverageValue(value=10)), 6, id="twice as many"),
        pytest.param(
            seen(2), of_pods([1001, 1000], AverageValue(value=1000)), 2, id="averages are rounded"
        ),
        pytest.param(seen(4), total(10_000, 1000), 10, id="a total is divided among replicas"),
        pytest.param(seen(10), total(10_900, 1000), 10, id="within the tolerance it stays"),
        pytest.param(seen(10), total(11_100, 1000), 12, id="beyond it is rounded up"),
        pytest.param(seen(3), level(8600, 4000), 7, id="a level: ready pods times the ratio"),
        pytest.param(
            seen(4, facts=(*pods(2), *pods(2, cluster="b", is_ready=False))),
            level(8000, 4000),
            4,
            id="of a level only ready pods count",
        ),
        pytest.param(seen(0), level(8600, 4000), 3, id="a level from zero"),
        pytest.param(seen(0), total(2100, 1000), 3, id="a total from zero"),
    ],
)
def test_a_metric_asks_for(at: ServiceObservation, metric: Metric, expected: int) -> None:
    found = propose(metric, at, ANY)
    assert isinstance(found, Proposal), found
    assert found.replicas == expected


LOST = (*pods(5), *pods(5, cluster="b", is_reached=False))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        pytest.param(of_pods([1000] * 5, AverageValue(value=1000)), 10, id="at the target"),
        pytest.param(of_pods([100] * 5, AverageValue(value=1000)), 6, id="below, by pods"),
        pytest.param(of_pods([3000] * 5, AverageValue(value=1000)), 15, id="above, by pods"),
        pytest.param(of_pods([1500] * 5, AverageValue(value=1000)), 10, id="not enough above"),
        pytest.param(total(2000, 1000), 7, id="below, by a total"),
        pytest.param(total(14_000, 1000), 14, id="above, by a total"),
        pytest.param(level(500, 1000), 8, id="below, by a level"),
        pytest.param(level(3000, 1000), 15, id="above, by a level"),
    ],
)
def test_pods_in_clusters_that_are_not_heard_of_restrain_the_count(
    metric: Metric, expected: int
) -> None:
    """Five of ten are heard of: the others are busy for those who want fewer, and idle for more."""
    found = propose(metric, seen(10, facts=LOST), ANY)
    assert isinstance(found, Proposal)
    assert found.replicas == expected


def test_a_replica_of_several_pods_is_counted_as_one() -> None:
    groups = Limits(least=1, most=100, pods_per_replica=4)
    metric = of_pods([1500] * 8, AverageValue(value=1000))
    found = propose(metric, seen(2, facts=pods(8)), groups)
    assert isinstance(found, Proposal)
    assert found.replicas == 3


@pytest.mark.parametrize(
    ("at", "metric", "why"),
    [
        pytest.param(seen(2, facts=()), cpu([1], 50), "there are no pods", id="no pods"),
        pytest.param(seen(2), cpu([], 50), "no pod that is ready", id="no pod measured"),
        pytest.param(
            seen(2, facts=pods(2, phase="Pending")), cpu([9, 9], 50), "no pod", id="none has begun"
        ),
        pytest.param(
            seen(1),
            of_pods([10], Utilization(percent=50), resource="memory"),
            "container main of a/p0 requests no memory",
            id="no request to compare with",
        ),
        pytest.param(seen(2), total(None, 1), "nobody answers", id="no reading"),
    ],
)
def test_a_metric_that_cannot_be_read_says_why(
    at: ServiceObservation, metric: Metric, why: str
) -> None:
    found = propose(metric, at, ANY)
    assert isinstance(found, NoProposal)
    assert why in found.why


def findings(verdict: ScaleDecision) -> dict[str, str]:
    return {finding.type: f"{finding.holds} {finding.reason}" for finding in verdict.findings}


@pytest.mark.parametrize(
    ("metrics", "expected", "active"),
    [
        pytest.param([total(4000, 1000), total(6000, 1000)], 6, "True ValidMetricFound", id="most"),
        pytest.param(
            [total(None, 1), total(6000, 1000)], 6, "True ValidMetricFound", id="one fails, up"
        ),
        pytest.param(
            [total(None, 1), total(2000, 1000)],
            4,
            "False FailedGetExternalMetric",
            id="one fails, never down",
        ),
        pytest.param(
            [total(None, 1), cpu([], 50)], 4, "False FailedGetExternalMetric", id="all fail"
        ),
    ],
)
def test_of_several_metrics_the_highest_count_holds(
    metrics: list[Metric], expected: int, active: str
) -> None:
    old = Memory(recommendations=(Recommendation(at=NOW - 9999, replicas=1),))
    verdict = decide(seen(4, *metrics), limits(), old)
    assert verdict.replicas == expected
    assert findings(verdict)["ScalingActive"] == active


@pytest.mark.parametrize(
    ("wanted", "value", "rules", "memory", "expected", "limited"),
    [
        pytest.param(3, 50_000, limits(), Memory(), 6, "True ScaleUpLimit", id="twice at most"),
        pytest.param(1, 50_000, limits(), Memory(), 4, "True ScaleUpLimit", id="or four"),
        pytest.param(5, 50_000, limits(most=8), Memory(), 8, "True TooManyReplicas", id="the most"),
        pytest.param(
            5,
            100,
            limits(least=2, down_stabilization_seconds=0),
            Memory(recommendations=(Recommendation(at=NOW - 1, replicas=5),)),
            2,
            "True TooFewReplicas",
            id="the least",
        ),
        pytest.param(
            10,
            100,
            ruled(
                down=Rules(
                    stabilization_seconds=0,
                    rates=(
                        Rate(type="Pods", value=4, period_seconds=60),
                        Rate(type="Percent", value=10, period_seconds=60),
                    ),
                    select="Max",
                )
            ),
            Memory(),
            6,
            "True ScaleDownLimit",
            id="the rate that changes most",
        ),
        pytest.param(
            10,
            100,
            ruled(
                down=Rules(
                    stabilization_seconds=0,
                    rates=(
                        Rate(type="Pods", value=4, period_seconds=60),
                        Rate(type="Percent", value=10, period_seconds=60),
                    ),
                    select="Min",
                )
            ),
            Memory(),
            9,
            "True ScaleDownLimit",
            id="the rate that changes least",
        ),
        pytest.param(
            10,
            100,
            ruled(down=Rules(stabilization_seconds=0, rates=DOWN.rates, select="Disabled")),
            Memory(),
            10,
            "True ScaleDownLimit",
            id="a direction that is disabled",
        ),
        pytest.param(
            8,
            50_000,
            ruled(
                up=Rules(
                    stabilization_seconds=0, rates=(Rate(type="Pods", value=4, period_seconds=60),)
                )
            ),
            Memory(events=(ScaleEvent(at=NOW - 30, change=3),)),
            9,
            "True ScaleUpLimit",
            id="what was added within the period counts",
        ),
        pytest.param(
            8,
            50_000,
            ruled(
                up=Rules(
                    stabilization_seconds=0, rates=(Rate(type="Pods", value=4, period_seconds=60),)
                )
            ),
            Memory(events=(ScaleEvent(at=NOW - 61, change=3),)),
            12,
            "True ScaleUpLimit",
            id="what was added before does not",
        ),
        pytest.param(
            8,
            50_000,
            ruled(
                up=Rules(
                    stabilization_seconds=60,
                    rates=UP.rates,
                )
            ),
            Memory(recommendations=(Recommendation(at=NOW - 30, replicas=9),)),
            9,
            "False DesiredWithinRange",
            id="the fewest of the window hold it down",
        ),
        pytest.param(
            8,
            2000,
            ruled(),
            Memory(recommendations=(Recommendation(at=NOW - 200, replicas=7),)),
            7,
            "False DesiredWithinRange",
            id="the most of the window hold it up",
        ),
    ],
)
def test_rates_windows_and_limits_hold_the_count(
    wanted: int, value: int, rules: Limits, memory: Memory, expected: int, limited: str
) -> None:
    verdict = decide(seen(wanted, total(value, 1000)), rules, memory)
    assert (verdict.replicas, findings(verdict)["ScalingLimited"]) == (expected, limited)


def test_a_count_outside_the_limits_is_brought_back_whatever_metrics_say() -> None:
    above = decide(seen(12, total(None, 1)), limits(most=10), Memory())
    below = decide(seen(1, total(None, 1)), limits(least=3), Memory())
    assert (above.replicas, below.replicas) == (10, 3)


def test_tolerances_of_the_two_directions_are_apart() -> None:
    wide = Rules(stabilization_seconds=0, rates=UP.rates, tolerance=0.5)
    rules = ruled(up=wide, down=Rules(stabilization_seconds=0, rates=DOWN.rates, tolerance=0.0))
    assert decide(seen(10, total(14_900, 1000)), rules, Memory()).replicas == 10
    assert decide(seen(10, total(15_100, 1000)), rules, Memory()).replicas == 16
    assert decide(seen(10, total(9_990, 1000)), rules, Memory()).replicas == 10
    assert decide(seen(10, total(8_900, 1000)), rules, Memory()).replicas == 9


def test_a_surge_is_followed_step_by_step_and_left_slowly() -> None:
    totals = [1000, 40_000, 40_000, 40_000, 40_000, 40_000, *[2000] * 24]
    counts = played(totals, ruled(most=30))
    assert counts[:7] == [1, 5, 10, 20, 30, 30, 30]
    # Twenty quarters of a minute after the last high recommendation it may fall, at once.
    assert counts[7:] == [30] * 18 + [2] * 5


# Scaling to and from zero.


def nobody(least: int = 0, idle_seconds: int = 300) -> Limits:
    return Limits(least=least, most=10, idle_seconds=idle_seconds, down_stabilization_seconds=0)


@pytest.mark.parametrize(
    ("wanted", "metrics", "memory", "expected"),
    [
        pytest.param(0, [total(0, 1000)], Memory(), 0, id="nobody, nothing"),
        pytest.param(0, [total(1, 1000)], Memory(), 1, id="somebody wakes it"),
        pytest.param(0, [total(7500, 1000)], Memory(), 4, id="as fast as it may"),
        pytest.param(0, [of_all(900, total(0, 1000).target, activation=1000)], Memory(), 0,
                     id="not above the activation threshold"),
        pytest.param(0, [total(None, 1)], Memory(), 0, id="nobody knows"),
        pytest.param(0, [total(None, 1), total(2000, 1000)], Memory(), 2, id="one knows"),
        pytest.param(2, [total(0, 1000)], Memory(), 1, id="idle, but not for long: one stays"),
        pytest.param(2, [total(0, 1000)], Memory(idle_since=NOW - 299), 1, id="nearly long enough"),
        pytest.param(2, [total(0, 1000)], Memory(idle_since=NOW - 300), 0, id="idle for long"),
        pytest.param(1, [total(1, 1000)], Memory(idle_since=NOW - 300), 1, id="somebody is back"),
        pytest.param(1, [total(None, 1)], Memory(idle_since=NOW - 300), 1, id="nobody is sure"),
    ],
)  # fmt: skip
def test_zero_is_a_count_of_its_own(
    wanted: int, metrics: list[Metric], memory: Memory, expected: int
) -> None:
    memory = Memory(
        recommendations=(Recommendation(at=NOW - 1, replicas=1),), idle_since=memory.idle_since
    )
    assert decide(seen(wanted, *metrics), nobody(), memory).replicas == expected


def test_who_set_the_count_to_zero_is_obeyed_where_zero_is_not_ours_to_choose() -> None:
    busy = seen(0, total(9000, 1000))
    assert decide(busy, limits(least=1), Memory()).replicas == 0
    assert findings(decide(busy, limits(least=1), Memory())) == {
        "ScalingActive": "False ScalingDisabled"
    }


def test_zero_that_was_our_choice_is_left_when_the_least_rises() -> None:
    memory = Memory(is_scaled_to_zero=True)
    assert decide(seen(0, total(0, 1000)), limits(least=2), memory).replicas == 2


def test_the_whole_way_to_zero_and_back() -> None:
    totals = [2000, *[0] * 30, 3000]
    counts = played(totals, nobody(), start=2)
    assert counts[0] == 2
    assert counts[1:21] == [1] * 20
    assert counts[21:31] == [0] * 10
    assert counts[31] == 3
