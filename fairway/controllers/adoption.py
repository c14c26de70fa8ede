"""Works that agents brought back to a hub that had lost them.

A hub that was restored, or is empty, stops nothing: agents write the works that they run back, with
a label. Each work has its placement as an annotation, so the workload gets its claim back. Works
that have ended come back too, so that the hub does not run them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from fairway.api import codec
from fairway.api.claim import Claim, PlacedPodSet, Placement
from fairway.api.names import ADOPTED, ENDED
from fairway.api.work import Work
from fairway.api.workload import Workload

PLACEMENT = "fairway.dev/placement"


def is_adopted(work: Work) -> bool:
    return ADOPTED in work.metadata.labels and not work.spec.tombstone


def is_own(work: Work, workload: Workload) -> bool:
    """Whether a work belongs to this workload, not to an earlier one of the same name.

    A workload that was submitted again takes over what runs, but not how it ended before.
    """
    is_taken_over = is_adopted(work) and not _has_ended(work)
    return work.spec.workload.uid == workload.metadata.uid or is_taken_over


def _has_ended(work: Work) -> bool:
    return work.metadata.labels.get(ADOPTED) == ENDED


def note_of(placement: Placement) -> str:
    """A placement as the annotation of its work."""
    return msgspec.json.encode(codec.to_plain(placement), order="deterministic").decode()


def placement_of(work: Work) -> Placement | None:
    """The placement that a work was derived from; None if it has no readable annotation."""
    text = work.metadata.annotations.get(PLACEMENT)
    return codec.decode_part(text, Placement) if text else None


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
    """The claim that adopted works were derived from; None if there are none.

    A gang has only its last attempt, a service only what runs; a sweep has finished tasks too.
    """
    result = [work for work in works if is_adopted(work) and is_own(work, workload)]
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
