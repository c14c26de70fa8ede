"""Flavor: a kind of capacity, such as an accelerator model on one fabric, spot or on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fairway.api.amounts import Quantity
from fairway.api.doc import Count, Name, ResourceName, Text, doc
from fairway.api.meta import Conditions, Labels, Object, Part, ResourceList, Taint, Toleration

ONE = Quantity.of(1)


class FlavorSpec(Part, frozen=True, kw_only=True):
    """Which nodes have this flavor, and what it is worth."""

    description: Annotated[Text, doc("What this kind of capacity is, for people.")] = ""
    node_labels: Annotated[
        Labels, doc("Labels that a node of this flavor has, as the cluster's profile names them.")
    ] = {}
    cluster_labels: Annotated[Labels, doc("Labels that the cluster of such a node has.")] = {}
    node_taints: Annotated[
        tuple[Taint, ...],
        doc("Taints of such nodes, which pods must tolerate.", max_items=16, list_type="atomic"),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations given to pods placed on this flavor.", max_items=16, list_type="atomic"),
    ] = ()
    interruptible: Annotated[
        bool, doc("Whether the provider may take such nodes back, as with spot capacity.")
    ] = False
    speed: Annotated[
        Quantity, doc("How fast work runs here relative to other flavors; 1 is the yardstick.")
    ] = ONE
    prices: Annotated[
        Mapping[ResourceName, Quantity],
        doc("Price of one unit of each resource for an hour.", max_properties=64),
    ] = {}


class FlavorStatus(Part, frozen=True, kw_only=True):
    """Where the flavor was seen."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    nodes: Annotated[Count, doc("Nodes of this flavor in the fleet.")] = 0
    clusters: Annotated[
        tuple[Name, ...], doc("Clusters that have such nodes.", max_items=512, list_type="set")
    ] = ()
    allocatable: Annotated[ResourceList, doc("What those nodes have for pods, together.")] = {}
    conditions: Annotated[Conditions, doc("State of the flavor, aspect by aspect.")] = ()


class Flavor(Object, frozen=True, kw_only=True):
    """A kind of capacity: node and cluster labels that make it, its speed and its price."""

    spec: Annotated[FlavorSpec, doc("Which nodes have this flavor, and its worth.")] = FlavorSpec()
    status: Annotated[FlavorStatus, doc("Where the flavor was seen.")] = FlavorStatus()
