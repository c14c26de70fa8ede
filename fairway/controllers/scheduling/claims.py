"""Turns steps of a plan into statuses of workloads: one decision is one status write.

Pure functions of a workload and a step. What a workload leaves is charged until it is confirmed
gone, so every placement that a step takes away moves to `releasing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from fairway.api.amounts import Quantity, family_of
from fairway.api.claim import (
    Claim,
    PastAttempt,
    PlacedPodSet,
    Placement,
    Reservation,
    WaitsFor,
    WorkloadMention,
)
from fairway.api.doc import SECONDS_MAX
from fairway.api.fleet import FleetSpec
from fairway.api.names import namespace_and_name
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.scheduling.never_starts import with_never
from fairway.core import model, plan
from fairway.view.workloads import key_of, last_attempt

_HISTORY_MOST = 10
_SUMMARY_MOST = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Values that all steps of a batch share."""

    now: float
    term: int
    fleet: FleetSpec = field(default_factory=FleetSpec)
    priorities: Mapping[str, int] = field(default_factory=dict)  # as the core saw them, by workload
    queues: Mapping[str, str] = field(default_factory=dict)
    run_limits: Mapping[str, int] = field(default_factory=dict)  # by fleet policies

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A victim that must be gone first: its UID, and the last attempt that must be gone."""

    uid: str
    attempt: int


def take_claim(
    workload: Workload,
    step: plan.Admit,
    provisions: Sequence[plan.Provision],
    batch: Batch,
    leaving: Mapping[str, Leaving] | None = None,
) -> WorkloadStatus:
    """The workload gets a claim, or its claim grows or shrinks.

    `leaving` has the workloads that must be gone first.
    """
    status = workload.status
    before = status.claim
    attempt = before.attempt if before else last_attempt(status) + 1
    # A placement that stays in its cluster keeps its attempt, so its pods are not restarted.
    held = before.placements if before else ()
    kept = {placement.cluster: placement.attempt for placement in held}
    placements = tuple(
        placement_of(placement, kept.get(placement.cluster) or attempt) for placement in step.placed
    )
    waits_for = (
        *(
            WaitsFor(
                type="Preemption",
                workload=_mention(key, value.uid, workload),
                attempt=value.attempt,
            )
            for key, value in (leaving or {}).items()
        ),
        *(
            WaitsFor(type="Provision", cluster=cluster, pool=pool, count=count)
            for (cluster, pool), count in _ask(before, placements, provisions).items()
        ),
    )
    key = key_of(workload)
    claim = Claim(
        attempt=attempt,
        term=batch.term,
        decided_at=batch.moment,
        queue=batch.queues.get(key) or workload.spec.queue,
        summary=summary_of(placements),
        placements=placements,
        alternative=step.form,
        rung=step.rung,
        waits_for=waits_for,
        deadline=before.deadline if before else _deadline(workload, batch),
        ready_at=before.ready_at if before else None,
        run_seconds_limit=before.run_seconds_limit if before else batch.run_limits.get(key),
        missing_copies=step.missing_copies,
        begun=before is not None,
    )
    left = tuple(_taken_away(held, placements))
    if step.leaving:
        left = tuple(replace(placement, leaves="WithinBudget") for placement in left)
    return replace(
        status,
        observed_generation=workload.metadata.generation,
        phase=status.phase if before and status.phase == "Running" else "Claimed",
        reason=step.reasons[0].code.value if step.leaving else "",
        message="",
        queue=claim.queue,
        priority=batch.priorities.get(key, status.priority),
        claim=claim,
        reservation=None,
        releasing=(*status.releasing, *_stopped(status, left, placements, batch)),
        replicas=sum(placement.replicas or 0 for placement in placements),
        requeue=replace(status.requeue, not_before=None) if status.requeue else None,
        rebalanced_at=batch.moment if step.is_rebalanced else status.rebalanced_at,
        conditions=with_never(workload, status, None, batch.moment).conditions,
    )


def _ask(
    before: Claim | None, placements: Sequence[Placement], provisions: Sequence[plan.Provision]
) -> dict[tuple[str, str], int]:
    """Nodes requested from pools: new ones, and earlier ones in clusters that the claim keeps."""
    stays = {placement.cluster for placement in placements}
    stays &= {placement.cluster for placement in before.placements} if before else set()
    result: dict[tuple[str, str], int] = {}
    for victim in before.waits_for if before else ():
        if victim.type == "Provision" and victim.cluster in stays:
            result[victim.cluster, victim.pool] = victim.count
    for step in provisions:
        place = (step.cluster, step.pool)
        result[place] = result.get(place, 0) + step.count
    return result


def preempt(workload: Workload, step: plan.Preempt, batch: Batch, *, by_uid: str) -> WorkloadStatus:
    """The workload loses its claim to the one with `by_uid`, and gets a receipt in its history."""
    status = workload.status
    assert status.claim is not None, "only what holds a claim can be preempted"
    claim = status.claim
    reason = step.reasons[0].code.value if step.reasons else "Preempted"
    receipt = PastAttempt(
        attempt=claim.attempt,
        clusters=tuple(placement.cluster for placement in claim.placements if placement.cluster),
        started_at=claim.ready_at,
        ended_at=batch.moment,
        reason=reason,
        blame="Decision",
        preempted_by=replace(
            _mention(step.for_, by_uid, workload),
            queue=batch.queues.get(step.for_, ""),
            priority=batch.priorities.get(step.for_),
        ),
        lost_seconds=min(int(step.lost_seconds), SECONDS_MAX),
    )
    return replace(
        status,
        phase="Stopping" if receipt.clusters else "Waiting",
        reason=reason,
        claim=None,
        releasing=(
            *status.releasing,
            *(placement for placement in claim.placements if placement.cluster),
        ),
        history=(*status.history, receipt)[-_HISTORY_MOST:],
        queued_at=status.queued_at or workload.metadata.creation_timestamp,
        ran_seconds=status.ran_seconds + _ran(claim, batch),
        replicas=0,
    )


def move(workload: Workload, step: plan.Move, batch: Batch) -> WorkloadStatus:
    """Some replicas of a running workload move to another cluster.

    The old replicas stop once the new ones are ready. If the step stops first, the new replicas
    start once the old ones are gone.
    """
    status = workload.status
    assert status.claim is not None, "only what runs can move"
    claim = status.claim
    after = {placement.cluster: placement for placement in claim.placements}
    known = after.get(step.placed.cluster)
    target = placement_of(step.placed, known.attempt if known else claim.attempt)
    source = after[step.source]
    replicas = source.replicas or 0
    stays = replicas - step.count
    if stays > 0:
        after[step.source] = _scale(source, stays, replicas)
    else:
        del after[step.source]
    after[target.cluster] = target
    placements = tuple(after[name] for name in sorted(after))
    left = tuple(_taken_away(claim.placements, placements))
    return replace(
        status,
        reason=step.reasons[0].code.value if step.reasons else "",
        claim=replace(
            claim,
            term=batch.term,
            decided_at=batch.moment,
            placements=placements,
            summary=summary_of(placements),
        ),
        releasing=(
            *status.releasing,
            *(
                _stopped(
                    status,
                    [replace(placement, gives_way_to=target.cluster) for placement in left],
                    placements,
                    batch,
                )
                if step.stops_first
                else (replace(placement, leaves="WhenReplaced") for placement in left)
            ),
        ),
        rebalanced_at=batch.moment if step.is_rebalanced else status.rebalanced_at,
    )


def reserve(workload: Workload, other: plan.Reservation | None, batch: Batch) -> WorkloadStatus:
    """The waiting workload gets a reservation, or gives it up."""
    before = workload.status.reservation
    if other is None:
        return replace(workload.status, reservation=None)
    is_same = before is not None and before.cluster == other.cluster
    starts_at = datetime.fromtimestamp(other.starts_at, UTC) if other.starts_at else None
    reservation = Reservation(
        cluster=other.cluster,
        flavors=other.flavors,
        held_since=before.held_since if before is not None and is_same else batch.moment,
        starts_at=starts_at,
    )
    return replace(workload.status, reservation=reservation)


def placement_of(placed: model.Placed, attempt: int) -> Placement:
    """A placement of the core in one cluster, as an API type."""
    return Placement(
        cluster=placed.cluster,
        group=placed.group,
        replicas=placed.replicas or None,
        tasks=placed.tasks,
        pod_sets=tuple(_pod_set_of(pod) for pod in placed.pods),
        attempt=attempt,
    )


def _pod_set_of(pods: model.PlacedPods) -> PlacedPodSet:
    return PlacedPodSet(
        name=pods.name,
        count=pods.count + pods.finished,
        finished=pods.finished,
        requests={
            resource: Quantity(amount * model.unit_nanos(resource), family_of(resource))
            for resource, amount in pods.shape.requests
        },
        flavors={resource: flavor for resource, flavor in pods.flavors if flavor},
        topology_level=pods.level,
        domains=dict(pods.domains),
    )


def summary_of(placements: Sequence[Placement]) -> str:
    """The clusters, for people: `hangzhou-1, shanghai-2 (3)`."""
    parts = [
        f"{placement.cluster} ({placement.replicas})" if placement.replicas else placement.cluster
        for placement in placements
        if placement.cluster
    ]
    text = ", ".join(parts)
    return text if len(text) <= _SUMMARY_MOST else f"{text[: _SUMMARY_MOST - 4]} ..."


def _taken_away(before: Sequence[Placement], after: Sequence[Placement]) -> Iterator[Placement]:
    """The pods that the earlier placements have and the later ones lack, by cluster.

    Tasks that are no longer placed have ended, so they are left out: only pods to stop are listed.
    """
    now = {placement.cluster: placement for placement in after}
    for old in before:
        if not old.cluster or old.tasks:
            continue
        new = now.get(old.cluster)
        counts = {pod_set.name: pod_set.count for pod_set in new.pod_sets} if new else {}
        pod_sets = tuple(
            replace(
                pod_set,
                count=pod_set.count - counts.get(pod_set.name, 0),
                topology_level="",
                domains={},
            )
            for pod_set in old.pod_sets
            if pod_set.count > counts.get(pod_set.name, 0)
        )
        if pod_sets:
            replicas = (old.replicas or 0) - ((new.replicas or 0) if new else 0)
            yield replace(old, replicas=replicas or None, pod_sets=pod_sets)


def _stopped(
    status: WorkloadStatus, left: Sequence[Placement], held: Sequence[Placement], batch: Batch
) -> tuple[Placement, ...]:
    """What stops because a service shrinks or gives way."""
    running = (*held, *(placement for placement in status.releasing if not placement.stops))
    return tuple(after_traffic(status, placement, running, batch.fleet) for placement in left)


def after_traffic(
    status: WorkloadStatus, placement: Placement, running: Iterable[Placement], fleet: FleetSpec
) -> Placement:
    """A placement that is to stop; the last one of a service in a cluster waits for its traffic."""
    is_last = placement.replicas and placement.cluster not in {
        other.cluster for other in running if other.replicas
    }
    if placement.leaves != "Now" or not is_last or not fleet.defaults.traffic_seconds:
        return placement
    is_used = status.has_traffic(placement.cluster)
    return replace(placement, leaves="AfterTraffic") if is_used else placement


def _scale(placement: Placement, part: int, whole: int) -> Placement:
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * part // whole) for pod_set in placement.pod_sets
    )
    return replace(placement, replicas=part, pod_sets=pod_sets)


def _deadline(workload: Workload, batch: Batch) -> datetime | None:
    """When a gang that is not ready goes back to its queue; services may start gradually."""
    if workload.spec.mode != "Gang":
        return None
    gang = workload.spec.gang
    seconds = batch.fleet.defaults.ready_seconds
    if gang is not None and gang.ready_seconds is not None:
        seconds = gang.ready_seconds
    return batch.moment + timedelta(seconds=seconds)


def _ran(claim: Claim, batch: Batch) -> int:
    if claim.ready_at is None:
        return 0
    return max(0, int((batch.moment - claim.ready_at).total_seconds()))


def _mention(key: str, uid: str, to: Workload) -> WorkloadMention:
    """A reference to a workload in the status of `to`; to another namespace by UID alone."""
    namespace, name = namespace_and_name(key)
    if namespace != to.metadata.namespace:
        return WorkloadMention(uid=uid)
    return WorkloadMention(namespace=namespace, name=name, uid=uid)
