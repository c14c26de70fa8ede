"""Cluster: a place where pods run, how to reach it, and what is particular to it.

A cluster is reached in exactly one way: a Kubernetes API, processes on this machine, or simulation.
Its regions, providers and sites are labels in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Code,
    Count,
    Key,
    Label,
    Name,
    ResourceName,
    Rule,
    Seconds,
    doc,
    limits,
    rules,
)
from fairway.api.flavor import ONE
from fairway.api.meta import (
    Conditions,
    EnvironmentVariable,
    Hold,
    Labels,
    Object,
    OnClusterLost,
    Part,
    ResourceList,
    SecretReference,
    Taint,
    Toleration,
)
from fairway.api.pools import (
    ElasticPool,
    InstanceType,
    Inventory,
    LeavingNode,
    PoolBelief,
    PoolStatus,
    ProviderQuota,
)

Claims = Annotated[
    Mapping[Key, Annotated[str, limits(max_length=1024)]], limits(max_properties=128)
]


class Permits(Part, frozen=True, kw_only=True):
    """What workloads may do in a cluster beyond what is harmless to others there."""

    kinds: Annotated[
        tuple[str, ...],
        doc(
            "Kinds of objects beyond the well-known ones, as group/Kind; never any that grant "
            "rights.",
            max_items=128,
            list_type="set",
        ),
    ] = ()
    host: Annotated[
        tuple[Literal["HostPath", "HostNetwork", "HostNamespaces", "Privileged"], ...],
        doc("Ways in which pods may reach the node itself.", max_items=4, list_type="set"),
    ] = ()
    service_accounts: Annotated[
        tuple[Name, ...],
        doc(
            "Service accounts of the cluster that pods may run as, besides default and those that "
            "come with their workload.",
            max_items=64,
            list_type="set",
        ),
    ] = ()


class KubernetesDriver(Part, frozen=True, kw_only=True):
    """A Kubernetes API server."""

    connection: Annotated[
        Literal["Push", "Pull"],
        doc("Whether the agent runs in the hub and reaches in, or in the cluster and reaches out."),
    ] = "Push"
    kubeconfig: Annotated[
        SecretReference | None, doc("Secret with the kubeconfig that a Push agent uses.")
    ] = None
    context: Annotated[str, doc("Context of the kubeconfig; empty: its own.", max_length=253)] = ""
    impersonate: Annotated[
        str, doc("User whose rights are used in the cluster; empty: the agent's.", max_length=253)
    ] = ""
    act_as: Annotated[
        Literal["Tenant", "Agent"],
        doc(
            "In whose name objects are made: the service account fairway-tenant of their "
            "namespace, or the agent itself. A work may name another."
        ),
    ] = "Tenant"
    permits: Annotated[Permits, doc("What workloads may do beyond what is harmless.")] = Permits()
    requests_per_second: Annotated[
        Count, doc("Most requests that the agent makes in a second.", minimum=1)
    ] = 50


class LocalDriver(Part, frozen=True, kw_only=True):
    """Processes on the hub's own machine."""

    capacity: Annotated[
        ResourceList, doc("What workloads may use; a resource not listed is found out.")
    ] = {}
    stop_seconds: Annotated[Seconds, doc("Time between asking a process to end and ending it.")] = (
        30
    )


class SimulatedDomain(Part, frozen=True, kw_only=True):
    """A topology label put on the nodes of a pool, a run of nodes at a time."""

    label: Annotated[Key, doc("Label that gets the name of the domain.")]
    nodes: Annotated[Count, doc("How many nodes make one domain.", minimum=1)]


class SimulatedPool(Part, frozen=True, kw_only=True):
    """Nodes of one shape."""

    name: Annotated[Label, doc("Name of the pool; nodes are named after it.")]
    count: Annotated[Count, doc("How many nodes.")]
    shape: Annotated[ResourceList, doc("What each node has for pods.")]
    labels: Annotated[Labels, doc("Labels of each node.")] = {}
    taints: Annotated[
        tuple[Taint, ...], doc("Taints of each node.", max_items=16, list_type="atomic")
    ] = ()
    domains: Annotated[
        tuple[SimulatedDomain, ...],
        doc(
            "Topology domains that the nodes are in.",
            max_items=8,
            list_type="map",
            list_map_keys=["label"],
        ),
    ] = ()


