"""Scores of clusters as the core's plain values."""

from __future__ import annotations

from fairway.api.scores import ClusterScore
from fairway.core.model import MeasuredScore, MeasuredScores


def scores_of(score: ClusterScore) -> MeasuredScores:
    return {
        (value.scorer, value.item): MeasuredScore(
            value.value,
            None if value.valid_until is None else value.valid_until.timestamp(),
            None if value.measured_at is None else value.measured_at.timestamp(),
            value.measured,
            value.samples,
        )
        for value in score.spec.values
    }
