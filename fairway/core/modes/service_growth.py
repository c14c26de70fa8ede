"""A service on its way up the ladder: how many replicas each step adds, and where.

The rules of division hold on every rung, over all clusters of a step together: given weights, and
how even the counts must be. Where they bind, the clusters of a step are divided at once, whatever
flavor each of them has; else flavor by flavor, in the queue's order. Victims are taken for one
replica at a time where they lose the least, among the clusters that division allows.

Where no single step can open as many domains as `least` asks for, `first_domains` opens them first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from fairway.api.meta import Rung
from fairway.core.clusters.candidates import Names
from fairway.core.model import Form, Workload
from fairway.core.modes.allocation import evict, provision
from fairway.core.modes.division import divide
from fairway.core.modes.first_domains import open_first_domains, spread_reason
from fairway.core.modes.ladder import LadderStep, borrow_passes, climb, least_harmful
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.restraint import are_of_others, victims_to_grow
from fairway.core.modes.service_state import Service, placements, places
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.preemption.freed_bounds import clusters_to_search
from fairway.core.provisioning.pools import NoNodes, Provisioned, find_pool, most_on_new_nodes
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE
from fairway.core.reasons import no_pool, no_room_for_more, quota_reason, user_reason


def grow(service: Service, outcome: Outcome, *, is_last_resort: bool = False) -> None:
    """Adds as many replicas as the ladder and the rules of division allow."""
    growth = Growth(service, is_last_resort)
    if service.is_spread:
        open_first_domains(growth, outcome)
    climb(growth, outcome)


@dataclass(slots=True)
class Growth:
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

    @property
    def needs_all_flavors(self) -> bool:
        """Whether clusters are divided together, whatever flavor each has; or get copies."""
        return self.service.is_bound or self.service.is_copied

    def wants(self, rung: Rung) -> bool:
        """Whether replicas are missing; copies also go wherever there is idle room."""
        return self.service.waiting > 0 or (rung == "Idle" and self.service.is_copied)

    def _is_short(self, step: LadderStep) -> bool:
        """Whether a step may place what is missing: of copies, only those of its own group."""
        service = self.service
        if not service.is_copied or not service.counts:
            return True
        held = [service.counts[name] for name in step.clusters if name in service.counts]
        is_whole = all(count >= service.workload.replicas for count in held)
        has_more = len(held) < len(step.clusters)
        return not is_whole or (has_more and step.group in service.missing_copies)

    # Idle room.

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Divides as many replicas as fit over the idle room of a group."""
        service, tried = self.service, self._options(step)
        for reach in borrow_passes(self.planning, self.workload, step):
            if service.is_bound and len(tried) > 1:
                self._divide_together(step, tried, reach=reach)
            for option in tried:
                usable = self.usable(step, option)
                self._divide(step, option, usable, reach=reach)
                if reach == step.reach and service.waiting > 0:
                    self._refuse(step, option, usable, outcome)
        if service.waiting > 0:
            outcome.reasons.extend(dict.fromkeys(service.limits_on(step.clusters).values()))

    def _options(self, step: LadderStep) -> list[Assignment]:
        """The flavors that any cluster of a step may use, in order."""
        options: list[Assignment] = []
        for name in step.clusters:
            options.extend(
                option for option in self._options_of(name, step) if option not in options
            )
        return options

    def _options_of(self, cluster: str, step: LadderStep) -> list[Assignment]:
        """The flavors that a step tries in a cluster."""
        options = self.service.options_of(cluster)
        return [each for each in options if each in step.options] if step.is_narrow else options

    def usable(self, step: LadderStep, option: Assignment) -> dict[str, int]:
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
        self, step: LadderStep, option: Assignment, usable: Mapping[str, int], *, reach: int
    ) -> None:
        service = self.service
        target = service.workload.replicas
        if not service.is_copied:
            quota = max(0, service.quota_for(option, reach=reach))
            wanted = min(service.shortage(option), quota)
            target = sum(service.counts.values()) - service.overhang() + wanted
            if wanted <= 0:
                return
        if not any(usable.values()):
            return
        shares = divide(
            target, places(service, usable), service.policy, asked=service.workload.replicas
        )
        for name in step.clusters:
            more = shares.counts.get(name, 0) - service.counts.get(name, 0)
            # Copies in all clusters together may exceed the quota, so it is checked each time.
            quota = service.quota_for(option, reach=reach)
            more = min(more, usable.get(name, 0), quota)
            if more > 0:
                service.add(name, more, option)

    def _divide_together(
        self, step: LadderStep, tried: Collection[Assignment], *, reach: int
    ) -> None:
        """Divides over clusters of all flavors, each on the first flavors with room and quota."""
        service = self.service
        while True:
            offers: dict[str, tuple[Assignment, int]] = {}
            for option in tried:
                quota = max(0, service.quota_for(option, reach=reach))
                for name, room in self.usable(step, option).items():
                    if min(room, quota) > 0:
                        offers.setdefault(name, (option, min(room, quota)))
            usable = {name: offers[name][1] if name in offers else 0 for name in step.clusters}
            quota = self._quota_of((option for option, _ in offers.values()), reach)
            has_grown = False
            for name, share in self._shares(usable, quota).items():
                option = offers[name][0]
                more = min(share, service.quota_for(option, reach=reach))
                if more > 0:
                    service.add(name, more, option)
                    has_grown = True
            if not has_grown:
                return

    def _quota_of(self, options: Iterable[Assignment], reach: int) -> int:
        """How many more replicas quota allows on all of some flavors together."""
        distinct: list[Assignment] = []
        for option in options:
            if option not in distinct:
                distinct.append(option)
        return sum(max(0, self.service.quota_for(option, reach=reach)) for option in distinct)

    def _shares(self, usable: Mapping[str, int], most: int | None = None) -> dict[str, int]:
        """How many more replicas division gives to clusters that could take so many.

        All together get no more than `most`.
        """
        service = self.service
        target = service.workload.replicas
        if not service.is_copied:
            wanted = max(0, service.waiting)
            wanted = wanted if most is None else min(wanted, most)
            target = sum(service.counts.values()) - service.overhang() + wanted
        shares = divide(
            target, places(service, usable), service.policy, asked=service.workload.replicas
        ).counts
        more = {name: shares.get(name, 0) - service.counts.get(name, 0) for name in usable}
        return {name: min(count, usable[name]) for name, count in more.items() if count > 0}

    def _refuse(
        self, step: LadderStep, option: Assignment, usable: Mapping[str, int], outcome: Outcome
    ) -> None:
        """Notes why waiting replicas get no idle room: quota, a reservation, or no room."""
        service, planning, request = self.service, self.planning, self.service.request(option)
        quota = quota_reason(planning, request)
        if quota is not None:
            outcome.reasons.append(quota)
            return
        # A cluster with a whole copy lacks nothing.
        whole = service.workload.replicas if service.is_copied else math.inf
        short = [name for name in sorted(usable) if service.counts.get(name, 0) < whole]
        # In clusters that have room the rules of division are the cause.
        limited = service.limits_on(short)
        full = [
            name
            for name in short
            if name not in limited and (not usable[name] or not service.room_for(name, option))
        ]
        if full:
            outcome.reasons.later(
                no_room_for_more(planning, request, step.group, full, service.waiting)
            )
        if service.policy.spread and len(full) + len(limited) < len(short):
            outcome.reasons.append(spread_reason(service.policy.spread, step.group))

    # Victims.

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts for one replica at a time, each time where it does the least harm."""
        service = self.service
        spent: set[str] = set()  # clusters without victims: others get what these cannot
        while service.waiting > 0 and self._is_short(step):
            places_left = [pair for pair in self._victim_clusters(step) if pair[0] not in spent]
            more = self._more_in(step, {name for name, _ in places_left})
            best = least_harmful(
                self.planning, self.workload, self._offers(step, places_left, more)
            )
            if best is None:
                if more:
                    spent.update(more)
                    continue
                self._say_rules(step, places_left, outcome)
                limited, clusters = service.limits_on(step.clusters), step.clusters
                if limited:
                    clusters = Names(name for name in clusters if name not in limited)
                outcome.reasons.extend(self.planning.no_victims(step.group, clusters))
                return
            most = more[best.cluster] - service.least_in(best.cluster)
            self.take(best, outcome)
            if service.is_spread:
                # Where rules of spread allow more now: others may yet turn out to get nothing.
                self.take_idle(step, Outcome())
            else:
                service.top_up(best.cluster, best.assignment, most=most)

    def _offers(
        self,
        step: LadderStep,
        left: Collection[tuple[str, Assignment]],
        more: Mapping[str, int],
    ) -> Iterator[Iterator[Victims | None]]:
        """For each flavor, the victims for a replica in each cluster that may get more."""
        names = {
            name
            for name, _ in left
            if more.get(name, 0) >= self.service.least_in(name) and self._is_next(step, name)
        }
        for option in self._options(step):
            yield (
                self.victims_in(name, option, reach=step.reach)
                for name, offered in left
                if offered == option and name in names
            )

    def take(self, victims: Victims, outcome: Outcome) -> None:
        """Preempts victims, and places the fewest replicas that their cluster can get."""
        evict(self.planning, self.workload, victims, outcome)
        if are_of_others(victims):
            self.service.rung = "Preempt"
        assert victims.packed is not None, "where there are clusters there is a packing"
        least, packed = self.service.least_in(victims.cluster), (victims.packed, victims.packed)
        self.service.keep(victims.cluster, least, victims.assignment, packed)

    def _say_rules(self, step: LadderStep, left: Collection[object], outcome: Outcome) -> None:
        """Gives rules of spread as the reason where clusters are left that could give room."""
        if left and self.service.is_spread:
            outcome.reasons.append(spread_reason(self.service.policy.spread, step.group))

    def _is_next(self, step: LadderStep, cluster: str) -> bool:
        """Whether rules of spread hold if this cluster alone gets more: others may find none."""
        if not self.service.is_spread:
            return True
        least = self.service.least_in(cluster)
        usable = {**dict.fromkeys(step.clusters, 0), cluster: least}
        return self._shares(usable).get(cluster, 0) >= least

    def _more_in(self, step: LadderStep, names: Set[str]) -> dict[str, int]:
        """How many more replicas division allows in each of some clusters of a step."""
        service = self.service
        wanted = max(0, service.waiting)
        if service.is_bound:
            return self._shares({name: wanted if name in names else 0 for name in step.clusters})
        allowed = {name: service.allowed_in(name, wanted) for name in sorted(names)}
        return {name: count for name, count in allowed.items() if count > 0}

    def _victim_clusters(self, step: LadderStep) -> Iterator[tuple[str, Assignment]]:
        """The clusters that may have victims for a replica, with the flavors to try."""
        searched: list[tuple[Assignment, Set[str]]] = []
        for name in step.clusters:
            for option in self._options_of(name, step):
                names = next((names for known, names in searched if known == option), None)
                if names is None:
                    request = self.service.request(option)
                    names = frozenset(
                        clusters_to_search(self.planning, request, step.clusters, step.reach)
                    )
                    searched.append((option, names))
                if name in names:
                    yield name, option

    def victims(self, cluster: str, option: Assignment, *, reach: int = ANYWHERE) -> Victims | None:
        """The victims for the fewest replicas that a cluster can get, if division allows these."""
        least = self.service.least_in(cluster)
        if self.service.allowed_in(cluster, least) < least:
            return None
        return self.victims_in(cluster, option, reach=reach)

    def victims_in(
        self, cluster: str, option: Assignment, *, opens: bool = False, reach: int = ANYWHERE
    ) -> Victims | None:
        """The victims for the fewest replicas that a cluster can get, whatever division says.

        With `opens`, a further copy may be opened.
        """
        service = self.service
        least = service.least_in(cluster)
        if not (opens or service.may_open(cluster)):
            return None
        if not service.is_copied and least > service.shortage(option):
            return None
        request = service.request(option, least)
        if user_reason(self.planning, request) is not None:
            return None
        return victims_to_grow(self.planning, request, cluster, placements(service), reach=reach)

    # New nodes.

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Provisions nodes of elastic pools, as many as the replicas that they get need."""
        service = self.service
        for reach in borrow_passes(self.planning, self.workload, step):
            if service.waiting <= 0 or not self._is_short(step):
                return
            offers: dict[str, tuple[int, Assignment]] = {}
            limited = service.limits_on(step.clusters)
            for name in filter(service.may_open, step.clusters):
                if name in limited:
                    continue
                for option in service.options_of(name):
                    quota = service.quota_for(option, reach=reach)
                    most = self._most_in(name, min(service.shortage(option), quota))
                    best = self._most_on_new_nodes(name, option, most)
                    if not isinstance(best, NoNodes):
                        offers[name] = (best[0], option)
                        break  # a cluster has one set of flavors
                    if reach == step.reach:
                        outcome.refuse_nodes(best)
            self._buy(step, offers, outcome, reach=reach)

    def _most_in(self, cluster: str, most: int) -> int:
        """How many more replicas a cluster may get; where rules bind, division says so later."""
        return most if self.service.is_bound else self.service.allowed_in(cluster, most)

    def _buy(
        self,
        step: LadderStep,
        offers: Mapping[str, tuple[int, Assignment]],
        outcome: Outcome,
        *,
        reach: int,
    ) -> None:
        """Provisions nodes where division puts replicas, of clusters that offer nodes."""
        service = self.service
        usable = {name: offers[name][0] if name in offers else 0 for name in step.clusters}
        quota = self._quota_of((option for _, option in offers.values()), reach)
        shares = self._shares_on_new_nodes(step, usable, quota) if service.is_bound else usable
        for name in step.clusters:
            if service.waiting <= 0 or not shares.get(name):
                continue
            option = offers[name][1]
            quota = service.quota_for(option, reach=reach)
            most = min(shares[name], service.shortage(option), quota)
            best = self._most_on_new_nodes(name, option, self._most_in(name, most))
            if not isinstance(best, NoNodes):
                self.buy(name, option, best, outcome)
        if service.is_spread and any(shares.values()):
            self.take_idle(step, Outcome())  # where rules of spread allow more now
        if reach == step.reach and service.waiting > 0:
            left = [name for name in offers if shares.get(name, 0) < usable[name]]
            self._say_rules(step, left, outcome)

    def _shares_on_new_nodes(
        self, step: LadderStep, usable: Mapping[str, int], quota: int
    ) -> dict[str, int]:
        """What new nodes get of a division over them and the idle room that rules left."""
        idle: dict[str, int] = {}
        for option in self._options(step) if self.service.policy.spread else ():
            for name, count in self.usable(step, option).items():
                idle[name] = max(count, idle.get(name, 0))
        both = {name: count + idle.get(name, 0) for name, count in usable.items()}
        shares = self._shares(both, quota)
        return {name: max(0, count - idle.get(name, 0)) for name, count in shares.items()}

    def buy(
        self, cluster: str, option: Assignment, bought: tuple[int, Provisioned], outcome: Outcome
    ) -> None:
        """Provisions nodes, and places the replicas that they hold."""
        replicas, nodes = bought
        provision(self.planning, self.workload, cluster, nodes, outcome)
        self.service.keep(cluster, replicas, option, (nodes.packed, nodes.on_existing))
        if self.service.rung != "Preempt":
            self.service.rung = "Provision"

    def _most_on_new_nodes(
        self, cluster: str, option: Assignment, most: int
    ) -> tuple[int, Provisioned] | NoNodes:
        """The most replicas that new nodes of a pool can hold, and those nodes."""
        best = most_on_new_nodes(
            cluster, range(1, most + 1), lambda count: self._nodes(cluster, option, count)
        )
        if not isinstance(best, NoNodes) and best[0] < self.service.least_in(cluster):
            return NoNodes(no_pool(cluster))  # below the minimum of a new cluster
        return best

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        least = self.service.least_in(cluster)
        if self.service.allowed_in(cluster, least) < least:
            return NoNodes(no_pool(cluster))
        return self.nodes_in(cluster, option)

    def nodes_in(
        self, cluster: str, option: Assignment, *, opens: bool = False
    ) -> Provisioned | NoNodes:
        """New nodes for the fewest replicas that a cluster can get, whatever division says."""
        if not (opens or self.service.may_open(cluster)):
            return NoNodes(no_pool(cluster))
        return self._nodes(cluster, option, self.service.least_in(cluster))

    def _nodes(self, cluster: str, option: Assignment, count: int) -> Provisioned | NoNodes:
        request = self.service.request(option, count)
        return find_pool(self.planning, request, cluster, is_last_resort=self.is_last_resort)
