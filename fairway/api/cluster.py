"""Cluster: a place where pods run, how to reach it, and its settings.

A cluster has exactly one driver: a Kubernetes API, processes on this machine, or simulation. Its
regions, providers and sites are labels in its metadata.
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
from fairway.api.namespaces import NamespaceRules
from fairway.api.pools import (
    ElasticPool,
    InstanceType,
    Inventory,
    LeavingNode,
    PoolBelief,
    PoolStatus,
    ProviderQuota,
)

UNCOUNTED_RULES_MAX = 64
Claims = Annotated[
    Mapping[Key, Annotated[str, limits(max_length=1024)]], limits(max_properties=128)
]


class Permits(Part, frozen=True, kw_only=True):
    """What workloads may do in a cluster beyond what is harmless to other tenants."""

    kinds: Annotated[
        tuple[str, ...],
        doc(
            "Further kinds of objects that workloads may create, as group/Kind; kinds that "
            "grant rights are never allowed.",
            max_items=128,
            list_type="set",
        ),
    ] = ()
    host: Annotated[
        tuple[Literal["HostPath", "HostNetwork", "HostNamespaces", "Privileged"], ...],
        doc("Ways in which pods may access the node.", max_items=4, list_type="set"),
    ] = ()
    volumes: Annotated[
        tuple[Annotated[str, limits(min_length=1, max_length=63)], ...],
        doc(
            "Further types of volumes that pods may mount, such as nfs or csi; hostPath is in "
            "`host`.",
            max_items=32,
            list_type="set",
        ),
    ] = ()
    service_accounts: Annotated[
        tuple[Name, ...],
        doc(
            "Service accounts of the cluster that pods may use, besides default and those "
            "created with their workload.",
            max_items=64,
            list_type="set",
        ),
    ] = ()


class KubernetesDriver(Part, frozen=True, kw_only=True):
    """A Kubernetes API server."""

    connection: Annotated[
        Literal["Push", "Pull"],
        doc(
            "Push: the agent runs in the hub and connects to the cluster. Pull: the agent runs "
            "in the cluster and connects to the hub."
        ),
    ] = "Push"
    kubeconfig: Annotated[
        SecretReference | None, doc("Secret with the kubeconfig that a Push agent uses.")
    ] = None
    context: Annotated[
        str, doc("Context of the kubeconfig; empty: its current context.", max_length=253)
    ] = ""
    impersonate: Annotated[
        str,
        doc(
            "User to impersonate in the cluster; empty: none, the agent's own rights apply.",
            max_length=253,
        ),
    ] = ""
    act_as: Annotated[
        Literal["Tenant", "Agent"],
        doc(
            "Identity that creates objects. Tenant: the service account fairway-tenant in their "
            "namespace. Agent: the agent itself. A work may name another service account."
        ),
    ] = "Tenant"
    permits: Annotated[
        Permits, doc("What workloads may do beyond what is harmless to other tenants.")
    ] = Permits()
    requests_per_second: Annotated[
        Count, doc("Maximum write requests per second by the agent.", minimum=1)
    ] = 50


class LocalDriver(Part, frozen=True, kw_only=True):
    """Processes on the hub's own machine."""

    capacity: Annotated[
        ResourceList, doc("Resources that workloads may use; resources not listed are detected.")
    ] = {}
    stop_seconds: Annotated[
        Seconds, doc("Seconds between asking a process to stop and killing it.")
    ] = 30


class SimulatedDomain(Part, frozen=True, kw_only=True):
    """A topology level of simulated nodes: consecutive nodes of a pool share a domain."""

    label: Annotated[Key, doc("Node label whose value is the name of the domain.")]
    nodes: Annotated[Count, doc("Number of nodes per domain.", minimum=1)]


class SimulatedPool(Part, frozen=True, kw_only=True):
    """Simulated nodes of one shape."""

    name: Annotated[Label, doc("Name of the pool and prefix of its node names.")]
    count: Annotated[Count, doc("Number of nodes.")]
    shape: Annotated[ResourceList, doc("Resources of each node that are available to pods.")]
    labels: Annotated[Labels, doc("Labels of each node.")] = {}
    taints: Annotated[
        tuple[Taint, ...], doc("Taints of each node.", max_items=16, list_type="atomic")
    ] = ()
    domains: Annotated[
        tuple[SimulatedDomain, ...],
        doc(
            "Topology domains of the nodes.",
            max_items=8,
            list_type="map",
            list_map_keys=["label"],
        ),
    ] = ()


