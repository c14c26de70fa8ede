"""Rollout and Revision: how a new version of a service goes out, and what the versions were.

Without a Rollout a changed template reaches every cluster at once. With one, each cluster has the
revision that the status of the Rollout says. A revision is an object of its own: templates are too
large for a list in a status, and one that is written once can be read again for an undo.
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

# Annotations by which somebody lets a rollout go on; its spec may be in a repository.
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
    """A Divided workload, by itself or by the native object that it stands for."""

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
    """The few replicas that get a new revision before all others."""

    percent: Annotated[_Percent, doc("How much of all replicas, rounded up; at least one.")] = 10
    clusters: Annotated[
        tuple[Name, ...],
        doc(
            "Clusters that it is taken from; none: those with the fewest replicas first.",
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
    """What gets the new revision together, beside all that have it already."""

    clusters: Annotated[
        tuple[Name, ...], doc("These clusters.", max_items=512, list_type="atomic")
    ] = ()
    group: Annotated[
        OptionalLabel, doc("The clusters of this group of the workload's placement policy.")
    ] = ""
    percent: Annotated[
        _Percent | None,
        doc("As many clusters as it takes until this much of all replicas have it."),
    ] = None


class Gate(Part, frozen=True, kw_only=True):
    """A number that must be as wanted before the next batch."""

    name: Annotated[Label, doc("Name of the gate.")]
    query: Annotated[
        str,
        doc(
            "PromQL that yields one number. Filled in are ${revision} (the mark of its pods), "
            "${namespace}, ${workload} and ${clusters} (those of the batches so far, joined by |).",
            min_length=1,
            max_length=4096,
        ),
    ]
    condition: Annotated[
        str,
        doc(
            "What the number must be, such as `< 0.01`.",
            pattern=r"^(<|<=|>|>=|==|!=) *-?[0-9]+(\.[0-9]+)?$",
            max_length=64,
        ),
    ]
    interval_seconds: Annotated[Seconds, doc("How often it is asked.", minimum=1)] = 60
    successes: Annotated[
        Count, doc("How often it must have been as wanted before a batch passes.", minimum=1)
    ] = 1
    failure_limit: Annotated[
        Count, doc("How often it may be otherwise before the rollout fails.")
    ] = 0
    prometheus: Annotated[
        PrometheusServer | None,
        doc("Another server to ask, where the fleet allows it; unset: that of the fleet."),
    ] = None


@rules(
    Rule(
        "!has(self.byGroup) || !self.byGroup || !has(self.batches) || size(self.batches) == 0",
        "batches are refused with byGroup",
        ".batches",
    )
)
class RolloutStrategy(Part, frozen=True, kw_only=True):
    """In which order, how fast, and what must hold in between."""

    canary: Annotated[Canary | None, doc("The few that go first; unset: none.")] = None
    batches: Annotated[
        tuple[Batch, ...],
        doc(
            "What goes out together, one after another; what none of them names comes last. None: "
            "everything is one batch.",
            max_items=32,
            list_type="atomic",
        ),
    ] = ()
    by_group: Annotated[
        bool, doc("Whether each group of the placement policy is a batch, in the policy's order.")
    ] = False
    max_unavailable: Annotated[
        Count | None,
        doc("Replicas, over all clusters, that may be lacking meanwhile; unset: by the percent."),
    ] = None
    max_unavailable_percent: Annotated[
        int,
        doc("The same in percent of all replicas, rounded down.", minimum=0, maximum=100),
    ] = 25
    max_surge: Annotated[
        Count,
        doc(
            "Further replicas that the workload asks for meanwhile. They are claimed like any "
            "others, so quota and capacity are charged for them."
        ),
    ] = 0
    soak_seconds: Annotated[
        Seconds, doc("How long a batch must be well before the next one begins.")
    ] = 0
    approval: Annotated[
        Literal["None", "AfterCanary", "EachBatch"],
        doc("After which batches somebody must say that it goes on."),
    ] = "None"
    gates: Annotated[
        tuple[Gate, ...],
        doc(
            "Numbers that must be as wanted while a batch soaks.",
            max_items=16,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()


class RolloutSpec(Part, frozen=True, kw_only=True):
    """Whose new revisions go out, and how."""

    workload: Annotated[ServiceReference, doc("The service.")]
    strategy: Annotated[RolloutStrategy, doc("In which order, and how fast.")] = RolloutStrategy()
    on_failure: Annotated[
        Literal["Pause", "Rollback"],
        doc("Whether a bad revision stays where it is, or the last good one comes back."),
    ] = "Rollback"
    progress_deadline_seconds: Annotated[
        Seconds, doc("Time without progress after which a batch has failed.", minimum=1)
    ] = 600
    revision_history_limit: Annotated[
        int, doc("Revisions that are kept besides those in use.", minimum=0, maximum=100)
    ] = 10
    paused: Annotated[bool, doc("Whether nothing further gets another revision.")] = False


class ClusterRevision(Part, frozen=True, kw_only=True):
    """The revision of one cluster; works are derived from this."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    group: Annotated[OptionalLabel, doc("Group of the policy that it is in.")] = ""
    revision: Annotated[int, doc("Number of the revision that it is to have.", minimum=0)] = 0
    mark: Annotated[LabelValue, doc("Mark of that revision.")] = ""
    share: Annotated[
        Count | None, doc("How many of its replicas are to have it; unset means all.")
    ] = None
    allowance: Annotated[
        Count, doc("How many of its replicas may be lacking while it gets there.")
    ] = 0
    replicas: Annotated[Count, doc("Replicas that it is to have.")] = 0
    updated: Annotated[Count, doc("Replicas of the revision.")] = 0
    ready: Annotated[Count, doc("Replicas of the revision that are ready.")] = 0
    available: Annotated[Count, doc("Replicas of any revision that are ready.")] = 0
    is_unheard: Annotated[bool, doc("Its agent is silent; nobody waits for it.")] = False


