"""Types that all objects share: metadata, conditions, selectors, taints and tolerations.

Shapes and names follow Kubernetes, so that its clients read our objects as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Struct, field

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    ClusterExpression,
    Code,
    Key,
    LabelValue,
    Name,
    Reference,
    ResourceName,
    Rule,
    doc,
    limits,
    rules,
)
from fairway.api.equality import same

GROUP = "fairway.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"


def is_own_group(group: str) -> bool:
    """Whether an API group is Fairway's: `fairway.dev`, or a name that ends in it."""
    return group == GROUP or group.endswith(f".{GROUP}")


def in_utc(moment: datetime) -> datetime:
    """A moment; without a zone it is in UTC, because the zone of the machine must not matter."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# An object of a kind that is not ours, kept as it is.
JsonObject = dict[str, Any]
# Amounts by resource name in their wire form; the suffixes users wrote are kept.
RESOURCES_MAX = 64
ResourceList = Annotated[Mapping[ResourceName, Quantity], limits(max_properties=RESOURCES_MAX)]
Labels = Annotated[Mapping[Key, LabelValue], limits(max_properties=64)]
Hold = Literal["None", "Hold", "HoldAndDrain"]
OnClusterLost = Literal["Wait", "StopAndMove", "AllowDuplicate"]
Rung = Literal["Idle", "Preempt", "Provision"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of an object: immutable, read leniently, written without fields at their default."""


