"""Restraint: a workload that grows in parts does not both borrow and preempt other queues.

The rules of preemption judge one decision. A gang is decided once, but services and sweeps grow,
and what is legal for each part may not be legal for the whole. A workload that reclaims its queue's
own quota and then borrows for more may lose everything to its former victims, which reclaim in
turn; and so on for ever. Therefore:

- while a workload borrows, it preempts only workloads of its own queue (these are behind it there,
  and cannot preempt it in turn);
- once it has preempted workloads of other queues, it grows only within its queue's own quota. The
  rung of its claim, which is Preempt from then on, records that. If all victims were of its own
  queue, the rung stays that of the rest of the claim.

Where its queue owns nothing, the quota of the lowest queue above that owns some counts as its own:
its victims were outside that queue, and cannot reclaim from within it.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.api.reasons import Code
from fairway.core.model import Placed, Workload, usage_of
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims


def victims_to_grow(
    planning: PlanningRound,
    request: PlacementRequest,
    cluster: str,
    placed: Iterable[Placed],
    *,
    reach: int,
) -> Victims | None:
    """The victims that a workload with these placements may preempt in order to grow."""
    victims = find_victims(planning, request, cluster, reach=reach)
    if victims is None or not _is_peaceful(planning, request.workload, placed, victims):
        return None
    return victims


def _is_peaceful(
    planning: PlanningRound, workload: Workload, placed: Iterable[Placed], victims: Victims
) -> bool:
    tree, queue = planning.ledger.tree, workload.queue
    borrows = any(
        tree.borrows(tree.owner(queue, pair), pair)
        for placement in placed
        for pair in usage_of(placement)
        if tree.covers(queue, pair[1])
    )
    return not borrows or not are_of_others(victims)


def are_of_others(victims: Victims) -> bool:
    """Whether any victim is of another queue."""
    return any(victim.code != Code.PREEMPTED_WITHIN_QUEUE for victim in victims.victims)


def has_made_yield(workload: Workload) -> bool:
    """Whether a workload preempted other queues in an earlier plan for what it holds."""
    return workload.held is not None and workload.held.rung == "Preempt"
