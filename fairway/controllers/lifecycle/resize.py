"""Changes to the number of pods of a running workload.

A service that asks for more replicas waits for them like a new request, as old as the increase. If
it asks for fewer, the scheduler chooses which to stop. A gang that asks for fewer pods gives them
up at once. A gang that asks for more also waits for them, if its kind can add pods while it runs;
other gangs get them with their next attempt. A condition says so while the gang waits. Replicas
whose pods found no node are taken back: they hold none.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fairway.api.claim import PlacedPodSet, Placement
from fairway.api.meta import Condition
from fairway.api.reasons import Code
from fairway.api.workload import WorkloadStatus
from fairway.controllers.lifecycle.attempt_ends import (
    HISTORY_MOST,
    avoid,
    end_of,
    moment,
    past_attempt,
    with_attempt,
)
from fairway.controllers.lifecycle.case import LifecycleCase
from fairway.controllers.lifecycle.leaving_replicas import part_of
from fairway.controllers.lifecycle.troubles import Trouble, stuck, unready
from fairway.kinds.native import derived_pod_sets
from fairway.view.workloads import grows

_RESIZED = "Resized"
# Troubles that only some replicas of a placement may be in, and which pods are.
_IN_TROUBLE = {
    Code.PENDING_TOO_LONG.value: stuck,
    Code.OUT_OF_STOCK.value: stuck,
    Code.NOT_READY_IN_TIME.value: unready,
}
_COMES = {
    "WaitsForRoom": "more pods join it as soon as its cluster and its queue have room for them",
    "NextAttempt": "more pods of a gang come with its next attempt",
}


def resize(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status after a change of the number of pods in the spec."""
    status = _grown(case, status)
    generation, observed = case.workload.metadata.generation, case.workload.status
    if not observed.observed_generation or generation <= observed.observed_generation:
        return status
    mode = case.workload.spec.mode
    if mode == "Divided":
        return _resized_service(case, status)
    return _resized_gang(case, status) if mode == "Gang" else status


def _grown(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Removes the Resized condition once all pods are placed."""
    assert status.claim is not None, "only what holds a claim is looked at"
    if not any(condition.type == _RESIZED for condition in status.conditions):
        return status
    placed = {
        pods.name: pods.count
        for placement in status.claim.placements
        for pods in placement.pod_sets
    }
    if any(count > placed.get(name, 0) for name, count in _wanted(case).items()):
        return status
    others = tuple(condition for condition in status.conditions if condition.type != _RESIZED)
    return replace(status, conditions=others, increased_at=None)


def _wanted(case: LifecycleCase) -> dict[str, int]:
    """Pods that a gang asks for, by pod set: as listed, else derived from its manifests."""
    given = case.workload.spec.pod_sets or derived_pod_sets(case.workload)
    return {pod_set.name: pod_set.count for pod_set in given}


def _resized_service(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    assert status.claim is not None, "only what holds a claim is looked at"
    wanted = case.workload.spec.replicas
    placed = sum(placement.replicas or 0 for placement in status.claim.placements)
    status = replace(status, observed_generation=case.workload.metadata.generation)
    is_more = wanted is not None and wanted > placed
    return replace(status, increased_at=moment(case.now)) if is_more else status


def _resized_gang(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Resizes a gang in one cluster, if it lists its pod sets or its kind can add pods."""
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    can_grow = grows(case.workload)
    wanted = _wanted(case) if can_grow or case.workload.spec.pod_sets else {}
    if len(claim.placements) != 1 or claim.alternative or not wanted:
        return status
    placement = claim.placements[0]
    fewer = tuple(
        _at_most(pod_set, wanted.get(pod_set.name, pod_set.count)) for pod_set in placement.pod_sets
    )
    claim = replace(claim, placements=(replace(placement, pod_sets=fewer),))
    is_more = any(wanted.get(pod_set.name, 0) > pod_set.count for pod_set in fewer)
    others = tuple(condition for condition in status.conditions if condition.type != _RESIZED)
    reason = "WaitsForRoom" if can_grow else "NextAttempt"
    waits = Condition(
        type=_RESIZED,
        status="False",
        reason=reason,
        message=_COMES[reason],
        last_transition_time=moment(case.now),
        observed_generation=case.workload.metadata.generation,
    )
    return replace(
        status,
        claim=claim,
        conditions=(*others, waits) if is_more else others,
        increased_at=moment(case.now) if is_more and can_grow else status.increased_at,
        observed_generation=case.workload.metadata.generation,
    )


def _at_most(pods: PlacedPodSet, count: int) -> PlacedPodSet:
    """At most `count` pods; the last topology domains lose theirs first."""
    if pods.count <= count:
        return pods
    left, domains = count, {}
    for domain in sorted(pods.domains):
        taken = min(left, pods.domains[domain])
        if taken:
            domains[domain] = taken
        left -= taken
    return replace(pods, count=count, domains=domains)


def leaves_some(case: LifecycleCase, trouble: Trouble) -> bool:
    """Whether only some replicas of a placement are stuck, so that the others may stay."""
    return (
        case.workload.spec.mode == "Divided"
        and trouble.reason in _IN_TROUBLE
        and 0 < _troubled_replicas(case, trouble) < (trouble.placement.replicas or 0)
    )


def taken_back(
    case: LifecycleCase, status: WorkloadStatus, troubles: Sequence[Trouble]
) -> WorkloadStatus:
    """Stuck replicas leave the claim at once: a pod without a node holds nothing.

    Replicas that are not ready have nodes, and are charged until they are gone.
    """
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    taken = {trouble.placement.cluster: _troubled_replicas(case, trouble) for trouble in troubles}
    history, releasing = status.history, status.releasing
    for trouble in troubles:
        if trouble.reason == Code.NOT_READY_IN_TIME.value:
            left = part_of(trouble.placement, taken[trouble.placement.cluster])
            releasing = (*releasing, *with_attempt([left], claim))
            end = end_of([trouble])
            history = (*history, past_attempt(case, replace(claim, placements=(left,)), end))
    avoided = sorted(trouble.placement.cluster for trouble in troubles if trouble.avoids_cluster)
    placements = tuple(
        _fewer(placement, taken.get(placement.cluster, 0)) for placement in claim.placements
    )
    return replace(
        status,
        reason=troubles[0].reason,
        message=troubles[0].message,
        claim=replace(claim, placements=placements),
        replicas=sum(placement.replicas or 0 for placement in placements),
        requeue=avoid(case, status.requeue, avoided),
        releasing=releasing,
        history=history[-HISTORY_MOST:],
    )


def _troubled_replicas(case: LifecycleCase, trouble: Trouble) -> int:
    """Replicas of which at least one pod is in trouble."""
    placement = trouble.placement
    replicas = placement.replicas or 1
    counts = {pod_set.name: max(1, pod_set.count // replicas) for pod_set in placement.pod_sets}
    pods = _IN_TROUBLE[trouble.reason](case, placement)
    return max((-(-many // counts[name]) for name, many, _ in pods), default=0)


def _fewer(placement: Placement, replicas: int) -> Placement:
    if not replicas or not placement.replicas:
        return placement
    left = placement.replicas - replicas
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * left // placement.replicas)
        for pod_set in placement.pod_sets
    )
    return replace(placement, replicas=left, pod_sets=pod_sets)
