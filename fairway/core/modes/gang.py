"""Gangs: all pods of a workload or none, in one cluster.

Flavors are tried in the queue's order, and clusters from the best. A gang that may be split runs
its members in several clusters of a group before any workload is preempted for it there, and in
clusters of several groups, if its policy allows that, after all else. A gang that may shrink does
so only if nothing else helped: then it starts with as many pods as fit, or as victims make room for
if these are more. In a fleet without clusters quota alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairway.api.explanations import ScoredCluster
from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters import fit_bounds, ranking
from fairway.core.clusters.balance_order import BalancedOrder, Totals
from fairway.core.clusters.candidates import Names
from fairway.core.model import Form, Workload
from fairway.core.modes.allocation import charge, evict, placed_of, provision
from fairway.core.modes.gang_sizes import first_that_works, most_of, shrunk_by, sizes_above
from fairway.core.modes.gang_split import across_groups, can_split, split
from fairway.core.modes.ladder import (
    NOWHERE,
    LadderStep,
    borrows_last,
    climb,
    forms_due,
    least_harmful,
    offers,
    parts_of,
    steps_of,
)
from fairway.core.modes.outcome import Outcome
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.provisioning.pools import NoNodes, Provisioned, find_pool
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE
from fairway.core.reasons import (
    NoPools,
    NoRoom,
    kept_reason,
    no_flavor,
    quota_reason,
    shortage_reason,
)


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Finds a place for a gang; what it takes stays charged in the ledger."""
    outcome = Outcome()
    for form in forms_due(planning, workload, outcome):
        gang = _Gang(planning, workload, form, is_last_resort)
        if planning.has_clusters:
            climb(gang, outcome)
            gang.take_across_groups(outcome)
        else:
            gang.take_quota(outcome)
        if gang.is_placed:
            return outcome
    for form in forms_due(planning, workload, Outcome()):
        if form.is_elastic and _shrink(planning, workload, form, outcome):
            return outcome
    return outcome


