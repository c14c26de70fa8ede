"""Lost work against money: what preempting and provisioning cost, where a policy weighs prices.

    preempting costs     run time that victims lose x the price of what they use
    provisioning costs   price of the new nodes x the time they are needed

Both in nanos of the fleet's currency. What has no price is not worth weighing: the ladder decides.
"""

from __future__ import annotations

from fairway.core.model import Workload
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.provisioning.pools import Provisioned

_HOUR = 3600
# How long new nodes are taken to be needed by a workload that does not say how long it runs.
_RUN_SECONDS = 3600


def price_of_loss(planning: PlanningRound, victims: Victims) -> int | None:
    """What the victims' lost run time was worth."""
    total = 0
    for victim in victims.victims:
        held = planning.snapshot.facts.workloads[victim.key].held
        for placed in held.placed if held else ():
            for pods in placed.pods:
                for (flavor, resource), amount in pods.usage().items():
                    known = planning.snapshot.facts.flavors.get(flavor)
                    price = known.prices.get(resource) if known else None
                    if price is None:
                        continue
                    total += price * amount * int(victim.lost_seconds) // (1000 * _HOUR)
    return total if total or all(not victim.lost_seconds for victim in victims.victims) else None


def price_of_nodes(
    planning: PlanningRound, workload: Workload, cluster: str, nodes: Provisioned
) -> int | None:
    """What the new nodes cost for as long as they are needed."""
    pool = next(pool for pool in planning.cluster(cluster).pools if pool.name == nodes.pool)
    if pool.price_nanos is None:
        return None
    seconds = int(workload.run_seconds or workload.limit_seconds or _RUN_SECONDS)
    return pool.price_nanos * nodes.count * seconds // _HOUR
