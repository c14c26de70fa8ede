"""Why a placement cannot stay: one function for each trouble, tried in order.

A trouble says what happens to the placement: whether it is retried, whether that counts against the
limit, whether its cluster is avoided, and whether it is charged until it is confirmed gone. A
placement in a cluster that is lost for good, or was removed from the fleet, is not charged: no
workload can use the room there, and its quota must not block the workload's move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from fairway.api.claim import Placement
from fairway.api.cluster import AvoidedNode
from fairway.api.reasons import Code, violation_sentence
from fairway.controllers.clusters.health import NodeAside
from fairway.controllers.lifecycle.case import (
    LifecycleCase,
    PodsSeen,
    WorkObservation,
    attempt_of,
    lost_action,
    silence_allowed,
)
from fairway.controllers.lifecycle.counts import is_ready
from fairway.controllers.lifecycle.recovery import (
    Before,
    Blame,
    Failure,
    FailureVerdict,
    cause_of,
    judge,
)
from fairway.core.clusters.candidates import evicted_at
from fairway.kinds.decision import REVISION

NEVER = float("inf")
POLICY_STOP = "PolicyStop"  # condition: it is stopped, since it breaks a rule of a fleet policy
_HOSTNAME_MOST = 253
_LOOK_SECONDS_LEAST = 0.1
_DAY = 86_400.0
# An unknown cause may pass, and pods without a node are handled by `pending_pods`.
_NOT_BLOCKING = ("Unknown", "Unschedulable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a placement cannot stay."""

    placement: Placement
    reason: str
    message: str = ""
    blame: Blame = "Decision"
    exit_code: int | None = None
    is_retried: bool = True
    is_counted: bool = False
    avoids_cluster: bool = False
    waits: bool = False
    is_charged: bool = True  # until it is confirmed gone
    is_move: bool = False  # the hub's own decision, counted by the breaker of moves
    node: NodeAside | None = None


# The result of a check: a trouble, or the time at which there will be one.
Found = Trouble | float


def trouble_of(case: LifecycleCase, placement: Placement) -> Found:
    """The first trouble of a placement, or when time alone will cause one."""
    if not placement.cluster:
        return NEVER  # admitted by quota alone: nothing runs
    due = NEVER
    place = case.places.get(placement.cluster)
    may_move = case.may_move and (place is None or place.mode == "Manage")
    for look in _LOOKS:
        result = look(case, placement)
        if isinstance(result, Trouble):
            if not result.is_move or may_move:
                return result
        else:
            due = min(due, result)
    return due


def failed_work(case: LifecycleCase, placement: Placement) -> Found:
    """Its work failed, or is gone although the hub did not ask for that."""
    seen = case.observation_of(placement)
    if seen is None or seen.phase not in ("Failed", "Gone"):
        return NEVER
    return _judge(case, placement, seen)


def refused_template(case: LifecycleCase, placement: Placement) -> Found:
    """Its cluster refuses its template: it will not start there, so there is nothing to wait for.

    A template that no cluster would accept is the fault of the workload. A service that already
    runs keeps running: only its new template is refused.
    """
    refusal, claim = case.refusal, case.workload.status.claim
    if refusal is not None and claim is not None and refusal.attempt == claim.attempt:
        reason = Code.TEMPLATE_REFUSED.value if refusal.clusters else "Invalid"
        if not refusal.clusters or placement.cluster in refusal.clusters:
            seen = WorkObservation(
                attempt=claim.attempt, phase="Pending", reason=reason, message=refusal.message
            )
            is_charged = placement.cluster in case.sent
            return replace(_judge(case, placement, seen), is_charged=is_charged)
    known = case.observation_of(placement)
    if known is None or known.ready_at is not None or known.phase not in ("Pending", "Held"):
        return NEVER
    return _judge(case, placement, known) if known.reason == Code.TEMPLATE_REFUSED.value else NEVER


def blocked_pods(case: LifecycleCase, placement: Placement) -> Found:
    """Its pods have a node and do not start for a known reason; some reasons pass in time."""
    seen, claim = case.observation_of(placement), case.workload.status.claim
    if seen is None or seen.phase != "Pending" or not seen.reason or claim is None:
        return NEVER
    if cause_of(_failure(placement, seen)).cause in _NOT_BLOCKING:
        return NEVER
    due = claim.decided_at.timestamp() + case.settings.pending_seconds
    if case.now < due:
        return due
    return replace(_judge(case, placement, seen), is_move=True)


