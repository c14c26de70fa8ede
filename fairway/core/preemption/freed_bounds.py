"""Upper bounds on how many pods fit once some holders have left their nodes.

The first bound says which clusters to search for victims. A workload that may preempt only within
its own queue has few candidates, and what their pods free bounds how many more pods fit. Each pod
that leaves a node makes room for at most

    1 + max over resources of floor(amount freed / amount that a pod needs)

The 1 is for the remainder that was already free. A cluster that lacks more pods than this is not
searched. Nor is a cluster whose nodes would be too small even if they were empty.

The second bound is applied before any packing. Each pod set is counted alone, node by node, and
topology is ignored. What a candidate frees on nodes without other candidates is counted once; nodes
that candidates share are counted again for each set. For one pod set without topology the bound is
exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairway.core.model import Form, Placed, Request
from fairway.core.nodes import Amounts, Mask, Room
from fairway.core.packing.pack import UNLIMITED, Want
from fairway.core.placement_request import PlacementRequest
from fairway.core.preemption.holders import Foot, holders_of, may_yield
from fairway.core.quota.tree import ANYWHERE

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


def stands_on_any(wants: Sequence[Want], room: Room, foot: Foot) -> bool:
    """Whether a holder uses a resource that the pods need, on a node that they could use."""
    for want in wants:
        mask = room.cluster.nodes.ready if want.mask is None else want.mask
        for name, _ in want.shape.needs:
            used = foot.used.get(name)
            if used is not None and bool((mask.take(foot.positions) & (used > 0)).any()):
                return True
    return False


class _Pods:
    """One pod set, and the room that candidates free for it."""

    __slots__ = ("alone", "amounts", "free", "missing", "now", "shared")

    def __init__(
        self, room: Room, want: Want, feet: Sequence[Foot], shared: frozenset[int]
    ) -> None:
        self.amounts = [amount for _, amount in want.shape.needs]
        names = [name for name, _ in want.shape.needs]
        columns = [_column(room, name) for name in names]
        mask = room.cluster.nodes.ready if want.mask is None else want.mask
        slots = self._slots(columns, mask)
        self.missing = want.count - int(slots.sum())
        # For each candidate: pods gained on nodes that it does not share with other candidates,
        # and the amounts that it frees on nodes that it shares.
        self.alone: list[int] = []
        self.shared: list[dict[int, list[int]]] = []
        self.free: dict[int, list[int]] = {}
        self.now: dict[int, int] = {}
        for foot in feet:
            at = foot.positions
            given = [foot.used.get(name) for name in names]
            free = [
                column.take(at) if more is None else column.take(at) + more
                for column, more in zip(columns, given, strict=True)
            ]
            gained = self._slots(free, mask.take(at)) - slots.take(at)
            mine: dict[int, list[int]] = {}
            if shared and not shared.isdisjoint(at.tolist()):
                for place, position in enumerate(at.tolist()):
                    if position in shared:
                        gained[place] = 0
                        if mask[position]:
                            mine[position] = [0 if m is None else int(m[place]) for m in given]
                            self.free[position] = [int(column[position]) for column in columns]
                            self.now[position] = int(slots[position])
            self.alone.append(int(gained.sum()))
            self.shared.append(mine)

    def _slots(self, columns: Sequence[Amounts], mask: Mask) -> Amounts:
        slots: Amounts = np.where(mask, UNLIMITED, 0)
        for column, amount in zip(columns, self.amounts, strict=True):
            slots = np.minimum(slots, np.maximum(column, 0) // amount)
        return slots

    def gain(self, chosen: Iterable[int]) -> int:
        """How many more pods fit when these candidates are gone."""
        total = 0
        given: dict[int, list[int]] = {}
        for number in chosen:
            total += self.alone[number]
            for at, amounts in self.shared[number].items():
                before = given.get(at)
                if before is None:
                    given[at] = amounts
                else:
                    given[at] = [old + new for old, new in zip(before, amounts, strict=True)]
        for at, amounts in given.items():
            total += self.gained_at(at, amounts)
        return total

    def gained_at(self, at: int, given: Sequence[int]) -> int:
        least = UNLIMITED
        for old, new, needed in zip(self.free[at], given, self.amounts, strict=True):
            here = (old + new) // needed if old + new > 0 else 0
            least = here if here < least else least
        return least - self.now[at]


def _column(room: Room, name: str) -> Amounts:
    column = room.free.get(name)
    return np.zeros(len(room.cluster.nodes), dtype=np.int64) if column is None else column


class Ground:
    """The nodes of one cluster that candidates use."""

    def __init__(self, room: Room, wants: Sequence[Want], feet: Sequence[Foot]) -> None:
        every = np.concatenate([foot.positions for foot in feet])
        positions, counts = np.unique(every, return_counts=True)
        shared = frozenset(positions[counts > 1].tolist())
        self._pods = [_Pods(room, want, feet, shared) for want in wants if want.count > 0]
        self._short = [pod for pod in self._pods if pod.missing > 0]

    def allows(self, chosen: Sequence[int]) -> bool:
        """Whether the pods may fit when these candidates are gone; False is certain."""
        return all(pods.gain(chosen) >= pods.missing for pods in self._short)

    def bundles(self, allowed: Sequence[int], losses: Sequence[int]) -> list[tuple[int, ...]]:
        """Candidates that free room together: one alone, or the cheapest on one node.

        Ordered by pods gained for the work lost, the most first.
        """
        result: dict[tuple[int, ...], float] = {}

        def note(pods: _Pods, bundle: tuple[int, ...]) -> None:
            lost = 1 + sum(losses[other] for other in bundle)
            worth = pods.gain(bundle) / lost / len(bundle)
            result[bundle] = max(result.get(bundle, 0.0), worth)

        cheapest_first = sorted(allowed, key=lambda number: (losses[number], number))
        for pods in self._pods:
            on: dict[int, list[int]] = {}
            for number in cheapest_first:
                if pods.alone[number] > 0:
                    note(pods, (number,))
                for at in pods.shared[number]:
                    on.setdefault(at, []).append(number)
            for at in sorted(on):
                given = [0] * len(pods.amounts)
                for place, value in enumerate(on[at]):
                    given = [a + b for a, b in zip(given, pods.shared[value][at], strict=True)]
                    if pods.gained_at(at, given) > 0:
                        note(pods, tuple(on[at][: place + 1]))
                        break
        return sorted(result, key=lambda bundle: (-result[bundle], bundle))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Behind:
    """What the preemptible workloads of a queue hold."""

    placed: Sequence[tuple[int, Placed]]  # with the priority of the workload
    clusters: tuple[str, ...]
    places: Amounts  # position of each of these clusters among all
    pods: Amounts  # in each of these clusters
    largest: dict[str, int]  # the most that any one of their pods frees, by resource


def clusters_to_search(
    planning: PlanningRound,
    request: PlacementRequest,
    names: Sequence[str],
    reach: int = ANYWHERE,
) -> Sequence[str]:
    """The clusters that may have victims, or pods that leave; the others certainly have none.

    For a workload that does not reach for all quota, what leaves anywhere may free what it lacks.
    """
    workload, form, assignment = request.workload, request.form, request.assignment
    rules = planning.queue(workload).preemption
    awaits = reach != ANYWHERE and bool(planning.snapshot.rebates.leavers)
    if rules.reclaim == "Never" and rules.within_queue == "Never" and not awaits:
        return ()
    is_large = planning.stock.large_enough(assignment, form)
    if not is_large.any():
        return ()
    position = planning.stock.position
    names = names if is_large.all() else [name for name in names if is_large[position[name]]]
    if rules.reclaim != "Never" or awaits:
        return names
    leaving = planning.snapshot.leaving_in if planning.snapshot.rebates.leavers else None
    result = _within_queue(planning, request, names)
    return [name for name in names if name in result or (leaving is not None and leaving(name))]


def _within_queue(
    planning: PlanningRound, request: PlacementRequest, names: Sequence[str]
) -> Sequence[str]:
    """The clusters that may have victims of the workload's own queue."""
    workload, form, assignment = request.workload, request.form, request.assignment
    behind = _behind(planning, workload.queue)
    fits_quota = planning.ledger.tree.fits(workload.queue, request.usage)
    # First a rough bound: as if all of them were preempted, and each pod were the largest.
    missing = (
        planning.stock.chance(assignment, form).shortage(behind.places) if fits_quota else None
    )
    if missing is not None:
        most = [_more(behind.largest, pod_set.shape.needs) for pod_set in form.pod_sets]
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


