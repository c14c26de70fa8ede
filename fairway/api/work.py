"""Work: the part of a workload that one cluster is to run, derived from the claim.

It lives in the namespace of its cluster. The decision is written into the manifests (node selector
and affinity for flavor and topology domain), so that the cluster's scheduler can't undo it. An
agent refuses a term lower than it has seen, and removes what it made only on an explicit tombstone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fairway.api.doc import (
    Code,
    Count,
    Expression,
    Key,
    Label,
    LabelValue,
    Name,
    Reference,
    Rule,
    Seconds,
    Text,
    doc,
    rules,
)
from fairway.api.meta import (
    Conditions,
    JsonObject,
    JsonPart,
    Labels,
    Object,
    Part,
    Toleration,
    WorkloadReference,
)

WorkPhase = Literal[
    "Pending", "Reserved", "Held", "Running", "Stopping", "Succeeded", "Failed", "Gone"
]


class FeedbackPath(Part, frozen=True, kw_only=True):
    """A value to read from an object."""

    name: Annotated[Key, doc("Name of the value.")]
    path: Annotated[Expression, doc("JSONPath into the object, such as .status.readyReplicas.")]


@rules(
    Rule(
        "(self.type == 'JsonPaths') == (has(self.paths) && size(self.paths) > 0)",
        "paths are needed with type: JsonPaths, and refused otherwise",
        ".paths",
    )
)
class FeedbackRule(Part, frozen=True, kw_only=True):
    """Values of an object that the agent reports."""

    type: Annotated[
        Literal["WellKnown", "JsonPaths"], doc("Those known for its kind, or those listed.")
    ]
    paths: Annotated[
        tuple[FeedbackPath, ...],
        doc("The values.", max_items=32, list_type="map", list_map_keys=["name"]),
    ] = ()


@rules(
    Rule(
        "(self.type == 'Cel') == (has(self.expressions) && size(self.expressions) > 0)",
        "expressions are needed with type: Cel, and refused otherwise",
        ".expressions",
    )
)
class ConditionRule(Part, frozen=True, kw_only=True):
    """A condition that the agent derives from an object."""

    condition: Annotated[Code, doc("Type of the condition, such as Complete.", min_length=1)]
    type: Annotated[
        Literal["WellKnown", "Cel"], doc("The rule known for the object's kind, or expressions.")
    ]
    expressions: Annotated[
        tuple[Expression, ...],
        doc("CEL over `object`, all of which must be true.", max_items=16, list_type="atomic"),
    ] = ()
    message: Annotated[Text, doc("Message of the condition.")] = ""
    message_expression: Annotated[
        str, doc("CEL over `object` and `result` that makes the message.", max_length=2048)
    ] = ""


class Manifest(JsonPart, frozen=True, kw_only=True):
    """One object to have in the cluster."""

    object: Annotated[JsonObject, doc("The object.", embedded=True)]
    update: Annotated[
        Literal["Update", "ServerSideApply", "CreateOnly", "ReadOnly"],
        doc("How a difference is mended; ReadOnly only looks."),
    ] = "ServerSideApply"
    force: Annotated[bool, doc("Whether server-side apply takes fields from other managers.")] = (
        True
    )
    deletion: Annotated[
        Literal["Delete", "Orphan"], doc("Whether the object goes with the work, or stays.")
    ] = "Delete"
    ignored_fields: Annotated[
        tuple[Expression, ...],
        doc("JSON pointers that the cluster may change.", max_items=64, list_type="atomic"),
    ] = ()
    feedback: Annotated[
        tuple[FeedbackRule, ...],
        doc("Values to report.", max_items=8, list_type="map", list_map_keys=["type"]),
    ] = ()
    conditions: Annotated[
        tuple[ConditionRule, ...],
        doc("Conditions to report.", max_items=16, list_type="map", list_map_keys=["condition"]),
    ] = ()


class WorkPodSet(Part, frozen=True, kw_only=True):
    """Pods of one set in this cluster, with the decision on them."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count, doc("How many pods.")]
    node_selector: Annotated[Labels, doc("Labels of the nodes that were chosen.")] = {}
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations given to the pods.", max_items=32, list_type="atomic"),
    ] = ()


class Stop(Part, frozen=True, kw_only=True):
    """How the pods are ended."""

    signal: Annotated[str, doc("Signal that asks them to save.", max_length=16)] = "SIGTERM"
    grace_seconds: Annotated[Seconds, doc("Time they get.")] = 30


class Executor(Part, frozen=True, kw_only=True):
    """The service account of the cluster in whose name the objects are made."""

    namespace: Annotated[Name, doc("Namespace of the service account.")]
    name: Annotated[Name, doc("Name of the service account.")]


class PoolNodes(Part, frozen=True, kw_only=True):
    """Nodes of one elastic pool."""

    pool: Annotated[Label, doc("Name of the pool.")]
    count: Annotated[Count, doc("How many nodes.")]


