"""Expected starts on small fleets, and what can never start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fairway.api.reasons import Code, Reason
from fairway.core.cycle import plan
from fairway.core.forecast import starts
from fairway.core.forecast.starts import (
    Expected,
    expected_start,
    first_starts,
    forecast,
    impossible,
)
from fairway.core.model import Form, Group, Policy, Pool, Queue, Topology, Workload
from fairway.core.nodes import Cluster
from fairway.core.snapshot import Facts, Snapshot
from tests.core.preemptions import FLAVOR, GPU, NOW, cluster, pods, queue, wants
from tests.core.test_reservations import NEVER, NODE, QUIET, asks, facts_of, runs


def at(start: float, earliest: float, latest: float | None, because: str = "") -> Expected:
    """Seconds from now."""
    return Expected(
        start=NOW + start,
        earliest=NOW + earliest,
        latest=None if latest is None else NOW + latest,
        because=because,
    )


def guess(start: float, because: str) -> Expected:
    """Seconds from now; a run time on which it depends is not known."""
    return Expected(start=NOW + start, because=because, is_guess=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    workloads: list[Workload]
    expect: dict[str, Expected]
    queues: list[Queue] = field(default_factory=lambda: [QUIET])
    clusters: list[Cluster] = field(default_factory=lambda: [cluster("a", NODE, NODE)])
    depth: int = 10
    horizon: float = 10_000.0

    def facts(self) -> Facts:
        return facts_of(self.workloads, self.queues, self.clusters)


def likely(workload: Workload, seconds: float) -> Workload:
    return replace(workload, run_seconds=seconds)


_DAY = 86_400.0


def endless(name: str, node: int) -> Workload:
    """One that runs on a node, and says nothing of its end."""
    return replace(runs(name, 4, node), limit_seconds=None)


def moved(workload: Workload, where: str) -> Workload:
    """The same in another cluster."""
    assert workload.held is not None
    placed = tuple(replace(each, cluster=where) for each in workload.held.placed)
    return replace(workload, held=replace(workload.held, placed=placed))


CASES = [
    Case(
        id="what fits now starts now",
        workloads=[asks("w")],
        expect={"w": at(0, 0, 0)},
    ),
    Case(
        id="who waits for a limit starts by it, or as early as in a tenth of the time left",
        workloads=[runs("r", 4, 0), runs("s", 4, 1, left=900.0), asks("w")],
        expect={"w": at(100, 10, 100, "r")},
    ),
    Case(
        id="an estimate is the likely end, and the limit the latest",
        workloads=[
            likely(runs("r", 4, 0, left=950.0), 100.0),
            runs("s", 4, 1, left=950.0),
            asks("w"),
        ],
        expect={"w": at(50, 25, 950, "r")},
    ),
    Case(
        id="a gang starts when the last of its nodes is free",
        workloads=[runs("r", 4, 0), runs("s", 4, 1, left=300.0), asks("w", nodes=2)],
        expect={"w": at(300, 30, 300, "s")},
    ),
    Case(
        id="who comes later waits for those before, and their run times count",
        clusters=[cluster("a", NODE)],
        workloads=[
            runs("r", 4, 0),
            asks("first", at=1.0, limit=200.0),
            asks("second", at=2.0, limit=200.0),
        ],
        expect={"first": at(100, 10, 100, "r"), "second": at(300, 30, 300, "first")},
    ),
    Case(
        id="who runs ahead of a gang by backfill does not delay it",
        workloads=[
            runs("r", 4, 0),
            asks("big", nodes=2, at=1.0),
            asks("short", at=2.0, limit=100.0),
            asks("long", at=3.0, limit=5000.0),
        ],
        expect={
            "big": at(100, 10, 100, "short"),
            "short": at(0, 0, 0),
            "long": guess(86_500, "big"),
        },
        horizon=100_000.0,
    ),
    Case(
        id="only the first of each queue are forecast",
        clusters=[cluster("a", NODE)],
        depth=1,
        workloads=[runs("r", 4, 0), asks("w1", at=1.0), asks("w2", at=2.0)],
        expect={"w1": at(100, 10, 100, "r")},
    ),
    Case(
        id="a start that waits for one of unknown run time is a guess without a range",
        clusters=[cluster("a", NODE)],
        workloads=[endless("r", 0), asks("w")],
        expect={"w": guess(_DAY - 50, "r")},
        horizon=2 * _DAY,
    ),
    Case(
        id="who waits for one whose start is a guess is a guess too",
        clusters=[cluster("a", NODE)],
        workloads=[
            endless("r", 0),
            asks("first", at=1.0, limit=200.0),
            asks("second", at=2.0, limit=200.0),
        ],
        expect={"first": guess(_DAY - 50, "r"), "second": guess(_DAY + 150, "first")},
        horizon=3 * _DAY,
    ),
    Case(
        id="a gang that takes the nodes of one of unknown run time is a guess, whoever ends last",
        workloads=[endless("r", 0), runs("s", 4, 1, left=_DAY), asks("w", nodes=2)],
        expect={"w": guess(_DAY, "s")},
        horizon=3 * _DAY,
    ),
    Case(
        id="one of unknown run time elsewhere makes no guess of a start",
        clusters=[cluster("a", NODE), cluster("b", NODE)],
        workloads=[endless("r", 0), moved(runs("s", 4, 0), "b"), asks("w")],
        expect={"w": at(100, 10, 100, "s")},
    ),
    Case(
        id="nothing is said of what lies beyond the horizon",
        clusters=[cluster("a", NODE)],
        horizon=60.0,
        workloads=[runs("r", 4, 0), asks("w")],
        expect={"w": Expected(start=None, earliest=NOW + 10, latest=None)},
    ),
    Case(
        id="what can never start is said at once",
        workloads=[asks("wide", nodes=3), asks("w", at=1.0)],
        expect={
            "wide": Expected(never=Reason(code=Code.IMPOSSIBLE, level="cluster")),
            "w": at(0, 0, 0),
        },
    ),
    Case(
        id="one that waits for its first form starts when its time for another comes",
        clusters=[cluster("a", NODE)],
        workloads=[
            runs("r", 2, 0, left=5000.0),
            replace(
                asks("w", at=NOW),
                forms=(
                    Form(pod_sets=(pods(1, 4),)),
                    Form(name="small", after_seconds=30, pod_sets=(pods(1, 2),)),
                ),
            ),
        ],
        expect={"w": at(30, 30, 30)},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_starts_are_expected(case: Case) -> None:
    found = forecast(case.facts(), depth=case.depth, horizon_seconds=case.horizon)
    assert found == dict(sorted(case.expect.items()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_order_of_input_does_not_matter(case: Case) -> None:
    turned = replace(case, workloads=case.workloads[::-1], clusters=case.clusters[::-1])
    assert forecast(turned.facts(), depth=5) == forecast(case.facts(), depth=5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_first_starts_are_the_likely_ones_with_a_place_and_an_end(case: Case) -> None:
    likely = forecast(case.facts(), depth=case.depth, plans_max=64)
    found = first_starts(case.facts(), depth=case.depth, plans_max=64)
    assert {key: value.at for key, value in found.items()} == {
        key: value.start for key, value in likely.items() if value.start is not None
    }
    for item in found.values():
        assert item.placed
        assert item.until > item.at


def test_who_is_expected_now_is_who_the_plan_admits() -> None:
    for case in CASES:
        facts = case.facts()
        found = forecast(facts, depth=case.depth)
        made, _ = plan(Snapshot(facts))
        now = {key for key, value in found.items() if value.start == NOW}
        assert now == {step.workload for step in made.steps}, case.id


def test_with_few_plans_ends_are_taken_together_and_a_start_is_said_late_not_early() -> None:
    running = [runs(f"r{node}", 4, node, left=100.0 * (node + 1)) for node in range(8)]
    facts = facts_of(
        [*running, *(asks(f"w{number}", at=float(number)) for number in range(3))],
        clusters=[cluster("a", *[NODE] * 8)],
    )
    fine = forecast(facts, plans_max=20)
    rough = forecast(facts, plans_max=4)
    for key, value in fine.items():
        assert value.start is not None
        assert rough[key].start is None or rough[key].start >= value.start
    assert rough["w0"].start == NOW + 300


LINE = [runs("r", 4, 0), *(asks(f"w{n}", at=float(n), limit=100.0) for n in range(4))]


def test_the_fleet_says_how_many_of_each_queue_are_forecast() -> None:
    facts = facts_of(LINE, clusters=[cluster("a", NODE)])
    for depth in (0, 1, 3):
        limited = replace(facts, settings=replace(facts.settings, forecast_depth=depth))
        reached = [f"w{n}" for n in range(depth)]
        assert list(forecast(limited)) == reached
        assert list(first_starts(limited)) == reached
        known = [key for key in facts.workloads if expected_start_of(limited, key) is not None]
        assert known == reached


def expected_start_of(facts: Facts, key: str) -> float | None:
    return expected_start(facts, facts.workloads[key]).start if key != "r" else None


def test_one_beyond_the_common_reach_is_forecast_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many queues fewer of each are forecast together; one that is asked for is still."""
    facts = facts_of(LINE, clusters=[cluster("a", NODE)])
    whole = forecast(facts)
    monkeypatch.setattr(starts, "_HEADS_MOST", 2)
    assert list(forecast(facts)) == ["w0", "w1"]
    for key in ("w0", "w1", "w2", "w3"):
        assert expected_start(facts, facts.workloads[key]) == whole[key]


