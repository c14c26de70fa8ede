"""Fleet policies, as far as they depend on where and how long a workload runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPolicy:
    """A fleet policy, as far as it depends on where and how long a workload runs."""

    name: str
    clusters: frozenset[str] | None = None  # that may be used; None: every cluster
    run_seconds_max: int | None = None
    is_enforced: bool = True  # False: what it does not allow is only reported


def longest_run(policies: Iterable[FleetPolicy]) -> int | None:
    """The longest run that enforced policies allow; None: any."""
    seconds = (policy.run_seconds_max for policy in policies if policy.is_enforced)
    return min((longest for longest in seconds if longest is not None), default=None)