def _behind(planning: PlanningRound, queue: str) -> Behind:
    holders = holders_of(planning)
    behind = holders.behind.get(queue)
    if behind is None:
        behind = holders.behind[queue] = _gather(planning, list(_yielding(planning, queue)))
    return behind


def _yielding(planning: PlanningRound, queue: str) -> Iterator[tuple[int, Placed]]:
    snapshot = planning.snapshot
    for key in snapshot.holding.get(queue, ()):
        workload = snapshot.facts.workloads[key]
        if workload.held is not None and may_yield(workload):
            for placed in workload.held.placed:
                yield workload.priority, placed


def _gather(planning: PlanningRound, placed: Sequence[tuple[int, Placed]]) -> Behind:
    pods_in: dict[str, int] = {}
    largest: dict[str, int] = {}
    for _, placement in placed:
        for pods in placement.pods:
            if placement.cluster in planning.stock.position:
                pods_in[placement.cluster] = pods_in.get(placement.cluster, 0) + pods.count
            for resource, amount in pods.shape.needs:
                largest[resource] = max(amount, largest.get(resource, 0))
    return Behind(
        placed=placed,
        clusters=tuple(pods_in),
        places=np.array([planning.stock.position[name] for name in pods_in], dtype=np.int64),
        pods=np.array(list(pods_in.values()), dtype=np.int64),
        largest=largest,
    )


def _gains(placed: Iterable[Placed], form: Form) -> dict[str, list[int]]:
    """For each cluster, an upper bound on how many more pods of each set fit."""
    result: dict[str, list[int]] = {}
    for placement in placed:
        gains = result.setdefault(placement.cluster, [0] * len(form.pod_sets))
        for pods in placement.pods:
            given = dict(pods.shape.needs)
            for at, pod_set in enumerate(form.pod_sets):
                gains[at] += pods.count * _more(given, pod_set.shape.needs)
    return result


def _more(given: dict[str, int], needed: Request) -> int:
    """An upper bound on how many more pods fit on a node on which `given` is freed."""
    return 1 + max((given.get(name, 0) // amount for name, amount in needed), default=0)
