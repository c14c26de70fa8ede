"""What a decision on replicas is made from, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Milli = int  # thousandths: what HPA counts in
PodPhase = Literal["Pending", "Running", "Succeeded", "Failed"]
CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """A pod of the service, as last reported."""

    name: str  # unique over the fleet
    phase: PodPhase = "Running"
    is_leaving: bool = False
    is_ready: bool | None = True  # None: not known
    started_at: float | None = None
    ready_changed_at: float = 0.0  # when it became ready, or unready
    is_reached: bool = True  # whether its cluster reports now
    # Requests by container and resource.
    requests: Mapping[str, Mapping[str, Milli]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of one pod."""

    value: Milli
    at: float = 0.0
    window_seconds: float = 0.0  # over which it was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPods:
    """A reading of each pod that was measured."""

    by_pod: Mapping[str, Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAll:
    """A reading of the service as a whole, or of something outside it."""

    value: Milli


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRead:
    """There is no reading, and why."""

    why: str
    is_absent: bool = False  # the source answered, and has no such number


Reading = OfPods | OfAll | NotRead


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Percent of what pods request, on average."""

    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageValue:
    """An amount per pod, on average."""

    value: Milli


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An amount in total."""

    value: Milli


Target = Utilization | AverageValue | Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is measured, its target, and its reading."""

    name: str  # for people
    failure: str  # reason of the condition if it cannot be read, such as FailedGetPodsMetric
    target: Target
    reading: Reading
    resource: str = ""  # of resource metrics; for the processor, pod readiness matters
    container: str = ""  # empty: the whole pod
    activation: Milli | None = None  # above it the service is active; None: says nothing about that


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most this many pods, or percent of them, per period."""

    type: Literal["Pods", "Percent"]
    value: int
    period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How fast the count may change in one direction, and how long it is stabilised."""

    stabilization_seconds: int
    rates: tuple[Rate, ...]
    select: Literal["Max", "Min", "Disabled"] = "Max"
    tolerance: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many replicas there may be, and how the count may change."""

    least: int
    most: int
    # None: HPA's default behaviour; it remembers no rates.
    up: Rules | None = None
    down: Rules | None = None
    down_stabilization_seconds: int = 300  # without rules
    tolerance: float = 0.1  # without rules
    idle_seconds: int = 0  # how long the service must be idle before the count is zero
    pods_per_replica: int = 1
    cpu_initialization_seconds: float = 300.0
    initial_readiness_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """How many replicas metrics asked for at one time."""

    at: float
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleEvent:
    """A change of the count that was made; negative: fewer replicas."""

    at: float
    change: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a decision remembers of earlier ones."""

    recommendations: tuple[Recommendation, ...] = ()
    events: tuple[ScaleEvent, ...] = ()
    idle_since: float | None = None
    is_scaled_to_zero: bool = False  # by us, not by another client


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceObservation:
    """A service at one moment."""

    now: float
    wanted: int  # replicas that are asked for
    placed: int  # replicas that exist
    pods: tuple[PodFact, ...] = ()
    metrics: tuple[Metric, ...] = ()


Aspect = Literal["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One aspect of a decision, as reported in a condition."""

    type: Aspect
    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The current value of a metric; neither if it was not read."""

    value: Milli | None = None
    average: Milli | None = None
    utilization: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDecision:
    """How many replicas there should be, and why."""

    replicas: int
    findings: tuple[Finding, ...]
    currents: tuple[Current, ...]  # one for each metric; none if no metric was asked
    memory: Memory
    why: str = ""  # of a change
