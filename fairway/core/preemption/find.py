"""Preemption: the smallest acceptable set of victims for one workload in one cluster.

A workload may lack quota, room on nodes, or both. If it lacks only quota, victims may run in any
cluster. If it lacks room, every victim has pods in this cluster, and is on nodes that the workload
could use or holds quota that it lacks. `rules` says which workloads may be victims, and
`victim_search` finds the set.

Every trial is undone: the ledger is the same before and after. An empty cluster name means that
the fleet has no clusters, and quota alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairway.api.reasons import Code
from fairway.core.model import FlavorResource, Usage, Workload
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.preemption.freed_bounds import Ground, stands_on_any
from fairway.core.preemption.holders import Holder, Holders, holders_of, take_away
from fairway.core.preemption.rules import PreemptionCase
from fairway.core.preemption.victim_search import Found, Nodes, Search
from fairway.core.quota.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

# (highest priority, work lost, number, cluster, (work lost, key) of each): less is better.
Harm = tuple[int, int, int, str, tuple[tuple[int, str], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A workload to preempt, and the rule that allows it."""

    key: str
    code: Code
    lost_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """The workloads to preempt so that another fits, and where it is then placed."""

    cluster: str
    assignment: Assignment
    packed: pack.Packed | None
    victims: tuple[Victim, ...]
    harm: Harm

    def remove(self, planning: PlanningRound) -> None:
        """Releases the quota and the nodes of the victims in the ledger."""
        for victim in self.victims:
            take_away(
                planning.snapshot, planning.ledger, planning.snapshot.facts.workloads[victim.key]
            )


def find_victims(
    planning: PlanningRound, request: PlacementRequest, cluster: str
) -> Victims | None:
    """The least harmful set of victims that lets a workload start; None if no set does."""
    workload, assignment = request.workload, request.assignment
    if not planning.ledger.tree.is_usable(workload.queue):
        return None
    rules = planning.queue(workload).preemption
    if rules.within_queue == "Never" and rules.reclaim == "Never":
        return None
    usage = request.usage
    missing = _missing(planning, workload, usage)
    if missing is None:
        return None
    holders = holders_of(planning)
    if not cluster:
        match = _by_quota(planning, holders, workload, usage, missing)
        return None if match is None else _victims(cluster, assignment, match, match.packed)
    local = PreemptionCase(planning, holders, workload, usage, usage, contests_nodes=True)
    only = workload.queue if rules.reclaim == "Never" else ""
    candidates = local.suspects(holders.in_cluster(cluster, only))
    if not candidates and (
        not missing or _by_quota(planning, holders, workload, usage, missing) is None
    ):
        return None
    wants = planning.wants(cluster, request)
    packed = pack.pack(planning.ledger.rooms[cluster], wants, workload.domain)
    if isinstance(packed, pack.Packed):
        match = _by_quota(planning, holders, workload, usage, missing)
        return None if match is None else _victims(cluster, assignment, match, packed)
    if not candidates:
        return None
    match = _by_nodes(planning, local, candidates, missing, (cluster, wants, workload.domain))
    return None if match is None else _victims(cluster, assignment, match, match.packed)


def _missing(
    planning: PlanningRound, workload: Workload, usage: Usage
) -> dict[FlavorResource, int] | None:
    """The missing quota; None if no victims can ever make it enough."""
    tree, queue = planning.ledger.tree, workload.queue
    missing: dict[FlavorResource, int] = {}
    for pair, amount in sorted(usage.items()):
        if amount > tree.potential_available(queue, pair):
            return None
        short = amount - tree.available(queue, pair)
        if not workload.preemptible and tree.covers(queue, pair[1]):
            # A workload that cannot be preempted must not borrow: the quota could not be reclaimed.
            own = tree.subtree_quota(queue, pair)
            if amount > own:
                return None
            short = max(short, tree.usage(queue).get(pair, 0) + amount - own)
        if short > 0:
            missing[pair] = short
    return missing


def _by_quota(
    planning: PlanningRound,
    holders: Holders,
    workload: Workload,
    usage: Usage,
    missing: Mapping[FlavorResource, int],
) -> Found | None:
    """Victims in any cluster, where only quota is short. Searched once for all clusters."""
    if not missing:
        return None
    mark, items = planning.ledger.mark(), tuple(sorted(usage.items()))
    if holders.last is not None:
        known_mark, known_workload, known_items, known = holders.last
        if known_mark is mark and known_workload is workload and known_items == items:
            return known if isinstance(known, Found) else None
    case = PreemptionCase(planning, holders, workload, usage, missing, contests_nodes=False)
    candidates = case.suspects(
        holder
        for queue in holders.queues_near(workload.queue)
        if case.looks_at(queue)
        for holder in holders.of_queue(queue)
        if any(pair in holder.usage for pair in missing)
    )
    candidates.sort(key=_by_loss)
    match = Search(planning, case, candidates, missing, None).best()
    holders.last = (mark, workload, items, match)
    return match


def _by_nodes(
    planning: PlanningRound,
    case: PreemptionCase,
    suspects: list[Holder],
    missing: Mapping[FlavorResource, int],
    place: tuple[str, Sequence[pack.Want], str],
) -> Found | None:
    """Victims in one cluster, on nodes that the workload could use or with quota it lacks."""
    cluster, wants, domain = place
    holders, room = holders_of(planning), planning.ledger.rooms[cluster]
    suspects = sorted(suspects, key=_by_loss)
    feet = [holders.foot(holder, cluster) for holder in suspects]
    helpful = [
        place
        for place, holder in enumerate(suspects)
        if any(pair in holder.usage for pair in missing) or stands_on_any(wants, room, feet[place])
    ]
    candidates = [suspects[place] for place in helpful]
    if not candidates:
        return None
    ground = Ground(room, wants, [feet[place] for place in helpful])
    nodes = Nodes(cluster=cluster, wants=wants, domain=domain, ground=ground)
    return Search(planning, case, candidates, missing, nodes).best()


def _by_loss(holder: Holder) -> tuple[int, str]:
    return (holder.loss, holder.key)


def _victims(
    cluster: str, assignment: Assignment, match: Found, packed: pack.Packed | None
) -> Victims:
    victims = tuple(
        Victim(key=victim.key, code=code, lost_seconds=victim.lost_seconds)
        for victim, code in zip(match.victims, match.codes, strict=True)
    )
    harm = (
        max(victim.workload.priority for victim in match.victims),
        sum(victim.loss for victim in match.victims),
        len(victims),
        cluster,
        tuple(_by_loss(victim) for victim in match.victims),
    )
    return Victims(
        cluster=cluster, assignment=assignment, packed=packed, victims=victims, harm=harm
    )
