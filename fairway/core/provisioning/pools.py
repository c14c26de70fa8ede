"""New nodes: which elastic pool of a cluster, and how many nodes of it, would hold a workload.

Pools are tried from the cheapest. What is left of a pool counts its most, what it has, its stock,
the provider's quota, and what this plan asked of it before. One that may be out of stock is for who
has nowhere else to go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.api.reasons import Code, Reason
from fairway.core.explain.reasons import no_pool
from fairway.core.model import Form, Pool, Workload
from fairway.core.packing import pack
from fairway.core.packing.eligibility import pool_takes
from fairway.core.planning_round import PlanningRound
from fairway.core.provisioning.new_nodes import pack_with_new_nodes
from fairway.core.quota.flavors import Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """Nodes to ask for, and where the pods go with them."""

    pool: str
    count: int
    packed: pack.Packed  # on existing and new nodes
    on_existing: pack.Packed  # the part of it that takes room that is there already


def find_pool(
    planning: PlanningRound, workload: Workload, form: Form, option: Assignment, cluster: str
) -> Provisioned | Reason:
    """The cheapest pool whose nodes would make a form fit, or why there is none."""
    place = planning.cluster(cluster)
    if not place.pools:
        return no_pool(cluster)
    flavors = {
        pod_set.name: [
            planning.snapshot.facts.flavors[name]
            for name in sorted(set(option.flavors[pod_set.name].values()))
        ]
        for pod_set in form.pod_sets
    }
    rivals = planning.snapshot.eligibility.rivals
    room = planning.ledger.rooms[cluster]
    wants = planning.wants(cluster, option, form)
    refusal = no_pool(cluster)
    for pool in sorted(place.pools, key=_price):
        takes = [
            pool_takes(place, pool, pod_set.shape, flavors[pod_set.name], rivals)
            for pod_set in form.pod_sets
        ]
        if not any(takes):
            continue
        if pool.is_doubtful and not planning.is_last_resort:
            planning.has_passed_over = True
            refusal = _out_of_stock(cluster, pool, 0)
            continue
        left = planning.ledger.left_in_pool(cluster, pool.name)
        grown = pack_with_new_nodes(
            room, wants, pool, left=left, takes=takes, domain=workload.domain
        )
        if isinstance(grown, pack.Shortage):
            refusal = _out_of_stock(cluster, pool, left)
        elif grown.new_nodes:
            return Provisioned(
                pool=pool.name,
                count=grown.new_nodes,
                packed=grown.packed,
                on_existing=_existing(grown.packed, len(place.nodes)),
            )
    return refusal


def _out_of_stock(cluster: str, pool: Pool, left: int) -> Reason:
    return Reason(
        code=Code.OUT_OF_STOCK,
        cluster=cluster,
        rung="Provision",
        pool=pool.name,
        count=left,
        until=0.0 if left else pool.out_until,
    )


def _price(pool: Pool) -> tuple[bool, int, str]:
    return (pool.price_nanos is None, pool.price_nanos or 0, pool.name)


def _existing(packed: pack.Packed, nodes: int) -> pack.Packed:
    packing: Mapping[str, Mapping[int, int]] = {
        name: {position: count for position, count in counts.items() if position < nodes}
        for name, counts in packed.packing.items()
    }
    return pack.Packed(packing=packing)
