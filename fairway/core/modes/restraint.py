"""Who grows in parts keeps the peace: it does not both borrow and make others yield.

The rules of preemption look at one decision. A gang is decided once; services and sweeps grow, and
what was right for each part need not be right for the whole. One that took back what is its queue's
own, and then borrows for more, may lose everything to the very victims, who take back what is
theirs; and so on, for ever. Therefore:

- while something of it is borrowed, only those of its own queue yield to it;
- once others have yielded to it, it grows within what its queue owns. The rung of its claim, which
  stays Preempt from then on, remembers that.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.api.meta import Rung
from fairway.api.reasons import Code
from fairway.core.desk import Desk
from fairway.core.making_room.preemption import Victims
from fairway.core.model import Placed, Workload
from fairway.core.snapshot import usage_of


def is_peaceful(desk: Desk, workload: Workload, placed: Iterable[Placed], victims: Victims) -> bool:
    """Whether victims may yield to more of a workload that has these places already."""
    tree, queue = desk.ledger.tree, workload.queue
    borrows = any(
        tree.usage(queue).get(pair, 0) > tree.subtree_quota(queue, pair)
        for one in placed
        for pair in usage_of(one)
        if tree.covers(queue, pair[1])
    )
    return not borrows or all(one.code == Code.PREEMPTED_WITHIN_QUEUE for one in victims.victims)


def has_made_yield(workload: Workload, waits_for: Iterable[str]) -> bool:
    """Whether others yielded to a workload, in this plan or before."""
    return any(waits_for) or (workload.held is not None and workload.held.rung == "Preempt")


def lasting_rung(workload: Workload, waits_for: Iterable[str], rung: Rung) -> Rung:
    """The rung of the claim: the last that gave something, but Preempt stays."""
    return "Preempt" if has_made_yield(workload, waits_for) else rung
