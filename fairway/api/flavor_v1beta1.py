"""Flavor as version v1beta1 says it: what belongs together stands together.

Labels and taints of nodes are one part, how capacity is bought is a word instead of a boolean, and
prices are a list that keeps the order in which people wrote them. `versions` converts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from fairway.api.amounts import Quantity
from fairway.api.doc import ResourceName, Text, doc
from fairway.api.flavor import ONE, FlavorStatus
from fairway.api.meta import GROUP, Labels, Object, Part, Taint, Toleration

VERSION = "v1beta1"


class FlavorNodes(Part, frozen=True, kw_only=True):
    """The nodes of a flavor."""

    labels: Annotated[
        Labels, doc("Labels that a node of this flavor has, as the cluster's profile names them.")
    ] = {}
    taints: Annotated[
        tuple[Taint, ...],
        doc("Taints of such nodes, which pods must tolerate.", max_items=16, list_type="atomic"),
    ] = ()


class FlavorClusters(Part, frozen=True, kw_only=True):
    """The clusters that have nodes of a flavor."""

    labels: Annotated[Labels, doc("Labels that the cluster of such a node has.")] = {}


class Price(Part, frozen=True, kw_only=True):
    """What one resource costs."""

    resource: Annotated[ResourceName, doc("The resource.")]
    per_hour: Annotated[Quantity, doc("Price of one unit of it for an hour.")]


class FlavorSpecV1Beta1(Part, frozen=True, kw_only=True):
    """Which nodes have this flavor, and what it is worth."""

    description: Annotated[Text, doc("What this kind of capacity is, for people.")] = ""
    nodes: Annotated[FlavorNodes | None, doc("What makes a node one of this flavor.")] = None
    clusters: Annotated[
        FlavorClusters | None, doc("What makes a cluster one that has such nodes.")
    ] = None
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations given to pods placed on this flavor.", max_items=16, list_type="atomic"),
    ] = ()
    capacity: Annotated[
        Literal["OnDemand", "Reserved", "Spot"] | None,
        doc(
            "How such nodes are bought: on demand, reserved (paid for whether used or not), or as "
            "spot capacity, which the provider may take back; unset means on demand."
        ),
    ] = None
    speed: Annotated[
        Quantity, doc("How fast work runs here relative to other flavors; 1 is the yardstick.")
    ] = ONE
    prices: Annotated[
        tuple[Price, ...],
        doc("Price of each resource.", max_items=64, list_type="map", list_map_keys=["resource"]),
    ] = ()


def _api_version() -> str:
    return f"{GROUP}/{VERSION}"


class FlavorV1Beta1(Object, frozen=True, kw_only=True, tag="Flavor"):
    """A kind of capacity: the nodes and clusters that make it, its speed and its price."""

    api_version: str = field(default_factory=_api_version)
    spec: Annotated[FlavorSpecV1Beta1, doc("Which nodes have this flavor, and its worth.")] = (
        FlavorSpecV1Beta1()
    )
    status: Annotated[FlavorStatus, doc("Where the flavor was seen.")] = FlavorStatus()
