"""A snapshot that takes in changes equals one made anew, and an arrival is planned alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.reasons import Code
from fairway.core import model
from fairway.core.cycle import plan
from fairway.core.model import Form, Held, Placed, PlacedPods, PodSet, Shape, Workload
from fairway.core.snapshot import Facts, Snapshot

CPU = "cpu"


def queues(*, is_strict: bool = False) -> dict[str, model.Queue]:
    group = model.ResourceGroup(resources=(CPU,), flavors=("plain",))
    quotas = {("plain", CPU): model.Quota(nominal=4_000)}
    leaves = [
        model.Queue(name=name, parent="all", groups=(group,), quotas=quotas, is_strict=is_strict)
        for name in ("left", "right")
    ]
    return {"all": model.Queue(name="all"), **{leaf.name: leaf for leaf in leaves}}


def facts_of(*workloads: Workload, is_strict: bool = False) -> Facts:
    return Facts(
        now=100.0,
        queues=queues(is_strict=is_strict),
        flavors={"plain": model.Flavor(name="plain")},
        workloads={workload.key: workload for workload in workloads},
    )


def workload(
    key: str, cpus: int, queue: str = "left", *, at: float = 0.0, priority: int = 0
) -> Workload:
    shape = Shape(requests=((CPU, cpus * 1000),))
    pods = PodSet(name="main", shape=shape, count=1, least=1)
    return Workload(
        key=key,
        queue=queue,
        priority=priority,
        queued_at=at,
        forms=(Form(pod_sets=(pods,)),),
    )


def running(one: Workload) -> Workload:
    shape = one.forms[0].pod_sets[0].shape
    pods = PlacedPods(name="main", count=1, shape=shape, flavors=((CPU, "plain"),))
    held = Held(queue=one.queue, placed=(Placed(cluster="", pods=(pods,)),), started_at=1.0)
    return replace(one, held=held)


def seen(snapshot: Snapshot) -> object:
    tree = snapshot.tree
    return (
        {name: [item.key for item in line] for name, line in sorted(snapshot.lines.items())},
        {name: keys for name, keys in sorted(snapshot.holding.items()) if keys},
        {name: dict(tree.usage(name)) for name in snapshot.facts.queues},
        dict(sorted(snapshot.facts.workloads.items())),
        plan(snapshot)[0],
    )


CHANGE = st.tuples(
    st.sampled_from("abcdef"), st.sampled_from(["wait", "run", "go"]), st.integers(1, 9)
)


@given(st.lists(CHANGE, max_size=12))
def test_after_any_changes_the_snapshot_equals_one_made_anew(
    changes: list[tuple[str, str, int]],
) -> None:
    maintained = Snapshot(facts_of())
    known: dict[str, Workload] = {}
    for number, (key, what, cpus) in enumerate(changes):
        one = workload(key, cpus, "left" if cpus % 2 else "right", at=float(number))
        known.pop(key, None)
        if what == "go":
            maintained.remove(key)
            continue
        known[key] = running(one) if what == "run" else one
        maintained.put(known[key])
    assert seen(maintained) == seen(Snapshot(facts_of(*known.values())))


def test_an_arrival_is_planned_alone() -> None:
    snapshot = Snapshot(facts_of(workload("a", 9), workload("b", 3)))
    _, cursor = plan(snapshot)
    snapshot.put(workload("c", 2, "right"))
    found, _ = plan(snapshot, cursor.wake(["c"]))
    assert [step.workload for step in found.steps] == ["c"]
    assert found.waiting == ()


def test_one_like_those_set_aside_is_set_aside_without_a_look() -> None:
    snapshot = Snapshot(facts_of(workload("a", 9)))
    before, cursor = plan(snapshot)
    snapshot.put(workload("b", 9))
    found, _ = plan(snapshot, cursor.wake(["b"]), budget=0)
    assert [item.workload for item in found.waiting] == ["b"]
    assert found.waiting[0].reasons == before.waiting[0].reasons


@pytest.mark.parametrize(
    ("priority", "starts"),
    [
        pytest.param(0, False, id="a strict queue lets nobody past its head"),
        pytest.param(5, True, id="one that comes before the head is not behind it"),
    ],
)
def test_the_head_of_a_strict_queue_is_remembered(priority: int, starts: bool) -> None:
    snapshot = Snapshot(facts_of(workload("a", 9), is_strict=True))
    _, cursor = plan(snapshot)
    snapshot.put(workload("b", 1, at=5.0, priority=priority))
    found, _ = plan(snapshot, cursor.wake(["b"]))
    assert bool(found.steps) is starts
    assert [item.reasons[0].code for item in found.waiting] == (
        [] if starts else [Code.BEHIND_HEAD]
    )
