"""What agents said of the works that they were sent."""

from __future__ import annotations

from fairway.api.report import WorkState
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.adoption import refusal_of
from fairway.view.workloads import last_attempt


def is_refused(work: Work) -> bool:
    """Whether its agent refused the current work because it had seen a higher term.

    Works are written one by one while terms advance. An agent that was away, or busy with this
    work, may see a work of a later term first; this one must then be written in the current term.
    """
    return refusal_of(work) == "TermTooLow"


def is_not_there(work: Work) -> bool:
    """Whether its agent refused the current work and has nothing of it: it may have forgotten it.

    A work that an agent brought back is refused where nothing of it is left; one of an earlier term
    may be refused by an agent that has forgotten it.
    """
    return refusal_of(work) in ("NotHere", "TermTooLow")


def is_outdated(work: Work) -> bool:
    """Whether its agent refused the current work because it has a later attempt.

    The hub was restored to the time of an earlier attempt.
    """
    return refusal_of(work) == "AttemptTooLow"


def is_past(work: Work, state: WorkState | None, workload: Workload | None) -> bool:
    """Whether a work of a restored hub is of an earlier attempt than its agent has.

    Or of an earlier one than its workload, once that has taken over what runs elsewhere, while the
    agent refuses it and reports nothing of it. An agent that then lost its disk would start it.
    """
    if state is not None:
        return state.attempt > work.spec.attempt
    last = last_attempt(workload.status) if workload is not None else 0
    return work.spec.attempt < last and is_not_there(work)