class SimulatedFaults(Part, frozen=True, kw_only=True):
    """Faults to simulate, and how often."""

    node_failures_per_day: Annotated[Quantity, doc("Expected failures per node and day.")] = (
        Quantity(0)
    )
    node_repair_seconds: Annotated[Seconds, doc("Seconds until a failed node returns.")] = 600
    pod_failures_per_hour: Annotated[
        Quantity, doc("Expected failures per pod and hour of running.")
    ] = Quantity(0)
    bad_images: Annotated[
        tuple[str, ...],
        doc(
            "Images whose pods never become ready.",
            max_items=64,
            list_type="set",
        ),
    ] = ()
    refused_images: Annotated[
        tuple[str, ...],
        doc(
            "Images that the cluster refuses: objects whose pods use them are not created.",
            max_items=64,
            list_type="set",
        ),
    ] = ()
    outage: Annotated[
        bool,
        doc("Whether the whole cluster is down: its pods are gone and its agent is silent."),
    ] = False


class SimulatedStockOut(Part, frozen=True, kw_only=True):
    """A period in which an elastic pool delivers no nodes, without prior notice."""

    pool: Annotated[Label, doc("Name of the elastic pool.")]
    after_seconds: Annotated[
        Seconds, doc("Seconds from the start of the simulation until the stock-out begins.")
    ] = 0
    seconds: Annotated[Seconds, doc("Duration of the stock-out, in seconds.", minimum=1)]
    every_seconds: Annotated[
        Seconds,
        doc(
            "Seconds from the start of one stock-out to the start of the next; 0: it happens once."
        ),
    ] = 0


