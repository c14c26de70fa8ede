"""What a ClusterScore and the status of a Scorer should say, and when that is worth a write.

Scores change with every run. An object is written when a score has come, gone or changed, and else
only once half of the time for which a stored score is valid has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import get_args

from msgspec.structs import replace

from fairway.api.meta import Condition
from fairway.api.scores import (
    VALUES_MAX,
    ClusterScoreSpec,
    Scorer,
    ScorerFault,
    ScorerSpec,
    ScorerStatus,
    ScoreValue,
    Source,
    source_of,
    validity,
)
from fairway.controllers.scores.readings import Key, Reading
from fairway.controllers.statuses import with_condition

_SOURCES = frozenset(get_args(Source))
_FORGOTTEN_AFTER = timedelta(hours=1)
_SUMMARY_MAX = 120
_FAULTS_MAX = 10
_MESSAGE_MAX = 1024
_RUN_NOTED_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the last run of a scorer yielded."""

    at: float
    readings: Mapping[Key, Reading]
    faults: Mapping[str, str] = field(default_factory=dict)  # by cluster
    fault: str = ""  # of the whole run


def values_of(name: str, spec: ScorerSpec, cluster: str, run: Run) -> tuple[ScoreValue, ...]:
    """The scores of one cluster by the last run that had any."""
    return tuple(
        ScoreValue(
            scorer=name,
            item=item,
            value=reading.score,
            measured=f"{reading.measured:.6g}",
            measured_at=_moment(reading.at),
            source=source_of(spec),
            samples=reading.samples,
            valid_until=_moment(run.at) + validity(spec),
        )
        for (place, item), reading in run.readings.items()
        if place == cluster
    )


def merged(
    stored: ClusterScoreSpec,
    fresh: Mapping[str, Sequence[ScoreValue]],
    known: Collection[str],
    now: float,
) -> ClusterScoreSpec:
    """The scores of a cluster: `fresh` ones by scorer, and those stored.

    Of a `known` scorer that has not run since the hub started, and of what others wrote, what is
    stored stays. The scores of a Scorer that was deleted go, and so does what expired long ago.
    """
    oldest = _moment(now) - _FORGOTTEN_AFTER
    kept = (
        value
        for value in stored.values
        if value.scorer not in fresh
        and (value.scorer in known or value.source not in _SOURCES)
        and (value.valid_until is None or value.valid_until > oldest)
    )
    values = sorted(
        (*kept, *(value for values in fresh.values() for value in values)),
        key=lambda value: (value.scorer not in known, value.scorer, value.item),
    )[:VALUES_MAX]
    return ClusterScoreSpec(summary=_summary(values), values=tuple(values))


def _summary(values: Iterable[ScoreValue]) -> str:
    words = (
        f"{value.scorer}{f'/{value.item}' if value.item else ''} {value.value}" for value in values
    )
    text = ", ".join(words)
    return text if len(text) <= _SUMMARY_MAX else f"{text[: _SUMMARY_MAX - 1]}…"


def is_due(stored: ClusterScoreSpec, wanted: ClusterScoreSpec, now: float) -> bool:
    """Whether scores are to be written now."""
    if stored == wanted:
        return False
    scores = {(value.scorer, value.item): value.value for value in wanted.values}
    if scores != {(value.scorer, value.item): value.value for value in stored.values}:
        return True
    return any(_is_half_over(value, now) for value in stored.values)


def _is_half_over(value: ScoreValue, now: float) -> bool:
    if value.valid_until is None or value.measured_at is None:
        return False
    whole = (value.valid_until - value.measured_at).total_seconds()
    return value.valid_until.timestamp() - now < whole / 2


def status_of(scorer: Scorer, run: Run, now: float) -> ScorerStatus:
    """The status of a scorer after a run."""
    scored = {cluster for cluster, _ in run.readings}
    failed = sorted(run.faults.items())
    faults = tuple(
        ScorerFault(cluster=cluster, message=message[:_MESSAGE_MAX])
        for cluster, message in failed[:_FAULTS_MAX]
    )
    reason, message = _verdict(run, len(scored), len(failed))
    condition = Condition(
        type="Working",
        status="True" if reason == "Measured" else "False",
        reason=reason,
        message=message[:_MESSAGE_MAX],
        observed_generation=scorer.metadata.generation,
        last_transition_time=_moment(int(now)),
    )
    return replace(
        scorer.status,
        observed_generation=scorer.metadata.generation,
        source=source_of(scorer.spec),
        clusters=len(scored),
        last_run_at=_moment(int(run.at)),
        faults=faults,
        fault=message[:_MESSAGE_MAX],
        conditions=with_condition(scorer.status.conditions, condition),
    )


def _verdict(run: Run, scored: int, failed: int) -> tuple[str, str]:
    if run.fault:
        return "Failed", run.fault
    if failed:
        return "FailedInClusters", f"{failed} of {failed + scored} clusters have no new score"
    if not scored:
        return "NoValues", "the source has no value for a cluster"
    return "Measured", ""


def is_status_due(before: ScorerStatus, after: ScorerStatus) -> bool:
    """Whether a status is to be written: times alone at most once a minute."""
    if before.last_run_at is None or after.last_run_at is None:
        return before != after
    return (
        replace(before, last_run_at=after.last_run_at) != after
        or after.last_run_at - before.last_run_at >= _RUN_NOTED_AFTER
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
