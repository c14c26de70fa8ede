"""Flavor in version v1beta1: related fields are grouped.

Labels and taints of nodes are one part, how capacity is bought is a word instead of a boolean, and
prices are a list that keeps the order in which they were written. `versions` converts.
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
        Labels,
        doc(
            "Labels of nodes with this flavor, by the fleet's keys; cluster profiles translate "
            "them."
        ),
    ] = {}
    taints: Annotated[
        tuple[Taint, ...],
        doc("Taints of such nodes, which pods must tolerate.", max_items=16, list_type="atomic"),
    ] = ()


class FlavorClusters(Part, frozen=True, kw_only=True):
    """The clusters that have nodes of a flavor."""

    labels: Annotated[Labels, doc("Labels of clusters that have such nodes.")] = {}


class Price(Part, frozen=True, kw_only=True):
    """Price of one resource."""

    resource: Annotated[ResourceName, doc("Name of the resource.")]
    per_hour: Annotated[Quantity, doc("Price of one unit of it per hour.")]


class FlavorSpecV1Beta1(Part, frozen=True, kw_only=True):
    """Which nodes have this flavor, and its speed and price."""

    description: Annotated[Text, doc("Description of this kind of capacity, for people.")] = ""
    nodes: Annotated[FlavorNodes | None, doc("Labels and taints of nodes with this flavor.")] = None
    clusters: Annotated[FlavorClusters | None, doc("Labels of clusters that have such nodes.")] = (
        None
    )
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Tolerations added to pods placed on this flavor.", max_items=16, list_type="atomic"),
    ] = ()
    capacity: Annotated[
        Literal["OnDemand", "Reserved", "Spot"] | None,
        doc(
            "How such nodes are bought. OnDemand: on demand. Reserved: paid for whether used or "
            "not. Spot: the provider may reclaim them. Unset: on demand."
        ),
    ] = None
    speed: Annotated[Quantity, doc("Speed relative to other flavors; 1 is the reference.")] = ONE
    prices: Annotated[
        tuple[Price, ...],
        doc("Price of each resource.", max_items=64, list_type="map", list_map_keys=["resource"]),
    ] = ()


def _api_version() -> str:
    return f"{GROUP}/{VERSION}"


class FlavorV1Beta1(Object, frozen=True, kw_only=True, tag="Flavor"):
    """A kind of capacity: the nodes and clusters that have it, its speed and its price."""

    api_version: str = field(default_factory=_api_version)
    spec: Annotated[
        FlavorSpecV1Beta1, doc("Which nodes have this flavor, and its speed and price.")
    ] = FlavorSpecV1Beta1()
    status: Annotated[FlavorStatus, doc("Nodes of the flavor in the fleet.")] = FlavorStatus()
