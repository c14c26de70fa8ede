"""Works that agents brought back to a hub that had lost them.

A hub that was restored, or is empty, stops nothing: agents write the works that they run back, with
a label. Each work has its placement as an annotation, so the workload gets its claim back. Works
that have ended come back too, so that the hub does not run them again.

What an agent writes is believed only where the hub has decided it: by its proof, or because the hub
still knows the decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from fairway.api import codec
from fairway.api.claim import Claim, PlacedPodSet, Placement
from fairway.api.names import ADOPTED, ENDED, PLACEMENT, RESTORED_UID, work_name, work_namespace
from fairway.api.report import WorkState
from fairway.api.work import Work
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.proofs import Proofs
from fairway.kinds.registry import KnownKinds
from fairway.view.pod_counts import covers
from fairway.view.workloads import last_attempt

_ACCEPTED = "Accepted"


def is_adopted(work: Work) -> bool:
    return ADOPTED in work.metadata.labels and not work.spec.tombstone


def is_believed(work: Work, workload: Workload | None, proofs: Proofs) -> bool:
    """Whether the hub decided what a work says; an agent can create any work for its cluster."""
    if not is_named(work):
        return False
    return proofs.holds(work) or (workload is not None and _is_known(work, workload))


def is_named(work: Work) -> bool:
    """Whether a work has the name of its workload, in the namespace of its cluster."""
    reference, metadata = work.spec.workload, work.metadata
    return (metadata.namespace, metadata.name) == (
        work_namespace(work.spec.cluster),
        work_name(reference.namespace, reference.name),
    )


def _is_known(work: Work, workload: Workload) -> bool:
    """Whether a workload has, or had, this attempt in this cluster; its work may have no proof.

    Works of earlier versions have none, nor have works that an agent rebuilt from their objects.
    """
    return _is_its(work, workload) and _is_placed(work, workload.status)


def _is_its(work: Work, workload: Workload) -> bool:
    """Whether a work is of this very workload; a work that was rebuilt may not say."""
    metadata = workload.metadata
    return work.spec.workload.uid in ("", metadata.uid, metadata.annotations.get(RESTORED_UID))


def _is_placed(work: Work, status: WorkloadStatus) -> bool:
    return (work.spec.cluster, work.spec.attempt) in _places(status)


def _places(status: WorkloadStatus) -> Iterator[tuple[str, int]]:
    """Where a workload is or was, and in which attempt."""
    if status.claim is not None:
        for placement in status.claim.placements:
            yield placement.cluster, placement.attempt or status.claim.attempt
    for placement in status.releasing:
        yield placement.cluster, placement.attempt
    for past in status.history:
        for cluster in past.clusters:
            yield cluster, past.attempt


def is_own(work: Work, workload: Workload, kinds: KnownKinds) -> bool:
    """Whether a work belongs to this workload, not to an earlier one of the same name.

    A workload that was submitted again takes over what runs, but not how it ended before. It does
    so only if it has not started since; a service then still adds what runs elsewhere.
    """
    if _is_its(work, workload):
        return True
    if not is_adopted(work) or _has_ended(work) or not _is_alike(work, workload, kinds):
        return False
    last = last_attempt(workload.status)
    is_added = workload.spec.mode == "Divided" and work.spec.attempt <= last
    return last == 0 or is_added or _is_placed(work, workload.status)


def _is_alike(work: Work, workload: Workload, kinds: KnownKinds) -> bool:
    """Whether a work of an earlier workload can be what this one runs: tasks, or no tasks.

    What it was placed with is what the claim charges from then on, while its manifests become those
    of this workload. Larger pods, or other ones, would run in room that nobody decided to give.
    """
    placement = placement_of(work)
    if placement is None or bool(work.spec.tasks) != (workload.spec.tasks is not None):
        return False
    return covers(placement.pod_sets, workload, kinds)


def is_later(work: Work, workload: Workload, kinds: KnownKinds) -> bool:
    """Whether an agent brought back a later attempt of a workload than the workload knows."""
    is_unknown = work.spec.attempt > last_attempt(workload.status)
    return is_unknown and is_adopted(work) and is_own(work, workload, kinds)


def _has_ended(work: Work) -> bool:
    return work.metadata.labels.get(ADOPTED) == ENDED


def refusal_of(work: Work) -> str:
    """Why its agent refused the current work; empty: it did not."""
    for condition in work.status.conditions:
        is_current = condition.observed_generation == work.metadata.generation
        if condition.type == _ACCEPTED and condition.status == "False" and is_current:
            return condition.reason
    return ""


def hides(work: Work, state: WorkState) -> bool:
    """Whether a work that the hub did not decide is in the place of what its agent reports.

    The agent can bring that back only once the place is free.
    """
    return work.spec.attempt != state.attempt or bool(refusal_of(work))


def note_of(placement: Placement) -> str:
    """A placement as the annotation of its work."""
    return msgspec.json.encode(codec.to_plain(placement), order="deterministic").decode()


def placement_of(work: Work) -> Placement | None:
    """The placement that a work was derived from; None if no annotation says it."""
    text = work.metadata.annotations.get(PLACEMENT)
    placement = codec.decode_part(text, Placement) if text else None
    is_its = placement is not None and placement.cluster == work.spec.cluster
    return placement if is_its else None


def _guess(work: Work, workload: Workload) -> Placement:
    """A placement from the pods of a work without an annotation; their flavors are not known."""
    pod_sets = tuple(
        PlacedPodSet(name=pod_set.name, count=pod_set.count) for pod_set in work.spec.pod_sets
    )
    is_service = workload.spec.mode == "Divided" and bool(pod_sets)
    return Placement(
        cluster=work.spec.cluster,
        replicas=pod_sets[0].count if is_service else None,
        tasks=work.spec.tasks,
        pod_sets=pod_sets,
        attempt=work.spec.attempt,
    )


def claim_of(works: Sequence[Work], workload: Workload, now: float) -> Claim | None:
    """The claim that a workload's own adopted works were derived from; None if there are none.

    A gang has only its last attempt, a service only what runs; a sweep has finished tasks too.
    """
    result = [work for work in works if is_adopted(work)]
    if workload.spec.mode == "Gang":
        last = max((work.spec.attempt for work in result), default=0)
        result = [work for work in result if work.spec.attempt == last]
    elif workload.spec.mode == "Divided":
        result = [work for work in result if not _has_ended(work)]
    if not result:
        return None
    placements = [placement_of(work) or _guess(work, workload) for work in result]
    return Claim(
        attempt=max(placement.attempt for placement in placements),
        term=max(work.spec.term for work in result),
        decided_at=datetime.fromtimestamp(now, UTC),
        queue=workload.status.queue or workload.spec.queue,
        summary=", ".join(placement.cluster for placement in placements)[:1024],
        placements=tuple(sorted(placements, key=lambda placement: placement.cluster)),
    )
