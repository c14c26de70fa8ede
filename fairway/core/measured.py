"""Scores of clusters that are measured elsewhere, and only looked up by the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class MeasuredScore(NamedTuple):
    """A score of a cluster that is not computed by the core."""

    value: int
    valid_until: float | None = None  # None: it stays valid
    measured_at: float | None = None
    measured: str = ""  # before it was scaled, for display
    samples: int = 0  # how many were combined


# Scores of one cluster, by scorer and item.
MeasuredScores = Mapping[tuple[str, str], MeasuredScore]
