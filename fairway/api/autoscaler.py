"""FleetAutoscaler: scales a service over all clusters by its load.

Shapes and names follow Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) where it has them, so
that an HPA can be copied field by field.
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
    """The service: a Workload, or the native object that it represents."""

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
    """Target value of a metric."""

    type: Annotated[
        Literal["Utilization", "AverageValue", "Value"],
        doc(
            "Utilization: percentage of the pods' requests. AverageValue: amount per pod or "
            "replica. Value: total amount."
        ),
    ]
    average_utilization: Annotated[
        _Positive | None, doc("Average usage, as a percentage of the pods' requests.")
    ] = None
    average_value: Annotated[
        Quantity | None, doc("Amount per pod, or a total divided by the number of replicas.")
    ] = None
    value: Annotated[Quantity | None, doc("Total amount.")] = None


class MetricIdentifier(Part, frozen=True, kw_only=True):
    """Identifies a metric in Prometheus."""

    name: Annotated[_MetricName, doc("Name of the metric.")]
    selector: Annotated[LabelSelector | None, doc("Selects series of the metric by label.")] = None
    query: Annotated[
        _Query,
        doc(
            "PromQL query to use instead; empty: the series with this name, summed except for "
            "Pods metrics."
        ),
    ] = ""


class ResourceMetric(Part, frozen=True, kw_only=True):
    """Resource usage of pods, as measured by their clusters."""

    name: Annotated[ResourceName, doc("Name of the resource, such as cpu.")]
    target: Annotated[MetricTarget, doc("Target value, of type Utilization or AverageValue.")]


class ContainerResourceMetric(Part, frozen=True, kw_only=True):
    """Resource usage of one container in each pod."""

    name: Annotated[ResourceName, doc("Name of the resource, such as cpu.")]
    container: Annotated[Label, doc("Name of the container.")]
    target: Annotated[MetricTarget, doc("Target value, of type Utilization or AverageValue.")]


class PodsMetric(Part, frozen=True, kw_only=True):
    """A metric reported per pod; the label `pod` of a series identifies its pod."""

    metric: Annotated[MetricIdentifier, doc("Metric to read.")]
    target: Annotated[MetricTarget, doc("Target value, of type AverageValue.")]


class DescribedObject(Part, frozen=True, kw_only=True):
    """An object in the same namespace that a metric describes."""

    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the object.", pattern="^[A-Za-z]+$", max_length=63)]
    name: Annotated[Name, doc("Name of the object.")]


class ObjectMetric(Part, frozen=True, kw_only=True):
    """A metric about one object; its series have a label KIND=NAME, with the kind in lower case."""

    described_object: Annotated[DescribedObject, doc("Object that the metric describes.")]
    metric: Annotated[MetricIdentifier, doc("Metric to read.")]
    target: Annotated[MetricTarget, doc("Target value, of type Value or AverageValue.")]
    activation_value: Annotated[
        Quantity,
        doc("Metric value above which the service is active, for scaling to and from zero."),
    ] = Quantity(0)


class ExternalMetric(Part, frozen=True, kw_only=True):
    """A metric about anything else, such as the length of an external queue."""

    metric: Annotated[MetricIdentifier, doc("Metric to read.")]
    target: Annotated[MetricTarget, doc("Target value, of type Value or AverageValue.")]
    activation_value: Annotated[
        Quantity,
        doc("Metric value above which the service is active, for scaling to and from zero."),
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
    """A load metric of a model server."""

    engine: Annotated[
        Literal["vLLM", "SGLang", "TGI", "Triton"], doc("Model server whose metrics are read.")
    ]
    signal: Annotated[
        Literal["QueueLength", "TokensPerSecond", "KVCacheUse", "TimeToFirstToken"],
        doc(
            "QueueLength: waiting requests. TokensPerSecond: tokens generated per second. "
            "KVCacheUse: share of the key-value cache in use, from 0 to 1. TimeToFirstToken: "
            "95th percentile, in seconds."
        ),
    ]
    target: Annotated[
        Quantity,
        doc(
            "Target value: per replica for QueueLength and TokensPerSecond, overall for the others."
        ),
    ]
    model: Annotated[str, doc("Model whose series are read; empty: all.", max_length=253)] = ""
    selector: Annotated[
        LabelSelector | None,
        doc(
            "Selects series by label; unset: those of pods in the namespace whose names start "
            "with the object's name."
        ),
    ] = None
    activation_value: Annotated[
        Quantity,
        doc("Metric value above which the service is active, for scaling to and from zero."),
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
    """A metric that drives the replica count; with several, the highest count wins."""

    type: Annotated[
        Literal["Resource", "ContainerResource", "Pods", "Object", "External", "Serving"],
        doc("Type of the metric."),
    ]
    resource: Annotated[ResourceMetric | None, doc("Resource usage of pods.")] = None
    container_resource: Annotated[
        ContainerResourceMetric | None, doc("Resource usage of one container in each pod.")
    ] = None
    pods: Annotated[PodsMetric | None, doc("Metric reported per pod.")] = None
    object: Annotated[ObjectMetric | None, doc("Metric about one object.")] = None
    external: Annotated[
        ExternalMetric | None,
        doc("Metric about anything else."),
    ] = None
    serving: Annotated[ServingMetric | None, doc("Load metric of a model server.")] = None


class ScalingPolicy(Part, frozen=True, kw_only=True):
    """Limit on how much the count may change within a period."""

    type: Annotated[
        Literal["Pods", "Percent"],
        doc("Unit of value: a number of replicas (Pods) or a percentage of them (Percent)."),
    ]
    value: Annotated[_Positive, doc("Maximum change within the period.")]
    period_seconds: Annotated[
        int, doc("Length of the period, in seconds.", minimum=1, maximum=1800)
    ]


class ScalingRules(Part, frozen=True, kw_only=True):
    """How the count changes in one direction: up or down."""

    stabilization_window_seconds: Annotated[
        int | None,
        doc(
            "Seconds for which past recommendations limit the change; unset: 0 up, 300 down.",
            minimum=0,
            maximum=3600,
        ),
    ] = None
    select_policy: Annotated[
        Literal["Max", "Min", "Disabled"],
        doc(
            "Max: the policy that allows the largest change applies. Min: the smallest change. "
            "Disabled: no scaling in this direction."
        ),
    ] = "Max"
    policies: Annotated[
        tuple[ScalingPolicy, ...],
        doc(
            "Limits on the rate of change; empty: 4 replicas or 100% per 15 s up, 100% per 15 s "
            "down.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    tolerance: Annotated[
        Quantity | None,
        doc("Deviation from the target, as a fraction of it, that causes no scaling; unset: 0.1."),
    ] = None


class ScalingBehavior(Part, frozen=True, kw_only=True):
    """How the count changes up and down."""

    scale_up: Annotated[ScalingRules, doc("Rules for scaling up.")] = ScalingRules()
    scale_down: Annotated[ScalingRules, doc("Rules for scaling down.")] = ScalingRules()


@rules(
    Rule(
        "self.minReplicas <= self.maxReplicas",
        "minReplicas must not exceed maxReplicas",
        ".minReplicas",
    )
)
class Schedule(Part, frozen=True, kw_only=True):
    """Other limits, in effect from when the cron expression is due until another schedule is."""

    name: Annotated[Label, doc("Name of the schedule.")]
    cron: Annotated[
        str,
        doc(
            "When it takes effect: minute, hour, day of month, month, day of week; or a macro "
            "such as @daily.",
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
    min_replicas: Annotated[Count, doc("Minimum replicas while the schedule is in effect.")]
    max_replicas: Annotated[Count, doc("Maximum replicas while the schedule is in effect.")]


class ScaleToZero(Part, frozen=True, kw_only=True):
    """When a service that may scale to zero does so."""

    idle_seconds: Annotated[
        Seconds, doc("Seconds without activity before the service scales to zero.")
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
    """What to scale, within which limits, by which metrics, and how fast."""

    target: Annotated[ScaleTarget, doc("Service to scale.")]
    min_replicas: Annotated[
        Count,
        doc("Minimum replicas; 0 allows scaling to zero while the service is idle."),
    ] = 1
    max_replicas: Annotated[Count, doc("Maximum replicas.", minimum=1)]
    metrics: Annotated[
        tuple[Metric, ...],
        doc(
            "Metrics that drive the replica count; empty: CPU usage at 80% of the pods' requests.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    behavior: Annotated[
        ScalingBehavior | None,
        doc(
            "Limits on how fast the count changes; unset: one step at most doubles it, or "
            "raises it to 4."
        ),
    ] = None
    schedules: Annotated[
        tuple[Schedule, ...],
        doc(
            "Limits that replace minReplicas and maxReplicas at set times.",
            max_items=32,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    scale_to_zero: Annotated[ScaleToZero, doc("When the service scales to zero.")] = ScaleToZero()
    prometheus: Annotated[
        PrometheusServer | None,
        doc("Prometheus server to query, if the fleet allows it; unset: the fleet's."),
    ] = None
    take_over: Annotated[
        bool,
        doc(
            "Whether to replace an autoscaler that the object already has: a "
            "HorizontalPodAutoscaler on the hub is deleted, KServe's own is disabled. If false, "
            "nothing is scaled and a condition says why."
        ),
    ] = False


class CurrentMetric(Part, frozen=True, kw_only=True):
    """Last observed value of a metric; without a value if it could not be read."""

    type: Annotated[str, doc("Type of the metric.", max_length=32)]
    name: Annotated[str, doc("Name of the metric.", max_length=512)]
    average_utilization: Annotated[
        int | None, doc("Average usage, as a percentage of the pods' requests.")
    ] = None
    average_value: Annotated[Quantity | None, doc("Value per pod or replica.")] = None
    value: Annotated[Quantity | None, doc("Total value.")] = None


class ScaleChange(Part, frozen=True, kw_only=True):
    """A change of the count; rate limits look back at these."""

    at: Annotated[datetime, doc("Time of the change.")]
    change: Annotated[int, doc("Change in replicas; negative when scaling down.")]


class FleetAutoscalerStatus(Part, frozen=True, kw_only=True):
    """Last decision, and what it was based on."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    current_replicas: Annotated[Count, doc("Replicas requested before the last decision.")] = 0
    desired_replicas: Annotated[Count, doc("Replicas requested by the last decision.")] = 0
    min_replicas: Annotated[
        Count, doc("Minimum replicas in effect now, with schedules applied.")
    ] = 0
    max_replicas: Annotated[
        Count, doc("Maximum replicas in effect now, with schedules applied.")
    ] = 0
    schedule: Annotated[str, doc("Schedule in effect now; empty: none.", max_length=63)] = ""
    last_scale_time: Annotated[datetime | None, doc("When the count last changed.")] = None
    last_scale_reason: Annotated[Text, doc("Why the count last changed.")] = ""
    idle_since: Annotated[datetime | None, doc("Time since which the service has been idle.")] = (
        None
    )
    changes: Annotated[
        tuple[ScaleChange, ...],
        doc("Recent changes of the count, latest last.", max_items=64, list_type="atomic"),
    ] = ()
    current_metrics: Annotated[
        tuple[CurrentMetric, ...],
        doc("Last observed values of the metrics.", max_items=16, list_type="atomic"),
    ] = ()
    conditions: Annotated[
        Conditions, doc("AbleToScale, ScalingActive, ScalingLimited and ScaledToZero.")
    ] = ()


class FleetAutoscaler(Object, frozen=True, kw_only=True):
    """Scales a service over all clusters by its load."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[FleetAutoscalerSpec, doc("What to scale, and by which metrics.")]
    status: Annotated[FleetAutoscalerStatus, doc("Last decision.")] = FleetAutoscalerStatus()
