"""The fleet frozen at `now`, indexed for reading.

Facts are what the view knows. A snapshot adds what the planner reads often: the quota tree with
everything charged, the room left on every node, the pending workloads of each queue in order, and
what each workload holds where. Planning changes the ledger inside trials and undoes everything, so
a snapshot is the same before and after.

Free capacity = what the report says, less what is claimed and not bound yet; `occupancy` packs the
pods that no report has seen.

A snapshot takes in changes, each at the cost of what it changes: a workload with the nodes it is
on, a cluster with the pods in it. After any changes it equals a new snapshot of the same facts.
A change of quota (queues, flavors) requires a new snapshot.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairway.core.admission import taken_in
from fairway.core.clusters.candidates import is_misplaced
from fairway.core.clusters.fit_bounds import Stock
from fairway.core.handover import Rebates
from fairway.core.ledger import Ledger, is_same_ground
from fairway.core.measured import MeasuredScores
from fairway.core.missing_pods import missing_of
from fairway.core.model import (
    EVERYWHERE,
    Flavor,
    Policy,
    Queue,
    Request,
    Stray,
    Workload,
    usage_of,
)
from fairway.core.nodes import Cluster, Packing
from fairway.core.occupancy import Occupancy
from fairway.core.packing.eligibility import Eligibility, Overlap, overlaps, rivals_of
from fairway.core.quota.limits import Claims
from fairway.core.quota.shares import Rules
from fairway.core.quota.tree import Tree
from fairway.core.seats import Departure, Seat, Spilled, seats_of, with_kept_free
from fairway.core.task_numbers import count_of

if TYPE_CHECKING:
    from fairway.core.reservations.future_room import Future


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the whole fleet."""

    fair_sharing: bool = True
    half_life_seconds: float = 0.0
    preemption_tests: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    reserves: bool = True
    reserve_after_seconds: float = 0.0
    reservations_per_flavor: int = 1
    backfills: bool = True
    is_paused: bool = False
    open_breakers: frozenset[str] = frozenset()  # among Preemptions, Moves and Price
    money: tuple[int, int] | None = None  # (spent, allowed) per hour while breaker Price is open
    forecast_depth: int = 10
    resource_weights: Mapping[str, int] = field(default_factory=dict)  # nanos, in past usage

    @property
    def share_rules(self) -> Rules:
        return Rules(
            is_enabled=self.fair_sharing,
            remembers=self.half_life_seconds > 0,
            resource_weights=self.resource_weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a decision may depend on."""

    now: float
    queues: Mapping[str, Queue] = field(default_factory=dict)
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    strays: Mapping[str, tuple[Stray, ...]] = field(default_factory=dict)  # by cluster
    scores: Mapping[str, MeasuredScores] = field(default_factory=dict)  # by cluster
    settings: Settings = Settings()
    default_policy: Policy = EVERYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What has changed; an object that is None is gone."""

    workloads: Mapping[str, Workload | None] = field(default_factory=dict)
    clusters: Mapping[str, Cluster | None] = field(default_factory=dict)
    strays: Mapping[str, tuple[Stray, ...]] = field(default_factory=dict)
    policies: Mapping[str, Policy] | None = None  # all of them; None: as they were
    scores: Mapping[str, MeasuredScores] | None = None  # likewise
    settings: Settings | None = None
    queues: Mapping[str, Queue] = field(default_factory=dict)  # with unchanged quota


class Snapshot:
    """Facts, with everything charged and indexed."""

    def __init__(self, facts: Facts) -> None:
        # Our own mappings, which change with the snapshot.
        self._workloads = dict(facts.workloads)
        self._clusters = {name: facts.clusters[name] for name in sorted(facts.clusters)}
        self._queues = dict(facts.queues)
        self._strays = dict(facts.strays)
        self.facts = replace(
            facts,
            workloads=self._workloads,
            clusters=self._clusters,
            queues=self._queues,
            strays=self._strays,
        )
        self.now = facts.now
        groups = (group for queue in self._queues.values() for group in queue.groups)
        self.eligibility = Eligibility(rivals_of(groups, facts.flavors))
        self.tree = Tree.of(self._queues.values())
        self.ledger = Ledger(self.tree, self._clusters)
        # Where the pods of a workload are, or are assumed to be: (workload, cluster) -> packing.
        self.packings: dict[tuple[str, str], Packing] = {}
        # What is kept free for those of them that fit on no node.
        self.spilled: dict[tuple[str, str], Spilled] = {}
        self.holders: dict[str, list[str]] = {name: [] for name in self._clusters}  # by key
        self.claims = Claims(self.tree, self._queues)
        self.holding: dict[str, list[str]] = {}  # queue -> workloads with a claim, by key
        self.reserving: list[str] = []  # by key
        self.lines: dict[str, list[Workload]] = {}  # queue -> pending workloads, in order
        self.futures: dict[str, Future] = {}  # by cluster, filled by `reservations`
        self._overlaps: tuple[Overlap, ...] | None = None
        # The placements in each cluster, known or not; and the occupancy of known clusters.
        self._placed: dict[str, dict[str, list[Seat]]] = {}
        self._occupancies: dict[str, Occupancy] = {}
        self._departures: dict[str, list[Departure]] = {}  # by cluster, gathered on first use
        self.rebates = Rebates()
        self._take_in_all()
        self.stock = Stock(self)

    def _take_in_all(self) -> None:
        for workload in self._workloads.values():
            queue = self._queues.get(workload.queue)
            if workload.is_waiting or wants_more(workload, self.policy(workload), queue):
                self.lines.setdefault(workload.queue, []).append(workload)
            if workload.reservation:
                self.reserving.append(workload.key)
            if workload.held or workload.releasing:
                self._charge(workload, 1)
                self.rebates.add(workload)
                for cluster, seats in seats_of(workload).items():
                    self._placed.setdefault(cluster, {})[workload.key] = seats
        self.reserving.sort()
        for line in self.lines.values():
            line.sort(key=precedence)
        for name in self._clusters:
            self._people(name)
        self.rebates.give(self.tree, self._workloads)
        self.ledger.settle()

    # Changes. Afterwards the snapshot equals one made from the changed facts.

    def put(self, workload: Workload) -> None:
        """Adds or replaces a workload."""
        self.change(Change(workloads={workload.key: workload}))

    def remove(self, key: str) -> None:
        """Removes a workload, if it is here."""
        self.change(Change(workloads={key: None}))

    def advance(self, now: float) -> None:
        """Sets the current time."""
        if now != self.now:
            self.futures.clear()
            self.now = now
            self.facts = replace(self.facts, now=now)

    def change(self, change: Change) -> None:
        """Takes in a change."""
        self.rebates.take_back(self.tree)
        self._change_rules(change)
        touched: dict[str, set[str]] = {}  # cluster -> workloads whose placements changed
        for key, workload in change.workloads.items():
            for cluster in self._replace(key, workload):
                touched.setdefault(cluster, set()).add(key)
        self.rebates.give(self.tree, self._workloads)
        for name, strays in change.strays.items():
            self._strays[name] = strays
            if not strays:
                del self._strays[name]
            touched.setdefault(name, set())
        self._change_clusters(change.clusters, touched)
        for name, keys in touched.items():
            self.futures.pop(name, None)
            if name in self._occupancies:
                placed = self._placed.get(name, {})
                come = {key: placed[key] for key in sorted(keys) if key in placed}
                gone = sorted(keys - set(come))
                occupancy = self._occupancies[name]
                self._settle(name, occupancy.change(gone, come, self._strays.get(name, ())))
        self.ledger.settle()

    def _change_rules(self, change: Change) -> None:
        fenced = {
            name
            for name, queue in change.queues.items()
            if name in self._queues and self._queues[name].fence != queue.fence
        }
        for name, queue in change.queues.items():
            assert is_same_quota(self._queues[name], queue), "other quota takes a new snapshot"
            self._queues[name] = queue
            node = self.tree.node(name)
            if node is not None:
                node.queue = queue
        if change.scores is not None:  # they only rank: nothing that was derived depends on them
            self.facts = replace(self.facts, scores=change.scores)
        if change.policies is not None or change.settings is not None:
            self.futures.clear()
            self.facts = replace(
                self.facts,
                policies=self.facts.policies if change.policies is None else change.policies,
                settings=change.settings or self.facts.settings,
            )
        if change.policies is not None or fenced:
            # Whether a service wants more depends on how its policy divides it, and on where it
            # may be.
            services = [
                workload
                for workload in self._workloads.values()
                if workload.mode == "Divided"
                and (change.policies is not None or workload.queue in fenced)
            ]
            for service in services:
                self._drop(service)
                self._add(service)

    # Workloads.

    def _replace(self, key: str, workload: Workload | None) -> set[str]:
        """Replaces a workload; returns the clusters in which its placements differ."""
        before = self._workloads.get(key)
        old: dict[str, list[Seat]] = {}
        if before is not None:
            self._drop(before)
            if before.held or before.releasing:
                old = {name: self._placed[name][key] for name in seats_of(before)}
        new: dict[str, list[Seat]] = {}
        if workload is not None:
            self._add(workload)
            new = seats_of(workload)
        touched: set[str] = set()
        for name in {*old, *new}:
            self.futures.pop(name, None)
            if _alike(old.get(name), new.get(name)):
                continue
            touched.add(name)
            here = self._placed.setdefault(name, {})
            if name in new:
                here[key] = new[name]
            else:
                del here[key]
                if not here:
                    del self._placed[name]
        return touched

    def _add(self, workload: Workload) -> None:
        self._workloads[workload.key] = workload
        queue = self._queues.get(workload.queue)
        if workload.is_waiting or wants_more(workload, self.policy(workload), queue):
            insort(self.lines.setdefault(workload.queue, []), workload, key=precedence)
        if workload.reservation:
            insort(self.reserving, workload.key)
        self._charge(workload, 1)
        self.rebates.add(workload)

    def _drop(self, workload: Workload) -> None:
        del self._workloads[workload.key]
        line = self.lines.get(workload.queue, [])
        at = bisect_left(line, precedence(workload), key=precedence)
        if at < len(line) and line[at].key == workload.key:
            del line[at]
            if not line:
                del self.lines[workload.queue]
        if workload.reservation:
            del self.reserving[bisect_left(self.reserving, workload.key)]
        self._charge(workload, -1)
        self.rebates.drop(workload)

    def _charge(self, workload: Workload, sign: int) -> None:
        """Charges the quota that a workload holds; with sign -1, releases it."""
        held = workload.held
        queue = held.queue if held else workload.queue
        if held:
            self.claims.count(queue, workload.user, sign)
            name = queue or workload.queue
            keys = self.holding.setdefault(name, [])
            if sign > 0:
                insort(keys, workload.key)
            else:
                del keys[bisect_left(keys, workload.key)]
                if not keys:
                    del self.holding[name]
        for placement in (*(held.placed if held else ()), *workload.releasing):
            usage = usage_of(placement)
            self.tree.charge(queue, {pair: sign * amount for pair, amount in usage.items()})
            self.claims.add(queue, workload.user, usage, sign)
            taken = taken_in(placement.cluster, [placement])
            self.ledger.spend(placement.cluster, taken, sign)

    # Clusters.

    def _change_clusters(
        self, clusters: Mapping[str, Cluster | None], touched: dict[str, set[str]]
    ) -> None:
        known = set(self._clusters)
        if clusters:
            self._overlaps = None
        for name in sorted(clusters):
            cluster = clusters[name]
            self.futures.pop(name, None)
            if cluster is None:
                self._leave(name)
                continue
            before = self._clusters.get(name)
            self._clusters[name] = cluster
            self.ledger.put_cluster(cluster)
            if before is None or not is_same_ground(before, cluster):
                self._people(name)
                touched.pop(name, None)  # all pods there were just packed
                if before is not None:
                    self.stock.renew(name)
        if known != set(self._clusters):
            for name in sorted(self._clusters):  # sorted by name, as in a new snapshot
                self._clusters[name] = self._clusters.pop(name)
            self.futures.clear()
            self.stock = Stock(self)

    def _people(self, name: str) -> None:
        """Packs all pods of a cluster into its empty room."""
        self._unsettle(name)
        occupancy = self._occupancies[name] = Occupancy(
            self.ledger,
            self.ledger.rooms[name],
            flavors=self.facts.flavors,
            eligibility=self.eligibility,
        )
        come = {
            key: [replace(seat, assumed={}, spilled=()) for seat in seats]
            for key, seats in self._placed.get(name, {}).items()
        }
        self._settle(name, occupancy.change((), come, self._strays.get(name, ())))

    def _leave(self, name: str) -> None:
        """Removes a cluster; what is claimed there stays charged to quota."""
        if self._clusters.pop(name, None) is not None:
            self._unsettle(name)
            del self._occupancies[name], self.holders[name]
            self.ledger.remove_cluster(name)
            self.eligibility.forget(name)

    def _settle(self, name: str, keys: Collection[str]) -> None:
        """Records where the pods of these workloads now are in a cluster."""
        self._departures.pop(name, None)
        holders = self.holders.setdefault(name, [])
        occupancy = self._occupancies[name]
        for key in keys:
            packing = occupancy.packing(key)
            self.spilled.pop((key, name), None)
            if spilled := occupancy.spilled(key):
                self.spilled[key, name] = spilled
            at = bisect_left(holders, key)
            is_here = at < len(holders) and holders[at] == key
            if packing is None:
                self.packings.pop((key, name), None)
                if is_here:
                    del holders[at]
            else:
                self.packings[key, name] = packing
                if not is_here:
                    holders.insert(at, key)
        self.ledger.renew(name)

    def _unsettle(self, name: str) -> None:
        self._departures.pop(name, None)
        for key in self.holders.get(name, ()):
            self.packings.pop((key, name), None)
            self.spilled.pop((key, name), None)
        self.holders[name] = []

    # Reading.

    def on_nodes(
        self, key: str, cluster: str, requests: Mapping[str, Request]
    ) -> tuple[Packing, Mapping[str, Request]]:
        """The pods of a workload on nodes, and what is kept free for those that fit on none.

        `requests` says what one pod of each set needs; the result says it of each part as well.
        """
        packing = self.packings.get((key, cluster), {})
        return with_kept_free(packing, requests, self.spilled.get((key, cluster), ()))

    def leaving_in(self, cluster: str) -> Sequence[Departure]:
        """What is being stopped in a cluster, with its nodes."""
        known = self._departures.get(cluster)
        if known is None:
            occupancy = self._occupancies.get(cluster)
            known = self._departures[cluster] = occupancy.departures() if occupancy else []
        return known

    def policy(self, workload: Workload) -> Policy:
        return self.facts.policies.get(workload.policy, self.facts.default_policy)

    def above(self, queue: str) -> list[Queue]:
        return [self.facts.queues[name] for name in self.tree.ancestors(queue)]

    def overlaps(self) -> tuple[Overlap, ...]:
        """Nodes with two flavors of one resource group, which are used for neither."""
        if self._overlaps is None:
            facts = self.facts
            result = overlaps(facts.clusters, facts.flavors, self.eligibility.rivals)
            self._overlaps = tuple(result)
        return self._overlaps

    def is_running(self, workload: Workload) -> bool:
        return workload.held is not None and workload.held.started_at is not None


# Fields of a queue on which charges and counts depend.
_CHARGING = (
    "name",
    "parent",
    "groups",
    "quotas",
    "refuses_uncovered",
    "claimed_max",
    "waiting_max",
    "user_limits",
)


def is_same_quota(queue: Queue, other: Queue) -> bool:
    """Whether a queue can replace another in the tree without any change of charges."""
    return all(getattr(queue, name) == getattr(other, name) for name in _CHARGING)


def _alike(old: list[Seat] | None, new: list[Seat] | None) -> bool:
    """Whether placements are the same, decided at the same time."""
    return (
        old is not None
        and new is not None
        and [(seat.decided, seat.placed) for seat in old]
        == [(seat.decided, seat.placed) for seat in new]
    )


def precedence(workload: Workload) -> tuple[int, float, str]:
    """The order within a queue: priority, then age, then name."""
    return (-workload.priority, workload.queued_at, workload.key)


def wants_more(workload: Workload, policy: Policy, queue: Queue | None = None) -> bool:
    """Whether a workload with a claim waits for the rest of it, or has to leave a part of it."""
    if workload.held is None:
        return False
    if workload.mode == "Divided":
        if policy.division.type == "Duplicated":
            return True  # another cluster may have room for a copy by now
        if policy.division.counts_speed:
            return True  # how much its replicas count depends on their flavors
        if sum(placement.replicas for placement in workload.held.placed) != workload.replicas:
            return True
        if max(workload.rebalance_at, policy.rebalance_at) > workload.rebalanced_at:
            return True
        return policy.moves_services and is_misplaced(workload.held.placed, policy, queue)
    if workload.mode == "Independent":
        running = sum(count_of(placement.tasks) for placement in workload.held.placed)
        if workload.concurrency and running >= workload.concurrency:
            return False
        return running + count_of(workload.tasks_over) < workload.tasks
    return missing_of(workload) is not None