class SimulatedFaults(Part, frozen=True, kw_only=True):
    """What goes wrong, and how often."""

    node_failures_per_day: Annotated[Quantity, doc("Expected failures of each node in a day.")] = (
        Quantity(0)
    )
    node_repair_seconds: Annotated[Seconds, doc("How long a failed node is away.")] = 600
    pod_failures_per_hour: Annotated[
        Quantity, doc("Expected failures of each pod in an hour of running.")
    ] = Quantity(0)
    bad_images: Annotated[
        tuple[str, ...],
        doc(
            "Images whose pods never become ready.",
            max_items=64,
            list_type="set",
        ),
    ] = ()
    outage: Annotated[
        bool,
        doc("Whether the whole cluster is down: what ran there is gone, and its agent is silent."),
    ] = False


class SimulatedStockOut(Part, frozen=True, kw_only=True):
    """A time in which an elastic pool brings no nodes, though nobody says so beforehand."""

    pool: Annotated[Label, doc("Name of the elastic pool.")]
    after_seconds: Annotated[Seconds, doc("When it begins, from the start of the simulation.")] = 0
    seconds: Annotated[Seconds, doc("How long it takes.", minimum=1)]
    every_seconds: Annotated[
        Seconds, doc("Time from its beginning to its next; 0: there is no next.")
    ] = 0


