"""Workload: something to run. What is wanted is here; what was decided is in claim.py."""

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
    """The objects to make in the cluster."""

    manifests: Annotated[
        tuple[Annotated[JsonObject, limits(embedded=True)], ...],
        doc(
            "The objects; the first is the one that runs.",
            min_items=1,
            max_items=64,
            list_type="atomic",
        ),
    ]


class Gang(Part, frozen=True, kw_only=True):
    """How a workload starts that runs all together or not at all."""

    clusters_max: Annotated[
        Count, doc("Over how many clusters it may split, member by member.", minimum=1)
    ] = 1
    domain: Annotated[
        OptionalLabel, doc("Topology level of which one domain must hold the whole workload.")
    ] = ""
    start: Annotated[
        GangStart | None,
        doc("Whether capacity is reserved until it is ready; unset: as in the fleet."),
    ] = None
    placeholders: Annotated[
        bool, doc("Whether placeholder pods hold the capacity in the cluster.")
    ] = False
    ready_seconds: Annotated[
        Seconds | None, doc("How long it may take to be ready; unset: as in the fleet.")
    ] = None


class Tasks(Part, frozen=True, kw_only=True):
    """The tasks of an Independent workload, numbered."""

    count: Annotated[Count, doc("How many tasks.", minimum=1)]
    first: Annotated[Count, doc("Number of the first task.")] = 0
    concurrency: Annotated[
        Count | None,
        doc("Most tasks at a time over all clusters; unset means no limit.", minimum=1),
    ] = None
    range_size: Annotated[
        Count, doc("Tasks that are sent to a cluster together, as a range of numbers.", minimum=1)
    ] = 1
    retries: Annotated[Count, doc("How often a task is tried again.")] = 0
    failed_max: Annotated[
        Count | None, doc("Failed tasks after which the workload fails; unset: none may fail.")
    ] = None


@rules(
    Rule(
        "!has(self.estimate) || !has(self.limit) || self.estimate <= self.limit",
        "estimate must not exceed limit",
        ".estimate",
    )
)
class RunSeconds(Part, frozen=True, kw_only=True):
    """How long it runs."""

    estimate: Annotated[Seconds | None, doc("Expected run time, in seconds.")] = None
    limit: Annotated[
        Seconds | None, doc("Run time, over all attempts, after which it is stopped.", minimum=1)
    ] = None


class Checkpoint(Part, frozen=True, kw_only=True):
    """How the workload saves its work."""

    interval_seconds: Annotated[
        Seconds | None, doc("How often it saves by itself; unset: only when asked.")
    ] = None
    signal: Annotated[
        str,
        doc(
            "Signal that asks it to save; empty: it can't be asked.",
            pattern="^(SIG[A-Z0-9]+)?$",
            max_length=16,
        ),
    ] = "SIGTERM"
    grace_seconds: Annotated[Seconds, doc("Time it gets to save before it is stopped.")] = 60


class Disruption(Part, frozen=True, kw_only=True):
    """How much of a service the hub may take away by its own wish."""

    max_unavailable: Annotated[
        Count,
        doc(
            "Most replicas that may be missing while others are moved or drained; 0: none is "
            "stopped before its replacement is ready."
        ),
    ] = 1


class DataReference(Part, frozen=True, kw_only=True):
    """Data that the workload reads."""

    name: Annotated[Label, doc("Name of the data within the workload.")]
    dataset: Annotated[
        Reference, doc("Name of a Dataset; empty where only a location is known.")
    ] = ""
    location: Annotated[str, doc("Where the data is, as a URI.", max_length=2048)] = ""
    size: Annotated[Quantity | None, doc("How much of it is read, in bytes.")] = None
    required: Annotated[
        bool, doc("Whether the workload starts only where the data is; else nearness is a score.")
    ] = False


