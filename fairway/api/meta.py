"""What all objects share: metadata, conditions, selectors, taints and tolerations.

Shapes and names are those of Kubernetes, so that its clients read ours without translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Struct, field

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Code,
    Expression,
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

# An object of a kind that is not ours, kept as it is.
JsonObject = dict[str, Any]
# Amounts by resource name in their wire form; the suffixes users wrote are kept.
ResourceList = Annotated[Mapping[ResourceName, Quantity], limits(max_properties=64)]
Labels = Annotated[Mapping[Key, LabelValue], limits(max_properties=64)]
Hold = Literal["None", "Hold", "HoldAndDrain"]
OnClusterLost = Literal["Wait", "StopAndMove", "AllowDuplicate"]
Rung = Literal["Idle", "Preempt", "Provision"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A piece of an object: immutable, read leniently, written without what equals its default."""


class JsonPart(Part, frozen=True, kw_only=True):
    """A piece that holds plain JSON, in which true is not 1."""

    def __eq__(self, other: object) -> bool:
        return Part.__eq__(self, other) is True and all(
            same(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__
        )

    __hash__ = Part.__hash__


class OwnerReference(Part, frozen=True, kw_only=True):
    """An object without which this one has no reason to exist."""

    api_version: Annotated[str, doc("API version of the owner.")]
    kind: Annotated[str, doc("Kind of the owner.")]
    name: Annotated[str, doc("Name of the owner.")]
    uid: Annotated[str, doc("UID of the owner.")]
    controller: Annotated[bool, doc("Whether the owner manages this object.")] = False
    block_owner_deletion: Annotated[
        bool, doc("Whether the owner waits for this object when deleted in the foreground.")
    ] = False


class ObjectMeta(Part, frozen=True, kw_only=True):
    """Kubernetes' object metadata, as far as Fairway reads it."""

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
    """A whole object of ours. Its kind is its class name, checked when it is read."""

    api_group: ClassVar[str] = GROUP
    # A default from a function is never left out when written, unlike a plain one.
    api_version: str = field(default_factory=_api_version)
    metadata: ObjectMeta = ObjectMeta()

    @property
    def kind(self) -> str:
        return type(self).__name__


class Condition(Part, frozen=True, kw_only=True):
    """One aspect of an object's state, in Kubernetes' form."""

    type: Annotated[Key, doc("What the condition is about, in one word.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    observed_generation: Annotated[
        int, doc("Generation of the object that the condition was made from.", minimum=0)
    ] = 0
    last_transition_time: Annotated[datetime, doc("When the status last changed.")]
    reason: Annotated[Code, doc("Why, as a code for programs.")] = ""
    message: Annotated[str, doc("Why, as a sentence for people.", max_length=32768)] = ""


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
    """A test of one label."""

    key: Annotated[Key, doc("Key of the label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"], doc("How the label is tested.")
    ]
    values: Annotated[
        tuple[LabelValue, ...],
        doc("Values that In and NotIn compare with.", max_items=64, list_type="atomic"),
    ] = ()


class LabelSelector(Part, frozen=True, kw_only=True):
    """Chooses objects by their labels; all parts must hold, and an empty one chooses all."""

    match_labels: Annotated[Labels, doc("Labels that must have these values.")] = {}
    match_expressions: Annotated[
        tuple[LabelRequirement, ...],
        doc("Further tests of labels.", max_items=32, list_type="atomic"),
    ] = ()


@rules(
    Rule(
        "self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || size(self.values) == 0"
        " : has(self.values) && size(self.values) > 0",
        "values are needed, except with Exists and DoesNotExist",
    )
)
class NodeRequirement(Part, frozen=True, kw_only=True):
    """A test of one node label."""

    key: Annotated[Key, doc("Key of the node label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        doc("How the label is tested."),
    ]
    values: Annotated[
        tuple[LabelValue, ...],
        doc("Values to compare with; exactly one for Gt and Lt.", max_items=64, list_type="atomic"),
    ] = ()


class NodeTerm(Part, frozen=True, kw_only=True):
    """Node labels that must all hold; of several terms one suffices."""

    match_expressions: Annotated[
        tuple[NodeRequirement, ...],
        doc("Tests of node labels, all of which must hold.", max_items=32, list_type="atomic"),
    ] = ()


class ClusterSelector(Part, frozen=True, kw_only=True):
    """Chooses clusters; all parts given must hold, and an empty selector chooses all clusters."""

    labels: Annotated[LabelSelector | None, doc("Chooses clusters by their labels.")] = None
    names: Annotated[
        tuple[Name, ...],
        doc("Chooses clusters by name; empty means any name.", max_items=512, list_type="set"),
    ] = ()
    exclude: Annotated[
        tuple[Name, ...],
        doc("Clusters that are never chosen, whatever else holds.", max_items=512, list_type="set"),
    ] = ()
    expressions: Annotated[
        tuple[Expression, ...],
        doc(
            "CEL expressions over `cluster.name`, `cluster.labels` and `cluster.claims`, all of "
            "which must be true; one that fails to evaluate does not match.",
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
    """Accepts taints that match."""

    key: Annotated[
        str, doc("Key of the taint; empty with operator Exists means any.", max_length=316)
    ] = ""
    operator: Annotated[
        Literal["Equal", "Exists"], doc("Whether the value is compared, or only the key.")
    ] = "Equal"
    value: Annotated[LabelValue, doc("Value of the taint, for operator Equal.")] = ""
    effect: Annotated[TaintEffect | None, doc("Effect of the taint; unset means any.")] = None
    toleration_seconds: Annotated[
        int | None,
        doc("How long a NoExecute taint is borne from when it was added; unset means for ever."),
    ] = None


class Taint(Part, frozen=True, kw_only=True):
    """Keeps away what does not tolerate it."""

    key: Annotated[Key, doc("Key of the taint.")]
    value: Annotated[LabelValue, doc("Value of the taint.")] = ""
    effect: Annotated[
        TaintEffect,
        doc("NoSchedule keeps new pods away, PreferNoSchedule if possible, NoExecute also evicts."),
    ]
    time_added: Annotated[
        datetime | None, doc("When the taint was added; toleration seconds count from here.")
    ] = None


class EnvironmentVariable(Part, frozen=True, kw_only=True):
    """A variable for processes."""

    name: Annotated[str, doc("Name of the variable.", min_length=1, max_length=256)]
    value: Annotated[str, doc("Value of the variable.", max_length=32768)] = ""


class ObjectReference(Part, frozen=True, kw_only=True):
    """Names an object in the same namespace, or in the one given."""

    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the object.", min_length=1, max_length=63)]
    namespace: Annotated[
        Reference, doc("Namespace of the object; empty means that of the referring one.")
    ] = ""
    name: Annotated[str, doc("Name of the object.", min_length=1, max_length=253)]
    uid: Annotated[
        str, doc("UID of the object, where one incarnation is meant.", max_length=64)
    ] = ""


class WorkloadReference(Part, frozen=True, kw_only=True):
    """Names a workload."""

    namespace: Annotated[Name, doc("Namespace of the workload.")]
    name: Annotated[Name, doc("Name of the workload.")]
    uid: Annotated[str, doc("UID of the workload.", max_length=64)] = ""


class SecretReference(Part, frozen=True, kw_only=True):
    """A key of a Secret."""

    namespace: Annotated[Name, doc("Namespace of the Secret.")]
    name: Annotated[Name, doc("Name of the Secret.")]
    key: Annotated[str, doc("Key in the Secret.", min_length=1, max_length=253)]
