"""Measured values to scores: combined by cluster and item, smoothed, scaled and cut off.

What is smoothed is the value before it is scaled: s' = s + (x - s) * (1 - 2^(-t / half-life)),
where t is the time since the last run that had a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairway.api.amounts import NANO
from fairway.api.scores import Scale, ScorerSpec
from fairway.api.selectors import matches, requirements
from fairway.metrics.interface import Sample

ITEM_CHARACTERS_MAX = 253
_BEST, _WORST = 100, -100

ITEM = "item"  # the label of stated items
Key = tuple[str, str]  # cluster, item


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one run says of a cluster and item."""

    measured: float  # combined, not smoothed or scaled
    value: float  # smoothed
    score: int
    samples: int
    at: float  # of the run


def read(
    spec: ScorerSpec,
    samples: Iterable[tuple[str, Sample]],
    *,
    clusters: Collection[str],
    before: Mapping[Key, Reading],
    now: float,
) -> dict[Key, Reading]:
    """The readings of a run, from its samples with their clusters.

    `clusters` get scores; samples of others do not count. `before` are the last readings.
    """
    tests = requirements(spec.samples)
    gathered: dict[Key, list[Sample]] = {}
    for cluster, sample in samples:
        if cluster in clusters and matches(tests, sample.labels):
            gathered.setdefault((cluster, item_of(spec, sample)), []).append(sample)
    return {key: _reading(spec, gathered[key], before.get(key), now) for key in sorted(gathered)}


def item_of(spec: ScorerSpec, sample: Sample) -> str:
    """The item of a sample; a label that it lacks is left empty."""
    has_items = spec.table is not None or spec.expression is not None
    labels = spec.item_labels or ((ITEM,) if has_items else ())
    return "/".join(sample.labels.get(label, "") for label in labels)[:ITEM_CHARACTERS_MAX]


def _reading(
    spec: ScorerSpec, samples: Sequence[Sample], before: Reading | None, now: float
) -> Reading:
    measured = _COMBINED[spec.combine]([sample.value for sample in samples])
    value = _smoothed(measured, before, spec.smoothing_seconds, now)
    return Reading(
        measured=measured,
        value=value,
        score=scaled(value, spec.scale),
        samples=len(samples),
        at=now,
    )


def _smoothed(measured: float, before: Reading | None, half_life: float, now: float) -> float:
    if before is None or not half_life:
        return measured
    fresh = 1 - 2 ** (-max(now - before.at, 0.0) / half_life)
    smoothed = before.value + (measured - before.value) * fresh
    return smoothed if math.isfinite(smoothed) else measured


def scaled(value: float, scale: Scale | None) -> int:
    """A value as a score, from -100 to 100."""
    if scale is None:
        return round(max(_WORST, min(_BEST, value)))
    worst, best = scale.worst.nanos / NANO, scale.best.nanos / NANO
    if worst == best:
        return _BEST if value >= best else _WORST
    part = (value - worst) / (best - worst)
    return round(_WORST + (_BEST - _WORST) * max(0.0, min(1.0, part)))


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_COMBINED: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Average": _average,
    "Sum": math.fsum,
    "Min": min,
    "Max": max,
}
