"""Who grows in parts keeps the peace: it does not both borrow and make others yield.

The rules of preemption look at one decision. A gang is decided once; services and sweeps grow, and
what was right for each part need not be right for the whole. One that took back what is its queue's
own, and then borrows for more, may lose everything to the very victims, who take back what is
theirs; and so on, for ever. Therefore:

- while something of it is borrowed, only those of its own queue yield to it (they are behind it
  there, and cannot do the same to it);
- once others have yielded to it, it grows within what its queue owns. The rung of its claim, which
  is Preempt from then on, remembers that; where only its own queue's yielded, the rung is that of
  the rest of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.api.reasons import Code
from fairway.core.model import Placed, Workload, usage_of
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims


def is_peaceful(
    planning: PlanningRound, workload: Workload, placed: Iterable[Placed], victims: Victims
) -> bool:
    """Whether victims may yield to more of a workload that has these places already."""
    tree, queue = planning.ledger.tree, workload.queue
    borrows = any(
        tree.usage(queue).get(pair, 0) > tree.subtree_quota(queue, pair)
        for placement in placed
        for pair in usage_of(placement)
        if tree.covers(queue, pair[1])
    )
    return not borrows or not are_of_others(victims)


def are_of_others(victims: Victims) -> bool:
    """Whether somebody of another queue is among the victims."""
    return any(victim.code != Code.PREEMPTED_WITHIN_QUEUE for victim in victims.victims)


def has_made_yield(workload: Workload) -> bool:
    """Whether others yielded to what a workload holds, in an earlier plan."""
    return workload.held is not None and workload.held.rung == "Preempt"