class JsonPart(Part, frozen=True, kw_only=True):
    """A part that holds plain JSON, in which true is not 1."""

    def __eq__(self, other: object) -> bool:
        return Part.__eq__(self, other) is True and all(
            same(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__
        )

    __hash__ = Part.__hash__


class OwnerReference(Part, frozen=True, kw_only=True):
    """An object that owns this one."""

    api_version: Annotated[str, doc("API version of the owner.")]
    kind: Annotated[str, doc("Kind of the owner.")]
    name: Annotated[str, doc("Name of the owner.")]
    uid: Annotated[str, doc("UID of the owner.")]
    controller: Annotated[bool, doc("Whether the owner manages this object.")] = False
    block_owner_deletion: Annotated[
        bool, doc("Whether foreground deletion of the owner waits for this object.")
    ] = False


class ObjectMeta(Part, frozen=True, kw_only=True):
    """Kubernetes object metadata, as far as Fairway reads it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


def _api_version() -> str:
    return API_VERSION


class Object(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag_field="kind",
    tag=True,
):
    """A complete Fairway object. Its kind is its class name, checked when it is read."""

    api_group: ClassVar[str] = GROUP
    # Unlike a plain default, a default from a function is always written.
    api_version: str = field(default_factory=_api_version)
    metadata: ObjectMeta = ObjectMeta()

    @property
    def kind(self) -> str:
        return type(self).__name__


class Condition(Part, frozen=True, kw_only=True):
    """One aspect of an object's state, in Kubernetes' form."""

    type: Annotated[Key, doc("Type of the condition.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether the condition holds.")]
    observed_generation: Annotated[
        int, doc("Generation of the object that the condition reflects.", minimum=0)
    ] = 0
    last_transition_time: Annotated[datetime, doc("When the status last changed.")]
    reason: Annotated[Code, doc("Reason for the status, as a code for programs.")] = ""
    message: Annotated[
        str, doc("Reason for the status, as a sentence for people.", max_length=32768)
    ] = ""


Conditions = Annotated[
    tuple[Condition, ...], limits(list_type="map", list_map_keys=["type"], max_items=32)
]


@rules(
    Rule(
        "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : "
        "!has(self.values) || size(self.values) == 0",
        "values are needed with In and NotIn, and refused with Exists and DoesNotExist",
    )
)
class LabelRequirement(Part, frozen=True, kw_only=True):
    """A requirement on one label."""

    key: Annotated[Key, doc("Key of the label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        doc("How the label is compared with the values."),
    ]
    values: Annotated[
        tuple[LabelValue, ...],
        doc("Values for In and NotIn.", max_items=64, list_type="atomic"),
    ] = ()


class LabelSelector(Part, frozen=True, kw_only=True):
    """Selects objects by label; all requirements must hold, and an empty selector selects all."""

    match_labels: Annotated[Labels, doc("Labels that must have these values.")] = {}
    match_expressions: Annotated[
        tuple[LabelRequirement, ...],
        doc("Further requirements on labels.", max_items=32, list_type="atomic"),
    ] = ()


@rules(
    Rule(
        "self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || size(self.values) == 0"
        " : has(self.values) && size(self.values) > 0",
        "values are needed, except with Exists and DoesNotExist",
    )
)
class NodeRequirement(Part, frozen=True, kw_only=True):
    """A requirement on one node label."""

    key: Annotated[Key, doc("Key of the node label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        doc("How the label is compared with the values."),
    ]
    values: Annotated[
        tuple[LabelValue, ...],
        doc("Values to compare with; exactly one for Gt and Lt.", max_items=64, list_type="atomic"),
    ] = ()


class NodeTerm(Part, frozen=True, kw_only=True):
    """Requirements on node labels that must all hold; one of several terms suffices."""

    match_expressions: Annotated[
        tuple[NodeRequirement, ...],
        doc(
            "Requirements on node labels, all of which must hold.", max_items=32, list_type="atomic"
        ),
    ] = ()


class ClusterSelector(Part, frozen=True, kw_only=True):
    """Selects clusters; all parts given must hold, and an empty selector selects all clusters."""

    labels: Annotated[LabelSelector | None, doc("Selects clusters by label.")] = None
    names: Annotated[
        tuple[Name, ...],
        doc("Selects clusters by name; empty: any name.", max_items=512, list_type="set"),
    ] = ()
    exclude: Annotated[
        tuple[Name, ...],
        doc("Names of clusters that are never selected.", max_items=512, list_type="set"),
    ] = ()
    expressions: Annotated[
        tuple[ClusterExpression, ...],
        doc(
            "CEL expressions over `cluster.name`, `cluster.labels` and `cluster.claims`, all of "
            "which must be true; an expression that fails to evaluate does not match.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()


@rules(
    Rule(
        "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        "a toleration with operator Exists has no value",
    ),
    Rule(
        "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
        "a toleration without a key needs operator Exists",
    ),
    Rule(
        "!has(self.tolerationSeconds) || !has(self.effect) || self.effect == 'NoExecute'",
        "tolerationSeconds needs effect NoExecute",
    ),
)
class Toleration(Part, frozen=True, kw_only=True):
    """Tolerates taints that match."""

    key: Annotated[
        str, doc("Key of the taint; empty with operator Exists: any.", max_length=316)
    ] = ""
    operator: Annotated[
        Literal["Equal", "Exists"], doc("Equal: key and value must match. Exists: only the key.")
    ] = "Equal"
    value: Annotated[LabelValue, doc("Value of the taint, for operator Equal.")] = ""
    effect: Annotated[TaintEffect | None, doc("Effect of the taint; unset: any.")] = None
    toleration_seconds: Annotated[
        int | None,
        doc("Seconds that a NoExecute taint is tolerated after it was added; unset: forever."),
    ] = None


class Taint(Part, frozen=True, kw_only=True):
    """Keeps away pods or workloads that do not tolerate it."""

    key: Annotated[Key, doc("Key of the taint.")]
    value: Annotated[LabelValue, doc("Value of the taint.")] = ""
    effect: Annotated[
        TaintEffect,
        doc(
            "NoSchedule keeps new pods away, PreferNoSchedule does so if possible, NoExecute "
            "also evicts."
        ),
    ]
    time_added: Annotated[
        datetime | None,
        doc(
            "When the taint was added; tolerationSeconds counts from then. The hub notes it for "
            "NoExecute taints of clusters if it is not given."
        ),
    ] = None


class EnvironmentVariable(Part, frozen=True, kw_only=True):
    """An environment variable."""

    name: Annotated[str, doc("Name of the variable.", min_length=1, max_length=256)]
    value: Annotated[str, doc("Value of the variable.", max_length=32768)] = ""


class ObjectReference(Part, frozen=True, kw_only=True):
    """Refers to an object in the same namespace, or in the namespace given."""

    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the object.", min_length=1, max_length=63)]
    namespace: Annotated[
        Reference, doc("Namespace of the object; empty: that of the referring object.")
    ] = ""
    name: Annotated[str, doc("Name of the object.", min_length=1, max_length=253)]
    uid: Annotated[
        str, doc("UID of the object, to refer to one instance of it.", max_length=64)
    ] = ""


class WorkloadReference(Part, frozen=True, kw_only=True):
    """Refers to a workload."""

    namespace: Annotated[Name, doc("Namespace of the workload.")]
    name: Annotated[Name, doc("Name of the workload.")]
    uid: Annotated[str, doc("UID of the workload.", max_length=64)] = ""


class SecretReference(Part, frozen=True, kw_only=True):
    """Refers to a key of a Secret."""

    namespace: Annotated[Name, doc("Namespace of the Secret.")]
    name: Annotated[Name, doc("Name of the Secret.")]
    key: Annotated[str, doc("Key in the Secret.", min_length=1, max_length=253)]
