"""Work: the part of a workload that one cluster should run, derived from the claim.

A work is in the namespace of its cluster. The decision is written into the manifests (node selector
and affinity for flavor and topology domain), so that the cluster's scheduler cannot undo it. An
agent refuses a lower term than it has seen, and removes what it created only on a tombstone.
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
from fairway.api.governance import KindNames
from fairway.api.meta import (
    ClusterSelector,
    Conditions,
    JsonObject,
    JsonPart,
    Object,
    Part,
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
        Literal["WellKnown", "JsonPaths"],
        doc("WellKnown: values known for its kind. JsonPaths: the values listed."),
    ]
    paths: Annotated[
        tuple[FeedbackPath, ...],
        doc("Values to report.", max_items=32, list_type="map", list_map_keys=["name"]),
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
        Literal["WellKnown", "Cel"],
        doc("WellKnown: the rule known for the object's kind. Cel: expressions."),
    ]
    expressions: Annotated[
        tuple[Expression, ...],
        doc(
            "CEL expressions over `object`, all of which must be true.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    message: Annotated[Text, doc("Message of the condition.")] = ""
    message_expression: Annotated[
        str, doc("CEL expression over `object` and `result` for the message.", max_length=2048)
    ] = ""


class Manifest(JsonPart, frozen=True, kw_only=True):
    """One object to create in the cluster."""

    object: Annotated[JsonObject, doc("The object.", embedded=True)]
    update: Annotated[
        Literal["Update", "ServerSideApply", "CreateOnly", "ReadOnly"],
        doc("How differences are corrected; ReadOnly only observes the object."),
    ] = "ServerSideApply"
    force: Annotated[bool, doc("Whether server-side apply takes fields from other managers.")] = (
        True
    )
    deletion: Annotated[
        Literal["Delete", "Orphan"],
        doc("Delete: the object is deleted with the work. Orphan: it stays."),
    ] = "Delete"
    ignored_fields: Annotated[
        tuple[Expression, ...],
        doc(
            "JSON pointers of fields that the cluster may change.", max_items=64, list_type="atomic"
        ),
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
    """Pods of one pod set in this cluster."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count, doc("Number of pods.")]


class Stop(Part, frozen=True, kw_only=True):
    """How the pods are stopped."""

    signal: Annotated[str, doc("Signal that asks pods to save their work.", max_length=16)] = (
        "SIGTERM"
    )
    grace_seconds: Annotated[Seconds, doc("Seconds that pods get to stop.")] = 30


class Executor(Part, frozen=True, kw_only=True):
    """The service account of the cluster that creates the objects."""

    namespace: Annotated[Name, doc("Namespace of the service account.")]
    name: Annotated[Name, doc("Name of the service account.")]


class PoolNodes(Part, frozen=True, kw_only=True):
    """Nodes of one elastic pool."""

    pool: Annotated[Label, doc("Name of the pool.")]
    count: Annotated[Count, doc("Number of nodes.")]


class WorkPolicy(Part, frozen=True, kw_only=True):
    """The rules of one fleet policy that an agent checks again."""

    name: Annotated[Name, doc("Name of the fleet policy.")]
    clusters: Annotated[ClusterSelector, doc("Selects the clusters that may be used.")] = (
        ClusterSelector()
    )
    registries: Annotated[
        tuple[str, ...],
        doc(
            "Registries that all images must come from, with the mirrors that the cluster uses "
            "instead; empty: any.",
            max_items=256,
            list_type="atomic",
        ),
    ] = ()
    kinds: Annotated[KindNames, doc("Kinds that may run, as group/Kind; empty: any.")] = ()


