"""Where agents learn which nodes can be bought, chosen by what their Cluster says."""

from __future__ import annotations

from fairway.agent.inventory.http import HttpInventory
from fairway.agent.inventory.interface import Inventory
from fairway.agent.inventory.listed import Listed
from fairway.api.cluster import Cluster
from fairway.clock import Clock


def inventory_of(cluster: Cluster, clock: Clock) -> Inventory:
    """The inventory used besides what the driver of a cluster finds by itself."""
    inventory = cluster.spec.inventory
    return (
        Listed()
        if inventory is None or inventory.http is None
        else HttpInventory(inventory.http, clock)
    )
