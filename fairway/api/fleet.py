"""Fleet: what holds for all clusters of one hub. There is exactly one, named `fleet`."""

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
    Conditions,
    Object,
    OnClusterLost,
    Part,
    ResourceList,
    SecretReference,
)

ShareTest = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
GangStart = Literal["Reserve", "Detect"]


class Retry(Part, frozen=True, kw_only=True):
    """How often and how soon a workload that failed, or was not ready in time, is tried again."""

    limit: Annotated[
        Count, doc("How often a workload is tried again before it has failed for good.")
    ] = 3
    backoff_seconds: Annotated[
        Seconds, doc("Wait before the first retry; each next doubles it.")
    ] = 60
    backoff_seconds_max: Annotated[Seconds, doc("The longest wait between two tries.")] = 3600


class FleetDefaults(Part, frozen=True, kw_only=True):
    """What workloads get that neither they nor their queue say themselves."""

    queue: Annotated[
        Reference, doc("Queue of workloads that name none; empty means that they are refused.")
    ] = ""
    policy: Annotated[
        Reference, doc("Placement policy, in the system namespace, of workloads that name none.")
    ] = ""
    on_cluster_lost: Annotated[
        OnClusterLost, doc("What becomes of workloads whose cluster is lost.")
    ] = "Wait"
    cluster_lost_seconds: Annotated[
        Seconds, doc("How long a cluster is lost before StopAndMove stops what runs there.")
    ] = 600
    gang_start: Annotated[
        GangStart,
        doc("Reserve holds capacity until a gang is ready; Detect starts it and pulls back."),
    ] = "Reserve"
    ready_seconds: Annotated[
        Seconds, doc("How long a gang may take to be ready before it goes back to its queue.")
    ] = 1800
    pending_seconds: Annotated[
        Seconds, doc("How long a pod may be pending before it is taken back and placed elsewhere.")
    ] = 300
    retry: Annotated[Retry, doc("How workloads are tried again.")] = Retry()
    finished_seconds: Annotated[
        Seconds | None, doc("How long finished workloads are kept; unset means for ever.")
    ] = None


class FairShare(Part, frozen=True, kw_only=True):
    """How queues share what they do not own."""

    enabled: Annotated[
        bool, doc("Whether siblings are ordered, and borrowers preempted, by their share.")
    ] = True
    usage_half_life_seconds: Annotated[
        Seconds, doc("Time after which past usage counts half in a share; 0 forgets at once.")
    ] = 0
    usage_sampling_seconds: Annotated[
        Seconds, doc("How often usage is added to what is remembered.", minimum=1)
    ] = 300
    resource_weights: Annotated[
        Mapping[ResourceName, Quantity],
        doc("How much a unit of each resource counts in remembered usage.", max_properties=64),
    ] = {}
    preemption_tests: Annotated[
        tuple[ShareTest, ...],
        doc(
            "Comparisons of shares that make a victim legal, tried in this order.",
            min_items=1,
            max_items=2,
            list_type="set",
        ),
    ] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


class Breakers(Part, frozen=True, kw_only=True):
    """Limits past which the hub stops acting by itself until the hour has passed."""

    preemptions_per_hour: Annotated[
        Count | None, doc("Most preemptions; unset means no limit.")
    ] = None
    moves_per_hour: Annotated[
        Count | None, doc("Most moves of running workloads; unset means no limit.")
    ] = None
    deletions_per_hour: Annotated[
        Count | None, doc("Most works deleted from clusters; unset means no limit.")
    ] = None
    price_per_hour: Annotated[
        Quantity | None,
        doc(
            "Most money that elastic nodes may cost in an hour, in the fleet's currency; unset: "
            "no limit."
        ),
    ] = None


class Reservations(Part, frozen=True, kw_only=True):
    """How large gangs that cannot start hold capacity, and who may run ahead of them."""

    enabled: Annotated[bool, doc("Whether waiting gangs hold capacity.")] = True
    after_seconds: Annotated[Seconds, doc("How long a gang waits before it may hold capacity.")] = 0
    per_flavor: Annotated[
        Count, doc("Most reservations at a time in each cluster and flavor.", minimum=1)
    ] = 1
    backfill: Annotated[
        bool, doc("Whether others that end in time, or can be preempted, may run ahead.")
    ] = True


class Health(Part, frozen=True, kw_only=True):
    """When a cluster is unready, lost, and how fast the hub cleans up."""

    heartbeat_seconds: Annotated[
        Seconds, doc("How often agents say that they live.", minimum=1)
    ] = 10
    unready_seconds: Annotated[
        Seconds, doc("Silence after which a cluster gets no new work.", minimum=1)
    ] = 40
    lost_seconds: Annotated[Seconds, doc("Silence after which a cluster is lost.", minimum=1)] = 300
    skew_seconds: Annotated[
        Seconds, doc("Difference between clocks that is allowed for when workloads are replaced.")
    ] = 30
    deletions_per_second: Annotated[
        Count, doc("Most works deleted in each cluster in a second.", minimum=1)
    ] = 10


