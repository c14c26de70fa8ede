"""The price of preempting and of provisioning, for policies that weigh one against the other.

    price of preempting    = run time that victims lose x price of what they use
    price of provisioning  = price of the new nodes x time for which they are needed

Both are in nanos of the fleet's currency. If either price is unknown, nothing is weighed, and the
order of the ladder decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairway.core.model import Workload
from fairway.core.provisioning.pools import Provisioned

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound
    from fairway.core.preemption.find import Victims

_HOUR = 3600
# For how long new nodes are needed by a workload that gives neither an estimate nor a limit.
_RUN_SECONDS = 3600


def price_of_loss(planning: PlanningRound, victims: Victims) -> int | None:
    """The price of the run time that the victims lose; None if nothing of it has a price."""
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
    """The price of the new nodes for as long as they are needed; None if it is not known."""
    pool = next(pool for pool in planning.cluster(cluster).pools if pool.name == nodes.pool)
    if pool.price_nanos is None:
        return None
    seconds = int(workload.run_seconds or workload.limit_seconds or _RUN_SECONDS)
    return pool.price_nanos * nodes.count * seconds // _HOUR
