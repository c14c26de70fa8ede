"""The next action for one work: a pure function of the desired and the observed state.

Only a tombstone removes a live work. A work that vanished from the hub before it ended is put back
there, since an empty or restored hub must kill nothing. So is one that has ended, unless the hub
deleted it: a restored hub must not run it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fairway.agent.drivers.interface import WorkSeen
from fairway.agent.memory import Kept
from fairway.api.names import ADOPTED
from fairway.api.work import Work

Duty = Literal[
    "Nothing",
    "Apply",
    "Stop",
    "StopSince",  # the agent stops it because the hub has been silent too long
    "Remove",
    "Gone",  # confirm that nothing is left
    "PutBack",
    "Forget",
]
TermCheck = Literal["Accepted", "Known", "TermTooLow", "AttemptTooLow", "NotHere"]

_LIVE = ("Pending", "Bound", "Ready")
HUB_SILENT = "HubSilent"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """Everything that decides the next action for a work."""

    kept: Kept
    seen: WorkSeen | None
    is_on_hub: bool
    is_dismissed: bool = False  # the hub deleted it, rather than lost it
    is_applied: bool  # in its current form, by this run of the agent
    is_frozen: bool = False  # its conditions say that it is complete
    silent_seconds: float = 0.0


def verdict(work: Work, kept: Kept | None, term: int, *, is_here: bool = False) -> TermCheck:
    """Whether a work from the hub is accepted; a work of an earlier leader is refused.

    So is one that an agent brought back and that is not here: only the hub can start something.
    """
    if kept is not None and kept.work.spec == work.spec:
        return "Known"
    if is_here and _is_brought_back(work):
        return "Accepted"  # whatever the term: no leader wrote it
    if work.spec.term < term:
        return "TermTooLow"
    if kept is not None and work.spec.attempt < kept.work.spec.attempt:
        return "AttemptTooLow"
    if _is_brought_back(work):
        return "NotHere"
    return "Accepted"


def _is_brought_back(work: Work) -> bool:
    return ADOPTED in work.metadata.labels and not work.spec.tombstone


def dismisses(deleted: Work, kept: Kept) -> bool:
    """Whether the hub deletes what the agent has of a work, rather than what is in its place.

    A later attempt that seems to be brought back, while this one is here, is nothing of the agent.
    """
    attempt, own = deleted.spec.attempt, kept.work.spec.attempt
    return attempt == own or (attempt > own and not _is_brought_back(deleted))


def goes_on(work: Work, kept: Kept | None) -> bool:
    """Whether an ended work has more to do in the same attempt: its tasks have changed."""
    return (
        kept is not None
        and kept.ended is not None
        and kept.ended.phase in ("Succeeded", "Failed")
        and not work.spec.tombstone
        and work.spec.tasks != kept.work.spec.tasks
    )


def duty(standing: WorkFacts) -> Duty:
    """The next action."""
    spec, ended = standing.kept.work.spec, standing.kept.ended
    if not standing.is_on_hub and not spec.tombstone:
        if ended is None or not standing.is_dismissed:
            return "PutBack"
        return "Remove" if standing.seen is not None else "Forget"
    if spec.tombstone:
        return _bury(standing)
    if ended is not None:
        return "Stop" if ended.reason == HUB_SILENT and has_live_pods(standing.seen) else "Nothing"
    if spec.desired == "Stop":
        return "Stop" if has_live_pods(standing.seen) else "Nothing"
    limit = spec.stop_when_silent_seconds
    if limit is not None and standing.silent_seconds >= limit:
        return "StopSince"
    if standing.is_applied or standing.is_frozen:
        return "Nothing"
    return "Apply"


def _bury(standing: WorkFacts) -> Duty:
    if standing.seen is not None:
        if has_live_pods(standing.seen):
            return "Stop"
        is_ending = any(pod.phase == "Terminating" for pod in standing.seen.pods)
        return "Nothing" if is_ending else "Remove"
    if not standing.is_on_hub:
        return "Forget"
    ended = standing.kept.ended
    return "Nothing" if ended is not None and ended.phase == "Gone" else "Gone"


def has_live_pods(seen: WorkSeen | None) -> bool:
    return seen is not None and any(pod.phase in _LIVE for pod in seen.pods)
