"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: idle room in a group is divided by the policy's rules,
then victims or new nodes make room for more, then the next group. Scale-in takes from the last
group first. What a service holds stays where it is unless its number or its places change.

Copies (a Duplicated division) go to every cluster that may have them and has room for a replica. A
copy that is not whole waits for the rest of it, by every rung; another cluster is opened as soon as
it has idle room, but nobody yields and no node is bought for that once there is a copy somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import Candidates
from fairway.core.clusters.ranking import is_plain
from fairway.core.clusters.spread import domains
from fairway.core.explain.reasons import no_pool, no_room_for_more, quota_reason, user_reason
from fairway.core.model import Form, Placed, PlacedPods, PodSet, Policy, Workload
from fairway.core.modes.allocation import evict, placed_of, provision
from fairway.core.modes.division import DivisionTarget, divide, static_weights
from fairway.core.modes.forms import times, together
from fairway.core.modes.ladder import LadderStep, borrow_passes, climb, forms_due, held_form
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.restraint import are_of_others, has_made_yield, is_peaceful
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.preemption.freed_bounds import clusters_to_search
from fairway.core.provisioning.pools import NoNodes, Provisioned, find_pool, most_on_new_nodes
from fairway.core.quota.flavors import Assignment

ONE = 1_000_000_000  # the speed of a replica that counts for one