class SimulatedDriver(Part, frozen=True, kw_only=True):
    """A cluster that exists only in the hub, on the hub's clock."""

    node_pools: Annotated[
        tuple[SimulatedPool, ...],
        doc("The nodes it has.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    seed: Annotated[int, doc("Seed of all chance in the simulation.", minimum=0)] = 0
    start_seconds: Annotated[Seconds, doc("Time from binding a pod until it runs.")] = 2
    run_seconds: Annotated[
        Seconds, doc("How long pods run whose workload has no estimate; 0 means for ever.")
    ] = 60
    stop_seconds: Annotated[Seconds, doc("Time that a pod takes to end when asked.")] = 1
    faults: Annotated[SimulatedFaults, doc("What goes wrong.")] = SimulatedFaults()
    stock_outs: Annotated[
        tuple[SimulatedStockOut, ...],
        doc("When elastic pools are out of stock.", max_items=64, list_type="atomic"),
    ] = ()
    kinds: Annotated[
        tuple[str, ...],
        doc(
            "Kinds it serves, as group/version/Kind; none means all.",
            max_items=256,
            list_type="set",
        ),
    ] = ()


class Mirror(Part, frozen=True, kw_only=True):
    """A registry that stands for another one here."""

    prefix: Annotated[str, doc("Beginning of image names.", min_length=1, max_length=255)]
    replacement: Annotated[str, doc("What it becomes here.", min_length=1, max_length=255)]


class Profile(Part, frozen=True, kw_only=True):
    """What is called differently in this cluster; applied before fit is judged."""

    resources: Annotated[
        Mapping[ResourceName, ResourceName],
        doc("The cluster's own name of a resource, by the fleet's name.", max_properties=64),
    ] = {}
    node_labels: Annotated[
        Mapping[Key, Key],
        doc("The cluster's own key of a node label, by the fleet's key.", max_properties=64),
    ] = {}
    storage_classes: Annotated[
        Mapping[Name, Name],
        doc("The cluster's own storage class, by the fleet's name.", max_properties=64),
    ] = {}
    mirrors: Annotated[
        tuple[Mirror, ...],
        doc(
            "Registries to pull from instead; the first prefix that matches counts.",
            max_items=64,
            list_type="map",
            list_map_keys=["prefix"],
        ),
    ] = ()
    environment: Annotated[
        tuple[EnvironmentVariable, ...],
        doc(
            "Variables set in every container that lacks them.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations given to every pod.", max_items=16, list_type="atomic"),
    ] = ()
    scheduler_name: Annotated[
        str, doc("Scheduler of the cluster for our pods; empty: its default.", max_length=253)
    ] = ""


class TopologyLevel(Part, frozen=True, kw_only=True):
    """A level of the network, from the outermost in."""

    name: Annotated[Label, doc("Name of the level in the fleet, such as block, rack or nvlink.")]
    node_label: Annotated[Key, doc("Node label whose values are the domains of this level.")]


class WhenLost(Part, frozen=True, kw_only=True):
    """What becomes of workloads here when the cluster is lost, unless they say so themselves."""

    action: Annotated[OnClusterLost, doc("Wait for it, stop and move, or run twice if need be.")]
    after_seconds: Annotated[
        Seconds | None, doc("How long it is lost before anything is done; unset: as in the fleet.")
    ] = None


@rules(
    Rule(
        "[has(self.kubernetes), has(self.local), has(self.simulated)].filter(x, x).size() == 1",
        "a cluster has exactly one driver: kubernetes, local or simulated",
    ),
    Rule(
        "has(self.kubernetes) == has(oldSelf.kubernetes) && has(self.local) == has(oldSelf.local)",
        "the driver of a cluster does not change; make another cluster",
    ),
)
class ClusterSpec(Part, frozen=True, kw_only=True):
    """How to reach the cluster, what it may be used for, and what is particular to it."""

    kubernetes: Annotated[KubernetesDriver | None, doc("Reached as a Kubernetes API server.")] = (
        None
    )
    local: Annotated[LocalDriver | None, doc("Processes on the hub's own machine.")] = None
    simulated: Annotated[SimulatedDriver | None, doc("Simulated in the hub.")] = None
    accepted: Annotated[
        bool,
        doc(
            "Whether the fleet trusts it; false for one that joined by itself until someone agrees."
        ),
    ] = True
    mode: Annotated[
        Literal["Observe", "Shadow", "Manage"],
        doc("Only look; also decide and report the difference; or decide and act."),
    ] = "Manage"
    hold: Annotated[
        Hold, doc("Hold sends nothing new there; HoldAndDrain also moves away what runs.")
    ] = "None"
    taints: Annotated[
        tuple[Taint, ...],
        doc(
            "Keep away workloads whose policy does not tolerate them.",
            max_items=32,
            list_type="map",
            list_map_keys=["key", "effect"],
        ),
    ] = ()
    claims: Annotated[
        Claims, doc("Facts about the cluster for selectors, besides its labels.")
    ] = {}
    profile: Annotated[Profile, doc("What is called differently here.")] = Profile()
    topology: Annotated[
        tuple[TopologyLevel, ...],
        doc(
            "Levels of the network, the outermost first.",
            max_items=16,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    elastic_pools: Annotated[
        tuple[ElasticPool, ...],
        doc("Nodes that can be had.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    inventory: Annotated[
        Inventory | None, doc("Where else its agent learns which nodes can be had.")
    ] = None
    instance_types: Annotated[
        tuple[InstanceType, ...],
        doc(
            "What nodes of some types have, for pools that are found by the inventory.",
            max_items=256,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    provider_quotas: Annotated[
        tuple[ProviderQuota, ...],
        doc(
            "What the provider allows several pools together.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    price_factor: Annotated[
        Quantity, doc("What prices of flavors are multiplied with in this cluster.")
    ] = ONE
    when_lost: Annotated[
        WhenLost | None, doc("What becomes of workloads when it is lost; unset: as in the fleet.")
    ] = None


class AgentStatus(Part, frozen=True, kw_only=True):
    """The agent that looks after the cluster."""

    epoch: Annotated[int, doc("Rises with each start of the agent.", minimum=0)] = 0
    version: Annotated[str, doc("Version of the agent.", max_length=64)] = ""
    connected_at: Annotated[datetime | None, doc("Since when it is connected.")] = None
    last_seen_at: Annotated[datetime | None, doc("When it was last heard, roughly.")] = None
    skew_seconds: Annotated[int, doc("How far its clock is ahead of the hub's.")] = 0
    report_sequence: Annotated[int, doc("Sequence of its last whole report.", minimum=0)] = 0


class AvoidedNode(Part, frozen=True, kw_only=True):
    """A node that gets no pods of ours, since it was to blame for a failure."""

    name: Annotated[Name, doc("Name of the node.")]
    reason: Annotated[Code, doc("Code of what happened there.")] = ""
    until: Annotated[datetime | None, doc("Until when; unset means until someone says so.")] = None


class ClusterStatus(Part, frozen=True, kw_only=True):
    """What the hub and the agent say of the cluster."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    phase: Annotated[Code, doc("Pending, Ready, Unready, Lost or Held.")] = ""
    driver_version: Annotated[
        str, doc("Version of what the driver talks to, such as Kubernetes.", max_length=64)
    ] = ""
    agent: Annotated[AgentStatus, doc("The agent.")] = AgentStatus()
    claims: Annotated[
        Claims, doc("Facts that the agent found out; those in the spec go before them.")
    ] = {}
    kinds: Annotated[
        tuple[str, ...],
        doc("Kinds it serves, as group/version/Kind.", max_items=2048, list_type="set"),
    ] = ()
    nodes: Annotated[Count, doc("Nodes it has.")] = 0
    ready_nodes: Annotated[Count, doc("Nodes that take pods.")] = 0
    allocatable: Annotated[ResourceList, doc("What all nodes have for pods.")] = {}
    free: Annotated[ResourceList, doc("What nobody uses of it.")] = {}
    workloads: Annotated[Count, doc("Workloads that have a claim here.")] = 0
    elastic_pools: Annotated[
        tuple[PoolStatus, ...],
        doc("Its elastic pools.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    offered_pools: Annotated[
        tuple[ElasticPool, ...],
        doc(
            "Pools that the agent found; those of the same name in the spec go before them.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    offered_quotas: Annotated[
        tuple[ProviderQuota, ...],
        doc(
            "Quotas of the pools that the agent found.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    stock: Annotated[
        tuple[PoolBelief, ...],
        doc(
            "What the hub has learned of the stock of its pools.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    leaving_nodes: Annotated[
        tuple[LeavingNode, ...],
        doc("Nodes that are given back.", max_items=1024, list_type="map", list_map_keys=["name"]),
    ] = ()
    avoided_nodes: Annotated[
        tuple[AvoidedNode, ...],
        doc("Nodes that are set aside.", max_items=1024, list_type="map", list_map_keys=["name"]),
    ] = ()
    conditions: Annotated[Conditions, doc("State of the cluster, aspect by aspect.")] = ()


class Cluster(Object, frozen=True, kw_only=True):
    """A place where pods run: how to reach it, its labels, taints, profile, topology and pools."""

    spec: Annotated[ClusterSpec, doc("How to reach the cluster, and what is particular to it.")]
    status: Annotated[ClusterStatus, doc("What the hub and the agent say of it.")] = ClusterStatus()


def domains_of(pool: SimulatedPool, number: int) -> dict[str, str]:
    """The topology domains of a simulated node, by label: nodes fill them one after the other."""
    return {
        domain.label: f"{pool.name}-{domain.label.rpartition('/')[2]}-{number // domain.nodes}"
        for domain in pool.domains
    }


def pools_of(cluster: Cluster) -> tuple[ElasticPool, ...]:
    """All elastic pools of a cluster: those that it lists, and others that its agent found."""
    listed = cluster.spec.elastic_pools
    known = {pool.name for pool in listed}
    return (*listed, *(pool for pool in cluster.status.offered_pools if pool.name not in known))


def quotas_of(cluster: Cluster) -> dict[str, ProviderQuota]:
    """All quotas of a cluster's provider, by name."""
    return {
        quota.name: quota
        for quota in (*cluster.status.offered_quotas, *cluster.spec.provider_quotas)
    }
