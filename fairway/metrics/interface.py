"""What a source of metrics can be asked, and how it may fail.

    samples = await source.vector('sum by (cluster) (rate(requests_total[1m]))', at=clock.now())
    number = await value(source, "sum(vllm:num_requests_waiting)", at=clock.now())

A query is text in the source's own language. An answer is a vector: samples with labels, each a
finite number. NaN (a division by zero) and infinity are dropped, so that nothing is decided by
them. No sample is not zero: a caller that can decide without a number must do so explicitly.

Parts that decide by metrics (autoscaling, gates of rollouts) take `Sources`, which the composition
root makes, and ask for the source at an address; all users of a source share its connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One finite number, its labels, and when it was measured."""

    value: float
    at: float  # seconds since the epoch
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one set of labels over time: (seconds since the epoch, value as text)."""

    labels: Mapping[str, str]
    values: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range of time, and how far its samples are apart, in seconds."""

    start: float
    end: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a source is, and the credentials to query it with."""

    url: str
    token: str = field(default="", repr=False)  # bearer token; empty: anonymous
    authority: str = ""  # PEM certificates to trust; empty: the system's own


class MetricsFault(Exception):
    """A query gave no number."""


class Unreachable(MetricsFault):
    """The source did not answer, or not in time; it may recover."""


class Refused(MetricsFault):
    """The source refuses this: the query is wrong, or we have no right."""


class NoSample(MetricsFault):
    """The source answered, and has no such number now."""


class SeveralSamples(MetricsFault):
    """One number was wanted, and the query yields several."""


class Source(Protocol):
    """A source of metrics."""

    async def vector(self, query: str, at: float | None = None) -> tuple[Sample, ...]:
        """The samples of a query at a moment, or now; may be empty. MetricsFault if it fails."""
        ...

    async def series(self, query: str, over: Range) -> tuple[Series, ...]:
        """The samples of a query over a range of time, as the source words them."""
        ...


class Sources(Protocol):
    """All sources that can be queried."""

    def at(self, address: Address) -> Source:
        """The source at an address; the same one for the same address."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUsage:
    """A pod, what its containers request, and their measured usage, in thousandths."""

    name: str
    phase: str = "Running"  # as Kubernetes has it
    is_leaving: bool = False
    is_ready: bool | None = True  # None: not known
    started_at: float | None = None
    ready_changed_at: float = 0.0
    requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # empty: not measured
    measured_at: float = 0.0
    window_seconds: float = 0.0


class PodMeter(Protocol):
    """Measures pods where they run."""

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        """The pods of a work in a cluster; MetricsFault if they cannot be measured."""
        ...


class NoPodMeter:
    """For a hub that cannot measure pods."""

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        raise Refused(f"what pods in {cluster} use is not measured")


class NoSources:
    """For a hub without metric sources."""

    def at(self, address: Address) -> Source:
        raise Refused(f"{address.url} is not asked: this hub has no sources of metrics")


async def value(source: Source, query: str, at: float | None = None) -> float:
    """The one number of a query."""
    samples = await source.vector(query, at)
    if not samples:
        raise NoSample(f"there is no sample for {query}")
    if len(samples) > 1:
        raise SeveralSamples(f"there are {len(samples)} samples, where one is wanted, for {query}")
    return samples[0].value
