"""What is asked of a source of numbers, and how it may fail.

    samples = await source.vector('sum by (cluster) (rate(requests_total[1m]))', at=clock.now())
    number = await value(source, "sum(vllm:num_requests_waiting)", at=clock.now())

A query is text in the source's own language. An answer is a vector: samples with labels, each a
finite number. What is not a number (a division by nothing) and what is infinite is no sample, so
that nobody decides by it. Nothing measured is not zero: who can decide without a number says so.

Who decides by numbers (autoscaling, gates of rollouts) takes `Sources`, which the composition root
makes, and asks for the source at an address; connections are shared by all who use one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One finite number, whose it is, and when it was measured."""

    value: float
    at: float  # seconds since the epoch
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a source is, and as whom it is asked."""

    url: str
    token: str = field(default="", repr=False)  # of a bearer; empty: nobody in particular
    authority: str = ""  # certificates in PEM by which it is believed; empty: the system's own


class MetricsFault(Exception):
    """No number was had."""


class Unreachable(MetricsFault):
    """Nobody answered, or not in time; it may pass."""


class Refused(MetricsFault):
    """The source does not answer this: the query is wrong, or we have no right."""


class NoSample(MetricsFault):
    """The source answered, and has no such number now."""


class SeveralSamples(MetricsFault):
    """One number was wanted, and the query yields several."""


class Source(Protocol):
    """Whoever measures."""

    async def vector(self, query: str, at: float | None = None) -> tuple[Sample, ...]:
        """The samples of a query at a moment, or now; none is an answer. MetricsFault otherwise."""
        ...


class Sources(Protocol):
    """All sources that can be asked."""

    def at(self, address: Address) -> Source:
        """The source at an address; the same one for the same address."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUsage:
    """A pod, what its containers request, and what they were measured to use, in thousandths."""

    name: str
    phase: str = "Running"  # as Kubernetes has it
    is_leaving: bool = False
    is_ready: bool | None = True  # None: nobody has said
    started_at: float | None = None
    ready_changed_at: float = 0.0
    requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # none: not measured
    measured_at: float = 0.0
    window_seconds: float = 0.0


class PodMeter(Protocol):
    """Who measures pods, where they run."""

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        """The pods of a work in a cluster; MetricsFault where nobody there can tell."""
        ...


class NoPodMeter:
    """Of a hub that reaches no cluster for this."""

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        raise Refused(f"what pods in {cluster} use is not measured")


class NoSources:
    """Of a hub that asks nobody."""

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
