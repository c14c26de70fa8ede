"""What does not bear interruption keeps off nodes that the provider may reclaim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain, cluster, flavor, plan_of, pool, queue, told, workload

SPOT = flavor("spot", interruptible=True)
BOTH = queue("q", quotas={"spot": 8, "h100": 8})
SPOTS, OWN = cluster("cloud", 8, model="spot"), cluster("east", 8)


def offering(*pools: Plain) -> Plain:
    """A cluster without nodes, in which an agent found these pools."""
    return {**cluster("east"), "status": {"offeredPools": list(pools)}}


CASES: dict[str, tuple[list[Plain], list[str]]] = {
    "a workload takes spot capacity where its queue has it first": (
        [SPOT, BOTH, SPOTS, OWN, workload("a", "q", count=4)],
        ["a starts in cloud:4@spot"],
    ),
    "one that is not preemptible takes the next flavor": (
        [SPOT, BOTH, SPOTS, OWN, workload("a", "q", count=4, preemptible=False)],
        ["a starts in east:4@h100"],
    ),
    "and waits if there is no other": (
        [SPOT, queue("q", quotas={"spot": 8}), SPOTS, workload("a", "q", preemptible=False)],
        ["a waits: NoFlavor"],
    ),
    "a service that is not preemptible does the same": (
        [SPOT, BOTH, SPOTS, OWN,
         workload("s", "q", mode="Divided", replicas=3, preemptible=False)],
        ["s starts in east:3@h100"],
    ),
    "where quota alone decides it does the same": (
        [SPOT, BOTH, workload("a", "q", preemptible=False)],
        ["a starts in nowhere:1@h100"],
    ),
    "new nodes come from an interruptible pool": (
        [queue("q", 8), cluster("east", pools=[pool("p", 8, stock=9, interruptible=True)]),
         workload("a", "q", count=4)],
        ["a gets 1 of east/p", "a starts in east:4@h100"],
    ),
    "but not for what is not preemptible": (
        [queue("q", 8), cluster("east", pools=[pool("p", 8, stock=9, interruptible=True)]),
         workload("a", "q", count=4, preemptible=False)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "which gets those of another pool": (
        [queue("q", 8),
         cluster("east", pools=[pool("p", 8, stock=9, interruptible=True), pool("r", 8, stock=9)]),
         workload("a", "q", count=4, preemptible=False)],
        ["a gets 1 of east/r", "a starts in east:4@h100"],
    ),
    "a pool that its agent found is no different": (
        [queue("q", 8), offering(pool("p", 8, stock=9, interruptible=True)),
         workload("a", "q", count=4), workload("b", "q", count=4, preemptible=False)],
        ["a gets 1 of east/p", "a starts in east:4@h100", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "what runs on spot capacity already is left alone": (
        [SPOT, BOTH, SPOTS, OWN,
         workload("a", "q", count=4, running="cloud", on="spot", preemptible=False)],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "lines"), CASES.values(), ids=CASES.keys())
def test_interruptible_capacity(objects: list[Plain], lines: list[str]) -> None:
    assert told(plan_of(*objects)) == lines


def test_the_reason_names_the_flavor_that_may_be_lost() -> None:
    made = plan_of(
        SPOT, queue("q", quotas={"spot": 8}), SPOTS, workload("a", "q", preemptible=False)
    )
    reason = made.waiting[0].reasons[0]
    assert (reason.flavor, reason.other) == (
        "spot",
        "its nodes may be reclaimed, and the workload is not preemptible",
    )


def test_a_plan_that_breaks_the_rule_is_noticed() -> None:
    facts = Objects.of([H100, SPOT, BOTH, SPOTS, workload("a", "q")]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    stubborn = replace(facts.workloads["team/a"], preemptible=False)
    faults = broken(replace(facts, workloads={"team/a": stubborn}), made)
    assert any("which may be lost" in fault for fault in faults)
