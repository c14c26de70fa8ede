"""Pods that reports have seen: whose they are, and what they leave of the nodes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.builders import GPU, H100, NOW, Plain, cluster, plan_of, queue, told, workload

TEN = queue("left", 100)


def report(*works: Plain, gpus: tuple[int, ...] = (8, 8), chunk: int = 0, **spec: Any) -> Plain:
    names = [f"n{chunk}{at}" for at in range(len(gpus))]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": f"east-{chunk}"},
        "spec": {
            "cluster": "east",
            "agentEpoch": 1,
            "sequence": 1,
            "seenAt": "2026-11-15T08:00:00Z",
            "chunk": chunk,
            "chunks": 1,
            "nodes": {
                "names": names,
                "labels": [{"key": "accelerator", "values": ["h100"] * len(gpus)}],
                "amounts": [
                    {"resource": "cpu", "unit": "1", "allocatable": [64] * len(gpus)},
                    {"resource": GPU, "unit": "1", "allocatable": list(gpus)},
                ],
            },
            "works": list(works),
            **spec,
        },
    }


def pods(node: int, count: int = 1, *, attempt: int = 1, how: str = "bound", **more: Any) -> Plain:
    return {
        "work": "team.run",
        "podSet": "worker",
        "attempt": attempt,
        "requests": {GPU: 4},
        how: {"nodes": [node], "counts": [count]},
        **more,
    }


def free(*objects: Plain) -> list[int]:
    """GPUs that are free on each node of the cluster."""
    facts = Objects.of([H100, TEN, cluster("east"), *objects]).facts(NOW)
    return (Snapshot(facts).ledger.rooms["east"].free[GPU] // 1000).tolist()


RUNS = workload("run", "left", count=2, gpus=4, running="east")


def leaving(plain: Plain, **status: Any) -> Plain:
    """The same workload when its claim was taken and its pods are still there."""
    other = copy.deepcopy(plain)
    claim = other["status"].pop("claim")
    placements = [{**placement, "attempt": claim["attempt"]} for placement in claim["placements"]]
    other["status"] |= {"phase": "Waiting", "releasing": placements, **status}
    return other


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([report(), RUNS], [0, 8], id="pods nobody has seen go on one node"),
        pytest.param([report(pods(1, 2)), RUNS], [8, 0], id="pods are where they were seen"),
        pytest.param([report(pods(1)), RUNS], [8, 0], id="the unseen one goes beside the seen"),
        pytest.param(
            [report(pods(1, 2, attempt=0)), RUNS],
            [0, 0],
            id="pods of an earlier attempt take room beside the claim",
        ),
        pytest.param([report(pods(0, 2))], [0, 8], id="pods of a workload that is gone take room"),
        pytest.param(
            [report(pods(0, 2)), leaving(RUNS)], [0, 8], id="pods that leave are counted once"
        ),
        pytest.param(
            [report(pods(1, 2, how="terminating")), leaving(RUNS)],
            [8, 0],
            id="pods that end are what is left of the claim",
        ),
        pytest.param(
            [report(pods(1, how="terminating")), RUNS],
            [4, 0],
            id="a pod that ends while its claim goes on takes room beside it",
        ),
        pytest.param(
            [report(pods(1, 2)), leaving(RUNS, phase="Cancelled")],
            [8, 0],
            id="one that is over is charged until its pods are gone",
        ),
        pytest.param(
            [report(pods(0, 2, podSet="other")), RUNS],
            [0, 0],
            id="a pod set that the claim does not know takes room beside it",
        ),
    ],
)
def test_what_is_free_when(objects: list[Plain], expected: list[int]) -> None:
    assert free(*objects) == expected


def test_chunks_that_are_left_over_from_a_larger_cluster_do_not_count() -> None:
    old = report(gpus=(4,), chunk=1, chunks=2)
    assert free(report(sequence=2, chunks=1), old) == [8, 8]
    assert free(report(sequence=2, chunks=2), old) == [8, 8, 4]


def test_a_difference_changes_the_chunk_that_it_was_made_from() -> None:
    changes = report(gpus=(2,), sinceSequence=1, sequence=5)
    changes["metadata"]["name"] = "east-0-difference"
    assert free(report(), changes) == [2, 8]
    assert free(report(sequence=3), changes) == [8, 8]


def test_a_workload_that_is_over_waits_for_nothing() -> None:
    over = leaving(RUNS, phase="Cancelled")
    assert told(plan_of(TEN, cluster("east", 8), over)) == []


# Decisions that the store has not answered.


def versioned(plain: Plain, version: int) -> Plain:
    other = copy.deepcopy(plain)
    other["metadata"]["resourceVersion"] = str(version)
    return other


def view_of(*objects: Plain) -> View:
    view = View()
    for object_ in (H100, TEN, *objects):
        view.put(object_)
    return view


WAITS = workload("run", "left", count=2, gpus=4)
KEY = "team/run"


def decided_view() -> View:
    view = view_of(cluster("east", 8), versioned(WAITS, 5))
    view.assume(plan_of(TEN, cluster("east", 8), WAITS))
    return view


def room(view: View) -> list[int]:
    return (view.snapshot(NOW).ledger.rooms["east"].free[GPU] // 1000).tolist()


def test_a_decision_counts_before_the_store_has_told_it() -> None:
    view = decided_view()
    assert room(view) == [0]
    held = view.snapshot(NOW).facts.workloads[KEY].held
    assert held is not None
    assert held.started_at is None


def test_the_same_version_told_again_changes_nothing() -> None:
    view = decided_view()
    view.put(versioned(WAITS, 5))
    assert room(view) == [0]


@pytest.mark.parametrize(
    ("echo", "expected"),
    [
        pytest.param(RUNS, [0], id="the claim as it was decided"),
        pytest.param(WAITS, [8], id="somebody else was faster, and nothing is held"),
    ],
)
def test_a_newer_version_takes_the_place_of_the_decision(echo: Plain, expected: list[int]) -> None:
    view = decided_view()
    view.put(versioned(echo, 6))
    assert not view.assumed
    assert room(view) == expected


def test_what_could_not_be_written_is_forgotten() -> None:
    view = decided_view()
    view.forget(KEY)
    assert room(view) == [8]
    assert view.snapshot(NOW).facts.workloads[KEY].is_waiting


def test_a_victim_is_charged_until_its_pods_are_gone() -> None:
    preempts = {"preemption": {"withinQueue": "LowerPriority"}}
    objects = [
        queue("left", 8, **preempts),
        cluster("east", 8),
        versioned(RUNS, 3),
        workload("urgent", "left", count=2, gpus=4, priority=9),
    ]
    view = view_of(*objects)
    made = plan_of(*objects)
    view.assume(made)
    facts = view.snapshot(NOW).facts
    victim, urgent = facts.workloads[KEY], facts.workloads["team/urgent"]
    assert (victim.held, [item.cluster for item in victim.releasing]) == (None, ["east"])
    assert urgent.held is not None
    assert urgent.held.waits_for_victims == ((KEY, victim.releasing[0].attempt),)
    # What one leaves and the other holds already is charged once.
    assert view.snapshot(NOW).tree.usage("left") == {("h100", GPU): 8_000}


# An event costs what it changes.


def test_a_snapshot_is_kept_and_only_what_changed_is_made_anew() -> None:
    view = view_of(cluster("east", 8), cluster("west", 8), WAITS)
    before = view.snapshot(NOW)
    rooms = {name: (room, room.cluster) for name, room in before.ledger.rooms.items()}
    tree, versions = before.tree, {name: room.version for name, room in before.ledger.rooms.items()}
    view.put(report(gpus=(4,)))
    view.put(workload("run", "left", count=2, gpus=2, running="east"))
    view.put(workload("more", "left"))
    after = view.snapshot(NOW + 1)
    assert after is before
    assert after.tree is tree
    assert after.now == NOW + 1
    assert after.ledger.rooms["west"].cluster is rooms["west"][1]
    assert after.ledger.rooms["west"].version == versions["west"]
    assert after.ledger.rooms["east"].cluster is not rooms["east"][1]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"phase": "Ready"}, id="that it is well"),
        pytest.param({"conditions": []}, id="nothing that matters"),
    ],
)
def test_a_cluster_that_tells_it_lives_changes_nothing(change: Plain) -> None:
    view = view_of(cluster("east", 8))
    before = view.snapshot(NOW).facts.clusters["east"]
    view.put({**cluster("east", 8), "status": change})
    assert view.snapshot(NOW).facts.clusters["east"] is before


def test_queues_that_remember_other_usage_keep_the_tree() -> None:
    view = view_of(cluster("east", 8), RUNS)
    tree = view.snapshot(NOW).tree
    remembered = {"amounts": {GPU: 7}, "updatedAt": "2026-11-15T08:00:00Z"}
    view.put({**TEN, "status": {"remembered": remembered}})
    snapshot = view.snapshot(NOW)
    assert snapshot.tree is tree
    assert snapshot.facts.queues["left"].remembered == {GPU: 7000}
    view.put(queue("left", 4))
    assert view.snapshot(NOW).tree is not tree


def pod_slots(*allocatable: int, others: tuple[int, ...] = ()) -> Plain:
    """A report of nodes that take this number of pods, some of them pods of others."""
    made = report(gpus=(16,) * len(allocatable))
    column: Plain = {"resource": "pods", "unit": "1", "allocatable": list(allocatable)}
    made["spec"]["nodes"]["amounts"].append(
        {**column, "others": list(others)} if others else column
    )
    return made


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([pod_slots(8)], 8, id="a node takes as many pods as it says"),
        pytest.param([pod_slots(8, others=(5,))], 3, id="less those of others"),
        pytest.param([pod_slots(8, 8, others=(8, 2))], 6, id="a full node takes no pod"),
        pytest.param([report(gpus=(16,))], 16, id="an old report says nothing of pods"),
        pytest.param(
            [
                {**pod_slots(8), "metadata": {"name": "a"}},
                report(gpus=(16,), chunk=1),
            ],
            24,
            id="one part of a report may say it, another not",
        ),
    ],
)
def test_the_pods_of_nodes_are_those_of_the_report(reports: list[Plain], expected: int) -> None:
    for part in reports:
        part["spec"]["chunks"] = len(reports)
    service = workload("s", "left", mode="Divided", replicas=60)
    made = plan_of(TEN, cluster("east"), *reports, service)
    assert told(made)[0] == f"s starts in east:{expected}@h100"
