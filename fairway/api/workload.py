"""Workload: something to run. Its spec is here; the decision on it is in claim.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fairway.api.amounts import Quantity
from fairway.api.claim import Claim, PastAttempt, Placement, Reservation
from fairway.api.doc import (
    Code,
    Count,
    Label,
    Name,
    OptionalLabel,
    Priority,
    Reference,
    Rule,
    Seconds,
    Text,
    doc,
    limits,
    rules,
)
from fairway.api.fleet import GangStart, Retry
from fairway.api.meta import (
    Conditions,
    Hold,
    JsonObject,
    JsonPart,
    Object,
    ObjectReference,
    OnClusterLost,
    Part,
)
from fairway.api.podset import Alternative, PodSet


class Template(JsonPart, frozen=True, kw_only=True):
    """Objects to create in the cluster."""

    manifests: Annotated[
        tuple[Annotated[JsonObject, limits(embedded=True)], ...],
        doc(
            "Objects to create; the first is the one that runs.",
            min_items=1,
            max_items=64,
            list_type="atomic",
        ),
    ]


class Gang(Part, frozen=True, kw_only=True):
    """How a workload starts whose pods run all together or not at all."""

    clusters_max: Annotated[
        Count, doc("Maximum clusters it may split over, member by member.", minimum=1)
    ] = 1
    domain: Annotated[
        OptionalLabel, doc("Topology level of which one domain must hold the whole workload.")
    ] = ""
    start: Annotated[
        GangStart | None,
        doc("Whether capacity is reserved until the gang is ready; unset: as in the fleet."),
    ] = None
    placeholders: Annotated[
        bool, doc("Whether placeholder pods hold the capacity in the cluster.")
    ] = False
    ready_seconds: Annotated[
        Seconds | None, doc("Seconds it may take to become ready; unset: as in the fleet.")
    ] = None


class Tasks(Part, frozen=True, kw_only=True):
    """The tasks of an Independent workload, numbered."""

    count: Annotated[Count, doc("Number of tasks.", minimum=1)]
    first: Annotated[Count, doc("Number of the first task.")] = 0
    concurrency: Annotated[
        Count | None,
        doc("Maximum tasks at a time over all clusters; unset: no limit.", minimum=1),
    ] = None
    range_size: Annotated[
        Count, doc("Number of tasks that are sent to a cluster together, as a range.", minimum=1)
    ] = 1
    retries: Annotated[Count, doc("Maximum retries of a task.")] = 0
    failed_max: Annotated[
        Count | None, doc("Maximum failed tasks; with more, the workload fails; unset: 0.")
    ] = None


@rules(
    Rule(
        "!has(self.estimate) || !has(self.limit) || self.estimate <= self.limit",
        "estimate must not exceed limit",
        ".estimate",
    )
)
class RunSeconds(Part, frozen=True, kw_only=True):
    """Expected and maximum run time."""

    estimate: Annotated[Seconds | None, doc("Expected run time, in seconds.")] = None
    limit: Annotated[
        Seconds | None,
        doc(
            "Maximum run time over all attempts, in seconds; the workload is then stopped.",
            minimum=1,
        ),
    ] = None


class Checkpoint(Part, frozen=True, kw_only=True):
    """How the workload saves its work."""

    interval_seconds: Annotated[
        Seconds | None,
        doc("Seconds between saves it does by itself; unset: only when asked."),
    ] = None
    signal: Annotated[
        str,
        doc(
            "Signal that asks it to save; empty: it cannot be asked.",
            pattern="^(SIG[A-Z0-9]+)?$",
            max_length=16,
        ),
    ] = "SIGTERM"
    grace_seconds: Annotated[Seconds, doc("Seconds it gets to save before it is stopped.")] = 60


class Disruption(Part, frozen=True, kw_only=True):
    """How many replicas of a service the hub may take away on its own initiative."""

    max_unavailable: Annotated[
        Count,
        doc(
            "Maximum unavailable replicas during moves and drains; 0: no replica is stopped "
            "before its replacement is ready."
        ),
    ] = 1


class DataReference(Part, frozen=True, kw_only=True):
    """Data that the workload reads."""

    name: Annotated[Label, doc("Name of the data within the workload.")]
    dataset: Annotated[Reference, doc("Name of a Dataset; empty if only a location is known.")] = ""
    location: Annotated[str, doc("Location of the data, as a URI.", max_length=2048)] = ""
    size: Annotated[Quantity | None, doc("Amount of data that is read, in bytes.")] = None
    required: Annotated[
        bool,
        doc("Whether the workload starts only where the data is; if false, proximity is a score."),
    ] = False


@rules(
    Rule(
        "!has(self.data) || size(self.data) == 0",
        "data is not supported yet: where data is, is not known",
        ".data",
    ),
    Rule(
        "has(self.template) || has(self.source) || (has(self.podSets) && size(self.podSets) > 0)",
        "a workload needs a template, a source or pod sets",
    ),
    Rule(
        "!has(self.replicas) || self.mode == 'Divided'", "replicas need mode: Divided", ".replicas"
    ),
    Rule(
        "!has(self.disruption) || self.mode == 'Divided'",
        "disruption needs mode: Divided",
        ".disruption",
    ),
    Rule(
        "!has(self.rebalanceAt) || self.mode == 'Divided'",
        "rebalanceAt needs mode: Divided",
        ".rebalanceAt",
    ),
    Rule("!has(self.gang) || self.mode == 'Gang'", "gang needs mode: Gang", ".gang"),
    Rule(
        "has(self.tasks) == (self.mode == 'Independent')",
        "tasks are needed with mode: Independent, and refused otherwise",
        ".tasks",
    ),
)
class WorkloadSpec(Part, frozen=True, kw_only=True):
    """What to run, with which priority, and how it may run."""

    queue: Annotated[
        Reference,
        doc("Queue to wait in; empty: the default queue of the namespace, else of the fleet."),
    ] = ""
    priority: Annotated[
        Priority | None,
        doc("Higher goes first; unset: from the priority class, then the queue, else 0."),
    ] = None
    priority_class: Annotated[Reference, doc("PriorityClass that gives the priority.")] = ""
    policy: Annotated[
        Reference,
        doc(
            "Placement policy in this namespace, else in the system namespace; empty: that of "
            "the queue or fleet."
        ),
    ] = ""
    mode: Annotated[
        Literal["Gang", "Divided", "Independent"],
        doc(
            "Gang: all or nothing. Divided: replicas over clusters. Independent: tasks that "
            "need not run together."
        ),
    ] = "Gang"
    template: Annotated[Template | None, doc("Objects to create in the cluster.")] = None
    source: Annotated[
        ObjectReference | None, doc("Native object that this workload represents.")
    ] = None
    pod_sets: Annotated[
        tuple[PodSet, ...],
        doc(
            "Pods that it needs; empty: derived from the kind of the first manifest or the source.",
            max_items=18,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    replicas: Annotated[
        Count | None, doc("Number of replicas of a Divided workload; unset: 1.")
    ] = None
    disruption: Annotated[
        Disruption | None,
        doc(
            "How many replicas of a Divided workload moves and drains may take away at a time; "
            "unset: as in a PodDisruptionBudget of the template, else one per move."
        ),
    ] = None
    gang: Annotated[Gang | None, doc("How a Gang starts.")] = None
    tasks: Annotated[Tasks | None, doc("Tasks of an Independent workload.")] = None
    flavors: Annotated[
        tuple[Name, ...],
        doc("Flavors it may use; empty: any.", max_items=32, list_type="atomic"),
    ] = ()
    alternatives: Annotated[
        tuple[Alternative, ...],
        doc(
            "Other forms in which it may run, in the order in which they are tried.",
            max_items=8,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    run_seconds: Annotated[RunSeconds, doc("Expected and maximum run time.")] = RunSeconds()
    checkpoint: Annotated[
        Checkpoint | None, doc("How it saves its work; unset: all work is lost when it is stopped.")
    ] = None
    preemptible: Annotated[
        bool,
        doc(
            "Whether it may be preempted; if not, it runs only within nominal quota, and not on "
            "interruptible flavors or new nodes of interruptible pools."
        ),
    ] = True
    on_cluster_lost: Annotated[
        OnClusterLost | None,
        doc(
            "What happens when its cluster is lost; unset: as the queue, cluster or fleet "
            "specifies."
        ),
    ] = None
    cluster_lost_seconds: Annotated[
        Seconds | None,
        doc(
            "Seconds that its cluster must be lost before StopAndMove stops it there; unset: as "
            "in the cluster or fleet."
        ),
    ] = None
    retry: Annotated[Retry | None, doc("How it is retried; unset: as in the fleet.")] = None
    data: Annotated[
        tuple[DataReference, ...],
        doc("Data it reads.", max_items=32, list_type="map", list_map_keys=["name"]),
    ] = ()
    dependencies: Annotated[
        tuple[ObjectReference, ...],
        doc(
            "Objects that are sent along to the cluster, besides those found by kind.",
            max_items=64,
            list_type="atomic",
        ),
    ] = ()
    portable_volumes: Annotated[
        tuple[Name, ...],
        doc("Volume claims that do not pin it to their cluster.", max_items=64, list_type="set"),
    ] = ()
    hold: Annotated[Hold, doc("Hold: do not start it. HoldAndDrain: also stop it if it runs.")] = (
        "None"
    )
    cancelled: Annotated[bool, doc("Whether to stop it for good.")] = False
    rebalance_at: Annotated[
        datetime | None,
        doc(
            "Time at which the replicas of a Divided workload are divided afresh, once; a later "
            "time does so again."
        ),
    ] = None
    finished_seconds: Annotated[
        Seconds | None, doc("Seconds it is kept once finished; unset: as in the fleet.")
    ] = None


class PodCount(Part, frozen=True, kw_only=True):
    """Pods in all clusters, by state."""

    wanted: Annotated[Count, doc("Pods in the claim, and in copies that have succeeded.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0
    succeeded: Annotated[Count, doc("Pods that succeeded.")] = 0
    failed: Annotated[Count, doc("Pods that failed.")] = 0


class Requeue(Part, frozen=True, kw_only=True):
    """When the workload is retried."""

    count: Annotated[Count, doc("Number of retries so far.")] = 0
    not_before: Annotated[datetime | None, doc("Time from which it may be retried.")] = None
    avoid: Annotated[
        tuple[Name, ...],
        doc("Clusters that it avoids for a while.", max_items=64, list_type="set"),
    ] = ()
    avoid_until: Annotated[datetime | None, doc("Time until which it avoids them.")] = None


class TrafficWeight(Part, frozen=True, kw_only=True):
    """Share of a service's traffic that a cluster should get."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    weight: Annotated[
        int,
        doc(
            "Share of the traffic, in thousandths; 0 for all clusters if nothing is ready.",
            minimum=0,
        ),
    ] = 0
    ready: Annotated[Count, doc("Ready replicas in the cluster.")] = 0


