"""Scores of clusters as the core's plain values."""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.scores import ClusterScore
from fairway.core.measured import MeasuredScore, MeasuredScores


def with_scores(
    known: Mapping[str, MeasuredScores], cluster: str, score: ClusterScore | None
) -> dict[str, MeasuredScores]:
    """The scores of all clusters, with those that one has now; None: it has none."""
    others = {name: values for name, values in known.items() if name != cluster}
    return others if score is None else {**others, cluster: scores_of(score)}


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
