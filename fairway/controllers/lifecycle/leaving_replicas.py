"""Replicas that leave a place, and run on there for a while.

What a service leaves in a move runs on until as many replicas are ready in their new places
(`WhenReplaced`); what it leaves because its cluster is drained goes as fast as its disruption
budget allows (`WithinBudget`). Both are charged as places that are left always are. A replica that
stops before it starts elsewhere `gives way`: there it starts once it is gone here.

So the pods that a cluster is told to run are those of the claim, and those that stay for now, less
those that wait for somebody to give way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from fairway.api.claim import Claim, Placement
from fairway.api.reasons import Code
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.lifecycle.case import LifecycleCase, PodsSeen
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.kinds.disruption import budget_of


def placements_now(claim: Claim | None, releasing: Sequence[Placement]) -> tuple[Placement, ...]:
    """What each cluster is to run at this moment."""
    if claim is None:
        return ()
    found = {one.cluster: one for one in claim.placements}
    for one in releasing:
        target = found.get(one.gives_way_to) if one.gives_way_to else None
        if target is not None:
            found[one.gives_way_to] = part_of(target, (target.replicas or 0) - (one.replicas or 0))
    for one in releasing:
        if stays(one):
            here = found.get(one.cluster)
            if here is None or not here.replicas:
                found[one.cluster] = _plain(one)
            elif (here.attempt or claim.attempt) == one.attempt:
                found[one.cluster] = _joined(here, one)
            else:
                found[one.cluster] = _plain(one)  # what comes anew waits until it is gone
    return tuple(one for one in found.values() if one.replicas != 0)


def stays(placement: Placement) -> bool:
    """Whether a place that is left runs on for now."""
    return placement.leaves != "Now"


def _plain(placement: Placement) -> Placement:
    return replace(placement, leaves="Now", gives_way_to="")


def part_of(placement: Placement, replicas: int) -> Placement:
    """So many replicas of a placement; which topology domains lose theirs is not known."""
    whole = placement.replicas or 0
    many = max(0, replicas)
    if many == whole:
        return placement
    pod_sets = tuple(
        replace(one, count=one.count * many // max(1, whole), domains={})
        for one in placement.pod_sets
    )
    return replace(placement, replicas=many, pod_sets=pod_sets)


def _joined(here: Placement, more: Placement) -> Placement:
    counts = {one.name: one.count for one in more.pod_sets}
    pod_sets = tuple(
        replace(one, count=one.count + counts.get(one.name, 0)) for one in here.pod_sets
    )
    return replace(here, replicas=(here.replicas or 0) + (more.replicas or 0), pod_sets=pod_sets)


# What may go on in a place that is left.

_WISHES = (Code.CLUSTER_DRAINED.value, Code.CLUSTER_TAINTED.value)  # the hub's or a person's


def leaving(workload: Workload, placement: Placement, reason: str) -> Placement:
    """A place that a workload has to leave, and how fast: a service has a budget for wishes."""
    is_asked = workload.spec.mode == "Divided" and reason in _WISHES
    if is_asked and budget_of(workload) is not None:
        return replace(placement, leaves="WithinBudget")
    return placement


def may_outlast(case: LifecycleCase, status: WorkloadStatus, troubles: Sequence[Trouble]) -> bool:
    """Whether a service runs on though all its places are in trouble."""
    if case.workload.spec.mode != "Divided":
        return False
    return any(one.leaves == "WhenReplaced" for one in status.releasing) or any(
        stays(leaving(case.workload, one.placement, one.reason)) for one in troubles
    )


# Who may go now.


@dataclass(slots=True)
class _Ready:
    """Replicas that serve, by cluster; those asked to go already count no more."""

    by_cluster: dict[str, int]
    unseen: set[str]

    def total(self) -> int:
        return sum(self.by_cluster.values())


def let_go(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Asks as many to go as can be spared by now."""
    claim = status.claim
    if claim is None or not any(map(stays, status.releasing)):
        return status
    ready = _ready(case, claim, status.releasing)
    placed = sum(one.replicas or 0 for one in claim.placements)
    wanted = case.workload.spec.replicas
    wanted = 1 if wanted is None else wanted
    least = {
        "WhenReplaced": placed,
        "WithinBudget": wanted - (budget_of(case.workload) or 0),
    }
    left: list[Placement] = []
    for one in status.releasing:
        left.extend(_parted(one, claim, ready, least) if stays(one) else (one,))
    return replace(status, releasing=tuple(left))