@dataclass(slots=True)
class Service:
    """A service while it is being placed: replicas and flavors of each cluster."""

    planning: PlanningRound
    workload: Workload
    form: Form
    policy: Policy
    candidates: Candidates
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Assignment] = field(default_factory=dict)
    pods: dict[str, tuple[PlacedPods, ...]] = field(default_factory=dict)  # of each cluster
    rung: Rung = "Idle"  # the last that gave something; Preempt stays
    scores: Mapping[str, int] = field(default_factory=dict)  # of clusters; none where all are alike

    @property
    def is_copied(self) -> bool:
        """Whether every cluster is to have all replicas."""
        return self.policy.division.type == "Duplicated"

    @property
    def counts_speed(self) -> bool:
        """Whether a replica counts for the speed of its flavor, rather than for one."""
        return self.policy.division.counts_speed and not self.is_copied

    @property
    def waiting(self) -> int:
        """Replicas without a place; of copies, those that lack in clusters that have some."""
        if self.counts_speed:
            return -(-(self.workload.replicas * ONE - self.worth(self.counts)) // ONE)
        copies = max(1, len(self.counts)) if self.is_copied else 1
        return self.workload.replicas * copies - sum(self.counts.values())

    @property
    def has_too_many(self) -> bool:
        if self.is_copied:
            return any(count > self.workload.replicas for count in self.counts.values())
        return self.surplus() > 0

    @property
    def is_unsettled(self) -> bool:
        """Whether its number of replicas is not what it asks for."""
        return self.waiting > 0 or self.has_too_many

    def speed(self, option: Assignment) -> int:
        """How much one replica counts on some flavors; the slowest of them decides."""
        flavors = self.planning.snapshot.facts.flavors
        speeds = [flavors[name].speed_nanos for name in option.names if name in flavors]
        return max(1, min(speeds, default=ONE)) if self.counts_speed else ONE

    def worth(self, counts: Mapping[str, int]) -> int:
        """What replicas count for together; each is worth `ONE` where speed does not count."""
        return sum(count * self.speed(self.options[name]) for name, count in counts.items())

    def lacking(self, option: Assignment) -> int:
        """How many more replicas on some flavors it takes for none to be missing."""
        if not self.counts_speed:
            return self.waiting
        missing = self.workload.replicas * ONE - self.worth(self.counts)
        return max(0, -(-missing // self.speed(option)))

    def surplus(self) -> int:
        """How many replicas can go, those that division takes first, before one is missing.

        By speed these are looked for in leaps: so many of the fastest are surely too many.
        """
        total = sum(self.counts.values())
        if not self.counts_speed:
            return max(0, total - self.workload.replicas)
        fastest = max(map(self.speed, self.options.values()), default=ONE)
        gone, wanted = 0, self.workload.replicas * ONE
        left: Mapping[str, int] = self.counts
        while gone < total and self.worth(left) > wanted:
            leap = max(1, (self.worth(left) - wanted) // fastest)
            fewer = divide(total - gone - leap, places(self, {}), self.policy).counts
            if self.worth(fewer) < wanted:
                break
            gone, left = total - sum(fewer.values()), fewer
        return gone

    def options_of(self, cluster: str) -> list[Assignment]:
        """The flavors to try in a cluster; one that has replicas keeps its flavors."""
        kept = self.options.get(cluster)
        return [kept] if kept is not None else self.planning.assignments(self.workload, self.form)

    def room_for(self, cluster: str, option: Assignment) -> int:
        """How many more replicas fit in a cluster, as far as nodes go."""
        wants = self.planning.wants(cluster, self.request(option))
        return pack.copies(self.planning.ledger.rooms[cluster], wants)

    def request(self, option: Assignment, count: int | None = None) -> PlacementRequest:
        """A replica on some flavors, or so many whole ones."""
        form = self.form if count is None else times(self.form, count)
        return PlacementRequest(self.workload, form, option)

    def quota_for(self, option: Assignment, *, may_borrow: bool = True) -> int:
        """How many more replicas the queue allows on some flavors."""
        may_borrow = may_borrow and self.rung != "Preempt"
        usage = option.full_usage(self.form)
        most = self.planning.copies(self.workload, usage, may_borrow=may_borrow)
        return pack.UNLIMITED if most is None else most

    def allowed_in(self, cluster: str, most: int) -> int:
        """How many of so many more the rules of division allow in a cluster, beside all others."""
        has = self.counts.get(cluster, 0)
        total = self.workload.replicas if self.is_copied else sum(self.counts.values()) + most
        shares = divide(total, places(self, {cluster: most}), self.policy)
        return max(0, shares.counts.get(cluster, 0) - has)

    def least_in(self, cluster: str) -> int:
        """How many replicas a cluster gets at least: one more, or as many as it opens with."""
        return 1 if cluster in self.counts else max(1, self.policy.division.cluster_min)

    def add(self, cluster: str, count: int, option: Assignment) -> None:
        """Places replicas on the nodes of a cluster."""
        wants = self.planning.wants(cluster, self.request(option, count))
        packed = pack.pack(self.planning.ledger.rooms[cluster], wants)
        assert isinstance(packed, pack.Packed), "what was counted fits"
        self.keep(cluster, count, option, (packed, packed))

    def top_up(self, cluster: str, option: Assignment) -> None:
        """Takes what victims left over in a cluster: they may have been larger than a replica."""
        wanted = max(0, min(self.lacking(option), self.quota_for(option)))
        more = min(self.allowed_in(cluster, wanted), self.room_for(cluster, option))
        if more > 0:
            self.add(cluster, more, option)

    def keep(
        self,
        cluster: str,
        count: int,
        option: Assignment,
        packed: tuple[pack.Packed, pack.Packed],
    ) -> None:
        """Charges replicas: all of what is packed, and what of it takes room that is here."""
        whole, on_existing = packed
        each = option.full_usage(self.form)
        usage = {pair: amount * count for pair, amount in each.items()}
        requests = {pod_set.name: pod_set.shape.requests for pod_set in self.form.pod_sets}
        self.planning.take(self.workload, usage, cluster, on_existing.packing, requests)
        earlier = {pod.name: pod for pod in self.pods.get(cluster, ())}
        placed = placed_of(self.request(option, count), cluster, "", whole)
        self.pods[cluster] = tuple(together(earlier.get(pod.name), pod) for pod in placed.pods)
        if cluster not in self.counts:
            self.planning.hold(cluster)
        self.counts[cluster] = self.counts.get(cluster, 0) + count
        self.options[cluster] = option


def service_of(planning: PlanningRound, workload: Workload, form: Form | None = None) -> Service:
    """A service as it stands; in a form, where it holds nothing yet."""
    policy, candidates = planning.snapshot.policy(workload), planning.candidates(workload)
    service = Service(planning, workload, form or held_form(workload), policy, candidates)
    if not is_plain(policy.scores):
        ranked = planning.ranked(candidates.allowed, workload, policy)
        service.scores = {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}
    if has_made_yield(workload):
        service.rung = "Preempt"
    _read_held(service)
    return service


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Divides what a service lacks; what it takes stays charged in the ledger."""
    outcome = Outcome()
    for form in forms_due(planning, workload, outcome):
        service = service_of(planning, workload, form)
        before = dict(service.counts)
        if service.has_too_many:
            _scale_in(service)
        elif service.waiting > 0 or service.is_copied:
            climb(_Growth(service, is_last_resort), outcome)
        if service.counts != before:
            outcome.steps.append(
                Admit(
                    workload=workload.key,
                    placed=placements(service),
                    form=form.name,
                    rung=service.rung,
                )
            )
        if service.counts:
            break  # an alternative is for a service that has no replica
    if service.waiting > 0:
        outcome.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        outcome.reasons.clear()
    return outcome


def _read_held(service: Service) -> None:
    held = service.workload.held
    for placed in held.placed if held else ():
        service.counts[placed.cluster] = placed.replicas
        service.pods[placed.cluster] = placed.pods
        flavors = {pods.name: dict(pods.flavors) for pods in placed.pods}
        names = sorted(
            {flavor for entry in flavors.values() for flavor in entry.values() if flavor}
        )
        service.options[placed.cluster] = Assignment(flavors=flavors, names=tuple(names))


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
        """Copies go wherever there is idle room, though none is missing elsewhere."""
        return self.service.waiting > 0 or (rung == "Idle" and self.service.is_copied)

    # What is idle.

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
        """How many replicas fit in each cluster; only where the bounds promise room is counted."""
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
            target = sum(service.counts.values()) + min(service.lacking(option), quota)
        is_wanted = service.is_copied or target > sum(service.counts.values())
        if not is_wanted or not any(usable.values()):
            return
        shares = divide(target, places(service, usable), service.policy)
        for name in step.clusters:
            more = shares.counts.get(name, 0) - service.counts.get(name, 0)
            # Copies in every cluster are more than the number that quota was asked for.
            quota = service.quota_for(option, may_borrow=may_borrow)
            more = min(more, usable.get(name, 0), quota)
            if more > 0:
                service.add(name, more, option)

    def _refuse(
        self, step: LadderStep, option: Assignment, usable: Mapping[str, int], outcome: Outcome
    ) -> None:
        """What keeps the replicas that wait from idle room: quota, somebody's place, or no room."""
        service, planning, request = self.service, self.planning, self.service.request(option)
        quota = quota_reason(planning, request)
        if quota is not None:
            outcome.reasons.append(quota)
            return
        # Where there is room, it is the rules of division that keep them away.
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
        """Makes room replica by replica, each time where it does the least harm."""
        service = self.service
        while service.waiting > 0:
            best: Victims | None = None
            for name, option in self._searched(step):
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

    def _searched(self, step: LadderStep) -> Iterator[tuple[str, Assignment]]:
        """The clusters in which there may be victims for a replica, with the flavors to try."""
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
        """Who would have to yield for the least that a cluster gets."""
        service = self.service
        least = service.least_in(cluster)
        if least > service.lacking(option) or service.allowed_in(cluster, least) < least:
            return None
        request = service.request(option, least)
        if user_reason(self.planning, request) is not None:
            return None
        victims = find_victims(self.planning, request, cluster)
        if victims is None or not is_peaceful(
            self.planning, self.workload, placements(service), victims
        ):
            return None
        return victims

    # New nodes.

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Asks elastic pools for as many replicas as they can still hold."""
        service = self.service
        for may_borrow in borrow_passes(self.planning, self.workload):
            for name in step.clusters:
                for option in service.options_of(name):
                    if service.waiting <= 0:
                        return
                    quota = service.quota_for(option, may_borrow=may_borrow)
                    most = service.allowed_in(name, min(service.lacking(option), quota))
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
                    break  # one set of flavors in a cluster

    def _most_on_new_nodes(
        self, cluster: str, option: Assignment, most: int
    ) -> tuple[int, Provisioned] | NoNodes:
        """The most replicas that new nodes of a pool can hold, and those nodes."""
        best = most_on_new_nodes(
            cluster, range(1, most + 1), lambda count: self._nodes(cluster, option, count)
        )
        if not isinstance(best, NoNodes) and self.service.allowed_in(cluster, best[0]) < best[0]:
            return NoNodes(no_pool(cluster))  # fewer than a cluster opens with
        return best

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        least = self.service.least_in(cluster)
        if self.service.allowed_in(cluster, least) < least:
            return NoNodes(no_pool(cluster))
        return self._nodes(cluster, option, least)

    def _nodes(self, cluster: str, option: Assignment, count: int) -> Provisioned | NoNodes:
        request = self.service.request(option, count)
        return find_pool(self.planning, request, cluster, is_last_resort=self.is_last_resort)


def places(service: Service, usable: Mapping[str, int]) -> list[DivisionTarget]:
    """Every cluster that has replicas or may get some, as division sees it."""
    group_of = service.candidates.group_of()
    names = sorted({*service.counts, *usable})
    weights = static_weights(service.policy.division, names)
    clusters = service.planning.snapshot.facts.clusters
    return [
        DivisionTarget(
            cluster=name,
            group=group_of.get(name, ""),
            available=usable.get(name, 0),
            assigned=service.counts.get(name, 0),
            weight=weights[name],
            score=service.scores.get(name, 0),
            domains=domains(clusters[name], service.policy.spread) if name in clusters else (),
        )
        for name in names
    ]


def _scale_in(service: Service) -> None:
    target = service.workload.replicas
    if service.counts_speed:
        target = sum(service.counts.values()) - service.surplus()
    shares = divide(target, places(service, {}), service.policy)
    for name in list(service.counts):
        count = shares.counts.get(name, 0)
        if count:
            service.counts[name] = count
        else:
            del service.counts[name]


def placements(service: Service) -> tuple[Placed, ...]:
    """What each cluster has now."""
    group_of = service.candidates.group_of()
    held = service.workload.held
    before = {placement.cluster: placement for placement in held.placed} if held else {}
    result = []
    for name in sorted(service.counts):
        count = service.counts[name]
        earlier = before.get(name)
        stays = earlier is not None and earlier.replicas <= count
        pods = tuple(_of(pod_set, service, name) for pod_set in service.form.pod_sets)
        result.append(
            Placed(
                cluster=name,
                group=group_of.get(name, ""),
                replicas=count,
                pods=pods,
                bound=earlier.bound if earlier is not None and stays else {},
            )
        )
    return tuple(result)


def _of(pod_set: PodSet, service: Service, cluster: str) -> PlacedPods:
    """Pods of a set in a cluster; of a service that shrank it is not known which ones stay."""
    count = pod_set.count * service.counts[cluster]
    known = next((pod for pod in service.pods[cluster] if pod.name == pod_set.name), None)
    if known is not None and known.count == count and known.shape == pod_set.shape:
        return known
    return PlacedPods(
        name=pod_set.name,
        count=count,
        shape=pod_set.shape,
        flavors=service.options[cluster].flavors_of(pod_set.name),
    )