class WorkloadStatus(Part, frozen=True, kw_only=True):
    """State of the workload."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    phase: Annotated[
        Literal[
            "Waiting", "Claimed", "Running", "Stopping", "Held", "Succeeded", "Failed", "Cancelled"
        ]
        | None,
        doc("Phase of the workload."),
    ] = None
    reason: Annotated[Code, doc("Reason code for the phase; its text is generated when read.")] = ""
    message: Annotated[Text, doc("Message of a failure, from the cluster.")] = ""
    queue: Annotated[Reference, doc("Queue it waits or runs in.")] = ""
    priority: Annotated[Priority, doc("Priority in effect.")] = 0
    queued_at: Annotated[datetime | None, doc("Time since which it counts as pending.")] = None
    increased_at: Annotated[
        datetime | None,
        doc("When more replicas or pods were last requested; their age counts from then."),
    ] = None
    started_at: Annotated[datetime | None, doc("When it first ran.")] = None
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    ran_seconds: Annotated[int, doc("Run time of earlier attempts, in seconds.", minimum=0)] = 0
    claim: Annotated[Claim | None, doc("Claim in force.")] = None
    reservation: Annotated[Reservation | None, doc("Capacity held for it while it is pending.")] = (
        None
    )
    releasing: Annotated[
        tuple[Placement, ...],
        doc(
            "Placements being released; charged until their pods are confirmed gone.",
            max_items=512,
            list_type="atomic",
        ),
    ] = ()
    requeue: Annotated[Requeue | None, doc("When it is retried.")] = None
    history: Annotated[
        tuple[PastAttempt, ...],
        doc("Last attempts, latest last.", max_items=10, list_type="atomic"),
    ] = ()
    pods: Annotated[PodCount, doc("Pods in all clusters.")] = PodCount()
    replicas: Annotated[Count, doc("Placed replicas of a Divided workload.")] = 0
    rebalanced_at: Annotated[
        datetime | None, doc("When it was last divided afresh on request.")
    ] = None
    surge_replicas: Annotated[Count, doc("Extra replicas that it requests during a rollout.")] = 0
    selector: Annotated[str, doc("Label selector of its pods, as text.", max_length=1024)] = ""
    traffic: Annotated[
        tuple[TrafficWeight, ...],
        doc(
            "Recommended share of traffic of each cluster, for a Divided workload.",
            max_items=512,
            list_type="map",
            list_map_keys=["cluster"],
        ),
    ] = ()
    succeeded_tasks: Annotated[
        str, doc("Tasks that succeeded, as ranges such as 0-41,43.", max_length=65536)
    ] = ""
    failed_tasks: Annotated[
        str, doc("Tasks that failed for good, as ranges.", max_length=65536)
    ] = ""
    succeeded_clusters: Annotated[
        tuple[Name, ...],
        doc(
            "Clusters in which a copy of a Duplicated workload has succeeded; they get no other.",
            max_items=512,
            list_type="set",
        ),
    ] = ()
    feedback: Annotated[
        Mapping[Label, Text], doc("Values reported by works, by name.", max_properties=64)
    ] = {}
    conditions: Annotated[Conditions, doc("Latest observations of the workload's state.")] = ()

    @property
    def stopping(self) -> tuple[Placement, ...]:
        """What is being released and stops in any case: all of it, once there is no claim."""
        return tuple(
            placement for placement in self.releasing if self.claim is None or placement.stops
        )

    def has_traffic(self, cluster: str) -> bool:
        """Whether requests are sent to a cluster, by the weights last published."""
        return any(share.cluster == cluster and share.weight for share in self.traffic)


class Workload(Object, frozen=True, kw_only=True):
    """Something to run: manifests, the pods they need, and how urgent and how flexible it is."""

    spec: Annotated[WorkloadSpec, doc("What to run, and how it may run.")]
    status: Annotated[WorkloadStatus, doc("State of the workload.")] = WorkloadStatus()
