"""The claim: the durable decision on a workload, in its status.

One decision is one write, of this. It says all that works are derived from, and all that quota and
capacity are charged by, so that a changed spec or a restarted hub changes nothing that was decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fairway.api.doc import (
    Code,
    Count,
    Label,
    LabelValue,
    Name,
    OptionalLabel,
    Priority,
    Reference,
    ResourceName,
    Seconds,
    Text,
    doc,
)
from fairway.api.meta import Part, ResourceList, Rung


class PlacedPodSet(Part, frozen=True, kw_only=True):
    """Pods of one set in one cluster."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count, doc("How many pods.")]
    requests: Annotated[ResourceList, doc("What each pod is charged.")] = {}
    flavors: Annotated[
        Mapping[ResourceName, Name], doc("Flavor of each resource.", max_properties=64)
    ] = {}
    topology_level: Annotated[OptionalLabel, doc("Level of the topology domains chosen.")] = ""
    domains: Annotated[
        Mapping[LabelValue, Count], doc("Pods in each topology domain chosen.", max_properties=2000)
    ] = {}


class Placement(Part, frozen=True, kw_only=True):
    """What goes to one cluster."""

    cluster: Annotated[
        Reference, doc("Name of the cluster; empty where there are none and quota alone decides.")
    ]
    group: Annotated[OptionalLabel, doc("Group of the policy that it is in.")] = ""
    replicas: Annotated[Count | None, doc("Replicas, of a Divided workload.")] = None
    tasks: Annotated[
        str, doc("Tasks of an Independent workload, as ranges such as 0-41,43.", max_length=65536)
    ] = ""
    pod_sets: Annotated[
        tuple[PlacedPodSet, ...],
        doc("The pods.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    attempt: Annotated[int, doc("Attempt that the pods belong to.", minimum=0)] = 0
    leaves: Annotated[
        Literal["Now", "WhenReplaced", "WithinBudget"],
        doc(
            "When a place that is left is stopped: now; when as many replicas are ready in their "
            "new places; or as soon as the workload's disruption budget allows."
        ),
    ] = "Now"
    gives_way_to: Annotated[
        Reference,
        doc("Cluster where replicas start once those of a place that is left are gone."),
    ] = ""


class WorkloadMention(Part, frozen=True, kw_only=True):
    """A workload that another one tells of: by name in the same namespace, else by UID alone.

    Whoever may read the one need not know what others run.
    """

    namespace: Annotated[Reference, doc("Its namespace, where that is the same.")] = ""
    name: Annotated[Reference, doc("Its name, where its namespace is the same.")] = ""
    uid: Annotated[str, doc("Its UID.", max_length=64)] = ""
    queue: Annotated[Reference, doc("Its queue.")] = ""
    priority: Annotated[Priority | None, doc("Its priority.")] = None


class WaitsFor(Part, frozen=True, kw_only=True):
    """What must happen before the pods can run."""

    type: Annotated[
        Literal["Preemption", "Provision", "Data", "Ready"], doc("What sort of thing it is.")
    ]
    workload: Annotated[WorkloadMention | None, doc("The victim that must be gone.")] = None
    attempt: Annotated[int, doc("The last attempt of it that must be gone.", minimum=0)] = 0
    cluster: Annotated[Reference, doc("The cluster where it must happen.")] = ""
    pool: Annotated[OptionalLabel, doc("The elastic pool that must bring nodes.")] = ""
    count: Annotated[Count, doc("How many nodes it must bring.")] = 0
    data: Annotated[OptionalLabel, doc("The data that must arrive.")] = ""


class Claim(Part, frozen=True, kw_only=True):
    """The decision that holds."""

    attempt: Annotated[int, doc("Rises with each decision to run it anew.", minimum=0)]
    term: Annotated[int, doc("Term of the hub that decided.", minimum=0)]
    decided_at: Annotated[datetime, doc("When it was decided.")]
    queue: Annotated[Reference, doc("Queue that is charged.")] = ""
    summary: Annotated[str, doc("The clusters, for people.", max_length=1024)] = ""
    placements: Annotated[
        tuple[Placement, ...],
        doc("What goes where.", max_items=512, list_type="map", list_map_keys=["cluster"]),
    ] = ()
    alternative: Annotated[OptionalLabel, doc("Alternative that was chosen; empty: the first.")] = (
        ""
    )
    rung: Annotated[Rung, doc("How the capacity was got.")] = "Idle"
    waits_for: Annotated[
        tuple[WaitsFor, ...],
        doc("What must happen before the pods can run.", max_items=512, list_type="atomic"),
    ] = ()
    deadline: Annotated[datetime | None, doc("When the claim is given up if it is not ready.")] = (
        None
    )
    ready_at: Annotated[datetime | None, doc("When all its pods were ready.")] = None
    begun: Annotated[
        bool, doc("It was given more, or less, since: some of it may run though the rest waits.")
    ] = False


class Reservation(Part, frozen=True, kw_only=True):
    """Capacity that a waiting gang holds until it can start; it sticks to its place."""

    cluster: Annotated[Name, doc("Where it is held.")]
    flavors: Annotated[
        tuple[Name, ...], doc("Flavors of which it is held.", max_items=32, list_type="set")
    ]
    held_since: Annotated[datetime, doc("Since when it is held.")]
    starts_at: Annotated[datetime | None, doc("When it is expected to start.")] = None


class PastAttempt(Part, frozen=True, kw_only=True):
    """An attempt that is over, and the receipt of one that was preempted."""

    attempt: Annotated[int, doc("Which attempt.", minimum=0)]
    clusters: Annotated[
        tuple[Name, ...], doc("Where it was.", max_items=512, list_type="atomic")
    ] = ()
    started_at: Annotated[datetime | None, doc("When it ran.")] = None
    ended_at: Annotated[datetime | None, doc("When it ended.")] = None
    reason: Annotated[Code, doc("Code of why it ended.")] = ""
    message: Annotated[Text, doc("What the cluster said of it.")] = ""
    blame: Annotated[
        Literal["Place", "Program", "Decision", "Unknown"], doc("Who is to blame for its end.")
    ] = "Unknown"
    preempted_by: Annotated[WorkloadMention | None, doc("For whom it was preempted.")] = None
    lost_seconds: Annotated[Seconds, doc("Work that was lost, in seconds of run time.")] = 0
    exit_code: Annotated[int | None, doc("Exit code, where there was one.")] = None