class WorkSpec(Part, frozen=True, kw_only=True):
    """What the cluster should run."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    workload: Annotated[WorkloadReference, doc("Workload that the work is a part of.")]
    attempt: Annotated[int, doc("Attempt of the workload.", minimum=0)]
    term: Annotated[
        int, doc("Term of the decision; an agent refuses a lower term than it has seen.", minimum=0)
    ]
    desired: Annotated[
        Literal["Run", "Reserve", "Stop"],
        doc("Run: run it. Reserve: hold its capacity with placeholder pods. Stop: stop it."),
    ] = "Run"
    manifests: Annotated[
        tuple[Manifest, ...],
        doc("Objects, in the order in which they are created.", max_items=128, list_type="atomic"),
    ] = ()
    pod_sets: Annotated[
        tuple[WorkPodSet, ...],
        doc("Pods, with counts.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    tasks: Annotated[str, doc("Tasks of an Independent workload, as ranges.", max_length=65536)] = (
        ""
    )
    provision: Annotated[
        tuple[PoolNodes, ...],
        doc(
            "Nodes of elastic pools that must be provisioned for it.",
            max_items=64,
            list_type="map",
            list_map_keys=["pool"],
        ),
    ] = ()
    run_seconds_estimate: Annotated[
        Seconds | None, doc("Expected run time, in seconds; used by simulated clusters.")
    ] = None
    stop: Annotated[Stop, doc("How its pods are stopped.")] = Stop()
    stop_when_silent_seconds: Annotated[
        Seconds | None,
        doc("Seconds without contact to the hub after which the agent stops it; unset: never."),
    ] = None
    executor: Annotated[
        Executor | None,
        doc("Service account that creates the objects; unset: by the cluster's actAs."),
    ] = None
    policies: Annotated[
        tuple[WorkPolicy, ...],
        doc(
            "Enforced fleet policies of the workload's namespace; the agent refuses what they do "
            "not allow.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    tombstone: Annotated[
        bool,
        doc(
            "Whether to remove everything created for it; a work that merely disappears removes "
            "nothing."
        ),
    ] = False


class FeedbackValue(Part, frozen=True, kw_only=True):
    """A value read from an object."""

    name: Annotated[Key, doc("Name of the value.")]
    type: Annotated[Literal["Integer", "String", "Boolean", "Json"], doc("Type of the value.")]
    value: Annotated[Text, doc("The value, as text.")]


class ManifestStatus(Part, frozen=True, kw_only=True):
    """State of one manifest."""

    position: Annotated[Count, doc("Position of the manifest in the spec.")]
    api_version: Annotated[str, doc("API version of the object.", max_length=317)] = ""
    kind: Annotated[str, doc("Kind of the object.", max_length=63)] = ""
    namespace: Annotated[Reference, doc("Namespace of the object.")] = ""
    name: Annotated[str, doc("Name of the object.", max_length=253)] = ""
    uid: Annotated[str, doc("UID of the object in the cluster.", max_length=64)] = ""
    feedback: Annotated[
        tuple[FeedbackValue, ...],
        doc("Values read from the object.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    conditions: Annotated[Conditions, doc("Applied, Available, and those of its rules.")] = ()


class RevisionPods(Part, frozen=True, kw_only=True):
    """Pods of one pod set that carry the mark of one revision."""

    mark: Annotated[LabelValue, doc("Mark of the revision.")]
    pods: Annotated[Count, doc("Pods that are neither finished nor terminating.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0


class PodSetStatus(Part, frozen=True, kw_only=True):
    """Pods of one pod set, by state."""

    name: Annotated[Label, doc("Name of the pod set.")]
    pending: Annotated[Count, doc("Pods without a node.")] = 0
    bound: Annotated[Count, doc("Pods with a node that are not ready yet.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0
    succeeded: Annotated[Count, doc("Pods that succeeded.")] = 0
    failed: Annotated[Count, doc("Pods that failed.")] = 0
    terminating: Annotated[Count, doc("Pods that are terminating.")] = 0
    pending_since: Annotated[
        datetime | None, doc("Time since which the oldest pending pod has been pending.")
    ] = None
    unready_since: Annotated[
        datetime | None,
        doc("Time since which the oldest pod with a node that is not ready has been so."),
    ] = None
    beside: Annotated[
        Count,
        doc("Pods of a second Deployment of the work that are neither finished nor terminating."),
    ] = 0
    revisions: Annotated[
        tuple[RevisionPods, ...],
        doc(
            "Pods that carry the mark of a revision, by revision.",
            max_items=16,
            list_type="map",
            list_map_keys=["mark"],
        ),
    ] = ()


class WorkStatus(Part, frozen=True, kw_only=True):
    """State of the work, as the agent reports it."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    attempt: Annotated[int, doc("Attempt that the agent runs.", minimum=0)] = 0
    term: Annotated[int, doc("Highest term that the agent has seen.", minimum=0)] = 0
    agent_epoch: Annotated[int, doc("Epoch of the agent that wrote this status.", minimum=0)] = 0
    phase: Annotated[
        WorkPhase | None,
        doc("Phase of the work; Gone: no pod and no object of it is left."),
    ] = None
    reason: Annotated[Code, doc("Reason code for the phase.")] = ""
    message: Annotated[Text, doc("Message from the cluster.")] = ""
    exit_code: Annotated[int | None, doc("Exit code, if there was one.")] = None
    started_at: Annotated[datetime | None, doc("When its pods first ran.")] = None
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    checkpointed_at: Annotated[datetime | None, doc("When it last saved its work.")] = None
    gone_at: Annotated[datetime | None, doc("When its pods were confirmed gone.")] = None
    pod_sets: Annotated[
        tuple[PodSetStatus, ...],
        doc("Its pods, by pod set.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    succeeded_tasks: Annotated[str, doc("Tasks that succeeded, as ranges.", max_length=65536)] = ""
    failed_tasks: Annotated[str, doc("Tasks that failed, as ranges.", max_length=65536)] = ""
    manifests: Annotated[
        tuple[ManifestStatus, ...],
        doc(
            "State of each manifest.",
            max_items=128,
            list_type="map",
            list_map_keys=["position"],
        ),
    ] = ()
    conditions: Annotated[Conditions, doc("Latest observations of the work's state.")] = ()


class Work(Object, frozen=True, kw_only=True):
    """The part of a workload that one cluster should run, with the decision written into it."""

    spec: Annotated[WorkSpec, doc("What the cluster should run.")]
    status: Annotated[WorkStatus, doc("State of the work, as the agent reports it.")] = WorkStatus()
