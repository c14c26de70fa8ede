"""Where victims may be found at all: a quick look before any search.

Where a workload may preempt within its own queue only, the few holders of that queue say in which
clusters there can be victims. What such a holder gives back bounds how many more pods fit: on each
node, for the resource that was scarcest, what is given back of it divided by what a pod needs, and
one more for the rest that was there. A cluster that lacks more pods than that is not searched, nor
is one of which no node would be large enough if it were empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairway.core.model import Form, Placed, Request, Usage, Workload
from fairway.core.nodes import Amounts
from fairway.core.planning_round import Desk
from fairway.core.preemption.holders import holders_of, may_yield
from fairway.core.quota.flavors import Assignment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Behind:
    """What those of a queue hold who may ever have to yield."""

    placed: Sequence[tuple[int, Placed]]  # with the priority of its workload
    clusters: tuple[str, ...]
    places: Amounts  # of these clusters among all
    pods: Amounts  # in each of them
    largest: dict[str, int]  # what a single pod of theirs gives back at most, by resource


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
    if rules.reclaim == "Never" and rules.within_queue == "Never":
        return ()
    is_large = desk.stock.large_enough(assignment, form)
    if not is_large.any():
        return ()
    position = desk.stock.position
    names = names if is_large.all() else [one for one in names if is_large[position[one]]]
    if rules.reclaim != "Never":
        return names
    behind = _behind(desk, workload.queue)
    fits_quota = desk.ledger.tree.fits(workload.queue, usage)
    # First as if all of the queue had to yield, and each of their pods were their largest.
    missing = desk.stock.chance(assignment, form).missing(behind.places) if fits_quota else None
    if missing is not None:
        most = [_more(behind.largest, one.shape.requests) for one in form.pod_sets]
        if not (np.outer(most, behind.pods) >= missing).all(axis=0).any():
            return ()
    weaker = [placed for priority, placed in behind.placed if priority <= workload.priority]
    if missing is None or not weaker:
        return names if weaker else ()
    gains = _gains(weaker, form)
    lacks = dict(zip(behind.clusters, missing.T.tolist(), strict=True))
    return [
        name
        for name in names
        if name in gains
        and name in lacks
        and all(gain >= lack for gain, lack in zip(gains[name], lacks[name], strict=True))
    ]


def _behind(desk: Desk, queue: str) -> Behind:
    holders = holders_of(desk)
    found = holders.behind.get(queue)
    if found is None:
        found = holders.behind[queue] = _gathered(desk, list(_yielding(desk, queue)))
    return found


def _yielding(desk: Desk, queue: str) -> Iterator[tuple[int, Placed]]:
    snapshot = desk.snapshot
    for key in snapshot.holding.get(queue, ()):
        one = snapshot.facts.workloads[key]
        if one.held is not None and may_yield(one):
            for placed in one.held.placed:
                yield one.priority, placed


def _gathered(desk: Desk, placed: Sequence[tuple[int, Placed]]) -> Behind:
    pods_in: dict[str, int] = {}
    largest: dict[str, int] = {}
    for _, one in placed:
        for pods in one.pods:
            if one.cluster in desk.stock.position:
                pods_in[one.cluster] = pods_in.get(one.cluster, 0) + pods.count
            for resource, amount in pods.shape.requests:
                largest[resource] = max(amount, largest.get(resource, 0))
    return Behind(
        placed=placed,
        clusters=tuple(pods_in),
        places=np.array([desk.stock.position[name] for name in pods_in], dtype=np.int64),
        pods=np.array(list(pods_in.values()), dtype=np.int64),
        largest=largest,
    )


def _gains(placed: Iterable[Placed], form: Form) -> dict[str, list[int]]:
    """For each cluster, how many more pods of each set there may be room for at most."""
    found: dict[str, list[int]] = {}
    for one in placed:
        gains = found.setdefault(one.cluster, [0] * len(form.pod_sets))
        for pods in one.pods:
            given = dict(pods.shape.requests)
            for at, pod_set in enumerate(form.pod_sets):
                gains[at] += pods.count * _more(given, pod_set.shape.requests)
    return found


def _more(given: dict[str, int], needed: Request) -> int:
    """How many more pods fit on a node that gets so much back."""
    return 1 + max((given.get(name, 0) // amount for name, amount in needed), default=0)