def _ready(case: LifecycleCase, claim: Claim, releasing: Iterable[Placement]) -> _Ready:
    found = _Ready(by_cluster={}, unseen=set())
    going: dict[str, int] = {}
    for one in releasing:
        if not stays(one):
            going[one.cluster] = going.get(one.cluster, 0) + (one.replicas or 0)
    for one in placements_now(claim, tuple(releasing)):
        seen = case.works.get(one.cluster)
        if seen is None or seen.attempt != (one.attempt or claim.attempt):
            found.unseen.add(one.cluster)
            continue
        each = {pods.name: max(1, pods.count // max(1, one.replicas or 1)) for pods in one.pod_sets}
        known = [(seen.pods.get(name, PodsSeen()), pods) for name, pods in each.items()]
        serving = min((pods.ready // many for pods, many in known), default=0)
        ending = min((pods.terminating // many for pods, many in known), default=0)
        serving -= max(0, going.get(one.cluster, 0) - ending)
        found.by_cluster[one.cluster] = max(0, min(serving, one.replicas or 0))
    return found


def _parted(
    leaving: Placement, claim: Claim, ready: _Ready, least: Mapping[str, int]
) -> Iterator[Placement]:
    """A place that is left, as what goes now and what stays for a while yet."""
    replicas, cluster = leaving.replicas or 0, leaving.cluster
    if cluster in ready.unseen:
        yield leaving
        return
    kept = sum(one.replicas or 0 for one in claim.placements if one.cluster == cluster)
    serving = min(replicas, max(0, ready.by_cluster.get(cluster, 0) - kept))
    spared = min(serving, max(0, ready.total() - least[leaving.leaves]))
    going = replicas - serving + spared  # what does not serve is not missed
    if going:
        ready.by_cluster[cluster] = ready.by_cluster.get(cluster, 0) - spared
        yield replace(part_of(leaving, going), leaves="Now")
    if going < replicas:
        yield part_of(leaving, replicas - going)


def restored(status: WorkloadStatus, lost: int) -> WorkloadStatus:
    """Undoes moves to places that were lost: who has not gone yet stays where it is."""
    claim = status.claim
    if claim is None or lost <= 0:
        return status
    placements = {one.cluster: one for one in claim.placements}
    left: list[Placement] = []
    for one in status.releasing:
        here = placements.get(one.cluster)
        back = min(lost, one.replicas or 0) if one.leaves == "WhenReplaced" else 0
        if here is not None and (here.attempt or claim.attempt) != one.attempt:
            back = 0
        if back:
            lost -= back
            returns = _plain(part_of(one, back))
            placements[one.cluster] = returns if here is None else _joined(here, returns)
        if back < (one.replicas or 0):
            left.append(part_of(one, (one.replicas or 0) - back))
    found = tuple(placements[name] for name in sorted(placements))
    return replace(
        status,
        claim=replace(claim, placements=found),
        releasing=tuple(left),
        replicas=sum(one.replicas or 0 for one in found),
    )


def pods_that_stay(placement: Placement, status: WorkloadStatus) -> dict[str, int] | None:
    """Pods of the same attempt that are to run on in a place that is left; None: no others are."""
    now: Mapping[str, Placement] = {
        one.cluster: one for one in placements_now(status.claim, status.releasing)
    }
    here = now.get(placement.cluster)
    attempt = status.claim.attempt if status.claim else 0
    if here is None or (here.attempt or attempt) not in (0, placement.attempt):
        return None
    return {one.name: one.count for one in here.pod_sets}
