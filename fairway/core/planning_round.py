"""A planning round: a snapshot, its ledger, and a cache of earlier results.

Everything cached here can be computed again. The same questions come often, since shapes repeat:
which clusters a policy allows, which flavors suit a form, what a cluster offers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairway.api.explanations import ScoredCluster
from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.allowances import AllowanceKey
from fairway.core.clusters import ranking
from fairway.core.clusters.balance_order import ClusterBalance, Holds
from fairway.core.clusters.candidates import Candidates, Names, candidates, likeness
from fairway.core.handover import Leaving
from fairway.core.likeness import Likeness
from fairway.core.measured import MeasuredScores
from fairway.core.model import (
    Form,
    Policy,
    Queue,
    Request,
    ResourceGroup,
    Usage,
    Workload,
)
from fairway.core.nodes import Cluster, Mask, Packing
from fairway.core.packing.pack import Want, as_admitted
from fairway.core.placement_request import PlacementRequest
from fairway.core.quota.flavors import Assignment, assignments, groups_of
from fairway.core.quota.limits import Full, total_of, without_place
from fairway.core.quota.tree import ANYWHERE
from fairway.core.reservations.kept_quota import KeptQuota
from fairway.core.reservations.reservations import Reservations
from fairway.core.snapshot import Snapshot

if TYPE_CHECKING:
    from fairway.core.preemption.holders import Holders

_BREAKERS: Mapping[Rung, str] = {"Preempt": "Preemptions", "Provision": "Price"}


# Resource groups, and for each form the assignments that suit it.
_Assignments = tuple[tuple[ResourceGroup, ...], dict[Likeness, list[Assignment]]]

_SHOWN_MAX = 20  # clusters shown with their scores


class PlanningRound:
    """The state in which one plan is made."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.ledger = snapshot.ledger
        # Questions asked before must not influence this plan.
        for room in self.ledger.rooms.values():
            room.forget_devices()
        snapshot.stock.begin()
        self.claims = snapshot.claims.copy()
        self.preempted: set[str] = set()  # victims of this plan
        self.leaving = Leaving(snapshot)  # what these victims release, and others before
        self.changed: set[str] = set()  # workloads whose claims this plan changed: never victims
        self.holders: Holders | None = None  # gathered by `holders_of` on first use
        self._candidates: dict[Hashable, Candidates] = {}
        self._assignments: dict[str, _Assignments] = {}  # by queue
        self._by_groups: dict[tuple[ResourceGroup, ...], _Assignments] = {}
        self._free: dict[tuple[str, str, str], tuple[int, int, int]] = {}
        self._boards: dict[Hashable, ClusterBalance] = {}
        self._pools: dict[Names, bool] = {}
        self._no_victims: dict[Hashable, tuple[Reason, ...]] = {}
        self.stock = snapshot.stock
        holders = [len(snapshot.holders[name]) for name in self.stock.position]
        self._holds = Holds(np.array(holders, dtype=np.int64))
        self.reservations = Reservations(self)
        self.kept_quota = KeptQuota(self)

    def turn_to(self, workload: Workload) -> None:
        """Starts the decision on another workload."""
        self.leaving.turn_to(workload)
        self.kept_quota.turn_to(workload)
        self.reservations.forget_asked()

    @property
    def now(self) -> float:
        return self.snapshot.now

    @cached_property
    def without_place(self) -> Mapping[str, Full]:
        """Pending workloads for which their queue has no place, as the plan began."""
        snapshot = self.snapshot
        return without_place(snapshot.lines, self.ledger.tree, snapshot.facts.queues)

    @property
    def has_clusters(self) -> bool:
        return bool(self.snapshot.facts.clusters)

    def queue(self, workload: Workload) -> Queue:
        return self.snapshot.facts.queues[workload.queue]

    def cluster(self, name: str) -> Cluster:
        return self.snapshot.facts.clusters[name]

    def candidates(self, workload: Workload) -> Candidates:
        policy, queue = self.snapshot.policy(workload), self.queue(workload)
        key = likeness(workload, policy, queue)
        known = self._candidates.get(key)
        if known is None:
            known = candidates(workload, policy, queue, self.snapshot.facts.clusters, self.now)
            self._candidates[key] = known
        return known

    def assignments(self, workload: Workload, form: Form) -> list[Assignment]:
        known = self._assignments.get(workload.queue)
        if known is None:
            groups = groups_of(self.queue(workload), self.snapshot.above(workload.queue))
            # Many queues have equal resource groups.
            known = self._by_groups.setdefault(groups, (groups, {}))
            self._assignments[workload.queue] = known
        result = known[1].get(form.likeness)
        if result is None:
            result = assignments(form, known[0], self.snapshot.facts.flavors)
            known[1][form.likeness] = result
        if workload.preemptible:
            return result
        return [option for option in result if not self.is_interruptible(option)]

    def is_interruptible(self, option: Assignment) -> bool:
        """Whether a provider may reclaim nodes of its flavors."""
        flavors = self.snapshot.facts.flavors
        return any(flavors[name].is_interruptible for name in option.names if name in flavors)

    def wants(self, cluster: str, request: PlacementRequest) -> list[Want]:
        """The pods of a request, with the nodes each set may use, less those kept for others."""
        wants = self.bare_wants(cluster, request.assignment, request.form)
        if not self.reservations:
            return wants
        kept = self.reservations.kept_nodes(request.workload, cluster, request.assignment)
        if kept is None:
            return wants
        return [
            replace(want, mask=None if want.mask is None else want.mask & ~kept) for want in wants
        ]

    def bare_wants(self, cluster: str, assignment: Assignment, form: Form) -> list[Want]:
        """The pods of a form, with the nodes that each set may use; reservations are ignored."""
        wants = [
            Want(
                name=pod_set.name,
                shape=pod_set.shape,
                count=pod_set.count,
                least=pod_set.least,
                mask=self.stock.mask(cluster, assignment, pod_set),
                topology=pod_set.topology,
            )
            for pod_set in form.pod_sets
        ]
        for pod_set in form.pod_sets:
            if pod_set.shape.admitted:
                return [as_admitted(want, cluster) for want in wants]
        return wants

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Whatever is taken inside is given back: a decision can be tried before it is made."""
        preempted, held = set(self.preempted), len(self._holds.log)
        claims, leaving = self.claims.copy(), self.leaving.copy()
        try:
            with self.ledger.trial():
                yield
        finally:
            self.preempted.intersection_update(preempted)
            self.claims, self.leaving = claims, leaving
            self._holds.back_to(held)

    # Taking.

    def take(
        self,
        workload: Workload,
        usage: Usage,
        cluster: str = "",
        packing: Packing | None = None,
        requests: Mapping[str, Request] | None = None,
        allowance: Mapping[AllowanceKey, int] | None = None,
    ) -> None:
        """Charges what a workload gets, and puts its pods on nodes if these are known."""
        self.leaving.take(
            self.ledger, workload.queue, usage, cluster, packing or {}, requests or {}
        )
        if allowance:
            self.leaving.take_allowance(self.ledger, cluster, allowance)
            self.ledger.spend(cluster, allowance)
        self.charge(workload, usage)
        if packing is not None:
            self.ledger.take(cluster, packing, requests or {})

    # Quota and limits.

    def charge(self, workload: Workload, usage: Usage) -> None:
        """Charges what a workload gets to its queue and its user."""
        self.ledger.charge(workload.queue, usage)
        self.claims.add(workload.queue, workload.user, usage)

    def copies(
        self,
        workload: Workload,
        usage: Usage,
        *,
        reach: int = ANYWHERE,
        is_restrained: bool = False,
    ) -> int | None:
        """How many times `usage` fits into what queue and user have left; None: no limit.

        Restrained: within what the queue owns, or else the lowest queue above it that owns some.
        """
        tree, queue = self.ledger.tree, workload.queue
        most: list[int] = []
        for pair, amount in usage.items():
            if amount and tree.covers(queue, pair[1]):
                available = tree.available(queue, pair)
                # A workload that cannot be preempted must not borrow: the quota could not be
                # reclaimed.
                within = reach if workload.preemptible else 0
                if within != ANYWHERE:
                    available = min(available, tree.left_within(queue, pair, within))
                if is_restrained:
                    available = min(available, tree.left_of_own(tree.owner(queue, pair), pair))
                most.append(available // amount)
        total = total_of(usage)
        for resource, (left, _) in self.claims.left_for_user(workload).items():
            if total.get(resource):
                most.append(left // total[resource])
        return max(0, min(most)) if most else None

    # Reasons that many workloads share.

    def no_victims(self, group: str, clusters: tuple[str, ...]) -> tuple[Reason, ...]:
        """Reasons that say that these clusters have no victims."""
        reasons = self._no_victims.get((group, clusters))
        if reasons is None:
            reasons = self._no_victims[group, clusters] = tuple(
                Reason(code=Code.NO_VICTIMS, cluster=name, group=group, rung="Preempt")
                for name in clusters
            )
        return reasons

    def stopped_by(self, rung: Rung) -> Reason | None:
        """The open circuit breaker that stops a rung, as a reason."""
        name = _BREAKERS.get(rung)
        if name is None or name not in self.snapshot.facts.settings.open_breakers:
            return None
        spent = self.snapshot.facts.settings.money if name == "Price" else None
        short = (("allowed", spent[1]), ("spent", spent[0])) if spent else ()
        return Reason(code=Code.BREAKER_OPEN, rung=rung, other=name.lower(), short=short)

    def has_pools(self, clusters: Names) -> bool:
        """Whether any of these clusters has an elastic pool."""
        known = self._pools.get(clusters)
        if known is None:
            known = self._pools[clusters] = any(self.cluster(name).pools for name in clusters)
        return known

    # Ranking.

    def rank(
        self, names: Sequence[str], workload: Workload, policy: Policy
    ) -> Sequence[ranking.Ranked]:
        """Clusters, the best first."""
        if len(names) == 1:
            return [ranking.Ranked(names[0], 0)]
        if workload.held is None and ranking.is_plain(policy.scores):
            return self._board(names, workload, policy).standing()
        current = [placement.cluster for placement in workload.held.placed] if workload.held else []
        facts = [self.facts_of(name, workload) for name in names]
        unwelcome = self.candidates(workload).unwelcome
        return ranking.rank(facts, policy.scores, self.now, current=current, unwelcome=unwelcome)

    def scored(
        self, ranked: Sequence[ranking.Ranked], workload: Workload
    ) -> tuple[ScoredCluster, ...]:
        """The best clusters with their scores; empty if only Steady and Balance count."""
        scores, measured = self.snapshot.policy(workload).scores, self.snapshot.facts.scores
        if len(ranked) < 2 or ranking.is_plain(scores):
            return ()
        return tuple(
            ranking.scored(cluster, scores, measured.get(cluster.cluster, {}), self.now)
            for cluster in ranked[:_SHOWN_MAX]
        )

    def _board(self, names: Sequence[str], workload: Workload, policy: Policy) -> ClusterBalance:
        """The order where neither the workload nor room counts: the same for all workloads."""
        unwelcome = self.candidates(workload).unwelcome
        key = (
            names if isinstance(names, Names) else tuple(names),
            policy.key,
            unwelcome,
        )
        cluster_balance = self._boards.get(key)
        if cluster_balance is None:
            ordered = Names(sorted(names))
            avoided = np.array([name in unwelcome for name in ordered]) if unwelcome else None
            places = self.stock.places(ordered)
            cluster_balance = ClusterBalance(ordered, places, self._holds, policy.scores, avoided)
            self._boards[key] = cluster_balance
        return cluster_balance

    def hold(self, cluster: str) -> None:
        """Counts one more workload in a cluster."""
        self._holds.add(self.stock.position[cluster])

    def facts_of(
        self, name: str, workload: Workload | None, *, others: int | None = None
    ) -> ranking.ScoreFacts:
        """The inputs of scores, for one cluster; `others` are its workloads, unless it is given."""
        return _ScoreFacts(self, name, workload, others)

    def workloads_in(self, cluster: str) -> int:
        return int(self._holds.now[self.stock.position[cluster]])

    def free_accelerators(self, name: str, resource: str, flavor: str = "") -> tuple[int, int]:
        """What is free of a resource on the best node of a cluster, and on all of a flavor."""
        room = self.ledger.rooms[name]
        key = (name, resource, flavor)
        known = self._free.get(key)
        if known is None or known[0] != room.version:
            counted = self.flavor_nodes(name, flavor)
            known = (room.version, *ranking.free_accelerators(room, resource, counted))
            self._free[key] = known
        return known[1], known[2]

    def flavor_nodes(self, name: str, flavor: str) -> Mask | None:
        """Which nodes of a cluster are of a flavor; None: all. No node is of an unknown flavor."""
        if not flavor:
            return None
        cluster, known = self.cluster(name), self.snapshot.facts.flavors.get(flavor)
        if known is None:
            return np.zeros(len(cluster.nodes), dtype=np.bool_)
        return cluster.flavor_nodes(known)

    def hourly_price(self, cluster: Cluster, workload: Workload) -> int | None:
        """The hourly price of the first form in a cluster, on its cheapest flavors."""
        prices = []
        for assignment in self.assignments(workload, workload.forms[0]):
            price = self.price(cluster, workload.forms[0], assignment)
            if price is not None:
                prices.append(price)
        return min(prices, default=None)

    def price(self, cluster: Cluster, form: Form, assignment: Assignment) -> int | None:
        """The hourly price of a form on some flavors, in nanos of the currency."""
        total, is_known = 0, False
        for pod_set in form.pod_sets:
            for resource, amount in pod_set.shape.charges:
                flavor = assignment.flavors[pod_set.name].get(resource)
                price = self.snapshot.facts.flavors[flavor].prices.get(resource) if flavor else None
                if price is not None:
                    is_known = True
                    total += price * amount * pod_set.count // 1000
        return total * cluster.price_factor_nanos // 1_000_000_000 if is_known else None


@dataclass(frozen=True, slots=True)
class _ScoreFacts:
    """The inputs of scores, for one cluster of a planning round."""

    planning: PlanningRound
    cluster: str
    workload: Workload | None
    counted: int | None  # instead of the workloads in the cluster

    @property
    def others(self) -> int:
        return self.planning.workloads_in(self.cluster) if self.counted is None else self.counted

    @property
    def price_nanos(self) -> int | None:
        if self.workload is None:
            return None
        return self.planning.hourly_price(self.planning.cluster(self.cluster), self.workload)

    @property
    def data_seconds(self) -> int | None:
        data = self.workload.data if self.workload else ()
        return ranking.data_seconds(self.planning.cluster(self.cluster), data) if data else None

    @property
    def scores(self) -> MeasuredScores:
        return self.planning.snapshot.facts.scores.get(self.cluster, {})

    def allocatable(self, resource: str, flavor: str) -> int:
        column = self.planning.cluster(self.cluster).nodes.capacity.get(resource)
        if column is None:
            return 0
        counted = self.planning.flavor_nodes(self.cluster, flavor)
        return int(column.sum() if counted is None else column[counted].sum())

    def free_on_best_node(self, resource: str, flavor: str) -> int:
        return self.planning.free_accelerators(self.cluster, resource, flavor)[0]

    def free_in_cluster(self, resource: str, flavor: str) -> int:
        return self.planning.free_accelerators(self.cluster, resource, flavor)[1]
