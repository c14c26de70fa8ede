"""When what runs is expected to end.

Nobody knows; users give an estimate, a limit, both or neither. Each way to reckon is a function of
the workload, so that a forecast can be made with several of them. What runs longer than reckoned is
expected to go on for as long as it is overdue already: the longer it surprises us, the less is
expected of it soon, and a gang that waits for its nodes looks elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairway.core.model import Workload

DEFAULT_SECONDS: Final = 86_400.0  # where a workload says nothing
NEVER: Final = float("inf")
_OVERDUE_SECONDS_MIN: Final = 60.0

# How long a workload runs in all.
Reckoning = Callable[[Workload], float]


def by_limit(workload: Workload) -> float:
    """The limit, else the estimate, else the default; a service does not end by itself."""
    return _first(workload, workload.limit_seconds, workload.run_seconds)


def by_estimate(workload: Workload) -> float:
    """The estimate, else the limit, else the default; a service does not end by itself."""
    return _first(workload, workload.run_seconds, workload.limit_seconds)


def early(workload: Workload) -> float:
    """Half of what is likely: where jobs end well before their time."""
    return by_estimate(workload) / 2


def late(workload: Workload) -> float:
    """The limit, else twice what is likely."""
    if workload.limit_seconds is not None:
        return workload.limit_seconds
    return by_estimate(workload) * 2


def end_of(workload: Workload, now: float, reckon: Reckoning = by_limit) -> float:
    """When a workload that holds something is expected to end; `NEVER` for services."""
    seconds = reckon(workload)
    started = workload.held.started_at if workload.held is not None else None
    if started is None:
        return now + seconds
    end = started + seconds
    return end if end > now else now + max(_OVERDUE_SECONDS_MIN, now - end)


def _first(workload: Workload, *known: float | None) -> float:
    for seconds in known:
        if seconds is not None:
            return seconds
    return NEVER if workload.mode == "Divided" else DEFAULT_SECONDS
