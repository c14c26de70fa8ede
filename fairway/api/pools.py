"""Elastic pools: nodes that a cluster can provision when needed, and what is known about them.

A pool is one kind of node in one place: an instance type, in one zone, spot or on demand. So what
is learned about its stock holds for all of it. These types are parts of a Cluster.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fairway.api.amounts import Quantity
from fairway.api.doc import Count, Label, Name, OptionalLabel, Seconds, Text, doc, limits
from fairway.api.meta import Labels, Part, ResourceList, Taint

STOCK_STEPS = 24  # of the histogram of stock-out durations


class ElasticPool(Part, frozen=True, kw_only=True):
    """Nodes that can be provisioned when needed."""

    name: Annotated[Label, doc("Name of the pool in the cluster.")]
    shape: Annotated[ResourceList, doc("Resources of each node that are available to pods.")]
    labels: Annotated[Labels, doc("Labels of each node.")] = {}
    taints: Annotated[
        tuple[Taint, ...], doc("Taints of each node.", max_items=16, list_type="atomic")
    ] = ()
    count_max: Annotated[Count, doc("Maximum nodes of this pool at a time.")]
    count_min: Annotated[Count, doc("Number of nodes to keep although they are idle.")] = 0
    unit: Annotated[
        Count,
        doc(
            "Number of nodes that are provisioned and removed together, such as those of a TPU "
            "slice.",
            minimum=1,
        ),
    ] = 1
    interruptible: Annotated[
        bool,
        doc(
            "Whether the provider may reclaim nodes: spot rather than on demand. No nodes of it "
            "are requested for workloads that are not preemptible."
        ),
    ] = False
    quota: Annotated[
        OptionalLabel, doc("Provider quota of the cluster that the pool counts against.")
    ] = ""
    price_per_hour: Annotated[
        Quantity | None, doc("Price per node and hour; unset: by its flavor.")
    ] = None
    provision_seconds: Annotated[Seconds, doc("Seconds until a requested node is ready.")] = 300
    stock: Annotated[
        Count | None,
        doc(
            "Nodes that the provider has left; a reported stock takes precedence; unset: no limit."
        ),
    ] = None
    idle_seconds: Annotated[
        Seconds, doc("Seconds that a node is idle before it is given back.")
    ] = 600
    provisioning_class: Annotated[
        str,
        doc(
            "Class of the ProvisioningRequests that request nodes, on Kubernetes; empty: "
            "pending pods suffice to request them.",
            max_length=253,
        ),
    ] = ""


class ProviderQuota(Part, frozen=True, kw_only=True):
    """A provider's limit on several pools together, such as accelerators in a region."""

    name: Annotated[Label, doc("Name by which pools refer to it.")]
    limits: Annotated[ResourceList, doc("Maximum total resources of all nodes of those pools.")]


class InstanceType(Part, frozen=True, kw_only=True):
    """Resources of an instance type, for discovered pools that only name the type."""

    name: Annotated[
        str, doc("Name of the type, as in node.kubernetes.io/instance-type.", max_length=63)
    ]
    shape: Annotated[ResourceList, doc("Resources of such a node that are available to pods.")]
    price_per_hour: Annotated[Quantity | None, doc("Price per hour on demand.")] = None
    spot_price_per_hour: Annotated[Quantity | None, doc("Price per hour as spot capacity.")] = None
    provision_seconds: Annotated[Seconds, doc("Seconds until a requested node is ready.")] = 300


class HttpInventory(Part, frozen=True, kw_only=True):
    """An HTTP endpoint that reports stock and prices of pools."""

    url: Annotated[
        str,
        doc("URL of the endpoint; the cluster's agent queries it.", min_length=1, max_length=2048),
        limits(pattern=r"^https?://"),
    ]
    interval_seconds: Annotated[Seconds, doc("Seconds between queries.", minimum=1)] = 60
    expiry_seconds: Annotated[
        Seconds, doc("Seconds without an answer after which the last answer expires.", minimum=1)
    ] = 600


class Inventory(Part, frozen=True, kw_only=True):
    """Where an agent learns which nodes can be provisioned, besides the pools in the spec."""

    http: Annotated[
        HttpInventory | None,
        doc(
            "Endpoint that reports stock and prices. Until its first answer nothing is requested "
            "from the pools of the cluster."
        ),
    ] = None
    node_pools: Annotated[
        bool,
        doc(
            "Whether node pools of Karpenter, and node groups of cluster autoscaler by Cluster "
            "API, become pools of the cluster."
        ),
    ] = False


class PoolStatus(Part, frozen=True, kw_only=True):
    """An elastic pool, as the agent last saw it."""

    name: Annotated[Label, doc("Name of the pool.")]
    nodes: Annotated[Count, doc("Number of nodes.")] = 0
    provisioning: Annotated[Count, doc("Number of nodes being provisioned.")] = 0
    stock: Annotated[
        Count | None, doc("Number of nodes that the provider reports to have left.")
    ] = None
    awaits_stock: Annotated[
        bool,
        doc(
            "Whether the source of its stock has not answered yet, so that nothing is requested "
            "from the pool."
        ),
    ] = False
    price_per_hour: Annotated[
        Quantity | None, doc("Price per node and hour, if a source reports it.")
    ] = None
    failures: Annotated[
        Count, doc("Number of failed provisioning requests since the agent started.")
    ] = 0
    fault: Annotated[Text, doc("Why the last provisioning request failed.")] = ""


class PoolBelief(Part, frozen=True, kw_only=True):
    """What the hub has learned about the stock of a pool."""

    name: Annotated[Label, doc("Name of the pool.")]
    out_since: Annotated[
        datetime | None,
        doc("Time since which the pool has been out of stock; unset: it is not known to be."),
    ] = None
    failed_at: Annotated[datetime | None, doc("Time of the last failed provisioning request.")] = (
        None
    )
    try_at: Annotated[
        datetime | None, doc("Time from which the pool may be tried again as a last resort.")
    ] = None
    out_until: Annotated[
        datetime | None, doc("Time from which the pool may be tried again by any workload.")
    ] = None
    tries: Annotated[Count, doc("Number of failed provisioning requests in this stock-out.")] = 0
    ended: Annotated[
        tuple[Count, ...],
        doc(
            "Weights of past stock-outs by duration: the first up to about a minute, each next "
            "up to about 1.4 times as long.",
            max_items=STOCK_STEPS,
            list_type="atomic",
        ),
    ] = ()
    provision_seconds: Annotated[
        Seconds | None, doc("Seconds that nodes recently took to become ready; unset: unknown.")
    ] = None
    fault: Annotated[Text, doc("Why the last provisioning request failed.")] = ""


class LeavingNode(Part, frozen=True, kw_only=True):
    """A node of an elastic pool that is being given back."""

    name: Annotated[Name, doc("Name of the node.")]
    pool: Annotated[Label, doc("Pool of the node.")]
    since: Annotated[datetime, doc("Time since which nothing new is placed on the node.")]
    may_go: Annotated[
        bool, doc("Whether no claim may need the node any more, so that it can be given back.")
    ] = False
