"""What can never start is said in the plan, and refused where the queue says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairway.api.reasons import Code
from fairway.core.cycle import plan
from fairway.core.forecast.judge import Judge, judged
from fairway.core.plan import Plan
from fairway.core.snapshot import Facts, Snapshot
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain, cluster, policy, pool, queue, told, workload

EAST = cluster("east", 8)
PICKY: dict[str, Any] = {"refuseImpossible": True}


def unheard(name: str) -> Plain:
    """A cluster whose agent has not reported yet."""
    spec: Plain = {"kubernetes": {}}
    return {**cluster(name, 8), "spec": spec}


def reporting(name: str, gpus: int, **nodes: Any) -> list[Plain]:
    """A cluster with one node, as its agent reported it."""
    columns = {
        "names": ["n0"],
        "amounts": [
            {"resource": "nvidia.com/gpu", "unit": "1", "allocatable": [gpus], "others": [0]},
            {"resource": "cpu", "unit": "1", "allocatable": [64]},
            {"resource": "pods", "unit": "1", "allocatable": [110]},
        ],
        "labels": [{"key": "accelerator", "values": ["h100"]}],
        **nodes,
    }
    report = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": f"{name}-0"},
        "spec": {
            "cluster": name,
            "agentEpoch": 1,
            "sequence": 1,
            "seenAt": "2025-01-01T00:00:00Z",
            "nodes": columns,
        },
    }
    return [cluster(name), report]


def busy(gpus: int, others: int) -> list[Plain]:
    amounts = [
        {"resource": "nvidia.com/gpu", "unit": "1", "allocatable": [gpus], "others": [others]},
        {"resource": "cpu", "unit": "1", "allocatable": [64]},
        {"resource": "pods", "unit": "1", "allocatable": [110]},
    ]
    return reporting("east", gpus, amounts=amounts)


CORDONED = {
    "taintSets": [
        {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}
    ],
    "taintSet": [0],
}


def job(name: str, *, gpus: int, pods: int = 1, **spec: Any) -> Plain:
    """A workload that runs in clusters of any kind."""
    resources = {"limits": {"cpu": "1", "nvidia.com/gpu": gpus}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "resources": resources}]}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": pod}},
    }
    made = workload(name, "q", **spec)
    del made["spec"]["podSets"]
    return {**made, "spec": {**made["spec"], "template": {"manifests": [manifest]}}}


def accepted(plain: Plain) -> Plain:
    """A workload that a plan has looked at before."""
    return {**plain, "status": {"phase": "Waiting"}}


CASES: dict[str, tuple[list[Plain], list[str]]] = {
    "a workload that no node holds is told so, and waits": (
        [queue("q", 64), EAST, workload("a", "q", gpus=9)],
        ["a waits: DoesNotFit, NoVictims, NoPool", "a can never start: Impossible"],
    ),
    "a queue may refuse it": (
        [queue("q", 64, **PICKY), EAST, workload("a", "q", gpus=9)],
        ["a waits: DoesNotFit, NoVictims, NoPool", "a is refused: Impossible"],
    ),
    "a queue refuses what a queue above it refuses": (
        [queue("root", 64, **PICKY), queue("q", parent="root"), EAST,
         workload("a", "q", gpus=9)],
        ["a waits: DoesNotFit, NoVictims, NoPool", "a is refused: Impossible"],
    ),
    "what was accepted before is not refused": (
        [queue("q", 64, **PICKY), EAST, accepted(workload("a", "q", gpus=9))],
        ["a waits: DoesNotFit, NoVictims, NoPool", "a can never start: Impossible"],
    ),
    "what only waits for others is not refused": (
        [queue("q", 64, **PICKY), EAST, workload("a", "q", count=8, running="east"),
         workload("b", "q", count=8)],
        ["b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a quota that is too small is a reason as well": (
        [queue("q", 4, **PICKY), EAST, workload("a", "q", count=5)],
        ["a waits: QuotaTooSmall, NoVictims", "a is refused: QuotaTooSmall"],
    ),
    "nothing is impossible while a cluster has not reported": (
        [queue("q", 64, **PICKY), EAST, unheard("far"), job("a", gpus=9)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "unless the workload may not use that cluster": (
        [queue("q", 64, **PICKY), EAST, unheard("far"), policy("near", ["east"]),
         job("a", gpus=9, policy="near")],
        ["a waits: NotSelected, DoesNotFit, NoVictims, NoPool", "a is refused: Impossible"],
    ),
    "or its quota is too small wherever it runs": (
        [queue("q", 4, **PICKY), unheard("far"), job("a", gpus=1, pods=5)],
        ["a waits: QuotaTooSmall, NoVictims", "a is refused: QuotaTooSmall"],
    ),
    "a pool that is out of stock may have nodes again": (
        [queue("q", 64, **PICKY), cluster("east", 1, pools=[pool("p", 8, stock=0)]),
         workload("a", "q", gpus=8)],
        ["a waits: DoesNotFit, NoVictims, OutOfStock"],
    ),
    "pods of others may end": (
        [queue("q", 64, **PICKY), *busy(8, others=4), workload("a", "q", gpus=8)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a cordoned node may come back": (
        [queue("q", 64, **PICKY), *reporting("east", 8, **CORDONED), workload("a", "q", gpus=8)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "what is held is not judged": (
        [queue("q", 64, **PICKY), EAST, workload("a", "q", gpus=9, hold="Hold")],
        ["a waits: Held"],
    ),
    "others of the queue start all the same": (
        [queue("q", 64, **PICKY), EAST, workload("a", "q", gpus=9, waited=90),
         workload("b", "q")],
        ["b starts in east:1@h100", "a waits: DoesNotFit, NoVictims, NoPool",
         "a is refused: Impossible"],
    ),
}  # fmt: skip


def facts_of(*objects: Plain) -> Facts:
    return Objects.of([H100, *objects]).facts(NOW)


def judged_plan(facts: Facts) -> Plan:
    made, _ = plan(Snapshot(facts))
    return judged(Snapshot(facts), made)


def said(made: Plan) -> list[str]:
    """A plan in lines, with what can never start."""
    return told(made) + [
        f"{waits.workload.removeprefix('team/')} "
        f"{'is refused' if waits.is_refused else 'can never start'}: {waits.never.code.value}"
        for waits in made.waiting
        if waits.never is not None
    ]


@pytest.mark.parametrize(("objects", "lines"), CASES.values(), ids=CASES.keys())
def test_what_can_never_start(objects: list[Plain], lines: list[str]) -> None:
    assert said(judged_plan(facts_of(*objects))) == lines


MANY = facts_of(queue("q", 64), EAST, *(workload(f"w{n}", "q", gpus=9 + n) for n in range(5)))


def never(made: Plan) -> list[str]:
    return [waits.workload for waits in made.waiting if waits.never is not None]


def test_a_part_of_the_waiting_is_judged_at_a_time_and_none_is_forgotten() -> None:
    snapshot, judge = Snapshot(MANY), Judge()
    made, _ = plan(snapshot)
    counts = []
    for _ in range(4):
        counts.append((len(never(judge.judge(snapshot, made, most=2))), len(judge.left)))
    assert counts == [(2, 3), (4, 1), (5, 0), (5, 0)]


def test_one_on_trial_is_judged_before_all_others() -> None:
    picky = replace(MANY.workloads["team/w4"], is_on_trial=True)
    facts = replace(MANY, workloads={**MANY.workloads, picky.key: picky})
    made, _ = plan(Snapshot(facts))
    first = Judge().judge(Snapshot(facts), made, most=1)
    assert said(first)[-1:] == ["w4 is refused: Impossible"]


def test_a_fleet_that_grows_is_judged_again() -> None:
    judge = Judge()
    made, _ = plan(Snapshot(MANY))
    assert len(never(judge.judge(Snapshot(MANY), made))) == 5
    larger = facts_of(queue("q", 64), cluster("east", 11), *_plain(MANY))
    made, _ = plan(Snapshot(larger))
    again = judge.judge(Snapshot(larger), made)
    assert never(again) == ["team/w3", "team/w4"]
    assert [step.workload for step in made.steps] == ["team/w0"]


def _plain(facts: Facts) -> list[Plain]:
    return [workload(f"w{n}", "q", gpus=9 + n) for n in range(len(facts.workloads))]


def test_what_others_use_does_not_make_the_fleet_another_one() -> None:
    """Pods of others come and go all the time: nothing is judged again for them."""
    judge = Judge()
    asks = workload("a", "q", gpus=9)
    for others in (0, 4):
        facts = facts_of(queue("q", 64), *busy(8, others=others), asks)
        made, _ = plan(Snapshot(facts))
        assert never(judge.judge(Snapshot(facts), made, most=1 if others == 0 else 0)) == ["team/a"]
        assert not judge.left


def test_a_refusal_is_not_made_on_what_was_true_of_another_fleet() -> None:
    judge = Judge()
    small = facts_of(queue("q", 64, **PICKY), EAST, workload("a", "q", gpus=9))
    made, _ = plan(Snapshot(small))
    assert said(judge.judge(Snapshot(small), made))[-1] == "a is refused: Impossible"
    larger = facts_of(queue("q", 64, **PICKY), cluster("east", 9, 1), workload("a", "q", gpus=9))
    waiting = judge.judge(Snapshot(larger), made, most=0)
    assert said(waiting)[-1] == "a can never start: Impossible"  # until it is judged again
    assert said(judge.judge(Snapshot(larger), made))[-1].startswith("a waits")


def test_a_changed_form_is_judged_by_itself() -> None:
    """A workload with alternatives is like no other, and may ask for something else by now."""
    judge = Judge()
    for gpus, expect in ((9, ["team/a"]), (8, [])):
        sets = [{"name": "worker", "count": 1, "requests": {"nvidia.com/gpu": gpus}}]
        asks = workload("a", "q", pod_sets=sets, alternatives=[{"name": "b", "podSets": sets}])
        facts = facts_of(queue("q", 64), EAST, workload("r", "q", count=8, running="east"), asks)
        made, _ = plan(Snapshot(facts))
        assert never(judge.judge(Snapshot(facts), made)) == expect


def test_the_reason_says_what_would_have_to_change() -> None:
    made = judged_plan(facts_of(queue("q", 4), EAST, workload("a", "q", count=5)))
    reason = made.waiting[0].never
    assert reason is not None
    assert (reason.code, reason.queue, reason.short) == (
        Code.QUOTA_TOO_SMALL,
        "q",
        (("nvidia.com/gpu", 1_000_000_000),),
    )
