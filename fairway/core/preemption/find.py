"""Preemption: the smallest acceptable set of victims for one workload in one cluster.

A workload may lack quota, room on nodes, or both. If it lacks only quota, victims may run in any
cluster. If it lacks room, every victim has pods in this cluster, and is on nodes that the workload
could use or holds quota that it lacks. `rules` says which workloads may be victims, and
`victim_search` finds the set.

What is being released already counts as gone, and costs nothing: if it is enough, there are no
victims, and the workload waits for it to be gone.

Every trial is undone: the ledger is the same before and after. An empty cluster name means that
the fleet has no clusters, and quota alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairway.api.reasons import Code
from fairway.core.admission import allowance_of
from fairway.core.model import FlavorResource
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.preemption.freed_bounds import stands_on_any
from fairway.core.preemption.harm import Harm
from fairway.core.preemption.holders import Holder, holders_of, take_away
from fairway.core.preemption.rules import PreemptionCase
from fairway.core.preemption.victim_search import NOBODY, Found, Nodes, Search
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

# (harm, cluster, keys of the victims): less is better.
Ordered = tuple[Harm, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A workload to preempt, and the rule that allows it."""

    key: str
    code: Code
    lost_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """The workloads to preempt so that another fits, and where it is then placed.

    There are none if what is being released already is enough.
    """

    cluster: str
    assignment: Assignment
    packed: pack.Packed | None
    victims: tuple[Victim, ...]
    harm: Harm
    borrow_level: int  # of the preemptor, once the victims are gone

    @property
    def order(self) -> Ordered:
        """The order of sets for one workload, in whatever cluster and on whatever flavors."""
        return (self.harm, self.cluster, tuple(victim.key for victim in self.victims))

    @property
    def reclaims(self) -> bool:
        """Whether the preemptor only takes back what its side of the tree owns."""
        return all(victim.code == Code.PREEMPTED_TO_RECLAIM for victim in self.victims)

    def remove(self, planning: PlanningRound) -> None:
        """Releases the quota and the nodes of the victims in the ledger."""
        for victim in self.victims:
            take_away(
                planning.snapshot, planning.ledger, planning.snapshot.facts.workloads[victim.key]
            )


def find_victims(
    planning: PlanningRound, request: PlacementRequest, cluster: str, *, reach: int = ANYWHERE
) -> Victims | None:
    """The least harmful set of victims that lets a workload start; None if no set does.

    A workload that cannot be preempted never borrows: the quota could not be reclaimed. A queue
    that preempts nobody may still wait for what leaves instead of reaching further up for quota.
    """
    workload = request.workload
    if not planning.ledger.tree.is_usable(workload.queue):
        return None
    rules = planning.queue(workload).preemption
    if rules.within_queue == "Never" and rules.reclaim == "Never" and reach == ANYWHERE:
        return None
    reach = reach if workload.preemptible else 0
    mark = planning.ledger.mark()
    with planning.ledger.trial():
        is_any_leaving = planning.leaving.let_go(planning.ledger, (cluster,) if cluster else ())
        hunt = _Hunt(planning, request, cluster, mark, is_any_leaving, reach)
        victims = hunt.victims()
    if victims is None or victims.victims:
        return victims
    return victims if is_any_leaving and not hunt.fits() else None


