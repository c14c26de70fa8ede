"""Works that agents made and the hub did not decide: how long they stay.

They count for nothing. An agent that runs one may be honest: its hub lost the proof with all else
it knew. So a work stays as long as its agent reports that it runs, for people to see; its removal
would stop nothing. A work that its agent refused is not what runs there, and may be in the place of
what the agent is to bring back.
"""

from __future__ import annotations

from fairway.api.report import WorkState
from fairway.api.work import Work
from fairway.controllers.adoption import refusal_of

NEVER = float("inf")
BRING_BACK_SECONDS = 60.0  # after which an agent has reported what it has brought back
_ENDED = ("Succeeded", "Failed", "Gone")


def stays_until(work: Work, state: WorkState | None) -> float:
    """When such a work is deleted."""
    if refusal_of(work):
        return 0.0
    if state is not None:
        return 0.0 if state.phase in _ENDED else NEVER
    created_at = work.metadata.creation_timestamp
    return created_at.timestamp() + BRING_BACK_SECONDS if created_at is not None else 0.0
