"""The status of a native object: what clusters report, or what its queue has to say.

Clusters report the status of the part that they run; the kind merges them. While no cluster runs
the object it is suspended in its queue, and after the hub ended it (cancelled, past its limit,
refused by clusters) it has failed; its kind says either by its own conventions, so that whoever
waits for a condition does not wait in vain. All functions are pure, and all times are those of the
workload: the same workload gives the same status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fairway.api.meta import JsonObject
from fairway.api.names import OVER
from fairway.api.reasons import Code, Reason, sentence
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.kinds import job_status
from fairway.kinds.interface import Announcement, Kind
from fairway.kinds.job import Job

STATUS_FEEDBACK = "status"  # the feedback value that carries an object's whole status
_ENDED = ("Failed", "Cancelled")


def is_queued(workload: Workload) -> bool | None:
    """Whether a workload waits for a place; None if it is over."""
    if workload.status.phase in OVER or workload.status.finished_at is not None:
        return None
    return workload.status.claim is None


def clusters_of(workload: Workload) -> list[str]:
    """The clusters that have a part of it or a copy that is over, or were in its last attempt."""
    status = workload.status
    names = {placement.cluster for placement in status.claim.placements} if status.claim else set()
    names.update(status.succeeded_clusters)
    names.update(cluster for attempt in status.history[-1:] for cluster in attempt.clusters)
    return sorted(names)


def status_of(
    body: JsonObject, workload: Workload, works: Sequence[Work], kind: Kind
) -> JsonObject | None:
    """The status of an object now; None if it stays as it is."""
    status = _status(body, workload, works, kind)
    if status is None or not isinstance(kind, Job):
        return status
    claim = workload.status.claim
    return job_status.follow_status(
        status,
        body.get("status") or {},
        has_failed=workload.status.phase in _ENDED,
        may_be_complete=workload.spec.mode != "Divided" or workload.status.phase == "Succeeded",
        since=claim.decided_at.timestamp() if claim is not None else None,
    )


def _status(
    body: JsonObject, workload: Workload, works: Sequence[Work], kind: Kind
) -> JsonObject | None:
    if is_queued(workload):
        return kind.announce(body, _queued(workload))
    merged = _merged(body, works, kind)
    if workload.status.phase in _ENDED:
        said = kind.read({**body, "status": merged or {}}).phase
        # Some of its copies may be complete, and the one that failed is gone.
        ends = ("Failed",) if workload.spec.mode == "Divided" else ("Succeeded", "Failed")
        return merged if said in ends else kind.announce(body, _ended(workload))
    claim = workload.status.claim
    if merged is None and claim is not None:
        # Its place is known, and nothing is reported from there yet.
        return kind.play(kind.release(body), (), now=claim.decided_at.timestamp())
    return merged


def _merged(body: JsonObject, works: Sequence[Work], kind: Kind) -> JsonObject | None:
    """The statuses that clusters report, merged; None if none does."""
    statuses: dict[str, JsonObject] = {}
    for work in works:
        for at, status in enumerate(_feedback(work)):
            # A second Deployment may run beside the first during a rollout.
            if not at or kind.name == "Deployment":
                statuses[f"{work.spec.cluster}/{at}" if at else work.spec.cluster] = status
    return kind.merge(body, statuses) if statuses else None


def _queued(workload: Workload) -> Announcement:
    status, metadata = workload.status, workload.metadata
    ends = [attempt.ended_at for attempt in status.history if attempt.ended_at is not None]
    since = ends[-1] if ends else metadata.creation_timestamp
    queue = status.queue or workload.spec.queue
    is_held = status.phase == "Held"
    return Announcement(
        phase="Suspended",
        reason="Held" if is_held else "Queued",
        message="it is held" if is_held else f"it waits in queue {queue}",
        at=since.timestamp() if since is not None else 0.0,
    )


def _ended(workload: Workload) -> Announcement:
    status = workload.status
    reason = status.reason or str(status.phase)
    return Announcement(
        phase="Failed",
        reason=reason,
        message=status.message or _english(reason),
        at=status.finished_at.timestamp() if status.finished_at is not None else 0.0,
    )


def _english(reason: str) -> str:
    known = {code.value: code for code in Code}
    return sentence(Reason(code=known[reason])) if reason in known else reason


def _feedback(work: Work) -> Iterator[JsonObject]:
    """The statuses of the objects that run in a cluster, as fed back by its work."""
    for manifest in work.status.manifests:
        for value in manifest.feedback:
            if value.name == STATUS_FEEDBACK and value.type == "Json" and value.value:
                decoded: Any = msgspec.json.decode(value.value)
                if isinstance(decoded, dict):
                    yield decoded
