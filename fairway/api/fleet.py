"""Fleet: settings for all clusters of one hub. There is exactly one, named `fleet`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Code,
    Count,
    Key,
    Name,
    Reference,
    ResourceName,
    Rule,
    Seconds,
    doc,
    limits,
    rules,
)
from fairway.api.meta import (
    Object,
    OnClusterLost,
    Part,
    ResourceList,
    SecretReference,
)

ShareTest = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
GangStart = Literal["Reserve", "Detect"]


class Retry(Part, frozen=True, kw_only=True):
    """How often and how soon a workload is retried that failed or was not ready in time."""

    limit: Annotated[Count, doc("Maximum number of retries before a workload fails for good.")] = 3
    backoff_seconds: Annotated[
        Seconds, doc("Seconds before the first retry; each further retry doubles it.")
    ] = 60
    backoff_seconds_max: Annotated[Seconds, doc("Maximum seconds between two retries.")] = 3600
    elsewhere: Annotated[
        bool,
        doc(
            "Whether a retry avoids the cluster in which the last attempt failed, also if its own "
            "program is to blame. If no other cluster is allowed, it waits until it may be tried "
            "there again."
        ),
    ] = False


class FleetDefaults(Part, frozen=True, kw_only=True):
    """Defaults for what neither a workload nor its queue specifies."""

    queue: Annotated[
        Reference, doc("Queue of workloads that name none; empty: they stay pending.")
    ] = ""
    policy: Annotated[
        Reference, doc("Placement policy, in the system namespace, of workloads that name none.")
    ] = ""
    on_cluster_lost: Annotated[
        OnClusterLost, doc("What happens to workloads whose cluster is lost.")
    ] = "Wait"
    cluster_lost_seconds: Annotated[
        Seconds,
        doc("Seconds that a cluster must be lost before StopAndMove stops what runs there."),
    ] = 600
    gang_start: Annotated[
        GangStart,
        doc(
            "Reserve: hold capacity until a gang is ready. Detect: start it, and withdraw it if "
            "it does not become ready."
        ),
    ] = "Reserve"
    ready_seconds: Annotated[
        Seconds,
        doc(
            "Seconds that a gang may take to become ready before it returns to its queue, and that "
            "a replica of a service may be on a node without being ready before it is placed "
            "elsewhere."
        ),
    ] = 1800
    pending_seconds: Annotated[
        Seconds,
        doc("Seconds that a pod may be pending before it is withdrawn and placed elsewhere."),
    ] = 300
    leave_seconds: Annotated[
        Seconds,
        doc(
            "Seconds after which replicas that leave a drained or tainted cluster stop even if "
            "their disruption budget does not allow it."
        ),
    ] = 600
    traffic_seconds: Annotated[
        Seconds,
        doc(
            "Seconds that the last replicas of a service in a cluster go on running after its "
            "traffic weight became 0, so that gateways can follow; 0: they stop at once."
        ),
    ] = 10
    retry: Annotated[Retry, doc("How workloads are retried.")] = Retry()
    finished_seconds: Annotated[
        Seconds | None, doc("Seconds that finished workloads are kept; unset: forever.")
    ] = None


class FairShare(Part, frozen=True, kw_only=True):
    """How queues share capacity that they do not own."""

    enabled: Annotated[
        bool, doc("Whether siblings are ordered, and borrowers preempted, by their fair share.")
    ] = True
    usage_half_life_seconds: Annotated[
        Seconds,
        doc("Half-life of past usage in a share, in seconds; 0: past usage does not count."),
    ] = 0
    usage_sampling_seconds: Annotated[
        Seconds, doc("Seconds between samples of usage.", minimum=1)
    ] = 300
    resource_weights: Annotated[
        Mapping[ResourceName, Quantity],
        doc("Weight of one unit of each resource in past usage.", max_properties=64),
    ] = {}
    preemption_tests: Annotated[
        tuple[ShareTest, ...],
        doc(
            "Comparisons of shares that permit a preemption; one suffices.",
            min_items=1,
            max_items=2,
            list_type="set",
        ),
    ] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


class Breakers(Part, frozen=True, kw_only=True):
    """Limits at which the hub stops acting on its own, until it is below them again."""

    preemptions_per_hour: Annotated[
        Count | None, doc("Maximum preemptions per hour; unset: no limit.")
    ] = None
    moves_per_hour: Annotated[
        Count | None, doc("Maximum moves of running workloads per hour; unset: no limit.")
    ] = None
    deletions_per_hour: Annotated[
        Count | None, doc("Maximum works deleted from clusters per hour; unset: no limit.")
    ] = None
    price_per_hour: Annotated[
        Quantity | None,
        doc("Maximum cost of elastic nodes per hour, in the fleet's currency; unset: no limit."),
    ] = None


class Reservations(Part, frozen=True, kw_only=True):
    """How gangs that cannot start yet hold capacity, and which workloads may run ahead of them."""

    enabled: Annotated[bool, doc("Whether pending gangs hold capacity.")] = True
    after_seconds: Annotated[
        Seconds, doc("Seconds that a gang must be pending before it may hold capacity.")
    ] = 0
    per_flavor: Annotated[
        Count, doc("Maximum reservations at a time per cluster and flavor.", minimum=1)
    ] = 1
    backfill: Annotated[
        bool, doc("Whether workloads that end in time, or can be preempted, may use held capacity.")
    ] = True


class Health(Part, frozen=True, kw_only=True):
    """When a cluster is unready or lost, and how fast the hub cleans up."""

    heartbeat_seconds: Annotated[
        Seconds, doc("Seconds between heartbeats of an agent.", minimum=1)
    ] = 10
    unready_seconds: Annotated[
        Seconds,
        doc("Seconds without a heartbeat after which a cluster gets no new workloads.", minimum=1),
    ] = 40
    lost_seconds: Annotated[
        Seconds, doc("Seconds without a heartbeat after which a cluster is lost.", minimum=1)
    ] = 300
    skew_seconds: Annotated[
        Seconds,
        doc("Difference between clocks, in seconds, to allow for when workloads are replaced."),
    ] = 30
    deletions_per_second: Annotated[
        Count, doc("Maximum works deleted per second in each cluster.", minimum=1)
    ] = 10


class Accounting(Part, frozen=True, kw_only=True):
    """How usage is recorded."""

    days: Annotated[Count, doc("Number of days that accounts are kept.", minimum=1)] = 400
    team_label: Annotated[Key, doc("Label of workloads that names their team.")] = (
        "fairway.dev/team"
    )


class ResourceRule(Part, frozen=True, kw_only=True):
    """How a requested resource counts against quota."""

    resource: Annotated[ResourceName, doc("Name of the requested resource.")]
    counts_as: Annotated[
        ResourceList, doc("What one unit of it counts as; empty: it is not counted.")
    ] = {}
    keep: Annotated[bool, doc("Whether the resource itself is counted too.")] = False


@rules(
    Rule(
        "!(self.resource in ['cpu', 'memory', 'ephemeral-storage', 'pods'])",
        "devices are no cpu, memory, storage or pods: name a resource of their own",
        ".resource",
    )
)
class DeviceClassRule(Part, frozen=True, kw_only=True):
    """The resource that devices of a class count as."""

    name: Annotated[
        str,
        doc("Name of the DeviceClass in the clusters.", min_length=1, max_length=253),
    ]
    resource: Annotated[
        ResourceName,
        doc("Resource that each of its devices counts as, on nodes and in quota."),
    ]


class PrometheusServer(Part, frozen=True, kw_only=True):
    """A server with the Prometheus HTTP API."""

    url: Annotated[
        str,
        doc(
            "URL of the server, without /api/v1, such as https://prometheus.example.com/prefix.",
            pattern="^https?://[^ ?#]+$",
            max_length=2048,
        ),
    ]
    token: Annotated[
        SecretReference | None, doc("Secret with the bearer token for the server.")
    ] = None
    authority: Annotated[
        str,
        doc("CA certificates, in PEM, that verify the server; empty: the system's own.",
            max_length=65536),
    ] = ""  # fmt: skip


class Metrics(Part, frozen=True, kw_only=True):
    """Where metrics of services come from."""

    prometheus: Annotated[
        PrometheusServer | None,
        doc("Prometheus server of the fleet; unset: none."),
    ] = None
    allow_own_servers: Annotated[
        bool,
        doc("Whether objects of tenants may name another server, which the hub then calls."),
    ] = False


@rules(
    Rule(
        "!has(self.health) || !has(self.health.unreadySeconds) || !has(self.health.lostSeconds) || "
        "self.health.unreadySeconds <= self.health.lostSeconds",
        "a cluster is unready before it is lost: unreadySeconds must not exceed lostSeconds",
        ".health.unreadySeconds",
    )
)
class FleetSpec(Part, frozen=True, kw_only=True):
    """Settings of the whole fleet."""

    paused: Annotated[
        bool, doc("Whether the hub stops deciding and acting; what runs keeps running.")
    ] = False
    pause_reason: Annotated[str, doc("Why the fleet is paused.", max_length=1024)] = ""
    system_namespace: Annotated[
        Name, doc("Namespace whose placement policies all namespaces may use.")
    ] = "fairway-system"
    currency: Annotated[str, doc("Currency of all prices.", max_length=8)] = "USD"
    defaults: Annotated[
        FleetDefaults, doc("Defaults for what neither a workload nor its queue specifies.")
    ] = FleetDefaults()
    fair_share: Annotated[FairShare, doc("How queues share capacity that they do not own.")] = (
        FairShare()
    )
    breakers: Annotated[Breakers, doc("Limits at which the hub stops acting on its own.")] = (
        Breakers()
    )
    reservations: Annotated[Reservations, doc("How pending gangs hold capacity.")] = Reservations()
    health: Annotated[Health, doc("When clusters are unready or lost.")] = Health()
    metrics: Annotated[Metrics, doc("Where metrics of services come from.")] = Metrics()
    accounting: Annotated[Accounting, doc("How usage is recorded.")] = Accounting()
    resources: Annotated[
        tuple[ResourceRule, ...],
        doc(
            "How requested resources count against quota, if not as they are.",
            max_items=64,
            list_type="map",
            list_map_keys=["resource"],
        ),
    ] = ()
    device_classes: Annotated[
        tuple[DeviceClassRule, ...],
        doc(
            "What devices that pods ask for through resource claims count as, by device class. A "
            "claim of another class is refused.",
            max_items=128,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    ignored_resource_prefixes: Annotated[
        tuple[Annotated[str, limits(min_length=1, max_length=128)], ...],
        doc(
            "Prefixes of names of resources that need no quota; nodes must have them all the same.",
            max_items=64,
            list_type="set",
        ),
    ] = ()
    forecast_depth: Annotated[
        Count, doc("Number of workloads at the head of each queue whose start is forecast.")
    ] = 20
    history_seconds: Annotated[
        Seconds,
        doc(
            "Seconds for which decisions are in the history; a hub keeps at most 5,000 rounds of "
            "them."
        ),
    ] = 604_800


class BreakerStatus(Part, frozen=True, kw_only=True):
    """State of one breaker."""

    name: Annotated[
        Literal["Preemptions", "Moves", "Deletions", "Price"], doc("Name of the breaker.")
    ]
    past_hour: Annotated[
        Quantity,
        doc("Count of the past hour; for Price, the current cost of elastic nodes per hour."),
    ]
    open_since: Annotated[
        datetime | None,
        doc("Time since which the breaker has stopped the hub; unset: it does not."),
    ] = None


class FleetStatus(Part, frozen=True, kw_only=True):
    """State of the fleet."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    phase: Annotated[Code, doc("Running, Paused or Broken.")] = ""
    leader: Annotated[str, doc("Hub replica that decides.", max_length=253)] = ""
    clusters: Annotated[Count, doc("Number of accepted clusters.")] = 0
    ready_clusters: Annotated[Count, doc("Number of clusters that are ready.")] = 0
    waiting_workloads: Annotated[Count, doc("Number of pending workloads in all queues.")] = 0
    claimed_workloads: Annotated[Count, doc("Workloads of all queues that hold a claim.")] = 0
    breakers: Annotated[
        tuple[BreakerStatus, ...],
        doc("State of the breakers.", max_items=8, list_type="map", list_map_keys=["name"]),
    ] = ()


@rules(Rule("self.metadata.name == 'fleet'", "there is one fleet, and its name is fleet"))
class Fleet(Object, frozen=True, kw_only=True):
    """All clusters of one hub: defaults, fair share, breakers and pause."""

    spec: Annotated[FleetSpec, doc("Settings of the whole fleet.")] = FleetSpec()
    status: Annotated[FleetStatus, doc("State of the fleet.")] = FleetStatus()
