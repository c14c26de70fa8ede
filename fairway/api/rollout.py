"""Rollout and Revision: how a new revision of a service is rolled out, and the past revisions.

Without a Rollout a changed template reaches every cluster at once. With one, each cluster has the
revision that the status of the Rollout assigns to it. A revision is an object of its own: templates
are too large for a list in a status, and a revision that is written once can be read to roll back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.doc import (
    Code,
    Count,
    Label,
    LabelValue,
    Name,
    OptionalLabel,
    Reference,
    Rule,
    Seconds,
    Text,
    doc,
    limits,
    rules,
)
from fairway.api.fleet import PrometheusServer
from fairway.api.meta import Conditions, Object, Part
from fairway.api.serving import SERVING_GROUP, serving_api_version
from fairway.api.workload import Template

# Annotations that let a rollout continue; its spec may be in a repository.
APPROVED = f"{SERVING_GROUP}/approved"
RESUMED = f"{SERVING_GROUP}/resumed"
_Percent = Annotated[int, limits(minimum=1, maximum=100)]
RolloutPhase = Literal[
    "Progressing",
    "Soaking",
    "Paused",
    "AwaitingApproval",
    "Completed",
    "RollingBack",
    "RolledBack",
    "Failed",
]


class ServiceReference(Part, frozen=True, kw_only=True):
    """A Divided workload, by its own name or by the native object that it represents."""

    kind: Annotated[
        str,
        doc(
            "Workload, or the kind of the native object, such as Deployment.",
            pattern="^[A-Z][A-Za-z0-9]*$",
            max_length=63,
        ),
    ] = "Workload"
    name: Annotated[Name, doc("Name of the workload or of the native object.")]


class Canary(Part, frozen=True, kw_only=True):
    """A few replicas that get a new revision before all others."""

    percent: Annotated[
        _Percent, doc("Percentage of all replicas, rounded up; at least one replica.")
    ] = 10
    clusters: Annotated[
        tuple[Name, ...],
        doc(
            "Clusters that the canary is taken from; empty: those with the fewest replicas first.",
            max_items=64,
            list_type="atomic",
        ),
    ] = ()


@rules(
    Rule(
        "(has(self.clusters) && size(self.clusters) > 0 ? 1 : 0) + "
        "(has(self.group) && self.group != '' ? 1 : 0) + (has(self.percent) ? 1 : 0) == 1",
        "exactly one of clusters, group and percent is given",
    )
)
class Batch(Part, frozen=True, kw_only=True):
    """Clusters that get the new revision together, in addition to those of earlier batches."""

    clusters: Annotated[
        tuple[Name, ...], doc("Clusters of the batch.", max_items=512, list_type="atomic")
    ] = ()
    group: Annotated[
        OptionalLabel, doc("Group of the workload's placement policy whose clusters are the batch.")
    ] = ""
    percent: Annotated[
        _Percent | None,
        doc("As many clusters as needed for this percentage of all replicas to have the revision."),
    ] = None


class Gate(Part, frozen=True, kw_only=True):
    """A metric that must meet a condition before the next batch."""

    name: Annotated[Label, doc("Name of the gate.")]
    query: Annotated[
        str,
        doc(
            "PromQL query that returns one number. Substituted are ${revision} (the mark of its "
            "pods), ${namespace}, ${workload} and ${clusters} (those of the batches so far, "
            "joined by |).",
            min_length=1,
            max_length=4096,
        ),
    ]
    condition: Annotated[
        str,
        doc(
            "Condition on the number, such as `< 0.01`.",
            pattern=r"^(<|<=|>|>=|==|!=) *-?[0-9]+(\.[0-9]+)?$",
            max_length=64,
        ),
    ]
    interval_seconds: Annotated[Seconds, doc("Seconds between queries.", minimum=1)] = 60
    successes: Annotated[
        Count, doc("Number of times the condition must hold before a batch passes.", minimum=1)
    ] = 1
    failure_limit: Annotated[
        Count, doc("Number of times the condition may fail before the rollout fails.")
    ] = 0
    prometheus: Annotated[
        PrometheusServer | None,
        doc("Prometheus server to query, if the fleet allows it; unset: the fleet's."),
    ] = None


@rules(
    Rule(
        "!has(self.byGroup) || !self.byGroup || !has(self.batches) || size(self.batches) == 0",
        "batches are refused with byGroup",
        ".batches",
    )
)
class RolloutStrategy(Part, frozen=True, kw_only=True):
    """Order and pace of a rollout, and what must hold between batches."""

    canary: Annotated[Canary | None, doc("Replicas that get the revision first; unset: none.")] = (
        None
    )
    batches: Annotated[
        tuple[Batch, ...],
        doc(
            "Batches, in order; clusters that are in none of them come last. Empty: everything "
            "is one batch.",
            max_items=32,
            list_type="atomic",
        ),
    ] = ()
    by_group: Annotated[
        bool, doc("Whether each group of the placement policy is a batch, in the policy's order.")
    ] = False
    part_of_cluster: Annotated[
        bool,
        doc(
            "Whether the percentages of a canary and of batches may be a part of the replicas of "
            "a cluster for a Deployment too. This part runs in a second Deployment, whose name "
            "ends in -canary, until the cluster is updated. A StatefulSet and a LeaderWorkerSet "
            "always can be updated in part."
        ),
    ] = False
    max_unavailable: Annotated[
        Count | None,
        doc(
            "Maximum unavailable replicas, over all clusters, during the rollout; unset: by "
            "maxUnavailablePercent."
        ),
    ] = None
    max_unavailable_percent: Annotated[
        int,
        doc(
            "Maximum unavailable replicas as a percentage of all, rounded down.",
            minimum=0,
            maximum=100,
        ),
    ] = 25
    max_surge: Annotated[
        Count,
        doc(
            "Extra replicas that the workload requests during the rollout. They are claimed "
            "like any others, so quota and capacity are charged for them."
        ),
    ] = 0
    soak_seconds: Annotated[
        Seconds, doc("Seconds that a batch must be healthy before the next one begins.")
    ] = 0
    approval: Annotated[
        Literal["None", "AfterCanary", "EachBatch"],
        doc("Batches after which the rollout waits for approval."),
    ] = "None"
    gates: Annotated[
        tuple[Gate, ...],
        doc(
            "Metrics that must meet their conditions while a batch soaks.",
            max_items=16,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()


class RolloutSpec(Part, frozen=True, kw_only=True):
    """Which service to roll out, and how."""

    workload: Annotated[ServiceReference, doc("Service to roll out.")]
    strategy: Annotated[RolloutStrategy, doc("Order and pace of the rollout.")] = RolloutStrategy()
    on_failure: Annotated[
        Literal["Pause", "Rollback"],
        doc(
            "Pause: a bad revision stays where it is. Rollback: roll back to the last good "
            "revision."
        ),
    ] = "Rollback"
    progress_deadline_seconds: Annotated[
        Seconds, doc("Seconds without progress after which a batch has failed.", minimum=1)
    ] = 600
    revision_history_limit: Annotated[
        int, doc("Revisions to keep besides those in use.", minimum=0, maximum=100)
    ] = 10
    paused: Annotated[
        bool, doc("Whether the rollout is paused: nothing further gets another revision.")
    ] = False


class ClusterRevision(Part, frozen=True, kw_only=True):
    """Revision of one cluster; works are derived from it."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    group: Annotated[
        OptionalLabel, doc("Group of the placement policy that the cluster belongs to.")
    ] = ""
    revision: Annotated[
        int, doc("Number of the revision that the cluster should have.", minimum=0)
    ] = 0
    mark: Annotated[LabelValue, doc("Mark of that revision.")] = ""
    share: Annotated[
        Count | None, doc("Number of its replicas that should have it; unset: all.")
    ] = None
    base: Annotated[
        LabelValue,
        doc("Mark of the revision of its other replicas, if a second Deployment has the share."),
    ] = ""
    beside: Annotated[Count, doc("Number of its replicas that a second Deployment has now.")] = 0
    allowance: Annotated[
        Count, doc("Number of its replicas that may be unavailable during the update.")
    ] = 0
    replicas: Annotated[Count, doc("Replicas that the cluster should have.")] = 0
    updated: Annotated[Count, doc("Replicas of the revision.")] = 0
    ready: Annotated[Count, doc("Ready replicas of the revision.")] = 0
    available: Annotated[Count, doc("Ready replicas of any revision.")] = 0
    is_unheard: Annotated[
        bool, doc("Whether the cluster's agent is silent; the rollout does not wait for it.")
    ] = False