def _failure(placement: Placement, seen: WorkObservation) -> Failure:
    return Failure(
        clusters=(placement.cluster,),
        reason=seen.reason or ("Vanished" if seen.phase == "Gone" else ""),
        message=seen.message,
        exit_code=seen.exit_code,
    )


def _judge(case: LifecycleCase, placement: Placement, seen: WorkObservation) -> Trouble:
    workload = case.workload
    before = Before(history=workload.status.history, has_own_retry=bool(workload.spec.retry))
    verdict = judge(_failure(placement, seen), before)
    return Trouble(
        placement=placement,
        reason=verdict.cause,
        message=seen.message,
        blame=verdict.blame,
        exit_code=seen.exit_code,
        is_retried=verdict.is_retried,
        is_counted=verdict.is_counted,
        avoids_cluster=verdict.avoids_cluster or case.settings.retry.elsewhere,
        waits=verdict.waits,
        node=_aside(case, placement, seen, verdict),
    )


def _aside(
    case: LifecycleCase, placement: Placement, seen: WorkObservation, verdict: FailureVerdict
) -> NodeAside | None:
    if not verdict.node_aside_seconds or not seen.node:
        return None
    until = datetime.fromtimestamp(case.now, UTC) + timedelta(seconds=verdict.node_aside_seconds)
    name = seen.node[:_HOSTNAME_MOST]
    return NodeAside(
        cluster=placement.cluster, node=AvoidedNode(name=name, reason=verdict.cause, until=until)
    )


def refused_work(case: LifecycleCase, placement: Placement) -> Found:
    """The agent refuses the work because a fleet policy forbids it, and nothing of it runs."""
    work = case.sent.get(placement.cluster)
    if work is None or not _is_sent(case, placement) or case.observation_of(placement) is not None:
        return NEVER
    for condition in work.status.conditions:
        if (
            condition.type == "Accepted"
            and condition.status == "False"
            and condition.reason == Code.POLICY_VIOLATED.value
            and condition.observed_generation == work.metadata.generation
        ):
            return Trouble(
                placement=placement,
                reason=Code.POLICY_VIOLATED.value,
                message=condition.message,
                avoids_cluster=True,
                waits=True,
            )
    return NEVER


def broken_rule(case: LifecycleCase, placement: Placement) -> Found:
    """A fleet policy forbids it: what was not sent yet ends now, what runs ends after the grace."""
    is_sent, due = _is_sent(case, placement), NEVER
    for breach in case.breaches:
        if breach.cluster not in ("", placement.cluster) or breach.enforcement != "Enforce":
            continue
        if is_sent and breach.grace_seconds is None:
            continue
        stops_at = _stop_since(case) + (breach.grace_seconds or 0) if is_sent else case.now
        if stops_at <= case.now:
            return Trouble(
                placement=placement,
                reason=Code.POLICY_VIOLATED.value,
                message=violation_sentence(breach.violation),
                is_retried=breach.violation.rule != "runSeconds",
                is_move=is_sent,
            )
        due = min(due, stops_at)
    return due


def _is_sent(case: LifecycleCase, placement: Placement) -> bool:
    """Whether the cluster was asked to run a placement, so that some of it may run."""
    work = case.sent.get(placement.cluster)
    return (
        work is not None
        and not work.spec.tombstone
        and work.spec.attempt >= attempt_of(case, placement)
    )


def _stop_since(case: LifecycleCase) -> float:
    """When it was first seen to break a rule for which it is stopped."""
    for condition in case.workload.status.conditions:
        if condition.type == POLICY_STOP and condition.status == "True":
            return condition.last_transition_time.timestamp()
    return case.now


def removed_cluster(case: LifecycleCase, placement: Placement) -> Found:
    """The cluster was removed from the fleet."""
    if placement.cluster in case.places:
        return NEVER
    return Trouble(
        placement=placement, reason=Code.CLUSTER_REMOVED.value, blame="Place", is_charged=False
    )


def lost_cluster(case: LifecycleCase, placement: Placement) -> Found:
    """The cluster is lost, and the workload need not wait for it any longer."""
    number = gives_up_at(case, placement)
    if number > case.now:
        return number
    return Trouble(
        placement=placement,
        reason=Code.CLUSTER_LOST.value,
        blame="Place",
        avoids_cluster=True,
        is_move=True,
        is_charged=False,
    )


