"""Preemption on small fleets: who must go, by which rule, and who never."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from fairway.api.reasons import Code
from fairway.core.model import PreemptionRules, Topology, Workload
from fairway.core.model import Queue as QueueValue
from fairway.core.planning_round import PlanningRound
from tests.core.preemptions import (
    GPU,
    NOW,
    OPEN,
    cluster,
    fleet,
    holds,
    keys_of,
    pods,
    queue,
    victims_of,
    wants,
)

WITHIN = Code.PREEMPTED_WITHIN_QUEUE
RECLAIM = Code.PREEMPTED_TO_RECLAIM
SHARE = Code.PREEMPTED_FOR_FAIR_SHARE
BORROWING = Code.PREEMPTED_WHILE_BORROWING

NEWER = PreemptionRules(within_queue="LowerOrNewerEqualPriority", reclaim="Any")
LOWER = PreemptionRules(within_queue="LowerPriority", reclaim="LowerPriority")
NEVER = PreemptionRules()
PROTECTED = replace(OPEN, protect_within_nominal=True)
WHILE = replace(OPEN, while_borrowing="LowerPriority")
WHILE_UP_TO_3 = replace(WHILE, while_borrowing_priority_max=3)


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    queues: list[QueueValue]
    holders: list[Workload]
    comes: Workload
    expect: dict[str, Code] | None
    fair: bool = True
    tests: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    half_life: float = 0.0
    also: list[Workload] = field(default_factory=list)


def one_queue(rules: PreemptionRules = OPEN, nominal: int = 4, **more: float) -> list[QueueValue]:
    return [queue("a", nominal, rules=rules, within=more.get("within", 0.0))]


def siblings(a: int, b: int, c: int = 0, /, **rules: PreemptionRules) -> list[QueueValue]:
    return [
        queue("root", 0),
        queue("a", a, parent="root", rules=rules.get("a", OPEN)),
        queue("b", b, parent="root", rules=rules.get("b", OPEN)),
        queue("c", c, parent="root", rules=rules.get("c", OPEN)),
    ]


WITHIN_QUEUE = [
    Case(
        id="a workload of lower priority in the same queue must go",
        queues=one_queue(),
        holders=[holds("low", "a", pods(4), priority=1)],
        comes=wants("new", "a", pods(2), priority=2),
        expect={"low": WITHIN},
    ),
    Case(
        id="an equal priority in the same queue stays by LowerPriority",
        queues=one_queue(),
        holders=[holds("same", "a", pods(4), priority=2, at=50.0)],
        comes=wants("new", "a", pods(2), priority=2, at=10.0),
        expect=None,
    ),
    Case(
        id="a newer one of equal priority goes by LowerOrNewerEqualPriority",
        queues=one_queue(NEWER),
        holders=[holds("newer", "a", pods(4), at=50.0)],
        comes=wants("older", "a", pods(2), at=10.0),
        expect={"newer": WITHIN},
    ),
    Case(
        id="an older one of equal priority stays by LowerOrNewerEqualPriority",
        queues=one_queue(NEWER),
        holders=[holds("older", "a", pods(4), at=10.0)],
        comes=wants("newer", "a", pods(2), at=50.0),
        expect=None,
    ),
    Case(
        id="of the same age neither preempts the other",
        queues=one_queue(NEWER),
        holders=[holds("one", "a", pods(4), at=10.0)],
        comes=wants("other", "a", pods(2), at=10.0),
        expect=None,
    ),
    Case(
        id="age alone is no reason to borrow more",
        queues=siblings(4, 0, 2, a=NEWER),
        holders=[holds("newer", "a", pods(4), at=50.0)],
        comes=wants("older", "a", pods(6), at=10.0),
        expect=None,
    ),
    Case(
        id="a higher priority takes the place of a lower one and borrows what is idle",
        queues=siblings(4, 0, 2, a=NEWER),
        holders=[holds("low", "a", pods(4))],
        comes=wants("high", "a", pods(6), priority=1),
        expect={"low": WITHIN},
    ),
    Case(
        id="nobody goes only so that another may be preempted",
        queues=siblings(4, 4),
        holders=[holds("mine", "a", pods(4)), holds("theirs", "b", pods(4))],
        comes=wants("new", "a", pods(4), priority=1),
        expect={"mine": WITHIN},
    ),
    Case(
        id="a queue that never preempts waits",
        queues=one_queue(NEVER),
        holders=[holds("low", "a", pods(4))],
        comes=wants("new", "a", pods(2), priority=9),
        expect=None,
    ),
    Case(
        id="what is larger than the quota can ever be preempts nobody",
        queues=one_queue(),
        holders=[holds("low", "a", pods(4))],
        comes=wants("new", "a", pods(5), priority=9),
        expect=None,
    ),
    Case(
        id="what fits without victims has none",
        queues=one_queue(),
        holders=[holds("low", "a", pods(2))],
        comes=wants("new", "a", pods(2), priority=9),
        expect=None,
    ),
    Case(
        id="a workload that is not preemptible is never a victim",
        queues=one_queue(),
        holders=[holds("safe", "a", pods(4), preemptible=False)],
        comes=wants("new", "a", pods(2), priority=9),
        expect=None,
    ),
    Case(
        id="nobody goes before the minimum run time within the queue",
        queues=one_queue(within=200.0),
        holders=[holds("young", "a", pods(2), ran=199.0), holds("old", "a", pods(2), ran=200.0)],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"old": WITHIN},
    ),
    Case(
        id="a workload that is leaving is no victim, and counts as gone",
        queues=one_queue(),
        holders=[
            replace(
                (left := holds("leaving", "a", pods(4))),
                held=None,
                releasing=left.held.placed if left.held else (),
            )
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={},
    ),
    Case(
        id="a queue that protects what is within nominal keeps it from its own workloads",
        queues=one_queue(PROTECTED),
        holders=[holds("low", "a", pods(4))],
        comes=wants("new", "a", pods(2), priority=9),
        expect=None,
    ),
]

OBJECTIVE = [
    Case(
        id="the lowest priority goes even where more work is lost",
        queues=one_queue(),
        holders=[
            holds("low", "a", pods(2), priority=1, ran=5000.0),
            holds("middle", "a", pods(2), priority=2, ran=1.0),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"low": WITHIN},
    ),
    Case(
        id="two of low priority go rather than one of higher",
        queues=one_queue(),
        holders=[
            holds("low-1", "a", pods(1), priority=1),
            holds("low-2", "a", pods(1), priority=1),
            holds("middle", "a", pods(2), priority=2),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"low-1": WITHIN, "low-2": WITHIN},
    ),
    Case(
        id="where one of higher priority must go and is enough, those below stay",
        queues=one_queue(),
        holders=[
            holds("low", "a", pods(1), priority=1),
            holds("middle", "a", pods(3), priority=2),
        ],
        comes=wants("new", "a", pods(3), priority=9),
        expect={"middle": WITHIN},
    ),
    Case(
        id="of equal priorities the one that lost least goes",
        queues=one_queue(),
        holders=[
            holds("long", "a", pods(2), ran=900.0),
            holds("short", "a", pods(2), ran=30.0),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"short": WITHIN},
    ),
    Case(
        id="work since the last checkpoint counts, not all of it",
        queues=one_queue(),
        holders=[
            holds("saved", "a", pods(2), ran=910.0, checkpoint=300.0),
            holds("short", "a", pods(2), ran=30.0),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"saved": WITHIN},
    ),
    Case(
        id="one that saves when asked loses nothing",
        queues=one_queue(),
        holders=[
            holds("saves", "a", pods(2), ran=9000.0, saves=True),
            holds("short", "a", pods(2), ran=30.0),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"saves": WITHIN},
    ),
    Case(
        id="one that has not started loses nothing",
        queues=one_queue(),
        holders=[
            holds("pending", "a", pods(2), ran=None),
            holds("short", "a", pods(2), ran=30.0),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"pending": WITHIN},
    ),
    Case(
        id="lost time weighs what was used",
        queues=one_queue(nominal=9),
        holders=[
            holds("small-longer", "a", pods(3), ran=100.0),
            holds("large-shorter", "a", pods(6), ran=60.0),
        ],
        comes=wants("new", "a", pods(3), priority=9),
        expect={"small-longer": WITHIN},
    ),
    Case(
        id="where nothing is lost the fewest go",
        queues=one_queue(),
        holders=[
            holds("a-1", "a", pods(1), ran=None),
            holds("a-2", "a", pods(1), ran=None),
            holds("b", "a", pods(2), ran=None),
        ],
        comes=wants("new", "a", pods(2), priority=9),
        expect={"b": WITHIN},
    ),
    Case(
        id="where everything is equal the first by name goes",
        queues=one_queue(),
        holders=[holds(name, "a", pods(1)) for name in ("d", "b", "c", "a")],
        comes=wants("new", "a", pods(1), priority=9),
        expect={"a": WITHIN},
    ),
]

RECLAIMS = [
    Case(
        id="a queue within nominal takes back what another borrowed, whatever the priority",
        queues=siblings(4, 4),
        holders=[holds("borrower", "b", pods(8), priority=9)],
        comes=wants("owner", "a", pods(4), priority=0),
        expect={"borrower": RECLAIM},
    ),
    Case(
        id="reclaim of lower priority only leaves equal ones alone",
        queues=siblings(4, 4, a=LOWER),
        holders=[holds("borrower", "b", pods(8), priority=1)],
        comes=wants("owner", "a", pods(4), priority=1),
        expect=None,
    ),
    Case(
        id="a queue that never reclaims waits",
        queues=siblings(4, 4, a=replace(OPEN, reclaim="Never")),
        holders=[holds("borrower", "b", pods(8))],
        comes=wants("owner", "a", pods(4), priority=9),
        expect=None,
    ),
    Case(
        id="only as many go as brings the owner its own",
        queues=siblings(4, 4),
        holders=[holds(f"b-{number}", "b", pods(2)) for number in range(4)],
        comes=wants("owner", "a", pods(4)),
        expect={"b-0": RECLAIM, "b-1": RECLAIM},
    ),
    Case(
        id="nobody goes before the minimum run time against other queues",
        queues=[
            queue("root", 0),
            queue("a", 4, parent="root"),
            queue("b", 4, parent="root", reclaim_after=200.0),
        ],
        holders=[
            holds("young", "b", pods(4), ran=199.0),
            holds("old", "b", pods(4), ran=201.0),
        ],
        comes=wants("owner", "a", pods(4)),
        expect={"old": RECLAIM},
    ),
    Case(
        id="a queue in another tree is never touched",
        queues=[queue("a", 4), queue("b", 4)],
        holders=[holds("stranger", "b", pods(8)), holds("own", "a", pods(4))],
        comes=wants("owner", "a", pods(4)),
        expect=None,
    ),
    Case(
        id="a queue that does not borrow is not touched",
        queues=siblings(4, 4, 4),
        holders=[holds("within", "b", pods(4)), holds("beyond", "c", pods(8))],
        comes=wants("owner", "a", pods(4)),
        expect={"beyond": RECLAIM},
    ),
    Case(
        id="a borrower below a subtree that does not borrow is not touched from outside",
        queues=[
            queue("root", 0),
            queue("left", 0, parent="root"),
            queue("right", 0, parent="root"),
            queue("a", 4, parent="left"),
            queue("a2", 0, parent="left"),
            queue("b", 4, parent="right"),
            queue("b2", 4, parent="right"),
        ],
        holders=[holds("cousin", "b", pods(8)), holds("sibling", "a2", pods(4), priority=9)],
        comes=wants("owner", "a", pods(4)),
        expect={"sibling": RECLAIM},
    ),
    Case(
        id="one whose queue protects nominal goes while its queue borrows",
        queues=siblings(4, 4, b=PROTECTED),
        holders=[holds("b-1", "b", pods(4)), holds("b-2", "b", pods(4))],
        comes=wants("owner", "a", pods(4)),
        expect={"b-1": RECLAIM},
    ),
    Case(
        id="a workload that cannot be preempted does not borrow by preemption",
        queues=siblings(4, 4),
        holders=[holds("b-1", "b", pods(8))],
        comes=replace(wants("owner", "a", pods(5)), preemptible=False),
        expect=None,
    ),
    Case(
        id="a workload that cannot be preempted makes room in its own quota",
        queues=siblings(4, 4),
        holders=[holds("mine", "a", pods(2))],
        comes=replace(wants("owner", "a", pods(3), priority=1), preemptible=False),
        expect={"mine": WITHIN},
    ),
]

FAIR_SHARE = [
    Case(
        id="the larger share yields until both are equal",
        queues=siblings(0, 0, 9),
        holders=[*(holds(f"b-{number}", "b", pods(1)) for number in range(9))],
        comes=wants("new", "a", pods(3)),
        expect={"b-0": SHARE, "b-1": SHARE, "b-2": SHARE},
    ),
    Case(
        id="an equal share does not yield",
        queues=siblings(0, 0, 8),
        holders=[
            holds("a-1", "a", pods(4)),
            holds("b-1", "b", pods(4)),
        ],
        comes=wants("new", "a", pods(1)),
        expect=None,
    ),
    Case(
        id="by the final share alone a victim that is too large stays",
        queues=siblings(0, 0, 6),
        holders=[holds("b-1", "b", pods(6))],
        comes=wants("new", "a", pods(2)),
        expect=None,
        tests=("LessThanOrEqualToFinalShare",),
    ),
    Case(
        id="by the initial share it goes",
        queues=siblings(0, 0, 6),
        holders=[holds("b-1", "b", pods(6))],
        comes=wants("new", "a", pods(2)),
        expect={"b-1": SHARE},
        tests=("LessThanInitialShare",),
    ),
    Case(
        id="by the initial share nobody goes for one that ends with as much",
        queues=siblings(0, 0, 6),
        holders=[holds("b-1", "b", pods(6))],
        comes=wants("new", "a", pods(6)),
        expect=None,
        tests=("LessThanInitialShare",),
    ),
    Case(
        id="a queue of twice the weight may have twice as much",
        queues=[
            queue("root", 9),
            queue("a", 0, parent="root", weight=2.0),
            queue("b", 0, parent="root"),
        ],
        holders=[
            holds("a-1", "a", pods(3)),
            *(holds(f"b-{number}", "b", pods(1)) for number in range(6)),
        ],
        comes=wants("new", "a", pods(3)),
        expect={"b-0": SHARE, "b-1": SHARE, "b-2": SHARE},
    ),
    Case(
        id="one that remembers heavy use has a share by it and does not preempt",
        queues=[
            queue("root", 6),
            queue("a", 0, parent="root", remembered={GPU: 5}),
            queue("b", 0, parent="root"),
        ],
        holders=[
            holds("b-1", "b", pods(2)),
            holds("b-2", "b", pods(2)),
            holds("b-3", "b", pods(2)),
        ],
        comes=wants("new", "a", pods(2)),
        expect=None,
        half_life=3600.0,
        tests=("LessThanOrEqualToFinalShare",),
    ),
    Case(
        id="without a half-life nothing is remembered",
        queues=[
            queue("root", 6),
            queue("a", 0, parent="root", remembered={GPU: 5}),
            queue("b", 0, parent="root"),
        ],
        holders=[
            holds("b-1", "b", pods(2)),
            holds("b-2", "b", pods(2)),
            holds("b-3", "b", pods(2)),
        ],
        comes=wants("new", "a", pods(2)),
        expect={"b-1": SHARE},
    ),
    Case(
        id="shares that are equal by memory alone preempt nobody, or both would for ever",
        queues=[
            queue("root", 2),
            queue("a", 0, parent="root", remembered={GPU: 5}),
            queue("b", 0, parent="root", remembered={GPU: 5}),
        ],
        holders=[holds("b-1", "b", pods(2))],
        comes=wants("new", "a", pods(2)),
        expect=None,
        half_life=3600.0,
    ),
    Case(
        id="shares meet just below the common ancestor",
        queues=[
            queue("root", 8),
            queue("left", 0, parent="root"),
            queue("right", 0, parent="root"),
            queue("a", 0, parent="left"),
            queue("a2", 0, parent="left"),
            queue("b", 0, parent="right"),
        ],
        holders=[holds("a2-1", "a2", pods(4)), holds("b-1", "b", pods(4))],
        comes=wants("new", "a", pods(2)),
        expect={"a2-1": SHARE},
    ),
]

CLASSICAL = [
    Case(
        id="without fair share one that borrows preempts nobody in other queues",
        queues=siblings(2, 0, 4),
        holders=[holds("b-1", "b", pods(6))],
        comes=wants("new", "a", pods(3), priority=9),
        expect=None,
        fair=False,
    ),
    Case(
        id="without fair share one within nominal reclaims",
        queues=siblings(2, 0, 4),
        holders=[holds("b-1", "b", pods(6), priority=9)],
        comes=wants("new", "a", pods(2)),
        expect={"b-1": RECLAIM},
        fair=False,
    ),
    Case(
        id="one that may preempt while borrowing takes lower priorities",
        queues=siblings(2, 0, 4, a=WHILE),
        holders=[holds("b-1", "b", pods(6), priority=3)],
        comes=wants("new", "a", pods(3), priority=9),
        expect={"b-1": BORROWING},
        fair=False,
    ),
    Case(
        id="one that may preempt while borrowing leaves equal priorities",
        queues=siblings(2, 0, 4, a=WHILE),
        holders=[holds("b-1", "b", pods(6), priority=9)],
        comes=wants("new", "a", pods(3), priority=9),
        expect=None,
        fair=False,
    ),
    Case(
        id="one that may preempt while borrowing keeps to its highest priority of a victim",
        queues=siblings(2, 0, 4, a=WHILE_UP_TO_3),
        holders=[holds("b-1", "b", pods(6), priority=4)],
        comes=wants("new", "a", pods(3), priority=9),
        expect=None,
        fair=False,
    ),
    Case(
        id="a subtree that owns enough reclaims though the queue itself borrows",
        queues=[
            queue("root", 0),
            queue("left", 4, parent="root"),
            queue("right", 0, parent="root"),
            queue("a", 0, parent="left"),
            queue("b", 0, parent="right"),
        ],
        holders=[holds("b-1", "b", pods(4), priority=9)],
        comes=wants("new", "a", pods(4)),
        expect={"b-1": RECLAIM},
        fair=False,
    ),
    Case(
        id="rules for borrowing do not count where shares do",
        queues=siblings(2, 0, 4, a=WHILE),
        holders=[holds("b-1", "b", pods(3), priority=3), holds("c-1", "c", pods(3), priority=3)],
        comes=wants("new", "a", pods(6), priority=9),
        expect=None,
    ),
]

ALL = [*WITHIN_QUEUE, *OBJECTIVE, *RECLAIMS, *FAIR_SHARE, *CLASSICAL]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_by_quota_alone(case: Case) -> None:
    planning = fleet(
        case.queues,
        [*case.holders, case.comes],
        fair=case.fair,
        tests=case.tests,
        half_life=case.half_life,
    )
    before = usage_of(planning)
    found = victims_of(planning, case.comes.key)
    actual = None if found is None else {victim.key: victim.code for victim in found.victims}
    assert actual == case.expect
    assert usage_of(planning) == before, "the ledger must be left as it was"


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_where_a_cluster_has_room_for_all_quota_decides_as_well(case: Case) -> None:
    queues, holders, comes = case.queues, case.holders, case.comes
    home = cluster("home", *({GPU: 40} for _ in range(4)))
    planning = fleet(
        queues, [*holders, comes], [home], fair=case.fair, tests=case.tests,
        half_life=case.half_life,
    )  # fmt: skip
    found = victims_of(planning, comes.key, "home")
    actual = None if found is None else {victim.key: victim.code for victim in found.victims}
    assert actual == case.expect
    if found is not None:
        assert found.packed is not None


def usage_of(planning: PlanningRound) -> dict[str, dict[tuple[str, str], int]]:
    return {name: dict(planning.ledger.usage(name)) for name in planning.snapshot.facts.queues}


# Nodes.


def on(**counts: int) -> dict[str, dict[int, int]]:
    """Pods of the main set by node: `n0=2` means two on the first."""
    return {"main": {int(name[1:]): count for name, count in counts.items()}}


@dataclass(frozen=True, kw_only=True)
class Placing:
    id: str
    nodes: list[dict[str, int]]
    holders: list[Workload]
    comes: Workload
    expect: list[str] | None
    nominal: int = 100
    racks: tuple[str, ...] = ()


def here(
    key: str, gpus: int, at: dict[str, dict[int, int]], priority: int = 0, ran: float = 100.0
) -> Workload:
    """A holder in the cluster `home`, with pods of so many GPUs."""
    count = sum(at["main"].values())
    return holds(key, "a", pods(count, gpus), on=at, cluster="home", priority=priority, ran=ran)


NODES = [
    Placing(
        id="quota is plenty, nodes are full: those on one node go",
        nodes=[{GPU: 4}, {GPU: 4}],
        holders=[here("x", 4, on(n0=1), ran=50.0), here("y", 4, on(n1=1), ran=20.0)],
        comes=wants("new", "a", pods(1, 4), priority=5),
        expect=["y"],
    ),
    Placing(
        id="victims are on the same node where one pod needs the whole of it",
        nodes=[{GPU: 4}, {GPU: 4}],
        holders=[
            here("x-1", 2, on(n0=1), ran=50.0),
            here("x-2", 2, on(n1=1), ran=10.0),
            here("y-1", 2, on(n0=1), ran=50.0),
            here("y-2", 2, on(n1=1), ran=95.0),
        ],
        comes=wants("new", "a", pods(1, 4), priority=5),
        expect=["x-1", "y-1"],
    ),
    Placing(
        id="what is free already is used, so that fewer go",
        nodes=[{GPU: 4}, {GPU: 4}],
        holders=[here("x", 2, on(n0=1), ran=90.0), here("y", 4, on(n1=1), ran=50.0)],
        comes=wants("new", "a", pods(1, 4), priority=5),
        expect=["x"],
    ),
    Placing(
        id="one that is on no node that helps stays, however cheap",
        nodes=[{GPU: 4}, {"cpu": 8}],
        holders=[
            here("x", 4, on(n0=1), ran=90.0),
            holds("cpu-only", "a", pods(1, 0, cpu=8), on=on(n1=1), cluster="home", ran=0.0),
        ],
        comes=wants("new", "a", pods(1, 4), priority=5),
        expect=["x"],
    ),
    Placing(
        id="nobody goes where even all of them are not enough",
        nodes=[{GPU: 4}, {GPU: 4}],
        holders=[here("x", 4, on(n0=1)), here("y", 4, on(n1=1), priority=9)],
        comes=wants("new", "a", pods(2, 4), priority=5),
        expect=None,
    ),
    Placing(
        id="no pod is larger than any node, so nobody goes",
        nodes=[{GPU: 4}, {GPU: 4}],
        holders=[here("x", 4, on(n0=1)), here("y", 4, on(n1=1))],
        comes=wants("new", "a", pods(1, 8), priority=5),
        expect=None,
    ),
    Placing(
        id="victims are in one rack where the pods must be near each other",
        nodes=[{GPU: 4}] * 4,
        racks=("r1", "r1", "r2", "r2"),
        holders=[
            here("x", 4, on(n0=1), ran=10.0),
            here("y", 4, on(n1=1), ran=80.0),
            here("z-1", 4, on(n2=1), ran=40.0),
            here("z-2", 4, on(n3=1), ran=40.0),
        ],
        comes=wants(
            "new", "a", replace(pods(2, 4), topology=Topology(required="rack")), priority=5
        ),
        expect=["z-1", "z-2"],
    ),
    Placing(
        id="two pod sets that compete for a node need both victims",
        nodes=[{GPU: 4, "cpu": 8}, {GPU: 4, "cpu": 8}],
        holders=[
            holds("x", "a", pods(1, 4, cpu=8), on=on(n0=1), cluster="home"),
            holds("y", "a", pods(1, 4, cpu=8), on=on(n1=1), cluster="home"),
        ],
        comes=wants("new", "a", pods(1, 4, cpu=4), pods(1, 0, "driver", cpu=5), priority=5),
        expect=["x", "y"],
    ),
    Placing(
        id="quota and nodes are both short: one victim gives both",
        nodes=[{GPU: 4}, {GPU: 4}],
        nominal=8,
        holders=[here("x", 4, on(n0=1), ran=50.0), here("y", 4, on(n1=1), ran=60.0)],
        comes=wants("new", "a", pods(1, 4), priority=5),
        expect=["x"],
    ),
]


@pytest.mark.parametrize("case", NODES, ids=lambda case: case.id)
def test_on_nodes(case: Placing) -> None:
    home = cluster("home", *case.nodes, racks=case.racks)
    queues = [queue("a", {GPU: case.nominal, "cpu": 100})]
    planning = fleet(queues, [*case.holders, case.comes], [home])
    free = {name: column.copy() for name, column in planning.ledger.rooms["home"].free.items()}
    found = victims_of(planning, "new", "home")
    assert keys_of(found) == case.expect
    for name, column in planning.ledger.rooms["home"].free.items():
        assert np.array_equal(column, free[name]), "the nodes must be left as they were"
    if found is not None:
        assert found.packed is not None
        found.remove(planning)
        room = planning.ledger.rooms["home"]
        requests = {
            pod_set.name: pod_set.shape.requests for pod_set in case.comes.forms[0].pod_sets
        }
        planning.ledger.take("home", found.packed.packing, requests)
        assert all(int(column.min()) >= 0 for column in room.free.values())


def test_where_nodes_are_short_all_victims_have_pods_in_the_cluster() -> None:
    clusters = [cluster("home", {GPU: 4}), cluster("away", {GPU: 4})]
    holders = [
        holds("at-home", "a", pods(1, 4), on=on(n0=1), cluster="home", ran=500.0),
        holds("elsewhere", "a", pods(1, 4), on=on(n0=1), cluster="away", ran=1.0),
    ]
    comes = wants("new", "a", pods(1, 4), priority=5)
    planning = fleet([queue("a", 8)], [*holders, comes], clusters)
    assert keys_of(victims_of(planning, "new", "home")) == ["at-home"]
    assert keys_of(victims_of(planning, "new", "away")) == ["elsewhere"]


def test_where_only_quota_is_short_victims_may_be_elsewhere() -> None:
    clusters = [cluster("home", {GPU: 4}), cluster("away", {GPU: 4})]
    holders = [holds("elsewhere", "a", pods(1, 4), on=on(n0=1), cluster="away")]
    comes = wants("new", "a", pods(1, 4), priority=5)
    planning = fleet([queue("a", 4)], [*holders, comes], clusters)
    found = victims_of(planning, "new", "home")
    assert keys_of(found) == ["elsewhere"]
    assert found is not None
    assert found.packed is not None
    assert found.packed.packing == {"main": {0: 1}}


def test_a_victim_of_this_plan_is_not_taken_twice() -> None:
    holders = [holds("x", "a", pods(2), ran=1.0), holds("y", "a", pods(2), ran=50.0)]
    comes = [wants(name, "a", pods(2), priority=5) for name in ("first", "second")]
    planning = fleet([queue("a", 4)], [*holders, *comes])
    first = victims_of(planning, "first")
    assert first is not None
    first.remove(planning)
    planning.preempted.update(victim.key for victim in first.victims)
    planning.ledger.charge("a", {("any", GPU): 2000})
    assert keys_of(first) == ["x"]
    assert keys_of(victims_of(planning, "second")) == ["y"]


def test_removing_gives_back_quota_and_nodes() -> None:
    holder = holds("x", "a", pods(2, 2), on=on(n0=1, n1=1), cluster="home")
    comes = wants("new", "a", pods(2, 4), priority=5)
    planning = fleet([queue("a", 8)], [holder, comes], [cluster("home", {GPU: 4}, {GPU: 4})])
    found = victims_of(planning, "new", "home")
    assert found is not None
    assert planning.ledger.usage("a") == {("any", GPU): 4000}
    found.remove(planning)
    assert planning.ledger.usage("a") == {}
    assert planning.ledger.rooms["home"].free[GPU].tolist() == [4000, 4000]


def test_harm_compares_sets_of_different_clusters() -> None:
    clusters = [cluster("one", {GPU: 4}), cluster("two", {GPU: 4}), cluster("three", {GPU: 4})]
    holders = [
        holds("x", "a", pods(1, 4), on=on(n0=1), cluster="one", priority=2, ran=1.0),
        holds("y", "a", pods(1, 4), on=on(n0=1), cluster="two", priority=1, ran=50.0),
        holds("z", "a", pods(1, 4), on=on(n0=1), cluster="three", priority=1, ran=40.0),
    ]
    planning = fleet(
        [queue("a", 50)], [*holders, wants("new", "a", pods(1, 4), priority=5)], clusters
    )
    found = [victims_of(planning, "new", name) for name in ("one", "two", "three")]
    harms = [item.harm for item in found if item is not None]
    assert len(harms) == 3
    assert min(harms) == harms[2]
    assert max(harms) == harms[0]


def test_lost_seconds_are_told() -> None:
    holder = holds("x", "a", pods(4), ran=700.0, checkpoint=300.0)
    planning = fleet([queue("a", 4)], [holder, wants("new", "a", pods(4), priority=5)])
    found = victims_of(planning, "new")
    assert found is not None
    assert found.victims[0].lost_seconds == pytest.approx(100.0)
    assert NOW > 0


def test_many_candidates_leave_nobody_in_vain() -> None:
    """Beyond twelve: forty holders of one GPU each, on ten nodes of four; two whole nodes."""
    holders = [
        here(f"h-{number:02}", 1, {"main": {number % 10: 1}}, ran=10.0 + 7 * (number % 13))
        for number in range(40)
    ]
    comes = wants("new", "a", pods(2, 4), priority=5)
    planning = fleet(
        [queue("a", 100)], [*holders, comes], [cluster("home", *({GPU: 4} for _ in range(10)))]
    )
    found = victims_of(planning, "new", "home")
    assert found is not None
    assert len(found.victims) == 8
    nodes = {int(victim.key[2:]) % 10 for victim in found.victims}
    assert len(nodes) == 2
    lost = sum(victim.lost_seconds for victim in found.victims)
    by_node = [sum(10.0 + 7 * (n % 13) for n in range(node, 40, 10)) for node in range(10)]
    assert lost == pytest.approx(sum(sorted(by_node)[:2]))