class WorkSpec(Part, frozen=True, kw_only=True):
    """What the cluster is to run."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    workload: Annotated[WorkloadReference, doc("The workload that it is a part of.")]
    attempt: Annotated[int, doc("Attempt of the workload.", minimum=0)]
    term: Annotated[
        int, doc("Term of the decision; an agent refuses a lower one than it has seen.", minimum=0)
    ]
    desired: Annotated[
        Literal["Run", "Reserve", "Hold", "Stop"],
        doc("Run it; hold its capacity with placeholder pods; make it suspended; or stop it."),
    ] = "Run"
    manifests: Annotated[
        tuple[Manifest, ...],
        doc("The objects, in the order in which they are made.", max_items=128, list_type="atomic"),
    ] = ()
    pod_sets: Annotated[
        tuple[WorkPodSet, ...],
        doc("The pods, with counts.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    tasks: Annotated[str, doc("Tasks of an Independent workload, as ranges.", max_length=65536)] = (
        ""
    )
    provision: Annotated[
        tuple[PoolNodes, ...],
        doc(
            "Nodes of elastic pools that must come for it.",
            max_items=64,
            list_type="map",
            list_map_keys=["pool"],
        ),
    ] = ()
    run_seconds_estimate: Annotated[
        Seconds | None, doc("How long it is expected to run; simulated clusters go by it.")
    ] = None
    stop: Annotated[Stop, doc("How its pods are ended.")] = Stop()
    stop_when_silent_seconds: Annotated[
        Seconds | None,
        doc("Silence of the hub after which the agent stops it by itself; unset means never."),
    ] = None
    executor: Annotated[
        Executor | None, doc("In whose name the objects are made; unset: the agent's.")
    ] = None
    tombstone: Annotated[
        bool, doc("Removes all that was made for it; a work that merely vanishes removes nothing.")
    ] = False


class FeedbackValue(Part, frozen=True, kw_only=True):
    """A value that was read."""

    name: Annotated[Key, doc("Name of the value.")]
    type: Annotated[Literal["Integer", "String", "Boolean", "Json"], doc("What it is.")]
    value: Annotated[Text, doc("The value, as text.")]


class ManifestStatus(Part, frozen=True, kw_only=True):
    """What became of one manifest."""

    position: Annotated[Count, doc("Position of the manifest in the spec.")]
    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = ""
    kind: Annotated[str, doc("Kind of the object.", max_length=63)] = ""
    namespace: Annotated[Reference, doc("Namespace of the object.")] = ""
    name: Annotated[str, doc("Name of the object.", max_length=253)] = ""
    uid: Annotated[str, doc("UID of the object in the cluster.", max_length=64)] = ""
    feedback: Annotated[
        tuple[FeedbackValue, ...],
        doc("Values that were read.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    conditions: Annotated[Conditions, doc("Applied, Available, and those of its rules.")] = ()


class RevisionPods(Part, frozen=True, kw_only=True):
    """Pods of one set that carry the mark of one revision."""

    mark: Annotated[LabelValue, doc("The mark.")]
    pods: Annotated[Count, doc("Pods that are not over, nor ending.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0


class PodSetStatus(Part, frozen=True, kw_only=True):
    """The pods of one set by what they do."""

    name: Annotated[Label, doc("Name of the pod set.")]
    pending: Annotated[Count, doc("Pods without a node.")] = 0
    bound: Annotated[Count, doc("Pods with a node that are not yet ready.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0
    succeeded: Annotated[Count, doc("Pods that succeeded.")] = 0
    failed: Annotated[Count, doc("Pods that failed.")] = 0
    terminating: Annotated[Count, doc("Pods that are ending.")] = 0
    pending_since: Annotated[
        datetime | None, doc("Since when the oldest pending pod has waited.")
    ] = None
    revisions: Annotated[
        tuple[RevisionPods, ...],
        doc(
            "Those that carry the mark of a revision, by revision.",
            max_items=16,
            list_type="map",
            list_map_keys=["mark"],
        ),
    ] = ()


class WorkStatus(Part, frozen=True, kw_only=True):
    """What the agent says of it."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    attempt: Annotated[int, doc("Attempt that the agent carries out.", minimum=0)] = 0
    term: Annotated[int, doc("Highest term that the agent has seen.", minimum=0)] = 0
    agent_epoch: Annotated[int, doc("Start of the agent that wrote this.", minimum=0)] = 0
    phase: Annotated[
        WorkPhase | None,
        doc("Where it is; Gone means that no pod and no object of it is left."),
    ] = None
    reason: Annotated[Code, doc("Code of why it is in this phase.")] = ""
    message: Annotated[Text, doc("What the cluster said of it.")] = ""
    exit_code: Annotated[int | None, doc("Exit code, where there was one.")] = None
    started_at: Annotated[datetime | None, doc("When its pods first ran.")] = None
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    checkpointed_at: Annotated[datetime | None, doc("When it last saved its work.")] = None
    gone_at: Annotated[datetime | None, doc("When its pods were confirmed gone.")] = None
    pod_sets: Annotated[
        tuple[PodSetStatus, ...],
        doc("Its pods.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    succeeded_tasks: Annotated[str, doc("Tasks that succeeded, as ranges.", max_length=65536)] = ""
    failed_tasks: Annotated[str, doc("Tasks that failed, as ranges.", max_length=65536)] = ""
    manifests: Annotated[
        tuple[ManifestStatus, ...],
        doc(
            "What became of each manifest.",
            max_items=128,
            list_type="map",
            list_map_keys=["position"],
        ),
    ] = ()
    conditions: Annotated[Conditions, doc("State of the work, aspect by aspect.")] = ()


class Work(Object, frozen=True, kw_only=True):
    """The part of a workload that one cluster is to run, with the decision written into it."""

    spec: Annotated[WorkSpec, doc("What the cluster is to run.")]
    status: Annotated[WorkStatus, doc("What the agent says of it.")] = WorkStatus()
