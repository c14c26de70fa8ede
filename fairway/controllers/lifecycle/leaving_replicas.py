"""Replicas that leave a cluster, and keep running there for a while.

Replicas that a service moves keep running until as many replicas are ready in the new clusters
(`WhenReplaced`). Replicas in a cluster that is drained or tainted stop as fast as the disruption
budget of the service allows (`WithinBudget`), and in any case once the fleet's `leaveSeconds` are
over. The last replicas in a cluster that gets traffic stop after the traffic has gone
(`AfterTraffic`): the cluster gets no weight, and gateways have the fleet's `trafficSeconds` to
follow. All are charged like other released placements. A replica that stops before it starts
elsewhere `gives way`: it starts there once it is gone here.

So a cluster runs the pods of the claim, plus those that stay for now, minus those that wait for
others to give way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api.claim import Claim, Placement
from fairway.api.reasons import Code
from fairway.api.workload import WorkloadStatus
from fairway.controllers.lifecycle.case import LifecycleCase, PodsSeen
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.controllers.scheduling.claims import after_traffic
from fairway.kinds.disruption import budget_of


def placements_now(claim: Claim | None, releasing: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements that clusters are to run now."""
    if claim is None:
        return ()
    placements = {placement.cluster: placement for placement in claim.placements}
    for placement in releasing:
        target = placements.get(placement.gives_way_to) if placement.gives_way_to else None
        if target is not None:
            placements[placement.gives_way_to] = part_of(
                target, (target.replicas or 0) - (placement.replicas or 0)
            )
    for placement in releasing:
        if stays(placement):
            here = placements.get(placement.cluster)
            if here is None or not here.replicas:
                placements[placement.cluster] = _plain(placement)
            elif (here.attempt or claim.attempt) == placement.attempt:
                placements[placement.cluster] = _join(here, placement)
            else:
                placements[placement.cluster] = _plain(
                    placement
                )  # the new attempt waits until the old one is gone
    return tuple(placement for placement in placements.values() if placement.replicas != 0)


def stays(placement: Placement) -> bool:
    """Whether a released placement keeps running for now."""
    return placement.leaves != "Now"


def _plain(placement: Placement) -> Placement:
    return replace(placement, leaves="Now", leaves_by=None, gives_way_to="")


def part_of(placement: Placement, replicas: int) -> Placement:
    """A placement with `replicas`; which topology domains lose pods is not known."""
    whole = placement.replicas or 0
    many = max(0, replicas)
    if many == whole:
        return placement
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * many // max(1, whole), domains={})
        for pod_set in placement.pod_sets
    )
    return replace(placement, replicas=many, pod_sets=pod_sets)


def _join(here: Placement, more: Placement) -> Placement:
    counts = {pod_set.name: pod_set.count for pod_set in more.pod_sets}
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count + counts.get(pod_set.name, 0))
        for pod_set in here.pod_sets
    )
    return replace(here, replicas=(here.replicas or 0) + (more.replicas or 0), pod_sets=pod_sets)


# How a placement is released.

# Replicas that may be missing while others leave what a policy no longer allows.
_UNSTATED_BUDGET = 1

_WISHES = (Code.CLUSTER_DRAINED.value, Code.CLUSTER_TAINTED.value)  # requests, not failures


def leave_place(case: LifecycleCase, placement: Placement, reason: str) -> Placement:
    """How to release a placement: a service leaves drained or tainted clusters within budget."""
    is_asked = case.workload.spec.mode == "Divided" and reason in _WISHES
    if not is_asked or budget_of(case.workload) is None:
        return placement
    seconds = case.settings.fleet.defaults.leave_seconds
    by = datetime.fromtimestamp(int(case.now) + seconds, UTC)
    return replace(placement, leaves="WithinBudget", leaves_by=by)


def is_overdue(case: LifecycleCase, placement: Placement) -> bool:
    """Whether a placement that leaves by some time has had it."""
    return placement.leaves_by is not None and placement.leaves_by.timestamp() <= case.now


def may_outlast(case: LifecycleCase, status: WorkloadStatus, troubles: Sequence[Trouble]) -> bool:
    """Whether a service keeps running although all its placements are in trouble."""
    if case.workload.spec.mode != "Divided":
        return False
    return any(placement.leaves == "WhenReplaced" for placement in status.releasing) or any(
        stays(leave_place(case, trouble.placement, trouble.reason)) for trouble in troubles
    )


# Which replicas may stop now.


@dataclass(slots=True)
class _Ready:
    """Ready replicas by cluster, without those already asked to stop; clusters not observed."""

    by_cluster: dict[str, int]
    unseen: set[str]

    def total(self) -> int:
        return sum(self.by_cluster.values())


