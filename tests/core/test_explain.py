"""Why one workload waits, in one sentence, on small fleets."""

# ruff: noqa: RUF001 - the sentences are as people read them

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from fairway.core.explain.explain import explain, sentence
from fairway.core.model import (
    Flavor,
    Form,
    Held,
    Placed,
    PlacedPods,
    PodSet,
    Policy,
    Pool,
    PreemptionRules,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    Topology,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.snapshot import Facts, Settings
from tests.core.preemptions import GPU

NOON = 1_800_014_400.0  # 12:00 in UTC
FLAVORS = {name: Flavor(name=name, node_labels=(("model", name),)) for name in ("h100", "a100")}
ON_H100 = (("model", "h100"),)


def place(name: str, *models: str, **parts: Any) -> Cluster:
    """A cluster of nodes with 8 accelerators each, of these models."""
    count = len(models)
    return Cluster(
        name=name,
        nodes=Nodes(
            names=tuple(f"{name}-{position}" for position in range(count)),
            capacity={GPU: np.full(count, 8000, dtype=np.int64)},
            ready=np.ones(count, dtype=np.bool_),
            labels={
                "model": label_column(models),
                "rack": label_column([f"r{position // 2}" for position in range(count)]),
            },
        ),
        levels=(("rack", "rack"),),
        **parts,
    )


def research(h100: int = 100, a100: int = 100, **parts: Any) -> Queue:
    return Queue(
        name="research",
        groups=(ResourceGroup(resources=(GPU,), flavors=("h100", "a100")),),
        quotas={
            ("h100", GPU): Quota(nominal=h100 * 1000),
            ("a100", GPU): Quota(nominal=a100 * 1000),
        },
        preemption=PreemptionRules(),
        **parts,
    )


def form(count: int, gpus: int = 1, **parts: Any) -> Form:
    shape = Shape(requests=((GPU, gpus * 1000),), node_selector=parts.pop("selector", ()))
    least = parts.pop("least", count)
    topology = parts.pop("topology", Topology())
    pods = PodSet(name="worker", shape=shape, count=count, least=least, topology=topology)
    return Form(pod_sets=(pods,), **parts)


def job(key: str, one: Form, **parts: Any) -> Workload:
    return Workload(
        key=f"vision/{key}", queue="research", forms=(one,), **{"queued_at": NOON - 60, **parts}
    )


def running(
    key: str, gpus: int, node: int, *, minutes: float, where: str = "hangzhou-1", on: str = "h100"
) -> Workload:
    """A job on one node, ten minutes old, that its limit ends in so many minutes."""
    one = form(gpus)
    pods = PlacedPods(name="worker", count=gpus, shape=one.pod_sets[0].shape, flavors=((GPU, on),))
    placed = Placed(cluster=where, pods=(pods,), bound={"worker": {node: gpus}})
    since = NOON - 600
    held = Held(queue="research", placed=(placed,), decided_at=since, started_at=since)
    return job(key, one, held=held, limit_seconds=600 + minutes * 60)


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    workloads: list[Workload]
    expect: str
    queue: Queue = field(default_factory=research)
    clusters: list[Cluster] = field(
        default_factory=lambda: [place("hangzhou-1", "h100", "h100", "a100", "a100")]
    )
    settings: Settings = field(default_factory=Settings)

    def facts(self) -> Facts:
        return Facts(
            now=NOON,
            queues={"research": self.queue},
            flavors=FLAVORS,
            clusters={cluster.name: cluster for cluster in self.clusters},
            workloads={workload.key: workload for workload in self.workloads},
            settings=self.settings,
            default_policy=Policy(),
        )


JOB_17 = running("job-17", 4, 0, minutes=125)
GANG = job("w", form(16, flavors=("h100",)))

CASES = [
    Case(
        id="everything at once: room, queue, start, and what would help",
        workloads=[JOB_17, GANG],
        expect=(
            "needs 16 × h100 in one cluster; nearest is hangzhou-1 with 12 free (4 short);"
            " queue research has quota for it;"
            " expected start 14:05 ± 112 min when vision/job-17 ends;"
            " starts now if you accept 16 × a100; starts now with 12 × h100"
        ),
    ),
    Case(
        id="a selector on nodes can be given up too",
        workloads=[JOB_17, job("w", form(2, 8, selector=ON_H100))],
        expect=(
            "needs 16 × h100 in one cluster; nearest is hangzhou-1 with 8 free (8 short);"
            " queue research has quota for it;"
            " expected start 14:05 ± 112 min when vision/job-17 ends;"
            " starts now if you accept 16 × a100; starts now with 8 × h100"
        ),
    ),
    Case(
        id="of several clusters the one that lacks least is named",
        clusters=[place("east", "h100"), place("west", "h100", "h100")],
        workloads=[
            running("r", 3, 0, minutes=60, where="west"),
            job("w", form(16, flavors=("h100",))),
        ],
        expect=(
            "needs 16 × h100 in one cluster; nearest is west with 13 free (3 short);"
            " queue research has quota for it;"
            " expected start 13:00 ± 54 min when vision/r ends; starts now with 13 × h100"
        ),
    ),
    Case(
        id="a cluster that lacks the flavor is not the nearest, even if all others are full",
        clusters=[place("east", "a100"), place("west", "h100")],
        workloads=[
            running("r", 8, 0, minutes=60, where="west"),
            job("w", form(8, flavors=("h100",))),
        ],
        expect=(
            "needs 8 × h100 in one cluster; nearest is west with 0 free (8 short);"
            " queue research has quota for it;"
            " expected start 13:00 ± 54 min when vision/r ends; starts now if you accept 8 × a100"
        ),
    ),
    Case(
        id="the nearest has another flavor that it accepts, which is named",
        clusters=[place("east", "a100"), place("west", "h100")],
        workloads=[
            running("r", 8, 0, minutes=60, where="west"),
            running("s", 4, 0, minutes=60, where="east", on="a100"),
            job("w", form(8)),
        ],
        expect=(
            "needs 8 × h100 in one cluster; nearest is east with 4 a100 free (4 short);"
            " queue research has quota for it;"
            " expected start 13:00 ± 54 min when vision/r ends; starts now with 4 × a100"
        ),
    ),
    Case(
        id="a cluster that could get the flavor from a pool may be the nearest",
        clusters=[
            place("east", "a100", pools=(Pool(name="p", shape=((GPU, 8000),), labels=ON_H100),))
        ],
        workloads=[job("w", form(8, flavors=("h100",)))],
        expect=(
            "needs 8 × h100 in one cluster; nearest is east with 0 free (8 short);"
            " queue research has quota for it; starts now if you accept 8 × a100"
        ),
    ),
    Case(
        id="no cluster that it may use has the flavor",
        clusters=[place("east", "a100"), place("west", "h100", is_open=False)],
        workloads=[job("w", form(8, flavors=("h100",)))],
        expect=(
            "needs 8 × h100 in one cluster; no cluster that it may use has h100 nodes;"
            " starts now if you accept 8 × a100"
        ),
    ),
    Case(
        id="quota is short and would help",
        queue=research(h100=18, a100=0),
        workloads=[JOB_17, job("w", form(8, flavors=("h100",))), running("s", 8, 1, minutes=9)],
        expect=(
            "needs 8 × h100 in one cluster; nearest is hangzhou-1 with 4 free (4 short);"
            " queue research needs quota for 2 more h100 GPUs;"
            " expected start 12:09 ± 8 min when vision/s ends; starts now with 4 × h100"
        ),
    ),
    Case(
        id="only quota is short",
        queue=research(h100=10, a100=0),
        workloads=[JOB_17, job("w", form(8, flavors=("h100",)))],
        expect=(
            "needs 8 × h100 in one cluster; queue research needs quota for 2 more h100 GPUs;"
            " expected start 14:05 ± 112 min when vision/job-17 ends;"
            " starts now if queue research gets 2 more GPUs"
        ),
    ),
    Case(
        id="there is enough, but not in one rack",
        clusters=[place("hangzhou-1", "h100", "h100", "h100", "h100")],
        workloads=[
            running("r", 8, 0, minutes=30),
            running("s", 8, 2, minutes=40),
            job("w", form(16, flavors=("h100",), topology=Topology(required="rack"))),
        ],
        expect=(
            "needs 16 × h100 in one cluster; nearest is hangzhou-1 with 16 free (not together);"
            " queue research has quota for it;"
            " expected start 12:30 ± 27 min when vision/r ends; starts now with 8 × h100"
        ),
    ),
    Case(
        id="room is kept for another, which is named",
        workloads=[
            JOB_17,
            replace(GANG, key="vision/big", reservation=("hangzhou-1", ("h100",))),
            job("w", form(8, flavors=("h100",)), queued_at=NOON - 30),
        ],
        expect=(
            "needs 8 × h100 in one cluster; nearest is hangzhou-1 with 0 free (8 short);"
            " hangzhou-1: what is free is reserved for vision/big; queue research has quota for it;"
            " 1 is ahead of it in queue research;"
            " expected start 2027-01-16 14:05 when vision/big ends, which is a guess: not all run"
            " times are known;"
            " starts now if you accept 8 × a100"
        ),
    ),
    Case(
        id="others of its queue are before it",
        clusters=[place("hangzhou-1", "h100")],
        workloads=[
            job("first", form(8, flavors=("h100",)), queued_at=NOON - 90, limit_seconds=1200.0),
            job("w", form(8, flavors=("h100",))),
        ],
        expect=(
            "needs 8 × h100 in one cluster; 1 is ahead of it in queue research;"
            " expected start 12:20 ± 18 min when vision/first ends"
        ),
    ),
    Case(
        id="what one before it takes now is not offered",
        workloads=[
            JOB_17,
            job("first", form(16, flavors=("a100",)), queued_at=NOON - 90, limit_seconds=1200.0),
            GANG,
        ],
        expect=(
            "needs 16 × h100 in one cluster; nearest is hangzhou-1 with 12 free (4 short);"
            " queue research has quota for it; 1 is ahead of it in queue research;"
            " expected start 14:05 ± 112 min when vision/job-17 ends; starts now with 12 × h100"
        ),
    ),
    Case(
        id="it holds out, and need not",
        workloads=[
            JOB_17,
            replace(
                GANG,
                forms=(*GANG.forms, form(16, flavors=("a100",), name="on-a100", after_seconds=600)),
            ),
        ],
        expect=(
            "needs 16 × h100 in one cluster; nearest is hangzhou-1 with 12 free (4 short);"
            " it waits for its first form before it takes on-a100;"
            " queue research has quota for it; expected start 12:09;"
            " starts now if it takes on-a100 without waiting;"
            " starts now if you accept 16 × a100; starts now with 12 × h100"
        ),
    ),
    Case(
        id="it is held",
        workloads=[job("w", form(1), is_held=True)],
        expect="needs 1 × h100 in one cluster; it is held",
    ),
    Case(
        id="its queue does not exist",
        workloads=[replace(GANG, queue="lost")],
        expect="there is no queue lost",
    ),
    Case(
        id="no node or pool could ever hold it",
        workloads=[job("w", form(1, 9))],
        expect="can never start: no node or pool in the fleet is large enough for it",
    ),
    Case(
        id="its queue owns too little for ever",
        queue=research(h100=4, a100=0),
        workloads=[job("w", form(8, flavors=("h100",)))],
        expect=(
            "can never start: queue research can never get this much: it needs 4 more h100 GPUs"
            " than its quota and all that it can borrow"
        ),
    ),
    Case(
        id="it starts now",
        workloads=[job("w", form(8))],
        expect="starts now in hangzhou-1",
    ),
    Case(
        id="it runs already",
        workloads=[replace(JOB_17, key="vision/w")],
        expect="runs in hangzhou-1",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_sentence_says_why(case: Case) -> None:
    assert sentence(explain(case.facts(), "vision/w")) == case.expect


def test_programs_get_everything() -> None:
    found = explain(CASES[0].facts(), "vision/w").render()
    assert found == {
        "now": NOON,
        "workload": "vision/w",
        "state": "Waits",
        "queue": "research",
        "needs": {"amount": "16", "of": "h100"},
        "position": 1,
        "waiting": 1,
        "nearest": {"cluster": "hangzhou-1", "free": "12", "short": "4", "flavor": "h100"},
        "places": [{"cluster": "hangzhou-1", "free": "12", "short": "4", "flavor": "h100"}],
        "ladder": [{"rung": "Idle"}, {"rung": "Preempt"}, {"rung": "Provision"}],
        "expected": {
            "start": NOON + 125 * 60,
            "earliest": NOON + 125 * 6,
            "latest": NOON + 125 * 60,
            "because": "vision/job-17",
        },
        "reasons": [
            {
                "code": "DoesNotFit",
                "cluster": "hangzhou-1",
                "rung": "Idle",
                "flavor": "h100",
                "podSet": "worker",
                "count": 4,
                "short": {"nvidia.com/gpu": "4"},
                "message": "hangzhou-1: needs 4 more h100 GPUs",
            },
            {
                "code": "NoVictims",
                "cluster": "hangzhou-1",
                "rung": "Preempt",
                "message": "hangzhou-1: preemption cannot free enough",
            },
            {
                "code": "NoPool",
                "cluster": "hangzhou-1",
                "rung": "Provision",
                "message": "hangzhou-1 has no elastic pool for it",
            },
        ],
        "remedies": [
            {
                "kind": "Flavor",
                "message": "starts now if you accept 16 × a100",
                "name": "a100",
                "needs": {"amount": "16", "of": "a100"},
            },
            {
                "kind": "FewerPods",
                "message": "starts now with 12 × h100",
                "needs": {"amount": "12", "of": "h100"},
            },
        ],
        "message": CASES[0].expect,
    }


def test_every_cluster_that_may_take_it_is_told_with_what_it_lacks_the_nearest_first() -> None:
    """Also where its queue is short, so that nobody looked for room there."""
    case = Case(
        id="",
        queue=research(h100=20, a100=0),
        clusters=[
            place("east", "h100"),
            place("west", "h100", "h100"),
            place("north", "a100", "h100", "h100"),
        ],
        workloads=[
            running("r", 8, 0, minutes=60, where="west"),
            job("w", form(16, flavors=("h100",))),
        ],
        expect="",
    )
    found = explain(case.facts(), "vision/w")
    assert [
        (other.cluster, other.free_nanos // 10**9, other.short_nanos // 10**9, other.fits)
        for other in found.places
    ] == [("north", 16, 0, True), ("east", 8, 8, False), ("west", 8, 8, False)]
    assert found.nearest is None  # it is not room that it lacks
    assert found.quota is not None


def test_a_service_that_runs_says_why_the_rest_of_it_does_not() -> None:
    one = form(1, flavors=("h100",))
    pods = PlacedPods(name="worker", count=8, shape=one.pod_sets[0].shape, flavors=((GPU, "h100"),))
    placed = Placed(cluster="hangzhou-1", pods=(pods,), replicas=8, bound={"worker": {0: 8}})
    held = Held(attempt=1, queue="research", placed=(placed,), decided_at=NOON - 60)
    site = [place("hangzhou-1", "h100")]
    partly = job("w", one, mode="Divided", replicas=10, held=held)
    whole = job("w", one, mode="Divided", replicas=8, held=held)
    facts = [
        Case(id="", workloads=[each], clusters=site, expect="").facts() for each in (partly, whole)
    ]
    found = [[each.code for each in explain(fact, "vision/w").reasons] for fact in facts]
    assert found == [["DoesNotFit", "NoVictims", "NoPool", "PartlyPlaced"], []]
