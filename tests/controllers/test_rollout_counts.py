"""Replicas of each revision in a cluster, from the pods that its agent counted."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.claim import PlacedPodSet, Placement
from fairway.api.report import WorkState
from fairway.api.work import PodSetStatus, RevisionPods
from fairway.controllers.rollouts.inputs import count_replicas
from fairway.serving.rollout.case import Counted

MARKS = {"": "first", "new": "new"}


def placement(**pods: int) -> Placement:
    """Two replicas, with so many pods of each set."""
    sets = tuple(PlacedPodSet(name=name, count=count) for name, count in pods.items())
    return Placement(cluster="beijing", replicas=2, pod_sets=sets, attempt=1)


def state(*pods: PodSetStatus, attempt: int = 1) -> WorkState:
    return WorkState(work="default.llm", attempt=attempt, phase="Running", pods=pods)


def pod_set(name: str, ready: int, bound: int = 0, **revisions: tuple[int, int]) -> PodSetStatus:
    told = tuple(
        RevisionPods(mark=mark, pods=pods, ready=up) for mark, (pods, up) in revisions.items()
    )
    return PodSetStatus(name=name, ready=ready, bound=bound, revisions=told)


TABLE: dict[str, tuple[Placement, WorkState | None, dict[str, Counted]]] = {
    "nothing was told": (placement(pod=2), None, {}),
    "pods of another attempt": (placement(pod=2), state(pod_set("pod", 2), attempt=2), {}),
    "pods without a mark are of the first revision": (
        placement(pod=2), state(pod_set("pod", 2)), {"first": Counted(total=2, ready=2)}),
    "some of each": (
        placement(pod=2), state(pod_set("pod", 1, 1, new=(1, 0))),
        {"first": Counted(total=1, ready=1), "new": Counted(total=1, ready=0)}),
    "a replica is all of its pods": (
        placement(leader=2, worker=6),
        state(pod_set("leader", 2, new=(2, 2)), pod_set("worker", 5, 1, new=(6, 5))),
        {"new": Counted(total=2, ready=1)}),
}  # fmt: skip


@pytest.mark.parametrize(("where", "told", "expected"), TABLE.values(), ids=TABLE)
def test_counts(where: Placement, told: WorkState | None, expected: dict[str, Any]) -> None:
    assert count_replicas(where, told, MARKS) == expected