def gives_up_at(case: LifecycleCase, placement: Placement) -> float:
    """When a placement in a silent cluster counts as gone.

    With AllowDuplicate: once the cluster is lost. With StopAndMove: once the agent has surely
    stopped it, that is after the silence that its work allows, the clock skew, and the grace period
    of its pods. Never if the work sets no limit on silence, or if the agent reports that its
    cluster does not answer: it cannot stop anything there.
    """
    place = case.places.get(placement.cluster)
    if place is None:
        return case.now
    action = lost_action(case.settings, place)
    if place.phase == "Lost" and action == "AllowDuplicate":
        return case.now
    if place.phase not in ("Lost", "Unready") or action != "StopAndMove" or place.is_cut_off:
        return NEVER
    work = case.sent.get(placement.cluster)
    if work is None or work.spec.stop_when_silent_seconds is None:
        return NEVER
    bears = max(work.spec.stop_when_silent_seconds, silence_allowed(case.settings, place))
    skew = case.settings.fleet.health.skew_seconds
    left = bears + skew + work.spec.stop.grace_seconds - place.silent_seconds
    # Silence is only updated every few seconds, so an immediate second look would be useless.
    return case.now + (max(left, _LOOK_SECONDS_LEAST) if left > 0 else left)


def drained_cluster(case: LifecycleCase, placement: Placement) -> Found:
    place = case.places.get(placement.cluster)
    if place is None or place.hold != "HoldAndDrain":
        return NEVER
    return Trouble(placement=placement, reason=Code.CLUSTER_DRAINED.value, is_move=True)


def tainted_cluster(case: LifecycleCase, placement: Placement) -> Found:
    """A NoExecute taint of the cluster evicts it, at once or after its toleration seconds."""
    place = case.places.get(placement.cluster)
    if place is None:
        return NEVER
    due = evicted_at(place.taints, case.settings.tolerations)
    if due > case.now:
        return due
    return Trouble(placement=placement, reason=Code.CLUSTER_TAINTED.value, is_move=True)


def late(case: LifecycleCase, placement: Placement) -> Found:
    """A gang that is not ready by its deadline goes back to its queue."""
    claim = case.workload.status.claim
    if claim is None or claim.ready_at is not None or claim.deadline is None:
        return NEVER
    if case.now < claim.deadline.timestamp():
        return claim.deadline.timestamp()
    if is_ready(case, placement):
        return NEVER  # other placements are late, not this one
    return Trouble(
        placement=placement,
        reason=Code.NOT_READY_IN_TIME.value,
        blame="Place",
        is_counted=True,
        avoids_cluster=True,
        waits=True,
        is_move=True,
    )


def stock_out(case: LifecycleCase, placement: Placement) -> Found:
    """The nodes that it waits for do not come: their pool is out of stock.

    Neither the workload nor the cluster is to blame: it moves elsewhere, or waits for the pool,
    without a backoff.
    """
    claim, place = case.workload.status.claim, case.places.get(placement.cluster)
    if claim is None or place is None or not place.failed_pools:
        return NEVER
    decided_at = claim.decided_at.timestamp()
    failed = [
        victim.pool
        for victim in claim.waits_for
        if victim.type == "Provision"
        and victim.cluster == placement.cluster
        and place.failed_pools.get(victim.pool, 0.0) >= decided_at
    ]
    seen = case.observation_of(placement)
    has_pods = seen is not None and any(pod.total for pod in seen.pods.values())
    is_waiting = any(stuck(case, placement)) if has_pods else claim.ready_at is None
    if not failed or not is_waiting:
        return NEVER
    return Trouble(
        placement=placement,
        reason=Code.OUT_OF_STOCK.value,
        message=f"pool {failed[0]} of {placement.cluster} is out of stock",
    )


def pending_pods(case: LifecycleCase, placement: Placement) -> Found:
    """Pods have waited for a node for too long, and no nodes are being provisioned for them."""
    if _is_provisioned(case, placement):
        return NEVER
    since = [pods.pending_since for _, _, pods in stuck(case, placement) if pods.pending_since]
    if not since:
        return NEVER
    due = min(since) + case.settings.pending_seconds
    if case.now < due:
        return due
    seen = case.observation_of(placement)
    return Trouble(
        placement=placement,
        reason=Code.PENDING_TOO_LONG.value,
        message=seen.message if seen else "",
        blame="Place",
        is_counted=case.workload.spec.mode == "Gang",
        avoids_cluster=True,
        waits=True,
        is_move=True,
    )