@dataclass(slots=True)
class _Gang:
    """A gang in one form, on its way up the ladder."""

    planning: PlanningRound
    workload: Workload
    form: Form
    is_last_resort: bool = False
    is_placed: bool = False

    @property
    def needs_all_flavors(self) -> bool:
        return False

    def wants(self, rung: Rung) -> bool:
        del rung
        return not self.is_placed

    def victims(self, cluster: str, option: Assignment, *, reach: int = ANYWHERE) -> Victims | None:
        return find_victims(self.planning, self._request(option), cluster, reach=reach)

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        request = self._request(option)
        return find_pool(self.planning, request, cluster, is_last_resort=self.is_last_resort)

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes idle room in one cluster or, if the gang may be split, in several."""
        for option in self._by_preference(step.options):
            request = self._request(option)
            reason = self._quota_reason(request)
            if reason is not None:
                outcome.reasons.append(reason)
            elif self._borrow_level(option) <= step.reach:
                self._take_room(request, step, outcome)
            if self.is_placed:
                return
        if can_split(self.workload, self.form):
            places = {ranked.cluster: step.group for ranked in self._rank(step)}
            self._take_parts(step, places, outcome)

    def take_across_groups(self, outcome: Outcome) -> None:
        """Takes idle room of several groups for a gang that no step of the ladder has placed."""
        if self.is_placed or not can_split(self.workload, self.form):
            return
        places = across_groups(self.planning, self.workload)
        options = self.planning.assignments(self.workload, self.form)
        if places and options:
            step = LadderStep(group="", clusters=Names(places), options=options)
            self._take_parts(step, places, outcome)

    def _take_room(self, request: PlacementRequest, step: LadderStep, outcome: Outcome) -> None:
        planning, option = self.planning, request.assignment
        ranked = self._rank(step)
        chance = planning.stock.chance(option, self.form)
        refused: dict[str, Reason] = {}
        for cluster in _worth_trying(planning, ranked, chance):
            room = planning.ledger.rooms[cluster]
            packed = pack.pack(room, planning.wants(cluster, request), self.workload.domain)
            if isinstance(packed, pack.Packed):
                scores = _totals(ranked) if len(ranked) > 1 else None
                compared = planning.scored(ranked, self.workload)
                place = (cluster, step.group)
                self._admit(request, place, packed, outcome, scores=scores, compared=compared)
                return
            planning.stock.look_again(cluster, option, self.form)
            refused[cluster] = kept_reason(
                planning, request, step.group, cluster
            ) or shortage_reason(cluster, step.group, "Idle", option, packed)
        outcome.reasons.later(
            NoRoom(
                group=step.group,
                option=option,
                ranked=ranked,
                chance=chance,
                position=planning.stock.position,
                refused=refused,
            )
        )

    def _take_parts(self, step: LadderStep, places: Mapping[str, str], outcome: Outcome) -> None:
        """Places the members of a gang that may be split in several clusters, each of a group."""
        for option in self._by_preference(step.options):
            request = self._request(option)
            if quota_reason(self.planning, request) is not None:
                continue
            if self._borrow_level(option) > step.reach:
                continue
            parts = split(self.planning, request, tuple(places))
            if parts is None:
                continue
            placed = []
            for part in parts:
                group = places[part.cluster]
                placement = placed_of(request.of(part.form), part.cluster, group, part.packed)
                charge(self.planning, self.workload, placement, part.packed)
                placed.append(placement)
            self._finish(
                Admit(workload=self.workload.key, placed=tuple(placed), form=self.form.name),
                outcome,
            )
            return

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts the least harmful set of victims in one cluster."""
        best = least_harmful(self.planning, self.workload, self.offers(step, outcome))
        if best is None:
            outcome.reasons.extend(self.planning.no_victims(step.group, step.clusters))
        else:
            self.take_victims(best, step.group, outcome)

    def offers(self, step: LadderStep, outcome: Outcome) -> Iterator[Iterator[Victims | None]]:
        """For each flavor, the victims in each cluster."""
        return offers(self, step, self._request, outcome)

    def take_victims(self, victims: Victims, group: str, outcome: Outcome) -> None:
        evict(self.planning, self.workload, victims, outcome)
        place = (victims.cluster, group)
        request = self._request(victims.assignment)
        self._admit(request, place, victims.packed, outcome, "Preempt")

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Asks for nodes of an elastic pool."""
        planning = self.planning
        for option in self._by_preference(step.options):
            request = self._request(option)
            reason = self._quota_reason(request)
            if reason is not None:
                if not outcome.reasons.has_said(reason):
                    outcome.reasons.append(reason)
                continue
            ranked = self._rank(step)
            if not planning.has_pools(step.clusters):
                outcome.reasons.later(NoPools(ranked=ranked))
                continue
            for ranked_cluster in ranked:
                cluster = ranked_cluster.cluster
                nodes = self.new_nodes(cluster, option)
                if isinstance(nodes, NoNodes):
                    outcome.refuse_nodes(nodes)
                    continue
                provision(planning, self.workload, cluster, nodes, outcome)
                self._admit(
                    request,
                    (cluster, step.group),
                    nodes.packed,
                    outcome,
                    "Provision",
                    on_existing=nodes.on_existing,
                )
                return

    def take_quota(self, outcome: Outcome) -> None:
        """Decides by quota alone, in a fleet without clusters."""
        options = self.planning.assignments(self.workload, self.form)
        step = LadderStep(group="", clusters=NOWHERE, options=options)
        if not options:
            outcome.reasons.append(no_flavor(self.planning, self.workload, self.form))
        for part in (*parts_of(self, step), step):
            for option in self._by_preference(part.options):
                request = self._request(option)
                reason = self._quota_reason(request)
                if reason is None and self._borrow_level(option) <= part.reach:
                    self._admit(request, ("", ""), None, outcome)
                    return
                if reason is not None and part is step:
                    outcome.reasons.append(reason)
            best = least_harmful(self.planning, self.workload, self.offers(part, Outcome()))
            if best is not None:
                with self.planning.leaving.within(part.reach):
                    self.take_victims(best, "", outcome)
                return

    def _request(self, option: Assignment) -> PlacementRequest:
        return PlacementRequest(self.workload, self.form, option)

    def _quota_reason(self, request: PlacementRequest) -> Reason | None:
        """Why quota does not allow the whole gang; it is too small only if so for the smallest."""
        reason = quota_reason(self.planning, request)
        if reason is None or reason.code != Code.QUOTA_TOO_SMALL or not self.form.is_elastic:
            return reason
        fewest = PlacementRequest(self.workload, self.form.smallest, request.assignment)
        return quota_reason(self.planning, fewest) or replace(reason, code=Code.QUOTA_EXCEEDED)

    def _rank(self, step: LadderStep) -> Sequence[ranking.Ranked]:
        policy = self.planning.snapshot.policy(self.workload)
        return self.planning.rank(step.clusters, self.workload, policy)

    def _by_preference(self, options: list[Assignment]) -> list[Assignment]:
        """Flavors in the queue's order; if the queue borrows last, by borrow level first."""
        if len(options) == 1 or not borrows_last(self.planning, self.workload):
            return options
        return sorted(options, key=self._borrow_level)

    def _borrow_level(self, option: Assignment) -> int:
        tree, queue = self.planning.ledger.tree, self.workload.queue
        return tree.borrow_level(queue, option.full_usage(self.form))

    def _admit(
        self,
        request: PlacementRequest,
        place: tuple[str, str],
        packed: pack.Packed | None,
        outcome: Outcome,
        rung: Rung = "Idle",
        *,
        scores: Mapping[str, int] | None = None,
        compared: tuple[ScoredCluster, ...] = (),
        on_existing: pack.Packed | None = None,
    ) -> None:
        """Charges the whole gang, and adds its admission to the plan."""
        placed = placed_of(request, *place, packed)
        charge(self.planning, self.workload, placed, packed if on_existing is None else on_existing)
        self._finish(
            Admit(
                workload=self.workload.key,
                placed=(placed,),
                form=self.form.name,
                rung=rung,
                scores=scores,
                ranking=compared,
            ),
            outcome,
        )

    def _finish(self, admit: Admit, outcome: Outcome) -> None:
        outcome.steps.append(admit)
        outcome.reasons.clear()
        self.is_placed = True