class GateStatus(Part, frozen=True, kw_only=True):
    """Results of a gate in this batch."""

    name: Annotated[Label, doc("Name of the gate.")]
    value: Annotated[str, doc("Value at the last query.", max_length=64)] = ""
    message: Annotated[Text, doc("Why there is no value.")] = ""
    successes: Annotated[Count, doc("Number of times the condition held.")] = 0
    failures: Annotated[Count, doc("Number of times the condition failed.")] = 0
    asked_at: Annotated[datetime | None, doc("Time of the last query.")] = None


class RevisionNote(Part, frozen=True, kw_only=True):
    """One revision of the service, in its history."""

    revision: Annotated[int, doc("Number of the revision; the latest has the highest.", minimum=1)]
    mark: Annotated[LabelValue, doc("Digest of the template, which identifies the revision.")]
    is_unmarked: Annotated[
        bool, doc("Whether its pods carry no mark, since they ran before there was a Rollout.")
    ] = False
    created_at: Annotated[datetime | None, doc("When it was first seen.")] = None
    change_cause: Annotated[
        Text, doc("Value of the annotation kubernetes.io/change-cause at that time.")
    ] = ""
    outcome: Annotated[
        Code, doc("Completed, Superseded, or why it failed; empty while it is rolled out.")
    ] = ""


