"""What a workload takes over when agents bring works back to a hub that had lost them.

The hub was restored to an earlier time, or never knew the workload. Claims are made of the works
that came back, as they were decided then.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairway.api.claim import Claim, Placement
from fairway.api.workload import WorkloadStatus
from fairway.controllers.adoption import claim_of, is_adopted
from fairway.controllers.lifecycle.case import LifecycleCase, attempt_of
from fairway.controllers.lifecycle.tasks import each_task_once
from fairway.view.workloads import last_attempt


def brought_back(case: LifecycleCase) -> Claim | None:
    """The claim of works that agents brought back, unless the hub knows how it ended.

    A work without a proof may be of an attempt that the hub knows, but its placement is the word of
    an agent: a claim that the hub has forgotten is made of no such work.
    """
    works = [work for cluster, work in case.sent.items() if cluster not in case.unproven]
    claim = claim_of(works, case.workload, case.now)
    last = last_attempt(case.workload.status)
    if claim is None:
        return None
    if claim.attempt <= last:
        running = _added(case, claim)
        return replace(claim, attempt=last + 1, placements=running) if running else None
    if case.workload.spec.tasks is not None:
        claim = replace(claim, placements=each_task_once(claim.placements))
    return claim


def _added(case: LifecycleCase, claim: Claim) -> tuple[Placement, ...]:
    """Replicas of a service that run in clusters that the hub does not know it has.

    Replicas move within an attempt, so they may run elsewhere than in the same attempt of the hub.
    """
    status = case.workload.status
    if case.workload.spec.mode != "Divided":
        return ()
    held = (*(status.claim.placements if status.claim else ()), *status.releasing)
    known = {*status.succeeded_clusters, *(placement.cluster for placement in held)}
    return tuple(
        placement
        for placement in claim.placements
        if placement.cluster not in known
        and (seen := case.works.get(placement.cluster)) is not None
        and seen.attempt == placement.attempt
        and seen.phase not in ("Stopping", "Gone")
    )


def taken_over(status: WorkloadStatus, claim: Claim) -> WorkloadStatus:
    """The status of a workload without a claim that gets back the one that it had lost."""
    there = {placement.cluster for placement in claim.placements}
    return replace(
        status,
        phase="Claimed",
        reason="",
        message="",
        claim=claim,
        replicas=sum(placement.replicas or 0 for placement in claim.placements),
        releasing=tuple(each for each in status.releasing if each.cluster not in there),
    )


def overtaken(case: LifecycleCase) -> WorkloadStatus | None:
    """The status with the claim that agents brought back, if it is later than the hub's own.

    The hub was restored to the time of an earlier attempt. A gang releases the placements that no
    agent brought back, and waits until they are gone; a service or a sweep keeps them. A service
    also gets the replicas that the hub did not know of; those that are too many leave later.
    """
    status = case.workload.status
    claim = brought_back(case)
    if status.claim is None:
        return None
    if claim is None:
        placements = tuple(_with_attempt_there(case, each) for each in status.claim.placements)
        is_same = placements == status.claim.placements
        return (
            None if is_same else replace(status, claim=replace(status.claim, placements=placements))
        )
    there = {placement.cluster for placement in claim.placements}
    others = tuple(
        placement for placement in status.claim.placements if placement.cluster not in there
    )
    is_whole = case.workload.spec.mode == "Gang"
    placements = claim.placements if is_whole else (*claim.placements, *others)
    if case.workload.spec.tasks is not None:
        placements = each_task_once(placements)
    releasing = tuple(placement for placement in status.releasing if placement.cluster not in there)
    return replace(
        status,
        phase="Claimed",
        claim=replace(claim, placements=placements),
        replicas=sum(placement.replicas or 0 for placement in placements),
        releasing=(*releasing, *others) if is_whole else releasing,
    )


def _with_attempt_there(case: LifecycleCase, placement: Placement) -> Placement:
    """A placement with the attempt that an agent brought back from there, if that is a later one.

    The claim has had that attempt too, elsewhere; the agent would refuse an earlier one.
    """
    work = case.sent.get(placement.cluster)
    is_later = work is not None and work.spec.attempt > attempt_of(case, placement)
    if work is None or not is_later or not is_adopted(work):
        return placement
    return replace(placement, attempt=work.spec.attempt)
