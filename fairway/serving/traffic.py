"""How the traffic of a service is shared by its clusters: by ready replicas and their speed.

A weight is in thousandths of the whole, so that a change of one replica among hundreds still shows.
The largest remainders are rounded up, ties by name. A cluster with ready replicas gets at least one
thousandth, since a weight of zero would mean that it is not to be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

WHOLE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A cluster with a part of the service."""

    cluster: str
    ready: int  # replicas
    speed: Fraction = Fraction(1)  # of one replica, relative to the reference


def weights(backends: Sequence[Backend]) -> dict[str, int]:
    """The weight of each cluster; all are zero if nothing is ready."""
    shares = {backend.cluster: backend.ready * backend.speed for backend in backends}
    total = sum(shares.values())
    if not total:
        return dict.fromkeys(sorted(shares), 0)
    exact = {name: share * WHOLE / total for name, share in shares.items()}
    result = {name: int(exact[name]) for name in sorted(exact)}
    left = WHOLE - sum(result.values())
    for name in sorted(result, key=lambda name: (result[name] - exact[name], name))[:left]:
        result[name] += 1
    for name in [value for value, weight in result.items() if shares[value] and not weight]:
        result[name] = 1
        result[max(result, key=lambda other: (result[other], other))] -= 1
    return result


def differs(before: dict[str, int], after: dict[str, int], *, least: int) -> bool:
    """Whether weights have changed by enough to be written; to or from zero always is."""
    return set(before) != set(after) or any(
        abs(before[name] - after[name]) >= least or (before[name] == 0) != (after[name] == 0)
        for name in after
    )