def unready_replicas(case: LifecycleCase, placement: Placement) -> Found:
    """Replicas have had a node for too long without being ready, and the place is to blame.

    Each such move of the past day doubles the time that the next one takes, so that a service does
    not wander.
    """
    if case.workload.spec.mode != "Divided":
        return NEVER
    since = [pods.unready_since for _, _, pods in unready(case, placement) if pods.unready_since]
    if not since:
        return NEVER
    due = min(since) + (case.settings.ready_seconds << len(_left_unready(case)))
    if case.now < due:
        return due
    if not _is_place_to_blame(case, placement):
        return NEVER
    seen = case.observation_of(placement)
    return Trouble(
        placement=placement,
        reason=Code.NOT_READY_IN_TIME.value,
        message=seen.message if seen else "",
        blame="Place",
        avoids_cluster=True,
        waits=True,
        is_move=True,
    )


def _left_unready(case: LifecycleCase) -> list[str]:
    """The clusters that the service left in the past day because replicas were not ready there."""
    return [
        name
        for past in case.workload.status.history
        if past.reason == Code.NOT_READY_IN_TIME.value
        and past.ended_at is not None
        and past.ended_at.timestamp() > case.now - _DAY
        for name in past.clusters
    ]


def _is_place_to_blame(case: LifecycleCase, placement: Placement) -> bool:
    """Whether replicas would be ready elsewhere, as far as is known.

    They would if another cluster has none but ready replicas of the same revision. If there is no
    such cluster, the place is to blame until it happens in a second cluster, where some of a new
    template may be beside those of the old one; then the program is.
    """
    claim = case.workload.status.claim
    others = [other for other in claim.placements if other != placement] if claim else []
    revision = _revision_in(case, placement)
    if any(_is_well(case, other) and _revision_in(case, other) == revision for other in others):
        return True
    unwell = {
        other.cluster
        for other in others
        if (seen := case.observation_of(other)) and any(pods.bound for pods in seen.pods.values())
    }
    return unwell | set(_left_unready(case)) <= {placement.cluster}


def _is_well(case: LifecycleCase, placement: Placement) -> bool:
    """Whether pods of a placement are ready, and none is not, not even beyond those wanted."""
    seen = case.observation_of(placement)
    every = list(seen.pods.values()) if seen is not None else []
    return any(pods.ready for pods in every) and not any(
        pods.bound or pods.pending for pods in every
    )


def _revision_in(case: LifecycleCase, placement: Placement) -> str:
    work = case.sent.get(placement.cluster)
    return work.metadata.annotations.get(REVISION, "") if work is not None else ""


def _is_provisioned(case: LifecycleCase, placement: Placement) -> bool:
    """Whether nodes are being provisioned for it; once it is ready, only if its cluster says so."""
    claim = case.workload.status.claim
    place = case.places.get(placement.cluster)
    return claim is not None and any(
        victim.type == "Provision"
        and victim.cluster == placement.cluster
        and (claim.ready_at is None or (place is not None and victim.pool in place.awaited_pools))
        for victim in claim.waits_for
    )


# Pod sets, each with how many of its pods are in trouble and still wanted.
InTrouble = Iterator[tuple[str, int, PodsSeen]]


def stuck(case: LifecycleCase, placement: Placement) -> InTrouble:
    """Pod sets with pods that wait for a node."""
    return _in_trouble(case, placement, lambda pods: pods.pending)


def unready(case: LifecycleCase, placement: Placement) -> InTrouble:
    """Pod sets with pods that have a node and are not ready."""
    return _in_trouble(case, placement, lambda pods: pods.bound)


def _in_trouble(
    case: LifecycleCase, placement: Placement, count: Callable[[PodsSeen], int]
) -> InTrouble:
    seen = case.observation_of(placement)
    for wanted in placement.pod_sets if seen else ():
        assert seen is not None, "only what is seen is looked at"
        pods = seen.pods.get(wanted.name)
        if pods is not None and count(pods):
            surplus = max(0, pods.total - pods.terminating - wanted.count)
            if count(pods) > surplus:
                yield (wanted.name, count(pods) - surplus, pods)


_LOOKS: tuple[Callable[[LifecycleCase, Placement], Found], ...] = (
    removed_cluster,
    failed_work,
    lost_cluster,
    drained_cluster,
    tainted_cluster,
    refused_template,
    refused_work,
    broken_rule,
    blocked_pods,
    stock_out,
    late,
    pending_pods,
    unready_replicas,
)
