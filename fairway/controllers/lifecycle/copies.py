"""Copies of a workload that run to completion, such as a Job in each of several clusters.

A copy that has succeeded leaves the claim at once, so that others can use its room. Its cluster is
remembered for good and gets no other copy, also after a retry, a move or a restart of the hub. The
claim says how many copies have no place yet. The workload has succeeded once no copy runs and none
is missing; if all that run are over while others are missing, it waits for these in its queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace

from fairway.api.claim import Placement
from fairway.api.workload import WorkloadStatus
from fairway.controllers.adoption import is_adopted
from fairway.controllers.lifecycle import attempt_ends, counts
from fairway.controllers.lifecycle.attempt_ends import End
from fairway.controllers.lifecycle.case import LifecycleCase
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.controllers.scheduling.claims import summary_of
from fairway.controllers.workload_events import COPIES_DONE


def with_memory(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Notes copies that ended outside of a claim.

    They ended just before they were stopped, or agents brought their works back to a hub that had
    lost them.
    """
    if not case.is_copied:
        return status
    held = {placement.cluster for placement in status.claim.placements} if status.claim else set()
    ended = (
        name
        for name, work in case.sent.items()
        if is_adopted(work)
        and name not in held
        and (seen := case.works.get(name)) is not None
        and seen.attempt == work.spec.attempt
        and seen.phase == "Succeeded"
    )
    stopped = (
        placement.cluster
        for placement in status.releasing
        if placement.cluster not in held
        and (seen := case.works.get(placement.cluster)) is not None
        and seen.attempt == placement.attempt
        and seen.phase == "Succeeded"
    )
    return _noted(status, (*ended, *stopped))


def outcome(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus | None:
    """The status of a workload of which no copy runs any more; None: some do."""
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    over = _succeeded(case, claim.placements)
    if len(over) < len(claim.placements) or claim.missing_copies is None:
        return None
    status = _noted(status, over)
    status = replace(status, pods=counts.count_pods(case, status))
    if not claim.missing_copies:
        return _with_all_clusters(attempt_ends.succeed(case, status))
    # Agents may still bring back the copies that are missing here.
    return None if case.awaits_clusters else attempt_ends.rest(case, status, COPIES_DONE)


def _with_all_clusters(status: WorkloadStatus) -> WorkloadStatus:
    """The status of a workload that succeeded: it ran wherever a copy did."""
    last = replace(status.history[-1], clusters=status.succeeded_clusters)
    return replace(status, history=(*status.history[:-1], last))


def without_finished(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status without the copies that have succeeded, while others still run."""
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    over = _succeeded(case, claim.placements) if case.is_copied else ()
    if not over:
        return status
    left = tuple(placement for placement in claim.placements if placement.cluster not in over)
    left = attempt_ends.with_attempt(left, claim)
    return replace(
        _noted(status, over),
        claim=replace(claim, placements=left, summary=summary_of(left)),
        replicas=sum(placement.replicas or 0 for placement in left),
    )


def with_missing(case: LifecycleCase, status: WorkloadStatus, lost: int) -> WorkloadStatus:
    """Counts copies that lost their place as missing, until the scheduler decides again."""
    claim = status.claim
    if not case.is_copied or claim is None or claim.missing_copies is None:
        return status
    missing = claim.missing_copies + lost
    return replace(status, claim=replace(claim, missing_copies=missing))


def named(case: LifecycleCase, end: End, troubles: Sequence[Trouble]) -> End:
    """The end of all copies because of one: its message names the cluster."""
    if not case.is_copied:
        return end
    cause = next(trouble for trouble in troubles if trouble.reason == end.reason)
    return with_fields(end, message=f"in {cause.placement.cluster}: {_words(end)}")


def _words(end: End) -> str:
    if end.message:
        return end.message
    return end.reason if end.exit_code is None else f"exit code {end.exit_code}"


def _succeeded(case: LifecycleCase, placements: Sequence[Placement]) -> tuple[str, ...]:
    """The clusters whose copy has succeeded."""
    return tuple(
        placement.cluster
        for placement in placements
        if (seen := case.observation_of(placement)) is not None and seen.phase == "Succeeded"
    )


def _noted(status: WorkloadStatus, clusters: Sequence[str]) -> WorkloadStatus:
    if set(clusters) <= set(status.succeeded_clusters):
        return status
    every = tuple(sorted({*status.succeeded_clusters, *clusters}))
    return replace(status, succeeded_clusters=every)