def _worth_trying(
    planning: PlanningRound, ranked: Sequence[ranking.Ranked], chance: fit_bounds.Chance
) -> Iterator[str]:
    """The clusters whose upper bounds allow a fit, best first."""
    if isinstance(ranked, BalancedOrder):
        return ranked.best(chance.fits)
    position = planning.stock.position
    return (
        ranked_cluster.cluster
        for ranked_cluster in ranked
        if chance.fits[position[ranked_cluster.cluster]]
    )


def _totals(ranked: Sequence[ranking.Ranked]) -> Mapping[str, int]:
    if isinstance(ranked, BalancedOrder):
        return Totals(ranked)
    return {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}


def _shrink(planning: PlanningRound, workload: Workload, form: Form, outcome: Outcome) -> bool:
    """Admits a gang with fewer pods: as many as fit somewhere, at least the minimum."""
    shrunk = most_of(planning, workload, form)
    if _preempt_for_fewer(planning, workload, form, shrunk.pods if shrunk else 0, outcome):
        return True
    if shrunk is None:
        return False
    group = planning.candidates(workload).group_of().get(shrunk.cluster, "")
    request = PlacementRequest(workload, shrunk.form, shrunk.option)
    placed = placed_of(request, shrunk.cluster, group, shrunk.packed)
    charge(planning, workload, placed, shrunk.packed)
    outcome.steps.append(Admit(workload=workload.key, placed=(placed,), form=form.name))
    outcome.reasons.clear()
    return True


def _preempt_for_fewer(
    planning: PlanningRound, workload: Workload, form: Form, pods: int, outcome: Outcome
) -> bool:
    """Admits a gang with the most pods that victims make room for, if that is more than `pods`."""
    steps = _preempting_steps(planning, workload)
    sizes = sizes_above(form, pods)
    if not steps or not sizes:
        return False

    def offer(size: int) -> tuple[_Gang, str, Victims] | None:
        fewer = shrunk_by(form, size)
        gang, options = _Gang(planning, workload, fewer), planning.assignments(workload, fewer)
        for group, clusters in steps:
            step = LadderStep(group=group, clusters=clusters, options=options)
            best = least_harmful(planning, workload, gang.offers(step, Outcome()))
            if best is not None:
                return gang, group, best
        return None

    best = first_that_works(sizes, offer)
    if best is None:
        return False
    gang, group, victims = best
    gang.take_victims(victims, group, outcome)
    return True


def _preempting_steps(planning: PlanningRound, workload: Workload) -> list[tuple[str, Names]]:
    """The groups of clusters in which a workload may preempt; one without clusters in none."""
    rules = planning.queue(workload).preemption
    if planning.stopped_by("Preempt") is not None or (
        rules.within_queue == "Never" and rules.reclaim == "Never"
    ):
        return []
    if not planning.has_clusters:
        return [("", NOWHERE)]
    return [
        (group, names) for group, rung, names in steps_of(planning, workload) if rung == "Preempt"
    ]
