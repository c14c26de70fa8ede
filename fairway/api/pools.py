"""Elastic pools: nodes that a cluster can have when they are needed, and what is known of them.

A pool is one kind of node in one place: an instance type, in one zone, spot or on demand. So what
is learned of its stock holds for all of it. What is said here belongs to a Cluster.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fairway.api.amounts import Quantity
from fairway.api.doc import Count, Label, Name, OptionalLabel, Seconds, Text, doc, limits
from fairway.api.meta import Labels, Part, ResourceList, Taint

STOCK_STEPS = 24  # of the histogram of how long stock-outs took


class ElasticPool(Part, frozen=True, kw_only=True):
    """Nodes that can be had when they are needed."""

    name: Annotated[Label, doc("Name of the pool in the cluster.")]
    shape: Annotated[ResourceList, doc("What each node will have for pods.")]
    labels: Annotated[Labels, doc("Labels that each node will have.")] = {}
    taints: Annotated[
        tuple[Taint, ...], doc("Taints that each node will have.", max_items=16, list_type="atomic")
    ] = ()
    count_max: Annotated[Count, doc("Most nodes of this pool at a time.")]
    count_min: Annotated[Count, doc("Nodes that stay though they are idle.")] = 0
    unit: Annotated[
        Count, doc("Nodes that come and go together, such as those of a TPU slice.", minimum=1)
    ] = 1
    interruptible: Annotated[
        bool, doc("Whether the provider may take nodes back: spot rather than on demand.")
    ] = False
    quota: Annotated[
        OptionalLabel, doc("Quota of the provider that it counts against, of those in the cluster.")
    ] = ""
    price_per_hour: Annotated[
        Quantity | None, doc("Price of one node for an hour; unset means by its flavor.")
    ] = None
    provision_seconds: Annotated[Seconds, doc("Time until a node that is asked for is ready.")] = (
        300
    )
    stock: Annotated[
        Count | None, doc("Nodes that the provider has left; unset: as reported, or no limit.")
    ] = None
    idle_seconds: Annotated[Seconds, doc("How long a node is idle before it is given back.")] = 600
    provisioning_class: Annotated[
        str,
        doc(
            "Class of the ProvisioningRequests by which nodes are asked for, in Kubernetes; empty: "
            "pods that find no node are enough.",
            max_length=253,
        ),
    ] = ""


class ProviderQuota(Part, frozen=True, kw_only=True):
    """What a provider allows several pools together, such as accelerators of a region."""

    name: Annotated[Label, doc("Name by which pools refer to it.")]
    limits: Annotated[ResourceList, doc("Most that all nodes of those pools may have together.")]


class InstanceType(Part, frozen=True, kw_only=True):
    """What a node of some type has, where pools are found that say no more than its name."""

    name: Annotated[str, doc("Name, as in node.kubernetes.io/instance-type.", max_length=63)]
    shape: Annotated[ResourceList, doc("What such a node has for pods.")]
    price_per_hour: Annotated[Quantity | None, doc("Price for an hour on demand.")] = None
    spot_price_per_hour: Annotated[Quantity | None, doc("Price for an hour as spot.")] = None
    provision_seconds: Annotated[Seconds, doc("Time until a node that is asked for is ready.")] = (
        300
    )


class HttpInventory(Part, frozen=True, kw_only=True):
    """An HTTP endpoint that tells the stock and prices of pools."""

    url: Annotated[
        str,
        doc("Where it is; the agent of the cluster asks it.", min_length=1, max_length=2048),
        limits(pattern=r"^https?://"),
    ]
    interval_seconds: Annotated[Seconds, doc("How often it is asked.", minimum=1)] = 60
    expiry_seconds: Annotated[
        Seconds, doc("After how long without an answer nothing is known any more.", minimum=1)
    ] = 600


class Inventory(Part, frozen=True, kw_only=True):
    """Where an agent learns which nodes can be had, besides the pools that the cluster lists."""

    http: Annotated[HttpInventory | None, doc("An endpoint that tells stock and prices.")] = None
    node_pools: Annotated[
        bool,
        doc(
            "Whether node pools of Karpenter, and node groups of cluster autoscaler by Cluster "
            "API, become pools of the cluster."
        ),
    ] = False


class PoolStatus(Part, frozen=True, kw_only=True):
    """An elastic pool as the agent last saw it."""

    name: Annotated[Label, doc("Name of the pool.")]
    nodes: Annotated[Count, doc("Nodes it has.")] = 0
    provisioning: Annotated[Count, doc("Nodes on their way.")] = 0
    stock: Annotated[Count | None, doc("Nodes that the provider says it has left.")] = None
    price_per_hour: Annotated[
        Quantity | None, doc("Price of one node for an hour, where a source tells it.")
    ] = None
    failures: Annotated[Count, doc("Provisions that failed since the agent began.")] = 0
    fault: Annotated[Text, doc("Why the last one failed.")] = ""


class PoolBelief(Part, frozen=True, kw_only=True):
    """What the hub has learned of the stock of a pool."""

    name: Annotated[Label, doc("Name of the pool.")]
    out_since: Annotated[
        datetime | None, doc("Since when it is out of stock; unset: it is not known to be.")
    ] = None
    failed_at: Annotated[datetime | None, doc("When a provision last failed.")] = None
    try_at: Annotated[
        datetime | None, doc("When it may be asked again by who has nowhere else to go.")
    ] = None
    out_until: Annotated[datetime | None, doc("When it may be asked again by everybody.")] = None
    tries: Annotated[Count, doc("Provisions that failed in this stock-out.")] = 0
    ended: Annotated[
        tuple[Count, ...],
        doc(
            "Weights of stock-outs that ended, by how long they took: the first within about a "
            "minute, each next within about 1.4 times as long.",
            max_items=STOCK_STEPS,
            list_type="atomic",
        ),
    ] = ()
    provision_seconds: Annotated[
        Seconds | None, doc("How long nodes take to come, of late; unset: not known.")
    ] = None
    fault: Annotated[Text, doc("Why the last provision failed.")] = ""


class LeavingNode(Part, frozen=True, kw_only=True):
    """A node of an elastic pool that is given back."""

    name: Annotated[Name, doc("Name of the node.")]
    pool: Annotated[Label, doc("Pool that it is of.")]
    since: Annotated[datetime, doc("Since when nothing new goes there.")]
    may_go: Annotated[
        bool, doc("Whether nothing is claimed that might go there, so that it can be given back.")
    ] = False