@dataclass(slots=True)
class _Hunt:
    """The search in one cluster, with all gone that is being released."""

    planning: PlanningRound
    request: PlacementRequest
    cluster: str
    mark: object  # of the ledger, before anything was let go
    is_any_leaving: bool
    reach: int

    def fits(self) -> bool:
        """Whether it fits as things are: whatever holds it back, no victims would help."""
        planning, request, cluster = self.planning, self.request, self.cluster
        if _missing(planning, request, reach=self.reach) != {}:
            return False
        wants = planning.wants(cluster, request) if cluster else []
        return not cluster or isinstance(
            pack.pack(planning.ledger.rooms[cluster], wants, request.workload.domain), pack.Packed
        )

    def victims(self) -> Victims | None:
        planning, request, cluster = self.planning, self.request, self.cluster
        workload, usage = request.workload, request.usage
        missing = _missing(planning, request, reach=self.reach)
        if missing is None:
            return None
        if not cluster:
            match = self._by_quota(missing)
            return None if match is None else self._result(match, match.packed)
        rules, holders = planning.queue(workload).preemption, holders_of(planning)
        local = PreemptionCase(planning, holders, workload, usage, usage, contests_nodes=True)
        only = workload.queue if rules.reclaim == "Never" else ""
        candidates = local.suspects(holders.in_cluster(cluster, only))
        is_hopeless = not candidates and not self.is_any_leaving
        if is_hopeless and (not missing or self._by_quota(missing) is None):
            return None
        wants = planning.wants(cluster, request)
        packed = pack.pack(planning.ledger.rooms[cluster], wants, workload.domain)
        if isinstance(packed, pack.Packed):
            match = self._by_quota(missing)
            return None if match is None else self._result(match, packed)
        match = self._by_nodes(local, candidates, missing, wants) if candidates else None
        return None if match is None else self._result(match, match.packed)

    def _by_quota(self, missing: Mapping[FlavorResource, int]) -> Found | None:
        """Victims in any cluster, where only quota is short. Searched once for all clusters."""
        if not missing:
            return NOBODY
        planning, holders = self.planning, holders_of(self.planning)
        workload, usage = self.request.workload, self.request.usage
        items = (self.reach, *sorted(usage.items()))
        if holders.last is not None:
            known_mark, known_workload, known_items, known = holders.last
            if known_mark is self.mark and known_workload is workload and known_items == items:
                return known if isinstance(known, Found) else None
        case = PreemptionCase(planning, holders, workload, usage, missing, contests_nodes=False)
        candidates = case.suspects(
            holder
            for queue in holders.queues_near(workload.queue)
            if case.looks_at(queue)
            for holder in holders.of_queue(queue)
            if any(pair in holder.usage for pair in missing)
        )
        match = Search(planning, case, candidates, missing, None, reach=self.reach).best()
        holders.last = (self.mark, workload, items, match)
        return match

    def _by_nodes(
        self,
        case: PreemptionCase,
        suspects: list[Holder],
        missing: Mapping[FlavorResource, int],
        wants: Sequence[pack.Want],
    ) -> Found | None:
        """Victims in one cluster, on nodes that the workload could use or with quota it lacks."""
        planning, cluster = self.planning, self.cluster
        holders, room = holders_of(planning), planning.ledger.rooms[cluster]
        feet = {holder.key: holders.foot(holder, cluster) for holder in suspects}
        short = {item.key for item in pack.short_allowances(room, wants)}
        candidates = [
            holder
            for holder in suspects
            if any(pair in holder.usage for pair in missing)
            or stands_on_any(wants, room, feet[holder.key])
            or (short and not short.isdisjoint(allowance_of(holder.workload, cluster)))
        ]
        domain = self.request.workload.domain
        nodes = Nodes(cluster=cluster, wants=wants, domain=domain, feet=feet)
        if not candidates:
            return None
        return Search(planning, case, candidates, missing, nodes, reach=self.reach).best()

    def _result(self, match: Found, packed: pack.Packed | None) -> Victims:
        ledger, queue = self.planning.ledger, self.request.workload.queue
        victims = tuple(
            Victim(key=victim.key, code=code, lost_seconds=victim.lost_seconds)
            for victim, code in zip(match.victims, match.codes, strict=True)
        )
        with ledger.trial():
            for victim in match.victims:
                ledger.release(victim.queue, victim.usage)
            borrow_level = ledger.tree.borrow_level(queue, self.request.usage)
        return Victims(
            cluster=self.cluster,
            assignment=self.request.assignment,
            packed=packed,
            victims=victims,
            harm=match.harm,
            borrow_level=borrow_level,
        )


def _missing(
    planning: PlanningRound, request: PlacementRequest, *, reach: int
) -> dict[FlavorResource, int] | None:
    """The missing quota; None if no victims can ever make it enough."""
    tree, queue = planning.ledger.tree, request.workload.queue
    missing: dict[FlavorResource, int] = {}
    for pair, amount in sorted(request.usage.items()):
        if amount > tree.potential_available(queue, pair):
            return None
        short = amount - tree.available(queue, pair)
        if reach != ANYWHERE and tree.covers(queue, pair[1]):
            if not reach and amount > tree.subtree_quota(queue, pair):
                return None
            short = max(short, amount - tree.left_within(queue, pair, reach))
        if short > 0:
            missing[pair] = short
    return missing
