"""Pods in reports, matched to the claims that they belong to.

Pods on a node belong to what their workload holds there, by attempt; pods of an attempt that is
leaving, and pods that are ending, belong to what it releases there. Pods that match neither are
strays: they still occupy their nodes, so that no capacity is given away twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairway.api.names import namespace_and_name, work_name
from fairway.core.model import Placed, Request, Stray, Workload
from fairway.view.reports import SeenPods, SeenWorks

_Bound = dict[str, dict[int, int]]  # pod set -> {position of node: pods}


@dataclass(slots=True)
class _Slot:
    """A placement, and the pods found to belong to it."""

    placed: Placed
    attempt: int
    bound: _Bound = field(default_factory=dict)

    def takes(self, seen: SeenPods) -> bool:
        return self.attempt == seen.attempt and any(
            pods.name == seen.pod_set for pods in self.placed.pods
        )

    @property
    def is_bound(self) -> bool:
        """Whether the placement already has exactly these pods."""
        return self.placed.bound == self.bound

    def add(self, pod_set: str, pods: Mapping[int, int]) -> None:
        into = self.bound.setdefault(pod_set, {})
        for position, count in pods.items():
            into[position] = into.get(position, 0) + count


def work_of(key: str) -> str:
    """The name of a workload's works."""
    return work_name(*namespace_and_name(key))


def clusters_of(workload: Workload) -> set[str]:
    """Where a workload has placements."""
    held = workload.held.placed if workload.held else ()
    return {placement.cluster for placement in (*held, *workload.releasing)}


def bind(
    workload: Workload, seen: Mapping[str, SeenWorks]
) -> tuple[Workload, dict[str, tuple[Stray, ...]]]:
    """The workload with its reported pods, and by cluster the pods it cannot account for.

    `seen` has the works of each cluster; only clusters where it has placements are looked at.
    """
    work = work_of(workload.key)
    held = workload.held
    holds = (
        [_Slot(placement, placement.attempt or held.attempt) for placement in held.placed]
        if held
        else []
    )
    leaves = [_Slot(placement, placement.attempt) for placement in workload.releasing]
    strays: dict[str, tuple[Stray, ...]] = {}
    for cluster in sorted(clusters_of(workload)):
        pods = seen.get(cluster, {}).get(work, ())
        strays[cluster] = tuple(_deal(pods, cluster, holds, leaves))
    if all(slot.is_bound for slot in (*holds, *leaves)):
        return workload, strays  # most events change nothing here, and a copy is expensive
    bound = replace(
        workload,
        held=replace(held, placed=tuple(map(_bound, holds))) if held else None,
        releasing=tuple(map(_bound, leaves)),
    )
    return bound, strays


def as_running(workload: Workload, clusters: Iterable[str]) -> Workload:
    """A workload that holds nothing, with the first of the clusters where its pods run."""
    where = min(clusters, default="")
    if workload.held is not None or workload.releasing or where == workload.runs_in:
        return workload
    return replace(workload, runs_in=where)


def _deal(
    items: Iterable[SeenPods], cluster: str, holds: Sequence[_Slot], leaves: Sequence[_Slot]
) -> Iterable[Stray]:
    for other in items:
        here = [slot for slot in holds if slot.placed.cluster == cluster and slot.takes(other)]
        away = [slot for slot in leaves if slot.placed.cluster == cluster and slot.takes(other)]
        left: dict[int, int] = {}
        for pods, slots in ((other.bound, [*here, *away]), (other.terminating, away)):
            if slots and pods:
                slots[0].add(other.pod_set, pods)
            for position, count in pods.items() if not slots else ():
                left[position] = left.get(position, 0) + count
        if left:
            yield stray(other.requests, left)


def _bound(slot: _Slot) -> Placed:
    return slot.placed if slot.is_bound else replace(slot.placed, bound=slot.bound)


def unclaimed_pods(items: Iterable[SeenPods]) -> tuple[Stray, ...]:
    """All pods of a work without a claim."""
    strays = []
    for other in items:
        pods = dict(other.bound)
        for position, count in other.terminating.items():
            pods[position] = pods.get(position, 0) + count
        strays.append(stray(other.requests, pods))
    return tuple(strays)


def stray(requests: Request, pods: Mapping[int, int]) -> Stray:
    return Stray(requests=requests, pods=dict(sorted(pods.items())))


def join_strays(by_work: Mapping[str, tuple[Stray, ...]]) -> tuple[Stray, ...]:
    """The strays of a cluster, in order of the works."""
    return tuple(stray for work in sorted(by_work) for stray in by_work[work])
