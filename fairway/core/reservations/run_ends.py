"""When running workloads are expected to end.

Users give an estimate, a limit, both or neither. Each way to estimate the run time is a function of
the workload, so that a forecast can be made with several. A workload that is overdue is expected to
run for as long again as it is overdue: its expected end moves away, and a gang that waits for its
nodes looks elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairway.core.model import Workload

DEFAULT_SECONDS: Final = 86_400.0  # for a workload with neither an estimate nor a limit
NEVER: Final = float("inf")
_OVERDUE_SECONDS_MIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reckoning:
    """How long workloads run in total, and the share of the remaining time that they use."""

    seconds: Callable[[Workload], float]
    share: float = 1.0
    share_of_limit: float = 1.0  # the share for a workload without an estimate

    def share_for(self, workload: Workload) -> float:
        return self.share_of_limit if workload.run_seconds is None else self.share

    def from_now(self, workload: Workload) -> float:
        """How long a workload that starts now will run."""
        return self.seconds(workload) * self.share_for(workload)


def by_limit(workload: Workload) -> float:
    """The limit, else the estimate, else the default, which for a service is `NEVER`."""
    return _first(workload, workload.limit_seconds, workload.run_seconds)


def by_estimate(workload: Workload) -> float:
    """The estimate, else the limit, else the default, which for a service is `NEVER`."""
    return _first(workload, workload.run_seconds, workload.limit_seconds)


def at_the_latest(workload: Workload) -> float:
    """The limit, else twice the likely run time."""
    if workload.limit_seconds is not None:
        return workload.limit_seconds
    return by_estimate(workload) * 2


LIMITS: Final = Reckoning(by_limit)
LIKELY: Final = Reckoning(by_estimate)
# Jobs often end well before their estimates, and limits are far off: in a trace of 17,898 jobs of a
# grid the median run time is 7 % of the limit, the upper quartile 34 %.
EARLY: Final = Reckoning(by_estimate, share=0.5, share_of_limit=0.1)
LATE: Final = Reckoning(at_the_latest)


def end_of(workload: Workload, now: float, reckoning: Reckoning = LIMITS) -> float:
    """When a workload that holds a claim is expected to end; for a service usually `NEVER`."""
    seconds = reckoning.seconds(workload)
    started = workload.held.started_at if workload.held is not None else None
    if started is None:
        return now + reckoning.from_now(workload)
    left = started + seconds - now
    if left <= 0:
        left = max(_OVERDUE_SECONDS_MIN, -left)
    return now + left * reckoning.share_for(workload)


def has_no_run_time(workload: Workload) -> bool:
    """Whether a workload that will end gives neither an estimate nor a limit."""
    is_given = workload.run_seconds is not None or workload.limit_seconds is not None
    return not is_given and workload.mode != "Divided"


def _first(workload: Workload, *known: float | None) -> float:
    for seconds in known:
        if seconds is not None:
            return seconds
    return NEVER if workload.mode == "Divided" else DEFAULT_SECONDS