@rules(
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
    Rule("!has(self.gang) || self.mode == 'Gang'", "gang needs mode: Gang", ".gang"),
    Rule(
        "has(self.tasks) == (self.mode == 'Independent')",
        "tasks are needed with mode: Independent, and refused otherwise",
        ".tasks",
    ),
)
class WorkloadSpec(Part, frozen=True, kw_only=True):
    """What to run, how urgent it is, and how it may run."""

    queue: Annotated[
        Reference, doc("Queue to wait in; empty: that of the namespace, else of the fleet.")
    ] = ""
    priority: Annotated[
        Priority | None, doc("Higher goes first; unset: of the priority class, the queue, else 0.")
    ] = None
    priority_class: Annotated[Reference, doc("PriorityClass that gives the priority.")] = ""
    policy: Annotated[
        Reference,
        doc("Placement policy of this namespace, else the system's; empty: of the queue or fleet."),
    ] = ""
    mode: Annotated[
        Literal["Gang", "Divided", "Independent"],
        doc("All or nothing; replicas over clusters; or tasks that need not run together."),
    ] = "Gang"
    template: Annotated[Template | None, doc("The objects to make in the cluster.")] = None
    source: Annotated[
        ObjectReference | None, doc("The native object that this workload stands for.")
    ] = None
    pod_sets: Annotated[
        tuple[PodSet, ...],
        doc(
            "Pods that it needs; none: derived from the kind of the first manifest or the source.",
            max_items=18,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    replicas: Annotated[
        Count | None, doc("How many times a Divided workload runs its pod sets; unset: once.")
    ] = None
    disruption: Annotated[
        Disruption | None,
        doc(
            "How many replicas of a Divided workload moves and drains may take away at a time; "
            "unset: as a PodDisruptionBudget of the template says, else one in a move."
        ),
    ] = None
    gang: Annotated[Gang | None, doc("How a Gang starts.")] = None
    tasks: Annotated[Tasks | None, doc("The tasks of an Independent workload.")] = None
    flavors: Annotated[
        tuple[Name, ...],
        doc("Flavors it may use; none means any.", max_items=32, list_type="atomic"),
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
    run_seconds: Annotated[RunSeconds, doc("How long it runs.")] = RunSeconds()
    checkpoint: Annotated[
        Checkpoint | None, doc("How it saves its work; unset: all is lost when it is stopped.")
    ] = None
    preemptible: Annotated[
        bool, doc("Whether it may be preempted; if not, it only runs within nominal quota.")
    ] = True
    on_cluster_lost: Annotated[
        OnClusterLost | None,
        doc("What becomes of it when its cluster is lost; unset: of the queue, cluster or fleet."),
    ] = None
    cluster_lost_seconds: Annotated[
        Seconds | None, doc("How long its cluster is lost before StopAndMove stops it there.")
    ] = None
    retry: Annotated[Retry | None, doc("How it is tried again; unset: as in the fleet.")] = None
    data: Annotated[
        tuple[DataReference, ...],
        doc("Data it reads.", max_items=32, list_type="map", list_map_keys=["name"]),
    ] = ()
    dependencies: Annotated[
        tuple[ObjectReference, ...],
        doc(
            "Objects that travel along besides those found by kind.",
            max_items=64,
            list_type="atomic",
        ),
    ] = ()
    portable_volumes: Annotated[
        tuple[Name, ...],
        doc("Volume claims that do not pin it to their cluster.", max_items=64, list_type="set"),
    ] = ()
    hold: Annotated[
        Hold, doc("Hold keeps it from starting; HoldAndDrain also stops it if it runs.")
    ] = "None"
    cancelled: Annotated[bool, doc("Stops it for good.")] = False
    finished_seconds: Annotated[
        Seconds | None, doc("How long it is kept once finished; unset: as in the fleet.")
    ] = None


class PodCount(Part, frozen=True, kw_only=True):
    """Pods of all clusters by what they do."""

    wanted: Annotated[Count, doc("Pods of the claim.")] = 0
    ready: Annotated[Count, doc("Pods that are ready.")] = 0
    succeeded: Annotated[Count, doc("Pods that succeeded.")] = 0
    failed: Annotated[Count, doc("Pods that failed.")] = 0


class Requeue(Part, frozen=True, kw_only=True):
    """When it is tried again."""

    count: Annotated[Count, doc("How often it came back.")] = 0
    not_before: Annotated[datetime | None, doc("When it may be tried again.")] = None
    avoid: Annotated[
        tuple[Name, ...],
        doc("Clusters that it keeps away from for a while.", max_items=64, list_type="set"),
    ] = ()
    avoid_until: Annotated[datetime | None, doc("Until when it keeps away from them.")] = None


class TrafficWeight(Part, frozen=True, kw_only=True):
    """How much of a service's traffic a cluster should get."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    weight: Annotated[
        int, doc("Its share, in thousandths of all; all are 0 where nothing is ready.", minimum=0)
    ] = 0
    ready: Annotated[Count, doc("Replicas there that are ready.")] = 0


class WorkloadStatus(Part, frozen=True, kw_only=True):
    """What became of it."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    phase: Annotated[
        Literal[
            "Waiting", "Claimed", "Running", "Stopping", "Held", "Succeeded", "Failed", "Cancelled"
        ]
        | None,
        doc("Where it is in its life."),
    ] = None
    reason: Annotated[Code, doc("Code of why it is in this phase; its text is made when read.")] = (
        ""
    )
    message: Annotated[Text, doc("What a failure says, as the cluster told it.")] = ""
    queue: Annotated[Reference, doc("Queue it waits or runs in.")] = ""
    priority: Annotated[Priority, doc("Priority it has.")] = 0
    queued_at: Annotated[datetime | None, doc("Since when it counts as waiting.")] = None
    increased_at: Annotated[
        datetime | None, doc("When more replicas or pods were last asked for; their age counts so.")
    ] = None
    started_at: Annotated[datetime | None, doc("When it first ran.")] = None
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    ran_seconds: Annotated[int, doc("How long earlier attempts ran.", minimum=0)] = 0
    claim: Annotated[Claim | None, doc("The decision on it that holds.")] = None
    reservation: Annotated[Reservation | None, doc("Capacity that it holds while it waits.")] = None
    releasing: Annotated[
        tuple[Placement, ...],
        doc(
            "Places it leaves; charged until the pods are confirmed gone.",
            max_items=512,
            list_type="atomic",
        ),
    ] = ()
    requeue: Annotated[Requeue | None, doc("When it is tried again.")] = None
    history: Annotated[
        tuple[PastAttempt, ...],
        doc("Its last attempts, the latest last.", max_items=10, list_type="atomic"),
    ] = ()
    pods: Annotated[PodCount, doc("Its pods in all clusters.")] = PodCount()
    replicas: Annotated[Count, doc("Replicas of a Divided workload that are placed.")] = 0
    surge_replicas: Annotated[
        Count, doc("Further replicas that it asks for while a new revision goes out.")
    ] = 0
    selector: Annotated[str, doc("Label selector of its pods, as text.", max_length=1024)] = ""
    traffic: Annotated[
        tuple[TrafficWeight, ...],
        doc(
            "How the traffic of a Divided workload should be shared by its clusters.",
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
    feedback: Annotated[
        Mapping[Label, Text], doc("Values that works fed back, by name.", max_properties=64)
    ] = {}
    conditions: Annotated[Conditions, doc("State of the workload, aspect by aspect.")] = ()


class Workload(Object, frozen=True, kw_only=True):
    """Something to run: manifests, the pods they need, and how urgent and how flexible it is."""

    spec: Annotated[WorkloadSpec, doc("What to run, and how it may run.")]
    status: Annotated[WorkloadStatus, doc("What became of it.")] = WorkloadStatus()