def let_go(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Stops as many released replicas as can be spared now."""
    claim = status.claim
    if claim is None or not any(map(stays, status.releasing)):
        return status
    ready = _ready(case, claim, status.releasing)
    placed = sum(placement.replicas or 0 for placement in claim.placements)
    wanted = case.workload.spec.replicas
    wanted = 1 if wanted is None else wanted
    budget = budget_of(case.workload)
    least = {
        "WhenReplaced": placed,
        "WithinBudget": wanted - (_UNSTATED_BUDGET if budget is None else budget),
    }
    left: list[Placement] = []
    for placement in status.releasing:
        if stays(placement) and is_overdue(case, placement):
            left.append(replace(placement, leaves="Now", leaves_by=None))
        elif placement.leaves == "AfterTraffic":
            left.append(_timed(case, status, placement))
        elif placement.stops:
            left.append(placement)
        else:
            parts = tuple(_part(placement, claim, ready, least))
            left.extend(_spared(case, status, placement, parts))
    return replace(status, releasing=tuple(left))


def _spared(
    case: LifecycleCase, status: WorkloadStatus, placement: Placement, parts: Sequence[Placement]
) -> Iterator[Placement]:
    """The parts of a released placement; what stops now may have to wait for its traffic."""
    claimed = status.claim.placements if status.claim else ()
    others = (other for other in status.releasing if other is not placement)
    running = [other for other in (*others, *parts) if not other.stops]
    for part in parts:
        yield after_traffic(status, part, (*claimed, *running), case.settings.fleet)


def _timed(case: LifecycleCase, status: WorkloadStatus, placement: Placement) -> Placement:
    """A placement that waits for its traffic: its time begins when it has no weight."""
    if placement.leaves_by is not None or status.has_traffic(placement.cluster):
        return placement
    seconds = case.settings.fleet.defaults.traffic_seconds
    return replace(placement, leaves_by=datetime.fromtimestamp(int(case.now) + seconds, UTC))


def _ready(case: LifecycleCase, claim: Claim, releasing: Iterable[Placement]) -> _Ready:
    ready = _Ready(by_cluster={}, unseen=set())
    going: dict[str, int] = {}
    for placement in releasing:
        if placement.stops:
            going[placement.cluster] = going.get(placement.cluster, 0) + (placement.replicas or 0)
    for placement in placements_now(claim, tuple(releasing)):
        seen = case.works.get(placement.cluster)
        if seen is None or seen.attempt != (placement.attempt or claim.attempt):
            ready.unseen.add(placement.cluster)
            continue
        each = {
            pods.name: max(1, pods.count // max(1, placement.replicas or 1))
            for pods in placement.pod_sets
        }
        known = [(seen.pods.get(name, PodsSeen()), pods) for name, pods in each.items()]
        serving = min((pods.ready // many for pods, many in known), default=0)
        ending = min((pods.terminating // many for pods, many in known), default=0)
        serving -= max(0, going.get(placement.cluster, 0) - ending)
        ready.by_cluster[placement.cluster] = max(0, min(serving, placement.replicas or 0))
    return ready


def _part(
    leaving: Placement, claim: Claim, ready: _Ready, least: Mapping[str, int]
) -> Iterator[Placement]:
    """Splits a released placement into what stops now and what stays for a while."""
    replicas, cluster = leaving.replicas or 0, leaving.cluster
    if cluster in ready.unseen:
        yield leaving
        return
    kept = sum(
        placement.replicas or 0 for placement in claim.placements if placement.cluster == cluster
    )
    serving = min(replicas, max(0, ready.by_cluster.get(cluster, 0) - kept))
    spared = min(serving, max(0, ready.total() - least[leaving.leaves]))
    going = replicas - serving + spared  # replicas that are not ready can stop
    if going:
        ready.by_cluster[cluster] = ready.by_cluster.get(cluster, 0) - spared
        yield replace(part_of(leaving, going), leaves="Now", leaves_by=None)
    if going < replicas:
        yield part_of(leaving, replicas - going)


def undo_lost_moves(status: WorkloadStatus, lost: int) -> WorkloadStatus:
    """Undoes moves to placements that were lost: replicas that have not stopped yet stay."""
    claim = status.claim
    if claim is None or lost <= 0:
        return status
    placements = {placement.cluster: placement for placement in claim.placements}
    left: list[Placement] = []
    for placement in status.releasing:
        here = placements.get(placement.cluster)
        back = min(lost, placement.replicas or 0) if placement.leaves == "WhenReplaced" else 0
        if here is not None and (here.attempt or claim.attempt) != placement.attempt:
            back = 0
        if back:
            lost -= back
            returns = _plain(part_of(placement, back))
            placements[placement.cluster] = returns if here is None else _join(here, returns)
        if back < (placement.replicas or 0):
            left.append(part_of(placement, (placement.replicas or 0) - back))
    result = tuple(placements[name] for name in sorted(placements))
    return replace(
        status,
        claim=replace(claim, placements=result),
        releasing=tuple(left),
        replicas=sum(placement.replicas or 0 for placement in result),
    )


def pods_that_stay(placement: Placement, status: WorkloadStatus) -> dict[str, int] | None:
    """Pods of the same attempt that keep running beside a released placement; None: none do."""
    now: Mapping[str, Placement] = {
        other.cluster: other for other in placements_now(status.claim, status.releasing)
    }
    here = now.get(placement.cluster)
    attempt = status.claim.attempt if status.claim else 0
    if here is None or (here.attempt or attempt) not in (0, placement.attempt):
        return None
    return {pod_set.name: pod_set.count for pod_set in here.pod_sets}
