"""The claim: the durable decision on a workload, stored in its status.

One decision is one write. The claim has everything that works are derived from and that quota and
capacity are charged by, so a changed spec or a restarted hub changes nothing already decided.
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
    """Pods of one pod set in one cluster."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count, doc("Number of pods.")]
    finished: Annotated[
        Count, doc("Number of these pods that have finished and are not charged any more.")
    ] = 0
    requests: Annotated[ResourceList, doc("Resources charged per pod.")] = {}
    flavors: Annotated[
        Mapping[ResourceName, Name], doc("Flavor of each resource.", max_properties=64)
    ] = {}
    topology_level: Annotated[OptionalLabel, doc("Level of the chosen topology domains.")] = ""
    domains: Annotated[
        Mapping[LabelValue, Count],
        doc("Number of pods in each chosen topology domain.", max_properties=2000),
    ] = {}


class Placement(Part, frozen=True, kw_only=True):
    """The part of a claim in one cluster."""

    cluster: Annotated[
        Reference,
        doc("Name of the cluster; empty if there are no clusters and only quota is decided."),
    ]
    group: Annotated[
        OptionalLabel, doc("Group of the placement policy that the cluster belongs to.")
    ] = ""
    replicas: Annotated[Count | None, doc("Replicas of a Divided workload.")] = None
    tasks: Annotated[
        str, doc("Tasks of an Independent workload, as ranges such as 0-41,43.", max_length=65536)
    ] = ""
    pod_sets: Annotated[
        tuple[PlacedPodSet, ...],
        doc("Pods, by pod set.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    attempt: Annotated[int, doc("Attempt that the pods belong to.", minimum=0)] = 0
    leaves: Annotated[
        Literal["Now", "WhenReplaced", "WithinBudget", "AfterTraffic"],
        doc(
            "When a released placement is stopped. Now: at once. WhenReplaced: when as many "
            "replicas are ready in their new places. WithinBudget: as soon as the workload's "
            "disruption budget allows. AfterTraffic: once its cluster has had no weight for the "
            "fleet's trafficSeconds."
        ),
    ] = "Now"
    leaves_by: Annotated[
        datetime | None,
        doc(
            "Time at which a placement that leaves within the budget, or after its traffic, stops."
        ),
    ] = None
    gives_way_to: Annotated[
        Reference,
        doc("Cluster where replicas start once those of this released placement are gone."),
    ] = ""

    @property
    def stops(self) -> bool:
        """Whether a released placement stops in any case, whatever becomes of other replicas."""
        return self.leaves in ("Now", "AfterTraffic")


class WorkloadMention(Part, frozen=True, kw_only=True):
    """A reference to another workload: by name in the same namespace, otherwise by UID only.

    A user who may read one workload must not learn what other namespaces run.
    """

    namespace: Annotated[
        Reference, doc("Namespace of the workload; set only if it is the referring workload's own.")
    ] = ""
    name: Annotated[
        Reference, doc("Name of the workload; set only if it is in the same namespace.")
    ] = ""
    uid: Annotated[str, doc("UID of the workload.", max_length=64)] = ""
    queue: Annotated[Reference, doc("Queue of the workload.")] = ""
    priority: Annotated[Priority | None, doc("Priority of the workload.")] = None


class WaitsFor(Part, frozen=True, kw_only=True):
    """A condition to be met before the pods can run."""

    type: Annotated[Literal["Preemption", "Provision"], doc("Type of the condition.")]
    workload: Annotated[WorkloadMention | None, doc("Preempted workload that must be gone.")] = None
    attempt: Annotated[int, doc("Last attempt of that workload that must be gone.", minimum=0)] = 0
    cluster: Annotated[Reference, doc("Cluster where it must happen.")] = ""
    pool: Annotated[OptionalLabel, doc("Elastic pool that must provision nodes.")] = ""
    count: Annotated[Count, doc("Number of nodes to provision.")] = 0


class Claim(Part, frozen=True, kw_only=True):
    """The decision in force."""

    attempt: Annotated[
        int, doc("Number of the attempt; increases with each new attempt.", minimum=0)
    ]
    term: Annotated[int, doc("Term of the hub that made the decision.", minimum=0)]
    decided_at: Annotated[datetime, doc("Time of the decision.")]
    queue: Annotated[Reference, doc("Queue whose quota is charged.")] = ""
    summary: Annotated[str, doc("List of the clusters, for people.", max_length=1024)] = ""
    placements: Annotated[
        tuple[Placement, ...],
        doc(
            "Placements, one per cluster.",
            max_items=512,
            list_type="map",
            list_map_keys=["cluster"],
        ),
    ] = ()
    alternative: Annotated[
        OptionalLabel,
        doc("Name of the chosen alternative; empty: none."),
    ] = ""
    rung: Annotated[
        Rung, doc("How the capacity was obtained: idle, by preemption, or by provisioning nodes.")
    ] = "Idle"
    waits_for: Annotated[
        tuple[WaitsFor, ...],
        doc("What must happen before the pods can run.", max_items=512, list_type="atomic"),
    ] = ()
    deadline: Annotated[
        datetime | None, doc("When the claim is withdrawn unless the workload is ready.")
    ] = None
    ready_at: Annotated[datetime | None, doc("When all its pods were ready.")] = None
    run_seconds_limit: Annotated[
        Seconds | None,
        doc("Maximum run time by the fleet policies in force when it was decided; unset: none."),
    ] = None
    missing_copies: Annotated[
        Count | None,
        doc(
            "Copies of a Duplicated workload that ends, such as a Job, which its policy asks for "
            "and which have no place yet; unset for all others."
        ),
    ] = None
    begun: Annotated[
        bool,
        doc(
            "Whether the claim was resized after it was made, so that part of it may run while "
            "the rest waits."
        ),
    ] = False


class Reservation(Part, frozen=True, kw_only=True):
    """Capacity held for a pending gang until it can start; it stays in the same cluster."""

    cluster: Annotated[Name, doc("Cluster where the capacity is held.")]
    flavors: Annotated[
        tuple[Name, ...], doc("Flavors of the held capacity.", max_items=32, list_type="set")
    ]
    held_since: Annotated[datetime, doc("Time since which the capacity has been held.")]
    starts_at: Annotated[datetime | None, doc("When the gang is expected to start.")] = None


class PastAttempt(Part, frozen=True, kw_only=True):
    """An attempt that has ended, with the record of its preemption if it was preempted."""

    attempt: Annotated[int, doc("Number of the attempt.", minimum=0)]
    clusters: Annotated[
        tuple[Name, ...], doc("Clusters where it was placed.", max_items=512, list_type="atomic")
    ] = ()
    started_at: Annotated[datetime | None, doc("When it started to run.")] = None
    ended_at: Annotated[datetime | None, doc("When it ended.")] = None
    reason: Annotated[Code, doc("Reason code for its end.")] = ""
    message: Annotated[Text, doc("Message from the cluster.")] = ""
    blame: Annotated[
        Literal["Place", "Program", "Decision", "Unknown"],
        doc(
            "What caused its end: Place (cluster or node), Program, Decision (of the hub) or "
            "Unknown."
        ),
    ] = "Unknown"
    preempted_by: Annotated[WorkloadMention | None, doc("Workload for which it was preempted.")] = (
        None
    )
    lost_seconds: Annotated[Seconds, doc("Run time lost, in seconds.")] = 0
    exit_code: Annotated[int | None, doc("Exit code, if there was one.")] = None
