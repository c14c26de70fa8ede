"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: the idle room of a group is divided by the policy's rules,
then victims or new nodes make room for more, then the next group follows. Scale-in takes from the
last group first. Replicas stay where they are unless their number or the allowed places change.

Replicas in clusters that the policy no longer allows, or beyond its limits, leave: they no longer
count, so that the ladder places others, and stop as fast as the disruption budget allows. They stay
if the policy says so, if no cluster is allowed at all (the policy may be mistaken), or while the
breaker of moves is open.

A Duplicated division puts a copy of all replicas in every cluster that is allowed and has room for
a replica. Replicas that an incomplete copy lacks are placed by every rung. Once there is a copy,
further clusters are opened by idle room only: nothing is preempted or provisioned for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import is_outside
from fairway.core.model import Form, Workload
from fairway.core.modes.allocation import evict, provision
from fairway.core.modes.division import divide
from fairway.core.modes.ladder import LadderStep, borrow_passes, climb, forms_due
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.rebalance import rebalance
from fairway.core.modes.restraint import are_of_others, victims_to_grow
from fairway.core.modes.service_state import (
    Service,
    kept_within,
    placements,
    places,
    service_of,
)
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.preemption.freed_bounds import clusters_to_search
from fairway.core.provisioning.pools import NoNodes, Provisioned, find_pool, most_on_new_nodes
from fairway.core.quota.flavors import Assignment
from fairway.core.reasons import no_pool, no_room_for_more, quota_reason, user_reason


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Places the replicas that a service lacks; what it takes stays charged in the ledger."""
    outcome = Outcome()
    for form in forms_due(planning, workload, outcome):
        service = service_of(planning, workload, form)
        before = dict(service.counts)
        left: tuple[Reason, ...] = ()
        if service.has_too_many:
            _scale_in(service)
        else:
            left = tuple(_leave(service))
            if service.waiting > 0 or service.is_copied:
                climb(_Growth(service, is_last_resort), outcome)
        if service.counts != before:
            outcome.steps.append(
                Admit(
                    workload=workload.key,
                    placed=placements(service),
                    form=form.name,
                    rung=service.rung,
                    leaving=sum(reason.count for reason in left),
                    reasons=left,
                )
            )
        if service.counts:
            break  # alternatives are for services without any replica
    if service.waiting > 0:
        outcome.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        outcome.reasons.clear()
    if service.counts == before:
        outcome.steps.extend(rebalance(service))
    return outcome


@dataclass(slots=True)
class _Growth:
    """A service on its way up the ladder: each step adds as many replicas as it can."""

    service: Service
    is_last_resort: bool

    @property
    def planning(self) -> PlanningRound:
        return self.service.planning

    @property
    def workload(self) -> Workload:
        return self.service.workload

    @property
    def form(self) -> Form:
        return self.service.form

    def wants(self, rung: Rung) -> bool:
        """Whether replicas are missing; copies also go wherever there is idle room."""
        return self.service.waiting > 0 or (rung == "Idle" and self.service.is_copied)

    # Idle room.

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Divides as many replicas as fit over the idle room of a group, flavor by flavor."""
        service = self.service
        tried: list[Assignment] = []
        for name in step.clusters:
            tried.extend(option for option in service.options_of(name) if option not in tried)
        for may_borrow in borrow_passes(self.planning, self.workload):
            for option in tried:
                usable = self._usable(step, option)
                self._divide(step, option, usable, may_borrow=may_borrow)
                if may_borrow and service.waiting > 0:
                    self._refuse(step, option, usable, outcome)

    def _usable(self, step: LadderStep, option: Assignment) -> dict[str, int]:
        """How many replicas fit in each cluster; not counted where the bounds rule a fit out."""
        service, stock = self.service, self.planning.stock
        fits = stock.chance(option, service.form).fits
        usable: dict[str, int] = {}
        for name in step.clusters:
            if option not in service.options_of(name):
                continue
            may_fit = bool(fits[stock.position[name]])
            usable[name] = service.room_for(name, option) if may_fit else 0
            if may_fit and not usable[name]:
                stock.look_again(name, option, service.form)
        return usable

    def _divide(
        self, step: LadderStep, option: Assignment, usable: Mapping[str, int], *, may_borrow: bool
    ) -> None:
        service = self.service
        target = service.workload.replicas
        if not service.is_copied:
            quota = max(0, service.quota_for(option, may_borrow=may_borrow))
            wanted = min(service.shortage(option), quota)
            target = sum(service.counts.values()) - service.overhang() + wanted
            if wanted <= 0:
                return
        if not any(usable.values()):
            return
        shares = divide(target, places(service, usable), service.policy)
        for name in step.clusters:
            more = shares.counts.get(name, 0) - service.counts.get(name, 0)
            # Copies in all clusters together may exceed the quota, so it is checked each time.
            quota = service.quota_for(option, may_borrow=may_borrow)
            more = min(more, usable.get(name, 0), quota)
            if more > 0:
                service.add(name, more, option)

    def _refuse(
        self, step: LadderStep, option: Assignment, usable: Mapping[str, int], outcome: Outcome
    ) -> None:
        """Notes why waiting replicas get no idle room: quota, a reservation, or no room."""
        service, planning, request = self.service, self.planning, self.service.request(option)
        quota = quota_reason(planning, request)
        if quota is not None:
            outcome.reasons.append(quota)
            return
        # Clusters that have room are left out: there the rules of division are the cause.
        full = [
            name
            for name in sorted(usable)
            if not usable[name] or not service.room_for(name, option)
        ]
        if full:
            outcome.reasons.later(
                no_room_for_more(planning, request, step.group, full, service.waiting)
            )

    # Victims.

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts for one replica at a time, each time where it does the least harm."""
        service = self.service
        while service.waiting > 0:
            best: Victims | None = None
            for name, option in self._victim_clusters(step):
                victims = self.victims(name, option)
                if victims is not None and (best is None or victims.harm < best.harm):
                    best = victims
            if best is None:
                outcome.reasons.extend(self.planning.no_victims(step.group, step.clusters))
                return
            evict(self.planning, self.workload, best, outcome)
            if are_of_others(best):
                service.rung = "Preempt"
            service.add(best.cluster, service.least_in(best.cluster), best.assignment)
            service.top_up(best.cluster, best.assignment)

    def _victim_clusters(self, step: LadderStep) -> Iterator[tuple[str, Assignment]]:
        """The clusters that may have victims for a replica, with the flavors to try."""
        searched: list[tuple[Assignment, Set[str]]] = []
        for name in step.clusters:
            for option in self.service.options_of(name):
                names = next((names for known, names in searched if known == option), None)
                if names is None:
                    request = self.service.request(option)
                    names = frozenset(clusters_to_search(self.planning, request, step.clusters))
                    searched.append((option, names))
                if name in names:
                    yield name, option

    def victims(self, cluster: str, option: Assignment) -> Victims | None:
        """The victims for the fewest replicas that a cluster can get."""
        service = self.service
        least = service.least_in(cluster)
        if not service.may_open(cluster):
            return None
        if least > service.shortage(option) or service.allowed_in(cluster, least) < least:
            return None
        request = service.request(option, least)
        if user_reason(self.planning, request) is not None:
            return None
        return victims_to_grow(self.planning, request, cluster, placements(service))

    # New nodes.

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Provisions nodes of elastic pools for as many replicas as they can hold."""
        service = self.service
        for may_borrow in borrow_passes(self.planning, self.workload):
            for name in filter(service.may_open, step.clusters):
                for option in service.options_of(name):
                    if service.waiting <= 0:
                        return
                    quota = service.quota_for(option, may_borrow=may_borrow)
                    most = service.allowed_in(name, min(service.shortage(option), quota))
                    best = self._most_on_new_nodes(name, option, most)
                    if isinstance(best, NoNodes):
                        if may_borrow:
                            outcome.refuse_nodes(best)
                        continue
                    replicas, nodes = best
                    provision(self.planning, self.workload, name, nodes, outcome)
                    service.keep(name, replicas, option, (nodes.packed, nodes.on_existing))
                    if service.rung != "Preempt":
                        service.rung = "Provision"
                    break  # a cluster has one set of flavors

    def _most_on_new_nodes(
        self, cluster: str, option: Assignment, most: int
    ) -> tuple[int, Provisioned] | NoNodes:
        """The most replicas that new nodes of a pool can hold, and those nodes."""
        best = most_on_new_nodes(
            cluster, range(1, most + 1), lambda count: self._nodes(cluster, option, count)
        )
        if not isinstance(best, NoNodes) and self.service.allowed_in(cluster, best[0]) < best[0]:
            return NoNodes(no_pool(cluster))  # below the minimum of a new cluster
        return best

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        least = self.service.least_in(cluster)
        if not self.service.may_open(cluster) or self.service.allowed_in(cluster, least) < least:
            return NoNodes(no_pool(cluster))
        return self._nodes(cluster, option, least)

    def _nodes(self, cluster: str, option: Assignment, count: int) -> Provisioned | NoNodes:
        request = self.service.request(option, count)
        return find_pool(self.planning, request, cluster, is_last_resort=self.is_last_resort)


