"""New nodes: which elastic pool of a cluster, and how many of its nodes, make a workload fit.

Pools are tried from the cheapest. The nodes left in a pool are limited by its maximum size, its
stock and the provider's quota, less the nodes that it has and those that this plan has asked for.
A pool whose source of stock has not answered yet has none left.
A pool that may be out of stock is used only as a last resort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairway.api.reasons import Code, Reason
from fairway.core.model import Pool
from fairway.core.packing import pack
from fairway.core.packing.eligibility import pool_takes
from fairway.core.placement_request import PlacementRequest
from fairway.core.provisioning.new_nodes import pack_with_new_nodes
from fairway.core.reasons import no_pool, shortage_reason

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """Nodes to ask for, and where the pods go with them."""

    pool: str
    count: int
    packed: pack.Packed  # on existing and new nodes
    on_existing: pack.Packed  # the part that is on existing nodes


@dataclass(frozen=True, slots=True)
class NoNodes:
    """Why no pool provides nodes."""

    reason: Reason
    has_passed_over: bool = False  # a pool was not asked, since it may be out of stock


def find_pool(
    planning: PlanningRound,
    request: PlacementRequest,
    cluster: str,
    *,
    is_last_resort: bool = False,
) -> Provisioned | NoNodes:
    """The cheapest pool whose nodes make a request fit, or why there is none."""
    place, form, option = planning.cluster(cluster), request.form, request.assignment
    if not place.pools:
        return NoNodes(no_pool(cluster))
    flavors = {
        pod_set.name: [
            planning.snapshot.facts.flavors[name]
            for name in sorted(set(option.flavors[pod_set.name].values()))
        ]
        for pod_set in form.pod_sets
    }
    rivals = planning.snapshot.eligibility.rivals
    room = planning.ledger.rooms[cluster]
    wants = planning.wants(cluster, request)
    refused = pack.not_admitted(room, wants)
    if refused is not None:  # new nodes would not help
        return NoNodes(shortage_reason(cluster, "", "Provision", option, refused))
    refusal, has_passed_over = no_pool(cluster), False
    for pool in sorted(place.pools, key=_price):
        takes = [
            pool_takes(place, pool, pod_set.shape, flavors[pod_set.name], rivals)
            for pod_set in form.pod_sets
        ]
        may_leave = pool.is_interruptible and not request.workload.preemptible
        if may_leave or not any(takes):
            continue
        if pool.awaits_stock:
            refusal = Reason(
                code=Code.STOCK_UNKNOWN, cluster=cluster, rung="Provision", pool=pool.name
            )
            continue
        if pool.is_doubtful and not is_last_resort:
            has_passed_over = True
            refusal = _out_of_stock(cluster, pool, 0)
            continue
        left = planning.ledger.left_in_pool(cluster, pool.name)
        grown = pack_with_new_nodes(
            room, wants, pool, left=left, takes=takes, domain=request.workload.domain
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
    return NoNodes(refusal, has_passed_over)


def most_on_new_nodes(
    cluster: str, counts: Sequence[int], nodes_for: Callable[[int], Provisioned | NoNodes]
) -> tuple[int, Provisioned] | NoNodes:
    """The largest of `counts`, which ascend, that fits on new nodes of a pool, and those nodes."""
    best: tuple[int, Provisioned] | NoNodes = NoNodes(no_pool(cluster))
    low, high = 0, len(counts) - 1
    while low <= high:
        middle = (low + high) // 2
        nodes = nodes_for(counts[middle])
        if isinstance(nodes, Provisioned):
            best, low = (counts[middle], nodes), middle + 1
        else:
            high = middle - 1
            best = nodes if isinstance(best, NoNodes) else best
    return best


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
