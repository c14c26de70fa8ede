"""FleetAutoscaler: how many replicas a service has, by its load, over all clusters.

Shapes and words are those of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) wherever it has
them, so that one can be copied over field by field.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Count,
    Label,
    Name,
    ResourceName,
    Rule,
    Seconds,
    Text,
    doc,
    limits,
    rules,
)
from fairway.api.fleet import PrometheusServer
from fairway.api.meta import Conditions, LabelSelector, Object, Part
from fairway.api.serving import SERVING_GROUP, serving_api_version

_FIELD = "[0-9A-Za-z*?,/-]+"
_MACRO = "@(hourly|daily|midnight|weekly|monthly|yearly|annually)"
_CRON = f"^({_MACRO}|({_FIELD} +){{4}}{_FIELD})$"
_Query = Annotated[str, limits(max_length=4096)]
_MetricName = Annotated[
    str, limits(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", min_length=1, max_length=253)
]
_Positive = Annotated[int, limits(minimum=1, maximum=2_147_483_647)]


class ScaleTarget(Part, frozen=True, kw_only=True):
    """The service: a Workload, or the native object for which one stands."""

    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = (
        "fairway.dev/v1alpha1"
    )
    kind: Annotated[str, doc("Kind of the object.", min_length=1, max_length=63)] = "Workload"
    name: Annotated[Name, doc("Name of the object, in the same namespace.")]


@rules(
    Rule(
        "self.type == 'Utilization' ? has(self.averageUtilization) && !has(self.averageValue) && "
        "!has(self.value) : self.type == 'AverageValue' ? has(self.averageValue) && "
        "!has(self.averageUtilization) && !has(self.value) : has(self.value) && "
        "!has(self.averageValue) && !has(self.averageUtilization)",
        "the number that the type names is needed, and no other",
    )
)
class MetricTarget(Part, frozen=True, kw_only=True):
    """What a metric is to be."""

    type: Annotated[
        Literal["Utilization", "AverageValue", "Value"],
        doc("Percent of what pods request; an amount for each replica; or an amount in all."),
    ]
    average_utilization: Annotated[
        _Positive | None, doc("Percent of what pods request, on average.")
    ] = None
    average_value: Annotated[
        Quantity | None, doc("Amount for each pod, or for each replica of a total.")
    ] = None
    value: Annotated[Quantity | None, doc("Amount in all.")] = None


class MetricIdentifier(Part, frozen=True, kw_only=True):
    """Which series of a Prometheus."""

    name: Annotated[_MetricName, doc("Name of the metric.")]
    selector: Annotated[LabelSelector | None, doc("Labels that its series have.")] = None
    query: Annotated[
        _Query, doc("PromQL to ask instead; empty: the series of this name, added up.")
    ] = ""


class ResourceMetric(Part, frozen=True, kw_only=True):
    """What pods use of a resource, as their clusters measure it."""

    name: Annotated[ResourceName, doc("The resource, such as cpu.")]
    target: Annotated[MetricTarget, doc("What it is to be: Utilization or AverageValue.")]


class ContainerResourceMetric(Part, frozen=True, kw_only=True):
    """What one container of each pod uses of a resource."""

    name: Annotated[ResourceName, doc("The resource, such as cpu.")]
    container: Annotated[Label, doc("Name of the container.")]
    target: Annotated[MetricTarget, doc("What it is to be: Utilization or AverageValue.")]


class PodsMetric(Part, frozen=True, kw_only=True):
    """A number that each pod has; series are told apart by the label `pod`."""

    metric: Annotated[MetricIdentifier, doc("Which number.")]
    target: Annotated[MetricTarget, doc("What it is to be: AverageValue.")]


class DescribedObject(Part, frozen=True, kw_only=True):
    """An object of the same namespace that a number is about."""

    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the object.", pattern="^[A-Za-z]+$", max_length=63)]
    name: Annotated[Name, doc("Name of the object.")]


class ObjectMetric(Part, frozen=True, kw_only=True):
    """A number about one object; series have a label of its kind in lower case, with its name."""

    described_object: Annotated[DescribedObject, doc("What it is about.")]
    metric: Annotated[MetricIdentifier, doc("Which number.")]
    target: Annotated[MetricTarget, doc("What it is to be: Value or AverageValue.")]
    activation_value: Annotated[
        Quantity, doc("Above this somebody is active, for scaling to and from zero.")
    ] = Quantity(0)


class ExternalMetric(Part, frozen=True, kw_only=True):
    """A number about anything, such as the length of a queue elsewhere."""

    metric: Annotated[MetricIdentifier, doc("Which number.")]
    target: Annotated[MetricTarget, doc("What it is to be: Value or AverageValue.")]
    activation_value: Annotated[
        Quantity, doc("Above this somebody is active, for scaling to and from zero.")
    ] = Quantity(0)


@rules(
    Rule(
        "self.engine != 'TGI' || self.signal != 'KVCacheUse'",
        "TGI does not tell how much of its key-value cache is in use",
        ".signal",
    ),
    Rule(
        "self.engine != 'TGI' || !has(self.model) || self.model == ''",
        "series of TGI do not name the model",
        ".model",
    ),
)
class ServingMetric(Part, frozen=True, kw_only=True):
    """A number by which a model server says how busy it is."""

    engine: Annotated[
        Literal["vLLM", "SGLang", "TGI", "Triton"], doc("The model server, whose metrics it reads.")
    ]
    signal: Annotated[
        Literal["QueueLength", "TokensPerSecond", "KVCacheUse", "TimeToFirstToken"],
        doc(
            "Requests that wait; tokens generated in a second; share of the key-value cache in "
            "use; or seconds to the first token, of 95 in 100 requests."
        ),
    ]
    target: Annotated[
        Quantity,
        doc("What it is to be: of QueueLength and TokensPerSecond for each replica, else overall."),
    ]
    model: Annotated[str, doc("Only series of this model; empty: all.", max_length=253)] = ""
    selector: Annotated[
        LabelSelector | None,
        doc(
            "Labels of its series; unset: pods of the namespace whose names begin as the object's."
        ),
    ] = None
    activation_value: Annotated[
        Quantity, doc("Above this somebody is active, for scaling to and from zero.")
    ] = Quantity(0)


def _needs(name: str) -> Rule:
    field_name = name[0].lower() + name[1:]
    return Rule(
        f"(self.type == '{name}') == has(self.{field_name})",
        f"{field_name} is needed with type: {name}, and refused otherwise",
        f".{field_name}",
    )


def _target(field_name: str, *types: str) -> Rule:
    listed = ", ".join(f"'{type_}'" for type_ in types)
    return Rule(
        f"!has(self.{field_name}) || self.{field_name}.target.type in [{listed}]",
        f"the target of {field_name} is of type {' or '.join(types)}",
        f".{field_name}",
    )


@rules(
    _needs("Resource"),
    _needs("ContainerResource"),
    _needs("Pods"),
    _needs("Object"),
    _needs("External"),
    _needs("Serving"),
    _target("resource", "Utilization", "AverageValue"),
    _target("containerResource", "Utilization", "AverageValue"),
    _target("pods", "AverageValue"),
    _target("object", "Value", "AverageValue"),
    _target("external", "Value", "AverageValue"),
)
class Metric(Part, frozen=True, kw_only=True):
    """One number that the count follows; of several the highest count holds."""

    type: Annotated[
        Literal["Resource", "ContainerResource", "Pods", "Object", "External", "Serving"],
        doc("What sort of number it is."),
    ]
    resource: Annotated[ResourceMetric | None, doc("What pods use of a resource.")] = None
    container_resource: Annotated[
        ContainerResourceMetric | None, doc("What a container of each pod uses.")
    ] = None
    pods: Annotated[PodsMetric | None, doc("A number that each pod has.")] = None
    object: Annotated[ObjectMetric | None, doc("A number about one object.")] = None
    external: Annotated[ExternalMetric | None, doc("A number about anything.")] = None
    serving: Annotated[ServingMetric | None, doc("A number of a model server.")] = None


class ScalingPolicy(Part, frozen=True, kw_only=True):
    """How much the count may change in a period."""

    type: Annotated[Literal["Pods", "Percent"], doc("Whether replicas or percent are counted.")]
    value: Annotated[_Positive, doc("At most so many.")]
    period_seconds: Annotated[
        int, doc("The period that is looked back at.", minimum=1, maximum=1800)
    ]


class ScalingRules(Part, frozen=True, kw_only=True):
    """How the count changes in one direction."""

    stabilization_window_seconds: Annotated[
        int | None,
        doc(
            "For how long past recommendations hold it back; unset: 0 upwards, 300 downwards.",
            minimum=0,
            maximum=3600,
        ),
    ] = None
    select_policy: Annotated[
        Literal["Max", "Min", "Disabled"],
        doc("Whether the policy that changes most or least holds, or it never changes so."),
    ] = "Max"
    policies: Annotated[
        tuple[ScalingPolicy, ...],
        doc(
            "How fast it may change; none: in 15 s, 4 or 100% upwards and 100% downwards.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    tolerance: Annotated[
        Quantity | None,
        doc("Difference from the target, as a share of it, that changes nothing; unset: 0.1."),
    ] = None


class ScalingBehavior(Part, frozen=True, kw_only=True):
    """How the count changes upwards and downwards."""

    scale_up: Annotated[ScalingRules, doc("How it rises.")] = ScalingRules()
    scale_down: Annotated[ScalingRules, doc("How it falls.")] = ScalingRules()


@rules(
    Rule(
        "self.minReplicas <= self.maxReplicas",
        "minReplicas must not exceed maxReplicas",
        ".minReplicas",
    )
)
class Schedule(Part, frozen=True, kw_only=True):
    """Other limits, from the moments that a cron expression names until another schedule is due."""

    name: Annotated[Label, doc("Name of the schedule.")]
    cron: Annotated[
        str,
        doc(
            "When it is due: minute, hour, day of month, month, day of week; or @daily and such.",
            pattern=_CRON,
            max_length=256,
        ),
    ]
    time_zone: Annotated[
        str,
        doc(
            "Time zone of the cron expression, such as Asia/Shanghai.",
            pattern=r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,3}$",
            max_length=64,
        ),
    ] = "UTC"
    min_replicas: Annotated[Count, doc("Fewest replicas from then on.")]
    max_replicas: Annotated[Count, doc("Most replicas from then on.")]


class ScaleToZero(Part, frozen=True, kw_only=True):
    """When a service that may have no replicas has none."""

    idle_seconds: Annotated[
        Seconds, doc("How long nobody must have been active before there are none.")
    ] = 300


@rules(
    Rule(
        "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
        "minReplicas must not exceed maxReplicas",
        ".minReplicas",
    ),
    Rule(
        "((!has(self.minReplicas) || self.minReplicas > 0) && (!has(self.schedules) || "
        "self.schedules.all(one, one.minReplicas > 0))) || (has(self.metrics) && "
        "self.metrics.exists(one, one.type in ['Object', 'External', 'Serving']))",
        "zero replicas need a metric of type Object, External or Serving that tells who is active",
        ".minReplicas",
    ),
)
class FleetAutoscalerSpec(Part, frozen=True, kw_only=True):
    """What is scaled, between which limits, by which numbers, and how fast."""

    target: Annotated[ScaleTarget, doc("The service.")]
    min_replicas: Annotated[
        Count, doc("Fewest replicas; 0 lets it have none while nobody is active.")
    ] = 1
    max_replicas: Annotated[Count, doc("Most replicas.", minimum=1)]
    metrics: Annotated[
        tuple[Metric, ...],
        doc(
            "The numbers that the count follows; none: 80% of the processor that pods request.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    behavior: Annotated[
        ScalingBehavior | None,
        doc("How fast the count changes; unset: at most twice as many at once, or 4."),
    ] = None
    schedules: Annotated[
        tuple[Schedule, ...],
        doc("Other limits at other times.", max_items=32, list_type="map", list_map_keys=["name"]),
    ] = ()
    scale_to_zero: Annotated[ScaleToZero, doc("When there are no replicas at all.")] = ScaleToZero()
    prometheus: Annotated[
        PrometheusServer | None,
        doc("Whom to ask instead of the fleet's Prometheus, where the fleet allows that."),
    ] = None
    take_over: Annotated[
        bool,
        doc(
            "Whether an autoscaler that the object has already gives way: a "
            "HorizontalPodAutoscaler on the hub is deleted, KServe's own is switched off. "
            "Otherwise nothing is scaled, and a condition says why."
        ),
    ] = False


class CurrentMetric(Part, frozen=True, kw_only=True):
    """What one metric was last found to be; no number where it could not be read."""

    type: Annotated[str, doc("What sort of number it is.", max_length=32)]
    name: Annotated[str, doc("Which number it is.", max_length=512)]
    average_utilization: Annotated[int | None, doc("Percent of requests, on average.")] = None
    average_value: Annotated[Quantity | None, doc("For each pod or replica.")] = None
    value: Annotated[Quantity | None, doc("In all.")] = None


class ScaleChange(Part, frozen=True, kw_only=True):
    """A change of the count; rates look back at them."""

    at: Annotated[datetime, doc("When it was made.")]
    change: Annotated[int, doc("By how much; negative where replicas went.")]


class FleetAutoscalerStatus(Part, frozen=True, kw_only=True):
    """What was last decided, and from what."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    current_replicas: Annotated[Count, doc("Replicas that were asked for before.")] = 0
    desired_replicas: Annotated[Count, doc("Replicas that are asked for.")] = 0
    min_replicas: Annotated[Count, doc("Fewest replicas now, by the schedule that holds.")] = 0
    max_replicas: Annotated[Count, doc("Most replicas now.")] = 0
    schedule: Annotated[str, doc("The schedule that holds; empty: none.", max_length=63)] = ""
    last_scale_time: Annotated[datetime | None, doc("When the count last changed.")] = None
    last_scale_reason: Annotated[Text, doc("Why it last changed.")] = ""
    idle_since: Annotated[datetime | None, doc("Since when nobody has been active.")] = None
    changes: Annotated[
        tuple[ScaleChange, ...],
        doc("The last changes, the latest last.", max_items=64, list_type="atomic"),
    ] = ()
    current_metrics: Annotated[
        tuple[CurrentMetric, ...],
        doc("What the metrics were found to be.", max_items=16, list_type="atomic"),
    ] = ()
    conditions: Annotated[
        Conditions, doc("AbleToScale, ScalingActive, ScalingLimited and ScaledToZero.")
    ] = ()


class FleetAutoscaler(Object, frozen=True, kw_only=True):
    """How many replicas a service has, by its load, over all clusters."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[FleetAutoscalerSpec, doc("What is scaled, and by what.")]
    status: Annotated[FleetAutoscalerStatus, doc("What was last decided.")] = (
        FleetAutoscalerStatus()
    )