class SimulatedDriver(Part, frozen=True, kw_only=True):
    """A simulated cluster that exists only in the hub, on the hub's clock."""

    node_pools: Annotated[
        tuple[SimulatedPool, ...],
        doc("Pools of nodes.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    seed: Annotated[int, doc("Seed of the simulation's random numbers.", minimum=0)] = 0
    start_seconds: Annotated[Seconds, doc("Seconds from binding a pod until it runs.")] = 2
    run_seconds: Annotated[
        Seconds,
        doc("Run time, in seconds, of pods whose workload has no estimate; 0: they run forever."),
    ] = 60
    stop_seconds: Annotated[Seconds, doc("Seconds that a pod takes to stop.")] = 1
    faults: Annotated[SimulatedFaults, doc("Faults to simulate.")] = SimulatedFaults()
    stock_outs: Annotated[
        tuple[SimulatedStockOut, ...],
        doc("Stock-outs of elastic pools.", max_items=64, list_type="atomic"),
    ] = ()
    kinds: Annotated[
        tuple[str, ...],
        doc(
            "Kinds that the cluster serves, as group/version/Kind; empty: all.",
            max_items=256,
            list_type="set",
        ),
    ] = ()
    namespaces: Annotated[
        tuple[NamespaceRules, ...],
        doc(
            "Quotas and limits of namespaces.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()


class Mirror(Part, frozen=True, kw_only=True):
    """A registry that replaces another one in this cluster."""

    prefix: Annotated[str, doc("Prefix of image names to replace.", min_length=1, max_length=255)]
    replacement: Annotated[str, doc("Replacement for the prefix.", min_length=1, max_length=255)]


class Profile(Part, frozen=True, kw_only=True):
    """Names that differ in this cluster; applied before fit is evaluated."""

    resources: Annotated[
        Mapping[ResourceName, ResourceName],
        doc("Maps the fleet's resource names to the cluster's.", max_properties=64),
    ] = {}
    node_labels: Annotated[
        Mapping[Key, Key],
        doc("Maps the fleet's node label keys to the cluster's.", max_properties=64),
    ] = {}
    storage_classes: Annotated[
        Mapping[Name, Name],
        doc("Maps the fleet's storage class names to the cluster's.", max_properties=64),
    ] = {}
    mirrors: Annotated[
        tuple[Mirror, ...],
        doc(
            "Registries to pull images from instead; the first matching prefix applies.",
            max_items=64,
            list_type="map",
            list_map_keys=["prefix"],
        ),
    ] = ()
    environment: Annotated[
        tuple[EnvironmentVariable, ...],
        doc(
            "Variables to set in every container that does not define them.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations to add to every pod.", max_items=16, list_type="atomic"),
    ] = ()
    scheduler_name: Annotated[
        str,
        doc(
            "Scheduler for Fairway's pods in the cluster; empty: the cluster's default.",
            max_length=253,
        ),
    ] = ""


class TopologyLevel(Part, frozen=True, kw_only=True):
    """A level of the network topology."""

    name: Annotated[Label, doc("Name of the level in the fleet, such as block, rack or nvlink.")]
    node_label: Annotated[Key, doc("Node label whose values are the domains of this level.")]


class WhenLost(Part, frozen=True, kw_only=True):
    """What happens to workloads when the cluster is lost, unless they or their queue specify it."""

    action: Annotated[
        OnClusterLost,
        doc(
            "Wait: wait for the cluster to return. StopAndMove: stop workloads and move them. "
            "AllowDuplicate: move them even if they may then run twice."
        ),
    ]
    after_seconds: Annotated[
        Seconds | None,
        doc(
            "Seconds that the cluster must be lost before StopAndMove acts; unset: as in the fleet."
        ),
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
    """How to reach the cluster, how it may be used, and its settings."""

    kubernetes: Annotated[KubernetesDriver | None, doc("Driver for a Kubernetes API server.")] = (
        None
    )
    local: Annotated[LocalDriver | None, doc("Driver for processes on the hub's own machine.")] = (
        None
    )
    simulated: Annotated[
        SimulatedDriver | None, doc("Driver for a cluster simulated in the hub.")
    ] = None
    accepted: Annotated[
        bool,
        doc(
            "Whether the fleet trusts the cluster; false for a cluster that joined by itself, "
            "until someone accepts it."
        ),
    ] = True
    mode: Annotated[
        Literal["Observe", "Shadow", "Manage"],
        doc(
            "Observe: only report. Shadow: also decide, and report the difference. Manage: "
            "decide and act."
        ),
    ] = "Manage"
    hold: Annotated[
        Hold, doc("Hold: place nothing new here. HoldAndDrain: also move away what runs.")
    ] = "None"
    taints: Annotated[
        tuple[Taint, ...],
        doc(
            "Taints that keep away workloads whose placement policy does not tolerate them.",
            max_items=32,
            list_type="map",
            list_map_keys=["key", "effect"],
        ),
    ] = ()
    claims: Annotated[
        Claims, doc("Facts about the cluster for selectors, in addition to its labels.")
    ] = {}
    profile: Annotated[Profile, doc("Names that differ in this cluster.")] = Profile()
    topology: Annotated[
        tuple[TopologyLevel, ...],
        doc(
            "Levels of the network topology, outermost first.",
            max_items=16,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    elastic_pools: Annotated[
        tuple[ElasticPool, ...],
        doc(
            "Pools of nodes that can be provisioned.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    inventory: Annotated[
        Inventory | None,
        doc("Further sources from which the agent learns which nodes can be provisioned."),
    ] = None
    instance_types: Annotated[
        tuple[InstanceType, ...],
        doc(
            "Resources of instance types, for pools found by the inventory.",
            max_items=256,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    provider_quotas: Annotated[
        tuple[ProviderQuota, ...],
        doc(
            "Quotas of the provider that several pools share.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    price_factor: Annotated[
        Quantity, doc("Factor by which flavor prices are multiplied in this cluster.")
    ] = ONE
    when_lost: Annotated[
        WhenLost | None,
        doc("What happens to workloads when the cluster is lost; unset: as in the fleet."),
    ] = None


class AgentStatus(Part, frozen=True, kw_only=True):
    """State of the cluster's agent."""

    epoch: Annotated[int, doc("Increases with each start of the agent.", minimum=0)] = 0
    version: Annotated[str, doc("Version of the agent.", max_length=64)] = ""
    connected_at: Annotated[
        datetime | None, doc("Time since which the agent has been connected.")
    ] = None
    last_seen_at: Annotated[
        datetime | None, doc("Approximate time of the agent's last heartbeat.")
    ] = None
    report_sequence: Annotated[
        int, doc("Sequence of the agent's last whole report.", minimum=0)
    ] = 0


class AvoidedNode(Part, frozen=True, kw_only=True):
    """A node that gets no new pods because it caused a failure."""

    name: Annotated[Name, doc("Name of the node.")]
    reason: Annotated[Code, doc("Reason code of the failure.")] = ""
    until: Annotated[
        datetime | None,
        doc("Time until which the node is avoided; unset: until someone releases it."),
    ] = None


class ClusterStatus(Part, frozen=True, kw_only=True):
    """State of the cluster, as reported by the hub and the agent."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    phase: Annotated[Code, doc("Pending, Ready, Unready, Lost or Held.")] = ""
    driver_version: Annotated[
        str, doc("Version of the system behind the driver, such as Kubernetes.", max_length=64)
    ] = ""
    agent: Annotated[AgentStatus, doc("Agent of the cluster.")] = AgentStatus()
    claims: Annotated[
        Claims, doc("Facts found by the agent; facts in the spec take precedence.")
    ] = {}
    kinds: Annotated[
        tuple[str, ...],
        doc(
            "Kinds that the cluster serves, as group/version/Kind.", max_items=2048, list_type="set"
        ),
    ] = ()
    nodes: Annotated[Count, doc("Number of nodes.")] = 0
    ready_nodes: Annotated[Count, doc("Number of nodes that accept pods.")] = 0
    allocatable: Annotated[
        ResourceList, doc("Total resources of all nodes that are available to pods.")
    ] = {}
    free: Annotated[ResourceList, doc("Unused part of the allocatable resources.")] = {}
    workloads: Annotated[Count, doc("Number of workloads with a claim in this cluster.")] = 0
    elastic_pools: Annotated[
        tuple[PoolStatus, ...],
        doc("State of the elastic pools.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()
    offered_pools: Annotated[
        tuple[ElasticPool, ...],
        doc(
            "Pools found by the agent; pools of the same name in the spec take precedence.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    offered_quotas: Annotated[
        tuple[ProviderQuota, ...],
        doc(
            "Provider quotas of the pools found by the agent.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    stock: Annotated[
        tuple[PoolBelief, ...],
        doc(
            "What the hub has learned about the stock of the elastic pools.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    leaving_nodes: Annotated[
        tuple[LeavingNode, ...],
        doc(
            "Nodes that are being given back.",
            max_items=1024,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    avoided_nodes: Annotated[
        tuple[AvoidedNode, ...],
        doc(
            "Nodes that get no new pods because they caused failures.",
            max_items=1024,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    uncounted_rules: Annotated[
        tuple[str, ...],
        doc(
            "ResourceQuotas and LimitRanges that are not counted, since a report holds no more: a "
            "namespace, or a rule of it as namespace/kind name. The first of them by name.",
            max_items=UNCOUNTED_RULES_MAX,
            list_type="set",
        ),
    ] = ()
    taints: Annotated[
        tuple[Taint, ...],
        doc(
            "NoExecute taints of the spec that do not say when they were added, with the time "
            "at which the hub first saw them.",
            max_items=32,
            list_type="map",
            list_map_keys=["key", "effect"],
        ),
    ] = ()
    conditions: Annotated[Conditions, doc("Latest observations of the cluster's state.")] = ()


class Cluster(Object, frozen=True, kw_only=True):
    """A place where pods run: how to reach it, its labels, taints, profile, topology and pools."""

    spec: Annotated[ClusterSpec, doc("How to reach the cluster, and its settings.")]
    status: Annotated[ClusterStatus, doc("State of the cluster.")] = ClusterStatus()


def domains_of(pool: SimulatedPool, number: int) -> dict[str, str]:
    """The topology domains of a simulated node, by label; nodes fill the domains in order."""
    return {
        domain.label: f"{pool.name}-{domain.label.rpartition('/')[2]}-{number // domain.nodes}"
        for domain in pool.domains
    }


def pools_of(cluster: Cluster) -> tuple[ElasticPool, ...]:
    """All elastic pools of a cluster: those in its spec, and others found by its agent."""
    listed = cluster.spec.elastic_pools
    known = {pool.name for pool in listed}
    return (*listed, *(pool for pool in cluster.status.offered_pools if pool.name not in known))


def quotas_of(cluster: Cluster) -> dict[str, ProviderQuota]:
    """All provider quotas of a cluster, by name."""
    return {
        quota.name: quota
        for quota in (*cluster.status.offered_quotas, *cluster.spec.provider_quotas)
    }
