"""Reservation and backfill: for whom room is kept, where, and who may run ahead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.cycle import plan
from fairway.core.model import Flavor, Held, PreemptionRules, Queue, Workload
from fairway.core.nodes import Cluster
from fairway.core.plan import Plan
from fairway.core.snapshot import Facts, Settings, Snapshot
from fairway.core.transitions import after
from tests.core.preemptions import FLAVOR, GPU, NOW, cluster, holds, pods, queue, wants

NODE = {GPU: 4}
NEVER = PreemptionRules()
DEFAULT = Settings()
NEWER = PreemptionRules(within_queue="LowerOrNewerEqualPriority")
QUIET = queue("q", 1000, rules=NEVER)


def runs(
    key: str, gpus: int, node: int, *, where: str = "a", left: float = 100.0, at: float = 0.0
) -> Workload:
    """A workload on one node, which its limit ends in so many seconds."""
    one = holds(key, "q", pods(gpus), on={"main": {node: gpus}}, cluster=where, ran=50.0, at=at)
    return replace(one, limit_seconds=50.0 + left)


def asks(key: str, *, limit: float | None = None, **parts: Any) -> Workload:
    """A workload that waits for whole nodes, or for `gpus` on one of them."""
    sets = pods(parts.get("nodes", 1), parts.get("gpus", 4))
    one = wants(key, parts.get("queue", "q"), sets, at=parts.get("at", 0.0))
    return replace(
        one,
        limit_seconds=limit,
        priority=parts.get("priority", 0),
        reservation=parts.get("reservation"),
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    workloads: list[Workload]
    expect: list[str]
    queues: list[Queue] = field(default_factory=lambda: [QUIET])
    clusters: list[Cluster] = field(default_factory=lambda: [cluster("a", NODE, NODE)])
    settings: Settings = DEFAULT

    def facts(self) -> Facts:
        return facts_of(self.workloads, self.queues, self.clusters, self.settings)


def facts_of(
    workloads: Iterable[Workload],
    queues: Iterable[Queue] = (QUIET,),
    clusters: Iterable[Cluster] = (),
    some: Settings = DEFAULT,
) -> Facts:
    return Facts(
        now=NOW,
        queues={queue.name: queue for queue in queues},
        flavors={FLAVOR: Flavor(name=FLAVOR)},
        clusters={cluster.name: cluster for cluster in clusters},
        workloads={workload.key: workload for workload in workloads},
        settings=some,
    )


def told(found: Plan) -> list[str]:
    """A plan in few words: steps, who waits and for whom, and what is held."""
    lines = []
    for step in found.render()["steps"]:
        where = step.get("cluster") or ",".join(
            placement["cluster"] for placement in step["placements"]
        )
        lines.append(f"{step['action']} {step['workload']} {where}")
    for waits in found.waiting:
        kept = sorted(
            {f" for {reason.other}" for reason in waits.reasons if reason.code == "Reserved"}
        )
        lines.append(f"wait {waits.workload}{''.join(kept)}")
    for reservation in found.reservations:
        start = "" if reservation.starts_at is None else f" in {reservation.starts_at - NOW:g}"
        lines.append(f"hold {reservation.workload} {reservation.cluster}{start}")
    return lines


BIG = asks("big", nodes=2, at=1.0)

CASES = [
    Case(
        id="a gang that lacks room holds a place, and a small one without a limit waits for it",
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0)],
        expect=["wait big", "wait small for big", "hold big a in 100"],
    ),
    Case(
        id="a small one that ends by its limit before the gang starts may run ahead",
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0, limit=100.0)],
        expect=["Admit small a", "wait big", "hold big a in 100"],
    ),
    Case(
        id="a service leaves it alone too, and says for whom",
        workloads=[runs("r", 4, 0), BIG, replace(asks("service", at=2.0), mode="Divided")],
        expect=["wait big", "wait service for big", "hold big a in 100"],
    ),
    Case(
        id="and so does a sweep",
        workloads=[
            runs("r", 4, 0),
            BIG,
            replace(asks("sweep", at=2.0), mode="Independent", tasks=2),
        ],
        expect=["wait big", "wait sweep for big", "hold big a in 100"],
    ),
    Case(
        id="a second too many and it may not",
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0, limit=101.0)],
        expect=["wait big", "wait small for big", "hold big a in 100"],
    ),
    Case(
        id="equal ones with a longer limit do not keep one with a short limit from running ahead",
        workloads=[
            runs("r", 4, 0),
            BIG,
            asks("long", at=2.0, limit=500.0),
            asks("longer", at=3.0, limit=500.0),
            asks("short", at=4.0, limit=50.0),
        ],
        expect=[
            "Admit short a",
            "wait big",
            "wait long for big",
            "wait longer for big",
            "hold big a in 100",
        ],
    ),
    Case(
        id="without backfill even a short one waits",
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0, limit=10.0)],
        settings=Settings(backfills=False),
        expect=["wait big", "wait small for big", "hold big a in 100"],
    ),
    Case(
        id="one that the holder could preempt may run ahead",
        queues=[queue("q", 1000, rules=NEWER)],
        workloads=[runs("r", 4, 0, at=0.5), BIG, asks("small", at=2.0)],
        expect=["Admit small a", "wait big", "hold big a in 100"],
    ),
    Case(
        id="one that the holder could preempt only after its minimum run time waits",
        queues=[queue("q", 1000, rules=NEWER, within=101.0)],
        workloads=[runs("r", 4, 0, at=0.5), BIG, asks("small", at=2.0)],
        expect=["wait big", "wait small for big", "hold big a in 100"],
    ),
    Case(
        id="an older one is not held back",
        workloads=[runs("r", 4, 0), replace(BIG, queued_at=3.0), asks("small", at=2.0)],
        expect=["Admit small a", "wait big", "hold big a in 86400"],
    ),
    Case(
        id="nor is a more urgent one",
        workloads=[runs("r", 4, 0), BIG, asks("urgent", at=2.0, priority=1)],
        expect=["Admit urgent a", "wait big", "hold big a in 86400"],
    ),
    Case(
        id="nodes that the gang does not need are free to all",
        clusters=[cluster("a", NODE, NODE, NODE, {GPU: 2})],
        workloads=[runs("r", 4, 0), runs("s", 4, 1), BIG, asks("tiny", gpus=2, at=2.0)],
        expect=["Admit tiny a", "wait big", "hold big a in 100"],
    ),
    Case(
        id="it holds a place where it is expected to start first",
        clusters=[cluster("a", NODE, NODE), cluster("b", NODE, NODE)],
        workloads=[
            runs("r", 4, 0, left=300.0),
            runs("s", 4, 0, where="b", left=200.0),
            BIG,
            asks("one", at=2.0),
            asks("two", at=3.0),
        ],
        expect=[
            "Admit one a",
            "wait big",
            "wait two for big",
            "hold two a in 300",
            "hold big b in 200",
        ],
    ),
    Case(
        id="it sticks to its place, though another would now be earlier",
        clusters=[cluster("a", NODE, NODE), cluster("b", NODE, NODE)],
        workloads=[
            runs("r", 4, 0, left=300.0),
            runs("s", 4, 0, where="b", left=200.0),
            replace(BIG, reservation=("a", (FLAVOR,))),
        ],
        expect=["wait big", "hold big a in 300"],
    ),
    Case(
        id="it gives its place up for another when its cluster can never hold it",
        clusters=[cluster("a", NODE), cluster("b", NODE, NODE)],
        workloads=[
            runs("s", 4, 0, where="b", left=200.0),
            replace(BIG, reservation=("a", (FLAVOR,))),
        ],
        expect=["wait big", "hold big b in 200"],
    ),
    Case(
        id="one that lacks quota holds nothing",
        queues=[queue("q", 8, rules=NEVER)],
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0)],
        expect=["Admit small a", "wait big"],
    ),
    Case(
        id="one that its cluster will never hold reserves nothing",
        workloads=[
            runs("r", 4, 0),
            replace(BIG, forms=asks("x", nodes=3).forms),
            asks("s", at=2.0),
        ],
        expect=["Admit s a", "wait big"],
    ),
    Case(
        id="later ones of its queue leave it its quota in other clusters too",
        queues=[queue("q", 12, rules=NEVER)],
        clusters=[cluster("a", NODE, NODE), cluster("b", NODE)],
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0, limit=500.0)],
        expect=["wait big", "wait small for big", "hold big a in 100"],
    ),
    Case(
        id="who has not waited long enough holds nothing",
        settings=Settings(reserve_after_seconds=10.0),
        workloads=[runs("r", 4, 0), replace(BIG, queued_at=NOW - 9), asks("s", at=NOW - 5)],
        expect=["Admit s a", "wait big"],
    ),
    Case(
        id="nobody holds anything where reservations are off",
        settings=Settings(reserves=False),
        workloads=[runs("r", 4, 0), BIG, asks("small", at=2.0)],
        expect=["Admit small a", "wait big"],
    ),
    Case(
        id="one place for each cluster and flavor: the second gang holds none",
        workloads=[
            runs("r", 4, 0),
            BIG,
            replace(BIG, key="big-2", queued_at=2.0, priority=0, user="other"),
        ],
        expect=["wait big", "wait big-2", "hold big a in 100"],
    ),
    Case(
        id="with two places for a flavor, the second holds nodes that the first leaves",
        settings=Settings(reservations_per_flavor=2),
        clusters=[cluster("a", NODE, NODE, NODE, NODE)],
        workloads=[
            *(runs(f"r{node}", 4, node, left=100.0 * (node + 1)) for node in range(4)),
            BIG,
            asks("pair", nodes=2, gpus=3, at=2.0),
        ],
        expect=["wait big", "wait pair", "hold big a in 200", "hold pair a in 400"],
    ),
    Case(
        id="an older gang takes the place over from a younger one",
        workloads=[
            runs("r", 4, 0),
            BIG,
            asks("young", nodes=2, gpus=3, at=2.0, reservation=("a", (FLAVOR,))),
        ],
        expect=["wait big", "wait young", "hold big a in 100"],
    ),
    Case(
        id="who starts holds no place any more",
        workloads=[replace(BIG, reservation=("a", (FLAVOR,))), asks("small", at=2.0)],
        expect=["Admit big a", "wait small", "hold small a in 86400"],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_places_are_held(case: Case) -> None:
    found, _ = plan(Snapshot(case.facts()))
    assert told(found) == case.expect


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_order_of_input_does_not_matter_and_the_snapshot_is_left_as_it_was(case: Case) -> None:
    turned = replace(case, workloads=case.workloads[::-1], clusters=case.clusters[::-1])
    snapshot = Snapshot(case.facts())
    first, _ = plan(snapshot)
    assert plan(snapshot)[0] == first
    assert plan(Snapshot(turned.facts()))[0] == first


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_held_is_held_in_the_next_plan_too_and_then_nothing_happens(case: Case) -> None:
    facts = case.facts()
    first, _ = plan(Snapshot(facts))
    facts = after(facts, first)
    second, _ = plan(Snapshot(facts))
    assert second.steps == ()
    assert {reservation.workload for reservation in first.reservations} <= {
        reservation.workload for reservation in second.reservations
    }


def test_a_plan_says_what_is_held_for_programs() -> None:
    found, _ = plan(Snapshot(CASES[0].facts()))
    rendered = found.render()
    assert rendered["reservations"] == [
        {"workload": "big", "cluster": "a", "flavors": [FLAVOR], "startsAt": NOW + 100}
    ]
    assert rendered["waiting"][1]["reasons"][0] == {
        "code": "Reserved",
        "cluster": "a",
        "rung": "Idle",
        "flavor": FLAVOR,
        "other": "big",
        "until": NOW + 100,
        "message": "a: what is free is reserved for big",
    }
    nothing, _ = plan(Snapshot(facts_of([asks("small")], clusters=[cluster("a", NODE)])))
    assert "reservations" not in nothing.render()


# Starvation.


def stream(
    facts: Facts, *, rounds: int, seconds: float, limit: float | None, queue_of_small: str
) -> float | None:
    """When `big` starts, while a small workload comes for each one that ends."""
    for number in range(rounds):
        now = NOW + number * seconds
        workloads = {
            key: workload
            for key, workload in facts.workloads.items()
            if not (workload.held and workload.held.decided_at + 4 * seconds <= now)
        }
        for index in range(2):
            key = f"small-{number:03d}-{index}"
            small = asks(key, queue=queue_of_small, at=now, limit=limit)
            workloads[key] = small
        facts = replace(facts, now=now, workloads=workloads)
        facts = after(facts, plan(Snapshot(facts))[0])
        if facts.workloads["big"].held is not None:
            return now - NOW
    return None


@pytest.mark.parametrize(
    "limit", [None, 40.0, 1000.0], ids=["no limit", "the true limit", "a long limit"]
)
@pytest.mark.parametrize("small", ["q", "light"], ids=["of its queue", "of a queue with less"])
def test_a_stream_of_small_jobs_never_starves_a_large_gang(limit: float | None, small: str) -> None:
    queues = [QUIET, replace(QUIET, name="light", weight_nanos=9_000_000_000)]
    busy = [
        replace(asks(f"old-{node}", limit=limit), held=_held(node, NOW - 10.0 * node))
        for node in range(4)
    ]
    start = facts_of(
        [*busy, asks("big", nodes=4, at=1.0)], queues, [cluster("a", NODE, NODE, NODE, NODE)]
    )
    found = stream(start, rounds=20, seconds=10.0, limit=limit, queue_of_small=small)
    assert found == 40.0
    off = replace(start, settings=Settings(reserves=False))
    assert stream(off, rounds=20, seconds=10.0, limit=limit, queue_of_small=small) is None


def _held(node: int, since: float) -> Held:
    one = holds("x", "q", pods(1, 4), on={"main": {node: 1}}, cluster="a").held
    assert one is not None
    return replace(one, decided_at=since, started_at=since)


# Properties.


@st.composite
def fleets(draw: st.DrawFn) -> Facts:
    nodes = draw(st.integers(2, 4))
    queues = [
        queue("root", 64, rules=NEVER),
        queue("x", 8, parent="root", rules=draw(st.sampled_from([NEVER, NEWER]))),
        queue("y", 8, parent="root", rules=draw(st.sampled_from([NEVER, NEWER]))),
    ]
    workloads = []
    for number in range(draw(st.integers(2, 8))):
        one = asks(
            f"w{number}",
            queue=draw(st.sampled_from("xy")),
            nodes=draw(st.integers(1, nodes)),
            gpus=draw(st.integers(1, 4)),
            at=float(draw(st.integers(0, 5))),
            limit=draw(st.sampled_from([None, 50.0, 500.0])),
            priority=draw(st.sampled_from([0, 0, 1])),
        )
        workloads.append(one)
    some = Settings(reservations_per_flavor=draw(st.integers(1, 2)))
    clusters = [cluster(name, *[NODE] * nodes) for name in "ab"[: draw(st.integers(1, 2))]]
    return facts_of(workloads, queues, clusters, some)


@settings(max_examples=150, deadline=None)
@given(fleets(), st.randoms(use_true_random=False))
def test_a_fleet_left_alone_comes_to_rest_and_keeps_within_its_places(
    facts: Facts, chance: Any
) -> None:
    for _ in range(len(facts.workloads) + 1):
        found, _ = plan(Snapshot(facts))
        keys = list(facts.workloads)
        chance.shuffle(keys)
        shuffled = replace(facts, workloads={key: facts.workloads[key] for key in keys})
        assert plan(Snapshot(shuffled))[0] == found
        held = [
            (reservation.cluster, flavor)
            for reservation in found.reservations
            for flavor in reservation.flavors
        ]
        assert all(held.count(item) <= facts.settings.reservations_per_flavor for item in held)
        assert {reservation.workload for reservation in found.reservations} <= {
            item.workload for item in found.waiting
        }
        if not found.steps:
            return
        facts = after(facts, found)
    pytest.fail("no rest")