def _leave(service: Service) -> Iterator[Reason]:
    """Gives up the replicas that the policy no longer allows; a reason for each cluster."""
    planning, policy = service.planning, service.policy
    if not policy.moves_services or policy.faults or not service.candidates.allowed:
        return
    if "Moves" in planning.snapshot.facts.settings.open_breakers:
        return
    queue = planning.snapshot.facts.queues.get(service.workload.queue)
    for name, kept in kept_within(service).items():
        stays = 0 if is_outside(name, policy, queue) else kept
        gone = service.counts[name] - stays
        if gone:
            _set(service, name, stays)
            yield Reason(code=Code.NO_LONGER_ALLOWED, cluster=name, count=gone)


def _scale_in(service: Service) -> None:
    target = service.workload.replicas
    if service.counts_speed:
        target = sum(service.counts.values()) - service.surplus()
    shares = divide(target, places(service, {}), service.policy)
    # What is only beyond a limit leaves in its own time: no more stops at once than is asked for.
    spared = 0 if service.is_copied else target - sum(shares.counts.values())
    for name in list(service.counts):
        count = shares.counts.get(name, 0)
        back = min(spared, service.counts[name] - count)
        spared -= back
        _set(service, name, count + back)


def _set(service: Service, cluster: str, count: int) -> None:
    if count:
        service.counts[cluster] = count
    else:
        del service.counts[cluster]