class RolloutStatus(Part, frozen=True, kw_only=True):
    """Progress of the rollout."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    workload_generation: Annotated[
        int, doc("Generation of the workload that this status reflects.", minimum=0)
    ] = 0
    phase: Annotated[RolloutPhase | None, doc("Phase of the rollout.")] = None
    reason: Annotated[Code, doc("Reason code for the phase.")] = ""
    message: Annotated[Text, doc("What the rollout waits for or what went wrong, for people.")] = ""
    revision: Annotated[int, doc("Number of the latest revision.", minimum=0)] = 0
    target: Annotated[LabelValue, doc("Mark of the latest revision.")] = ""
    stable_revision: Annotated[
        int, doc("Number of the last revision that was healthy in all clusters.", minimum=0)
    ] = 0
    stable: Annotated[LabelValue, doc("Mark of that revision.")] = ""
    current_batch: Annotated[Count, doc("Batch in progress, from 0.")] = 0
    batches: Annotated[Count, doc("Number of batches.")] = 0
    replicas: Annotated[Count, doc("Placed replicas of the service.")] = 0
    updated: Annotated[Count, doc("Ready replicas of the latest revision.")] = 0
    ready: Annotated[Count, doc("Ready replicas of any revision.")] = 0
    going_back: Annotated[
        bool, doc("Whether the service is rolled back to the last good revision.")
    ] = False
    failure: Annotated[Code, doc("Why the latest revision failed; empty: it has not failed.")] = ""
    failures: Annotated[Count, doc("How often this revision failed.")] = 0
    progressed_at: Annotated[datetime | None, doc("Time of the last progress.")] = None
    progress: Annotated[
        Count, doc("Highest number of ready replicas of the revision reached in this batch.")
    ] = 0
    batch_ready_at: Annotated[
        datetime | None, doc("Time since which the batch has been healthy.")
    ] = None
    clusters: Annotated[
        tuple[ClusterRevision, ...],
        doc(
            "Revision of each cluster.",
            max_items=512,
            list_type="map",
            list_map_keys=["cluster"],
        ),
    ] = ()
    gates: Annotated[
        tuple[GateStatus, ...],
        doc("Results of the gates.", max_items=16, list_type="map", list_map_keys=["name"]),
    ] = ()
    history: Annotated[
        tuple[RevisionNote, ...],
        doc("Revisions that are kept, latest last.", max_items=128, list_type="atomic"),
    ] = ()
    conditions: Annotated[Conditions, doc("Latest observations of the rollout's state.")] = ()


def approval_of(status: RolloutStatus) -> str:
    """The annotation value that approves the last healthy batch."""
    return f"{status.revision}.{status.current_batch}"


def failure_of(status: RolloutStatus) -> str:
    """The annotation value that resumes after the last failure."""
    return f"{status.revision}.{status.failures}"


class Rollout(Object, frozen=True, kw_only=True):
    """How new revisions of a service are rolled out: in batches, checked, rolled back if bad."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[RolloutSpec, doc("Which service to roll out, and how.")]
    status: Annotated[RolloutStatus, doc("Progress of the rollout.")] = RolloutStatus()


class RevisionSpec(Part, frozen=True, kw_only=True):
    """Template of a revision; it never changes."""

    workload: Annotated[Reference, doc("Name of the workload.")]
    mark: Annotated[LabelValue, doc("Digest of the template, which identifies the revision.")]
    template: Annotated[Template, doc("Objects to create in a cluster.")]


class Revision(Object, frozen=True, kw_only=True):
    """One revision of a service: its template, kept by a Rollout for as long as it is needed."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[RevisionSpec, doc("Template of the revision.")]
