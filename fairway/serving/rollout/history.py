"""The revisions of a service, numbered as Kubernetes numbers those of a Deployment.

A template that was used before gets the next number instead of its old one, so that the latest
revision always has the highest number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api.rollout import RevisionNote, RolloutStatus


def note_revision(
    history: Sequence[RevisionNote], mark: str, *, now: float, cause: str = "", is_unmarked: bool
) -> tuple[RevisionNote, ...]:
    """The history with a template as its latest revision; unchanged if it is the latest already."""
    if history and history[-1].mark == mark:
        return tuple(history)
    number = max((revision.revision for revision in history), default=0) + 1
    before = next((revision for revision in history if revision.mark == mark), None)
    others = tuple(revision for revision in history if revision.mark != mark)
    if before is not None:
        return (*others, replace(before, revision=number, outcome="", change_cause=cause))
    note = RevisionNote(
        revision=number,
        mark=mark,
        is_unmarked=is_unmarked,
        created_at=datetime.fromtimestamp(now, UTC),
        change_cause=cause[:1024],
    )
    return (*others, note)


def marks_in_use(status: RolloutStatus) -> set[str]:
    """Marks of revisions that run somewhere or are the target or the last good one."""
    marks = {mark for cluster in status.clusters for mark in (cluster.mark, cluster.base) if mark}
    return {status.target, status.stable, *marks}


def prune_history(
    history: Sequence[RevisionNote], *, limit: int, in_use: Collection[str]
) -> tuple[RevisionNote, ...]:
    """The history without the oldest unused revisions beyond a limit."""
    spare = [revision.mark for revision in history if revision.mark not in in_use]
    dropped = set(spare[: max(0, len(spare) - limit)])
    return tuple(revision for revision in history if revision.mark not in dropped)
