"""Where victims may be found at all: a quick look before any search.

Where a workload may preempt within its own queue only, the few holders of that queue say in which
clusters there can be victims. What such a holder gives back bounds how many more pods fit: on each
node, for the resource that was scarcest, what is given back of it divided by what a pod needs, and
one more for the rest that was there. A cluster that lacks more pods than that is not searched.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.desk import Desk
from fairway.core.making_room.holders import Holder, holders_of
from fairway.core.model import Form, Request, Usage, Workload
from fairway.core.turns.flavors import Assignment


def clusters_to_search(
    desk: Desk,
    workload: Workload,
    form: Form,
    option: tuple[Assignment, Usage],
    names: Sequence[str],
) -> Sequence[str]:
    """The clusters in which there may be victims; in the others there are none for certain."""
    rules = desk.queue(workload).preemption
    assignment, usage = option
    if rules.reclaim != "Never":
        return names
    if rules.within_queue == "Never":
        return ()
    same = holders_of(desk).of_queue(workload.queue)
    behind = [one for one in same if one.workload.priority <= workload.priority]
    if not behind or not desk.ledger.tree.fits(workload.queue, usage):
        return names if behind else ()
    missing = desk.stock.chance(assignment, form).missing
    gains = _gains(behind, form)
    return [
        name
        for name in names
        if name in gains
        and all(
            gain >= lack
            for gain, lack in zip(
                gains[name], missing[:, desk.stock.position[name]].tolist(), strict=True
            )
        )
    ]


def _gains(holders: Sequence[Holder], form: Form) -> dict[str, list[int]]:
    """For each cluster, how many more pods of each set there may be room for at most."""
    found: dict[str, list[int]] = {}
    for holder in holders:
        assert holder.workload.held is not None, "a holder holds something"
        for placed in holder.workload.held.placed:
            gains = found.setdefault(placed.cluster, [0] * len(form.pod_sets))
            for pods in placed.pods:
                given = dict(pods.shape.requests)
                for at, pod_set in enumerate(form.pod_sets):
                    gains[at] += pods.count * _more(given, pod_set.shape.requests)
    return found


def _more(given: dict[str, int], needed: Request) -> int:
    """How many more pods fit on a node that gets so much back."""
    return 1 + max((given.get(name, 0) // amount for name, amount in needed), default=0)