class Accounting(Part, frozen=True, kw_only=True):
    """How it is recorded who used what."""

    days: Annotated[Count, doc("For how many days accounts are kept.", minimum=1)] = 400
    team_label: Annotated[Key, doc("Label by which workloads say of which team they are.")] = (
        "fairway.dev/team"
    )


class ResourceRule(Part, frozen=True, kw_only=True):
    """How a requested resource counts against quota."""

    resource: Annotated[ResourceName, doc("The resource that is requested.")]
    counts_as: Annotated[
        ResourceList, doc("What one unit of it counts as; empty means that it is not counted.")
    ] = {}
    keep: Annotated[bool, doc("Whether the resource itself is counted too.")] = False


class PrometheusServer(Part, frozen=True, kw_only=True):
    """A server that speaks Prometheus' HTTP API."""

    url: Annotated[
        str,
        doc(
            "Where it is, without /api/v1, such as https://prometheus.example.com/prefix.",
            pattern="^https?://[^ ?#]+$",
            max_length=2048,
        ),
    ]
    token: Annotated[SecretReference | None, doc("Secret with the bearer token to show it.")] = None
    authority: Annotated[
        str,
        doc("Certificates, in PEM, by which it is believed; empty: the system's own.",
            max_length=65536),
    ] = ""  # fmt: skip


class Metrics(Part, frozen=True, kw_only=True):
    """Who is asked how services do."""

    prometheus: Annotated[
        PrometheusServer | None,
        doc("The Prometheus that measures the fleet; unset: there is none."),
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
        bool, doc("Stops all decisions and actions of the hub; what runs keeps running.")
    ] = False
    pause_reason: Annotated[str, doc("Why the fleet is paused.", max_length=1024)] = ""
    system_namespace: Annotated[Name, doc("Namespace whose placement policies serve everyone.")] = (
        "fairway-system"
    )
    currency: Annotated[str, doc("Currency of all prices.", max_length=8)] = "USD"
    defaults: Annotated[
        FleetDefaults, doc("What workloads get that neither they nor their queue say.")
    ] = FleetDefaults()
    fair_share: Annotated[FairShare, doc("How queues share what they do not own.")] = FairShare()
    breakers: Annotated[Breakers, doc("Limits past which the hub stops acting by itself.")] = (
        Breakers()
    )
    reservations: Annotated[Reservations, doc("How waiting gangs hold capacity.")] = Reservations()
    health: Annotated[Health, doc("When clusters are unready or lost.")] = Health()
    metrics: Annotated[Metrics, doc("Who is asked how services do.")] = Metrics()
    accounting: Annotated[Accounting, doc("How it is recorded who used what.")] = Accounting()
    resources: Annotated[
        tuple[ResourceRule, ...],
        doc(
            "How requested resources count against quota, where not as they are.",
            max_items=64,
            list_type="map",
            list_map_keys=["resource"],
        ),
    ] = ()
    ignored_resource_prefixes: Annotated[
        tuple[Annotated[str, limits(min_length=1, max_length=128)], ...],
        doc("Resources whose names begin so need no quota.", max_items=64, list_type="set"),
    ] = ()
    forecast_depth: Annotated[
        Count, doc("For how many workloads at the head of each queue a start is forecast.")
    ] = 20
    history_seconds: Annotated[Seconds, doc("How long decisions are kept for replay.")] = 604_800


class BreakerStatus(Part, frozen=True, kw_only=True):
    """What one breaker counted."""

    name: Annotated[
        Literal["Preemptions", "Moves", "Deletions", "Price"], doc("Which breaker it is.")
    ]
    past_hour: Annotated[
        Quantity,
        doc("What was counted in the past hour; of Price, what elastic nodes cost an hour now."),
    ]
    open_since: Annotated[
        datetime | None, doc("Since when it stops the hub; unset: it does not.")
    ] = None


class FleetStatus(Part, frozen=True, kw_only=True):
    """What the hub says of the fleet."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    phase: Annotated[Code, doc("Running, Paused or Broken.")] = ""
    term: Annotated[
        int,
        doc("Rises with each batch of decisions; agents refuse works of a lower term.", minimum=0),
    ] = 0
    leader: Annotated[str, doc("Which hub replica decides.", max_length=253)] = ""
    clusters: Annotated[Count, doc("Clusters that are accepted.")] = 0
    ready_clusters: Annotated[Count, doc("Clusters that are ready for work.")] = 0
    waiting_workloads: Annotated[Count, doc("Workloads that wait.")] = 0
    claimed_workloads: Annotated[Count, doc("Workloads that hold a claim.")] = 0
    breakers: Annotated[
        tuple[BreakerStatus, ...],
        doc("What the breakers counted.", max_items=8, list_type="map", list_map_keys=["name"]),
    ] = ()
    conditions: Annotated[Conditions, doc("State of the fleet, aspect by aspect.")] = ()


@rules(Rule("self.metadata.name == 'fleet'", "there is one fleet, and its name is fleet"))
class Fleet(Object, frozen=True, kw_only=True):
    """All the clusters that one hub looks after: defaults, fair share, breakers and pause."""

    spec: Annotated[FleetSpec, doc("Settings of the whole fleet.")] = FleetSpec()
    status: Annotated[FleetStatus, doc("What the hub says of the fleet.")] = FleetStatus()