def test_a_fleet_that_is_too_large_is_not_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of(LINE, clusters=[cluster("a", NODE)])
    monkeypatch.setattr(starts, "LOOKS_MOST", 8)
    assert first_starts(facts) == {}
    assert expected_start(facts, facts.workloads["w0"]) == Expected()


SPLIT_WITHIN = Policy(
    key="p",
    groups=(
        Group(name="first", clusters=frozenset({"a"})),
        Group(name="second", clusters=frozenset({"b"})),
    ),
)
POOL = Pool(name="p", shape=((GPU, 8000),), left=0)


def within(level: str, nodes: int, gpus: int = 4, **slices: Any) -> Workload:
    """A workload whose pods must be close together, in all or in slices."""
    near = Topology(required=level, **slices)
    pod_set = replace(pods(nodes, gpus), topology=near)
    return replace(wants("w", "q"), forms=(Form(pod_sets=(pod_set,)),))


NEVER_CASES: list[tuple[str, Workload, Facts, Reason | None]] = [
    (
        "what would fit on an empty fleet is possible, however full it is",
        asks("w", nodes=2),
        facts_of([runs("r", 4, 0), runs("s", 4, 1)], clusters=[cluster("a", NODE, NODE)]),
        None,
    ),
    (
        "no node is large enough",
        asks("w", gpus=5),
        facts_of([], clusters=[cluster("a", NODE, NODE)]),
        Reason(code=Code.IMPOSSIBLE),
    ),
    (
        "no cluster is large enough, though nodes are",
        asks("w", nodes=3),
        facts_of([], clusters=[cluster("a", NODE, NODE), cluster("b", NODE)]),
        Reason(code=Code.IMPOSSIBLE, level="cluster"),
    ),
    (
        "no rack is large enough, though a cluster is",
        within("rack", 2),
        facts_of([], clusters=[cluster("a", NODE, NODE, racks=["r1", "r2"])]),
        Reason(code=Code.IMPOSSIBLE, level="rack"),
    ),
    (
        "no rack is large enough for a slice",
        within("", 4, slice_level="rack", slice_size=2),
        facts_of([], clusters=[cluster("a", *[NODE] * 4, racks=["r1", "r2", "r3", "r4"])]),
        Reason(code=Code.IMPOSSIBLE, level="rack"),
    ),
    (
        "a slice fits in a rack, but no cluster has enough such racks",
        within("", 4, slice_level="rack", slice_size=2),
        facts_of([], clusters=[cluster("a", *[NODE] * 4, racks=["r1", "r1", "r2", "r3"])]),
        Reason(code=Code.IMPOSSIBLE, level="cluster"),
    ),
    (
        "no rack holds the whole workload",
        replace(
            wants("w", "q"),
            domain="rack",
            forms=(Form(pod_sets=(pods(1, 4), pods(1, 4, name="more"))),),
        ),
        facts_of([], clusters=[cluster("a", NODE, NODE, racks=["r1", "r2"])]),
        Reason(code=Code.IMPOSSIBLE, level="rack"),
    ),
    (
        "a node is too small, whatever rack it is in",
        within("rack", 1, gpus=5),
        facts_of([], clusters=[cluster("a", NODE, NODE, racks=["r1", "r2"])]),
        Reason(code=Code.IMPOSSIBLE),
    ),
    (
        "an elastic pool has nodes that are large enough, though none is in stock now",
        asks("w", gpus=8),
        facts_of([], clusters=[replace(cluster("a", NODE), pools=(POOL,))]),
        None,
    ),
    (
        "a cluster in which it failed may be tried again",
        replace(asks("w"), avoids=("a",)),
        facts_of([], clusters=[cluster("a", NODE)]),
        None,
    ),
    (
        "a cluster that is closed may open again",
        asks("w"),
        facts_of([], clusters=[replace(cluster("a", NODE), is_open=False)]),
        None,
    ),
    (
        "the queue owns too little, with all that it may borrow",
        asks("w", nodes=2),
        facts_of([], [queue("q", 5, rules=NEVER)], [cluster("a", NODE, NODE)]),
        Reason(code=Code.QUOTA_TOO_SMALL, queue="q", flavor=FLAVOR, short=((GPU, 3_000_000_000),)),
    ),
    (
        "what is not preemptible cannot borrow, whatever the queue above owns",
        replace(asks("w", nodes=2), preemptible=False),
        facts_of(
            [],
            [queue("all", 8), queue("q", 5, parent="all", rules=NEVER)],
            [cluster("a", NODE, NODE)],
        ),
        Reason(
            code=Code.QUOTA_TOO_SMALL,
            queue="q",
            flavor=FLAVOR,
            level="queue",
            short=((GPU, 3_000_000_000),),
        ),
    ),
    (
        "without clusters quota alone decides",
        asks("w", nodes=99),
        facts_of([]),
        None,
    ),
    (
        "the least of an elastic gang is enough",
        replace(wants("w", "q"), forms=(Form(pod_sets=(replace(pods(9, 4), least=2),)),)),
        facts_of([], clusters=[cluster("a", NODE, NODE)]),
        None,
    ),
    (
        "an alternative is enough",
        replace(
            wants("w", "q"),
            forms=(Form(pod_sets=(pods(1, 9),)), Form(name="x", pod_sets=(pods(1, 4),))),
        ),
        facts_of([], clusters=[cluster("a", NODE)]),
        None,
    ),
    (
        "a cluster that the workload is pinned away from does not count",
        replace(asks("w", nodes=2), pinned_to="b"),
        facts_of([], clusters=[cluster("a", NODE, NODE), cluster("b", NODE)]),
        Reason(code=Code.PINNED, cluster="a", other="b"),
    ),
    (
        "the fence of its queue keeps it from where it would fit",
        asks("w", nodes=2),
        facts_of(
            [],
            [replace(queue("q", 40, rules=NEVER), fence=frozenset({"b"}))],
            [cluster("a", NODE, NODE), cluster("b", NODE)],
        ),
        Reason(code=Code.FENCED, cluster="a", queue="q"),
    ),
    (
        "its policy does not select where it would fit",
        replace(asks("w", nodes=2), policy="p"),
        replace(
            facts_of([], clusters=[cluster("a", NODE, NODE), cluster("b", NODE)]),
            policies={"p": Policy(key="p", clusters=frozenset({"b"}))},
        ),
        Reason(code=Code.NOT_SELECTED, cluster="a"),
    ),
    (
        "the ladder of its policy leaves out the pool that it needs",
        replace(asks("w", gpus=8), policy="p"),
        replace(
            facts_of([], clusters=[replace(cluster("a", NODE), pools=(POOL,))]),
            policies={"p": Policy(key="p", ladder=(("", "Idle"),))},
        ),
        Reason(code=Code.NOT_SELECTED, cluster="a"),
    ),
    (
        "a gang that may be split needs no cluster that holds all of it",
        replace(
            wants("w", "q"),
            clusters_max=2,
            forms=(Form(pod_sets=(replace(pods(2, 4), member_size=1),)),),
        ),
        facts_of([], clusters=[cluster("a", NODE), cluster("b", NODE)]),
        None,
    ),
    (
        "nor one of which each pod set alone can be split",
        replace(
            wants("w", "q"),
            clusters_max=2,
            forms=(
                Form(
                    pod_sets=(
                        replace(pods(2, 4), member_size=1),
                        replace(pods(2, 4), name="more", member_size=1),
                    )
                ),
            ),
        ),
        facts_of([], clusters=[cluster("a", NODE, NODE), cluster("b", NODE, NODE)]),
        None,
    ),
    (
        "a gang that may be split over fewer clusters than it needs",
        replace(
            wants("w", "q"),
            clusters_max=2,
            forms=(Form(pod_sets=(replace(pods(3, 4), member_size=1),)),),
        ),
        facts_of([], clusters=[cluster("a", NODE), cluster("b", NODE), cluster("c", NODE)]),
        Reason(code=Code.IMPOSSIBLE, level="cluster", count=2),
    ),
    (
        "a gang that may be split, but not over the groups of its policy",
        replace(
            wants("w", "q"),
            policy="p",
            clusters_max=2,
            forms=(Form(pod_sets=(replace(pods(2, 4), member_size=1),)),),
        ),
        replace(
            facts_of([], clusters=[cluster("a", NODE), cluster("b", NODE)]),
            policies={"p": SPLIT_WITHIN},
        ),
        Reason(code=Code.IMPOSSIBLE, level="cluster", count=2),
    ),
    (
        "unless the policy says that it may",
        replace(
            wants("w", "q"),
            policy="p",
            clusters_max=2,
            forms=(Form(pod_sets=(replace(pods(2, 4), member_size=1),)),),
        ),
        replace(
            facts_of([], clusters=[cluster("a", NODE), cluster("b", NODE)]),
            policies={"p": replace(SPLIT_WITHIN, splits_across_groups=True)},
        ),
        None,
    ),
    (
        "no flavor of its queue suits it",
        replace(wants("w", "q"), forms=(Form(flavors=("other",), pod_sets=(pods(1, 4),)),)),
        facts_of([], clusters=[cluster("a", NODE)]),
        Reason(code=Code.NO_FLAVOR, queue="q"),
    ),
]


@pytest.mark.parametrize(
    ("workload", "facts", "expect"),
    [case[1:] for case in NEVER_CASES],
    ids=[case[0] for case in NEVER_CASES],
)
def test_what_is_impossible(workload: Workload, facts: Facts, expect: Reason | None) -> None:
    assert impossible(facts, workload) == expect


def test_experience_with_limits_moves_the_likely_start_but_not_the_range() -> None:
    facts = facts_of([runs("r", 4, 0), asks("w")], clusters=[cluster("a", NODE)])
    assert forecast(facts, limit_share=0.4) == {"w": at(40, 10, 100, "r")}


def test_one_that_overruns_is_expected_to_go_on_as_long_as_it_is_overdue() -> None:
    late = runs("r", 4, 0, left=50.0)
    assert late.held is not None
    late = replace(late, held=replace(late.held, started_at=NOW - 1100.0))
    facts = facts_of([late, asks("w")], clusters=[cluster("a", NODE)])
    assert forecast(facts)["w"].start == NOW + 1000.0
