"""Flavor: a kind of capacity, such as an accelerator model on one fabric, spot or on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fairway.api.amounts import Quantity
from fairway.api.doc import Count, Name, ResourceName, Text, doc
from fairway.api.meta import Labels, Object, Part, ResourceList, Taint, Toleration

ONE = Quantity.of(1)


class FlavorSpec(Part, frozen=True, kw_only=True):
    """Which nodes have this flavor, and its speed and price."""

    description: Annotated[Text, doc("Description of this kind of capacity, for people.")] = ""
    node_labels: Annotated[
        Labels,
        doc(
            "Labels of nodes with this flavor, by the fleet's keys; cluster profiles translate "
            "them."
        ),
    ] = {}
    cluster_labels: Annotated[Labels, doc("Labels of clusters that have such nodes.")] = {}
    node_taints: Annotated[
        tuple[Taint, ...],
        doc("Taints of such nodes, which pods must tolerate.", max_items=16, list_type="atomic"),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations added to pods placed on this flavor.", max_items=16, list_type="atomic"),
    ] = ()
    interruptible: Annotated[
        bool,
        doc(
            "Whether the provider may reclaim such nodes, as with spot capacity. Workloads that "
            "are not preemptible do not use it."
        ),
    ] = False
    speed: Annotated[Quantity, doc("Speed relative to other flavors; 1 is the reference.")] = ONE
    prices: Annotated[
        Mapping[ResourceName, Quantity],
        doc("Price of one unit of each resource per hour.", max_properties=64),
    ] = {}


class FlavorStatus(Part, frozen=True, kw_only=True):
    """Nodes of the flavor in the fleet."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    nodes: Annotated[Count, doc("Nodes of this flavor in the fleet.")] = 0
    clusters: Annotated[
        tuple[Name, ...], doc("Clusters that have such nodes.", max_items=512, list_type="set")
    ] = ()
    allocatable: Annotated[
        ResourceList, doc("Total resources of those nodes that are available to pods.")
    ] = {}


class Flavor(Object, frozen=True, kw_only=True):
    """A kind of capacity: the node and cluster labels that define it, its speed and its price."""

    spec: Annotated[FlavorSpec, doc("Which nodes have this flavor, and its speed and price.")] = (
        FlavorSpec()
    )
    status: Annotated[FlavorStatus, doc("Nodes of the flavor in the fleet.")] = FlavorStatus()