class GateStatus(Part, frozen=True, kw_only=True):
    """What a gate said in this batch."""

    name: Annotated[Label, doc("Name of the gate.")]
    value: Annotated[str, doc("The number when it was last asked.", max_length=64)] = ""
    message: Annotated[Text, doc("Why there is no number.")] = ""
    successes: Annotated[Count, doc("How often it was as wanted.")] = 0
    failures: Annotated[Count, doc("How often it was not.")] = 0
    asked_at: Annotated[datetime | None, doc("When it was last asked.")] = None


class RevisionNote(Part, frozen=True, kw_only=True):
    """One revision of the service, in its history."""

    revision: Annotated[int, doc("Its number; the latest has the highest.", minimum=1)]
    mark: Annotated[LabelValue, doc("A digest of the template, by which it is known.")]
    is_unmarked: Annotated[
        bool, doc("Its pods carry no mark: they ran before there was a Rollout.")
    ] = False
    created_at: Annotated[datetime | None, doc("When it was first seen.")] = None
    change_cause: Annotated[
        Text, doc("The annotation kubernetes.io/change-cause as it was then.")
    ] = ""
    outcome: Annotated[Code, doc("Completed, or why it failed; empty while it goes out.")] = ""


class RolloutStatus(Part, frozen=True, kw_only=True):
    """How far it is."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    workload_generation: Annotated[
        int, doc("Generation of the workload that the status was made from.", minimum=0)
    ] = 0
    phase: Annotated[RolloutPhase | None, doc("Where it is.")] = None
    reason: Annotated[Code, doc("Code of why it is in this phase.")] = ""
    message: Annotated[Text, doc("What it waits for or what went wrong, for people.")] = ""
    revision: Annotated[int, doc("Number of the latest revision.", minimum=0)] = 0
    target: Annotated[LabelValue, doc("Mark of the latest revision.")] = ""
    stable_revision: Annotated[
        int, doc("Number of the revision that was last everywhere and well.", minimum=0)
    ] = 0
    stable: Annotated[LabelValue, doc("Mark of that revision.")] = ""
    current_batch: Annotated[Count, doc("The batch that is under way, from 0.")] = 0
    batches: Annotated[Count, doc("How many batches there are.")] = 0
    replicas: Annotated[Count, doc("Replicas of the service that are placed.")] = 0
    updated: Annotated[Count, doc("Replicas of the latest revision that are ready.")] = 0
    ready: Annotated[Count, doc("Replicas of any revision that are ready.")] = 0
    going_back: Annotated[bool, doc("Whether the last good revision is to come back.")] = False
    failure: Annotated[Code, doc("Why the latest revision failed; empty: it has not.")] = ""
    failures: Annotated[Count, doc("How often this revision failed.")] = 0
    progressed_at: Annotated[datetime | None, doc("When it last came further.")] = None
    progress: Annotated[Count, doc("Replicas that were where they are to be, at most so far.")] = 0
    batch_ready_at: Annotated[datetime | None, doc("Since when the batch is well.")] = None
    clusters: Annotated[
        tuple[ClusterRevision, ...],
        doc(
            "The revision of each cluster.",
            max_items=512,
            list_type="map",
            list_map_keys=["cluster"],
        ),
    ] = ()
    gates: Annotated[
        tuple[GateStatus, ...],
        doc("What the gates said.", max_items=16, list_type="map", list_map_keys=["name"]),
    ] = ()
    history: Annotated[
        tuple[RevisionNote, ...],
        doc("Revisions that are kept, the latest last.", max_items=128, list_type="atomic"),
    ] = ()
    conditions: Annotated[Conditions, doc("State of the rollout, aspect by aspect.")] = ()


def approval_of(status: RolloutStatus) -> str:
    """What is written to approve of the batch that was last well."""
    return f"{status.revision}.{status.current_batch}"


def failure_of(status: RolloutStatus) -> str:
    """What is written to forgive the last failure."""
    return f"{status.revision}.{status.failures}"


class Rollout(Object, frozen=True, kw_only=True):
    """How new revisions of a service go out: in batches, watched, and back again if bad."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[RolloutSpec, doc("Whose new revisions go out, and how.")]
    status: Annotated[RolloutStatus, doc("How far it is.")] = RolloutStatus()


class RevisionSpec(Part, frozen=True, kw_only=True):
    """A template as it was; it never changes."""

    workload: Annotated[Reference, doc("Name of the workload.")]
    mark: Annotated[LabelValue, doc("A digest of the template, by which it is known.")]
    template: Annotated[Template, doc("The objects to make in a cluster.")]


class Revision(Object, frozen=True, kw_only=True):
    """One revision of a service: its template, kept by a Rollout for as long as it is needed."""

    api_group: ClassVar[str] = SERVING_GROUP
    api_version: str = field(default_factory=serving_api_version)
    spec: Annotated[RevisionSpec, doc("A template as it was.")]
