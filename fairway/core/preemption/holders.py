"""Holders: the workloads that may be victims, with their usage, nodes and the work they would lose.

They are gathered once per plan, since many workloads ask about the same holders. A workload that
can never be a victim (not preemptible, or being released) is left out.

Work lost is the time since the start; the time since the last checkpoint, if the workload saves its
state by itself; zero, if it saves when asked; for a sweep, only the time of the tasks that run. It
is weighted by what the workload uses: an accelerator counts as much as a hundred CPUs. Losses are
whole numbers, so that sums do not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.core.admission import allowance_of
from fairway.core.handover import queue_of
from fairway.core.model import FlavorResource, Request, Workload, usage_of
from fairway.core.nodes import Amounts, Packing
from fairway.core.quota.order import Shares
from fairway.core.seats import needs_of
from fairway.core.snapshot import Snapshot
from fairway.core.task_numbers import count_of

if TYPE_CHECKING:
    from fairway.core.ledger import Ledger
    from fairway.core.planning_round import PlanningRound
    from fairway.core.preemption.freed_bounds import Behind


_ACCELERATOR_IN_CPUS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foot:
    """The nodes that the pods of one holder are on in one cluster, and what they use there."""

    positions: Amounts
    used: Mapping[str, Amounts]  # by resource, at each of the positions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Holder:
    """A workload that holds a claim and may be a victim."""

    workload: Workload
    key: str
    queue: str
    usage: Mapping[FlavorResource, int]
    lost_seconds: float
    loss: int  # thousandths of a second, weighted by what it uses
    held_seconds: float  # since its pods started, or since it was admitted if they have not


class Holders:
    """All holders, by queue and by cluster."""

    def __init__(self, planning: PlanningRound) -> None:
        snapshot = planning.snapshot
        self._snapshot = snapshot
        self.shares = Shares(planning.ledger.tree, snapshot.facts.settings.share_rules)
        self._of_queue: dict[str, list[Holder]] = {}
        self._near: dict[str, list[str]] = {}  # queues by the root of their tree
        self._by_key: dict[str, Holder | None] = {}
        self._in_cluster: dict[str, list[Holder]] = {}
        self._feet: dict[tuple[str, str], Foot] = {}
        self.behind: dict[str, Behind] = {}  # used by `freed_bounds`
        self.rivals: dict[tuple[str, str], object] = {}  # used by `rules`
        # (mark of the ledger, queue that asked, queues of its tree that borrow); used by `rules`
        self.borrowers: tuple[object, str, list[str]] | None = None
        # The last result where quota alone decides: it is the same in every cluster.
        # (mark of the ledger, workload, usage, result)
        self.last: tuple[object, Workload, object, object] | None = None

    def queues_near(self, queue: str) -> list[str]:
        """The queues of the same tree whose workloads hold something, by name."""
        if not self._near:
            for name in sorted(self._snapshot.holding):
                self._near.setdefault(self._root_of(name), []).append(name)
        return self._near.get(self._root_of(queue), [])

    def _root_of(self, queue: str) -> str:
        return (queue, *self._snapshot.tree.ancestors(queue))[-1]

    def of_queue(self, queue: str) -> list[Holder]:
        """The holders of a queue, by key."""
        holders = self._of_queue.get(queue)
        if holders is None:
            holders = self._of_queue[queue] = self._look_up(self._snapshot.holding.get(queue, ()))
        return holders

    def _look_up(self, keys: Iterable[str]) -> list[Holder]:
        """The holders with these keys; workloads that can never be victims are left out."""
        holders: list[Holder] = []
        for key in keys:
            if key not in self._by_key:
                self._by_key[key] = _holder(self._snapshot, self._snapshot.facts.workloads[key])
            holder = self._by_key[key]
            if holder is not None:
                holders.append(holder)
        return holders

    def in_cluster(self, cluster: str, queue: str = "") -> list[Holder]:
        """The holders with pods in a cluster, by key; if a queue is given, only those of it."""
        if queue:
            held = self._snapshot.packings
            return [holder for holder in self.of_queue(queue) if (holder.key, cluster) in held]
        holders = self._in_cluster.get(cluster)
        if holders is None:
            holders = self._look_up(sorted(self._snapshot.holders.get(cluster, ())))
            self._in_cluster[cluster] = holders
        return holders

    def foot(self, holder: Holder, cluster: str) -> Foot:
        """What a holder uses on each node of a cluster, and what is kept free there for it."""
        known = self._feet.get((holder.key, cluster))
        if known is None:
            requests = _requests(holder.workload, cluster)
            known = _foot(*self._snapshot.on_nodes(holder.key, cluster, requests))
            self._feet[holder.key, cluster] = known
        return known


def holders_of(planning: PlanningRound) -> Holders:
    """The holders of a plan, gathered on first use."""
    if planning.holders is None:
        planning.holders = Holders(planning)
    return planning.holders


def take_away(snapshot: Snapshot, ledger: Ledger, workload: Workload) -> None:
    """Releases the quota and the nodes of a holder in the ledger."""
    assert workload.held is not None
    clusters: dict[str, None] = {}
    for placed in workload.held.placed:
        ledger.release(workload.held.queue, usage_of(placed))
        if placed.cluster in ledger.rooms:
            clusters[placed.cluster] = None
    for cluster in clusters:
        free_nodes(snapshot, ledger, workload, cluster)


def free_nodes(snapshot: Snapshot, ledger: Ledger, workload: Workload, cluster: str) -> None:
    """Releases the nodes of a holder in one cluster, and its part of allowances there."""
    ledger.spend(cluster, allowance_of(workload, cluster), -1)
    packing, requests = snapshot.on_nodes(workload.key, cluster, _requests(workload, cluster))
    if packing:
        ledger.give_back(cluster, packing, requests)


def lost_seconds(workload: Workload, now: float) -> float:
    """The work that is lost if the workload is stopped now."""
    if workload.held is None or workload.held.started_at is None or workload.saves_when_asked:
        return 0.0
    ran = max(0.0, now - workload.held.started_at)
    if workload.mode == "Independent":
        ran = lost_of_tasks(
            ran,
            before=workload.ran_seconds,
            running=sum(count_of(placement.tasks) for placement in workload.held.placed),
            over=count_of(workload.tasks_over),
            task_seconds=workload.run_seconds,
        )
    if workload.checkpoint_seconds is not None and workload.checkpoint_seconds > 0:
        return ran % workload.checkpoint_seconds
    return ran


def may_yield(workload: Workload) -> bool:
    """Whether a workload holds something and can be a victim at all."""
    return workload.held is not None and workload.preemptible and not workload.releasing


def _holder(snapshot: Snapshot, workload: Workload) -> Holder | None:
    held = workload.held
    if held is None or not may_yield(workload):
        return None
    usage = usage_of(*held.placed)
    lost = lost_seconds(workload, snapshot.now)
    since = held.decided_at if held.started_at is None else held.started_at
    return Holder(
        workload=workload,
        key=workload.key,
        queue=queue_of(workload),
        usage=usage,
        lost_seconds=lost,
        loss=round(lost * 1000) * _weight(usage),
        held_seconds=snapshot.now - since,
    )


def _weight(usage: Mapping[FlavorResource, int]) -> int:
    total = 0
    for (_, resource), amount in usage.items():
        if is_accelerator(resource):
            total += amount * _ACCELERATOR_IN_CPUS
        elif resource == "cpu":
            total += amount
    return max(1, total)


def _requests(workload: Workload, cluster: str) -> dict[str, Request]:
    requests: dict[str, Request] = {}
    for placed in workload.held.placed if workload.held else ():
        if placed.cluster == cluster:
            requests.update(needs_of(placed))
    return requests


def _foot(packing: Packing, requests: Mapping[str, Request]) -> Foot:
    at = {
        position: place
        for place, position in enumerate(
            sorted({position for counts in packing.values() for position in counts})
        )
    }
    used: dict[str, Amounts] = {}
    for name, counts in packing.items():
        for resource, amount in requests[name]:
            column = used.get(resource)
            if column is None:
                column = used[resource] = np.zeros(len(at), dtype=np.int64)
            for position, count in counts.items():
                column[at[position]] += amount * count
    return Foot(positions=np.array(list(at), dtype=np.int64), used=used)


def lost_of_tasks(
    ran: float, *, before: float, running: int, over: int, task_seconds: float | None
) -> float:
    """The work lost if a sweep is stopped: the average time that its running tasks have run.

    When each task started is not known. In each of the `running` slots one task followed another
    all the time, that of earlier attempts (`before`) included: `over` tasks ran to their end, and
    those that run now are assumed to be half done. Hence
    running * time = (over + running / 2) * task, and a running task has run for task / 2. No task
    has run longer than this attempt, nor longer than a task takes.
    """
    if not over or not running:
        return ran
    average = (before + ran) * running / (2 * over + running)
    return min(ran, average, ran if task_seconds is None else task_seconds)
