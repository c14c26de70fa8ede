"""What clusters have of each flavor, for accounts."""

from __future__ import annotations

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.core.costs.accounts import Place
from fairway.core.snapshot import Snapshot


def supplies(snapshot: Snapshot) -> dict[Place, int]:
    """Accelerators on nodes that are ready, in thousandths, by cluster and flavor.

    A node that has several flavors counts for the first by name; one that has none, for none.
    """
    found: dict[Place, int] = {}
    for name, cluster in snapshot.facts.clusters.items():
        counted = [one for one in cluster.nodes.capacity if is_accelerator(one)]
        if not counted:
            continue
        left = cluster.nodes.ready.copy()
        total = np.sum([cluster.nodes.capacity[one] for one in counted], axis=0)
        for flavor in (*sorted(snapshot.facts.flavors), ""):
            mine = left.copy()
            if flavor:
                mine &= cluster.flavor_nodes(snapshot.facts.flavors[flavor])
            gpus = int(total[mine].sum())
            if gpus:
                found[name, flavor] = gpus
            left = left & ~mine
    return found
