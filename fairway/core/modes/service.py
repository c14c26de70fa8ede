"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: idle room in a group is divided by the policy's rules,
then victims or new nodes make room for more, then the next group. Scale-in takes from the last
group first. What a service holds stays where it is unless its number or its places change.

Copies (a Duplicated division) go to every cluster that may have them and has room for a replica. A
copy that is not whole waits for the rest of it, by every rung; another cluster is opened as soon as
it has idle room, but nobody yields and no node is bought for that once there is a copy somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import Candidates, ladder
from fairway.core.clusters.ranking import is_plain
from fairway.core.clusters.spread import domains
from fairway.core.explain.reasons import (
    kept_reason,
    no_pool,
    no_room,
    quota_reason,
    refusal_reason,
)
from fairway.core.model import Form, Placed, PlacedPods, PodSet, Policy, Workload
from fairway.core.modes.division import DivisionTarget, divide, static_weights
from fairway.core.modes.forms import full_usage, times, together
from fairway.core.modes.gang import Outcome, evict, placed_of
from fairway.core.modes.restraint import are_of_others, has_made_yield, is_peaceful
from fairway.core.packing import pack
from fairway.core.plan import Admit, Provision
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.provisioning.pools import Provisioned, find_pool
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
        wants = self.planning.wants(cluster, option, self.form)
        room = self.planning.ledger.rooms[cluster]
        return pack.copies(room, wants)

    def quota_for(self, option: Assignment) -> int:
        """How many more replicas the queue allows on some flavors."""
        may_borrow = self.rung != "Preempt"
        usage = full_usage(self.form, option)
        most = self.planning.copies(self.workload, usage, may_borrow=may_borrow)
        return pack.UNLIMITED if most is None else most

    def allowed_in(self, cluster: str, most: int) -> int:
        """How many of so many more the rules of division allow in a cluster, beside all others."""
        has = self.counts.get(cluster, 0)
        total = self.workload.replicas if self.is_copied else sum(self.counts.values()) + most
        shares = divide(total, places(self, {cluster: most}), self.policy)
        return max(0, shares.counts.get(cluster, 0) - has)

    def victims(self, cluster: str, option: Assignment) -> tuple[int, Victims] | None:
        """Who would have to yield for one more replica, or for as many as a cluster opens with."""
        least = 1 if cluster in self.counts else max(1, self.policy.division.cluster_min)
        if least > self.lacking(option) or self.allowed_in(cluster, least) < least:
            return None
        form = times(self.form, least)
        if not self.planning.user_may_have(self.workload, full_usage(form, option)):
            return None
        result = find_victims(self.planning, self.workload, form, option, cluster)
        if result is None or not is_peaceful(
            self.planning, self.workload, placements(self), result
        ):
            return None
        return least, result

    def pool_for(self, cluster: str, option: Assignment) -> tuple[int, Provisioned] | Reason:
        """The most replicas that new nodes of a pool can hold, and those nodes."""
        best: tuple[int, Provisioned] | Reason = no_pool(cluster)
        low, high = 1, self.allowed_in(cluster, min(self.lacking(option), self.quota_for(option)))
        while low <= high:
            middle = (low + high) // 2
            form = times(self.form, middle)
            provisioned = find_pool(self.planning, self.workload, form, option, cluster)
            if isinstance(provisioned, Provisioned):
                best, low = (middle, provisioned), middle + 1
            else:
                high = middle - 1
                best = provisioned if isinstance(best, Reason) else best
        if isinstance(best, tuple) and self.allowed_in(cluster, best[0]) < best[0]:
            return no_pool(cluster)  # fewer than a cluster opens with
        return best

    def add(self, cluster: str, count: int, option: Assignment) -> None:
        """Places replicas on the nodes of a cluster."""
        wants = self.planning.wants(cluster, option, times(self.form, count))
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
        usage = {pair: amount * count for pair, amount in full_usage(self.form, option).items()}
        requests = {pod_set.name: pod_set.shape.requests for pod_set in self.form.pod_sets}
        self.planning.take(self.workload, usage, cluster, on_existing.packing, requests)
        earlier = {pod.name: pod for pod in self.pods.get(cluster, ())}
        placed = placed_of(cluster, "", times(self.form, count), option, whole)
        self.pods[cluster] = tuple(together(earlier.get(pod.name), pod) for pod in placed.pods)
        if cluster not in self.counts:
            self.planning.hold(cluster)
        self.counts[cluster] = self.counts.get(cluster, 0) + count
        self.options[cluster] = option


def service_of(planning: PlanningRound, workload: Workload) -> Service:
    """A service as it stands."""
    policy, candidates = planning.snapshot.policy(workload), planning.candidates(workload)
    service = Service(planning, workload, workload.forms[0], policy, candidates)
    if not is_plain(policy.scores):
        ranked = planning.ranked(candidates.allowed, workload, policy)
        service.scores = {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}
    if has_made_yield(workload):
        service.rung = "Preempt"
    _read_held(service)
    return service


def decide(planning: PlanningRound, workload: Workload) -> Outcome:
    """Divides what a service lacks; what it takes stays charged in the ledger."""
    verdict = Outcome()
    service = service_of(planning, workload)
    before = dict(service.counts)
    verdict.reasons.extend(refusal_reason(*pair) for pair in service.candidates.refused)
    if service.has_too_many:
        _scale_in(service)
    elif service.waiting > 0 or service.is_copied:
        _grow(service, verdict)
    if service.counts != before:
        verdict.steps.append(
            Admit(
                workload=workload.key,
                placed=placements(service),
                rung=service.rung,
            )
        )
    if service.waiting > 0:
        verdict.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        verdict.reasons.clear()
    return verdict


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


def _grow(service: Service, verdict: Outcome) -> None:
    if not service.planning.assignments(service.workload, service.form):
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=service.workload.queue))
    groups = tuple(name for name, _ in service.candidates.groups)
    for group, rung in ladder(service.policy, groups):
        names = service.candidates.in_group(group)
        if names and (service.waiting > 0 or (rung == "Idle" and service.is_copied)):
            stopped = service.planning.stopped_by(rung)
            if stopped is not None:
                verdict.reasons.append(stopped)
            else:
                _RUNGS[rung](service, group, names, verdict)


def _fill(service: Service, group: str, names: tuple[str, ...], verdict: Outcome) -> None:
    """Divides as many replicas as fit over the idle room of a group, flavor by flavor."""
    tried: list[Assignment] = []
    for name in names:
        tried.extend(option for option in service.options_of(name) if option not in tried)
    for option in tried:
        target = service.workload.replicas
        if not service.is_copied:
            lacks = min(service.lacking(option), max(0, service.quota_for(option)))
            target = sum(service.counts.values()) + lacks
        usable = {
            name: service.room_for(name, option)
            for name in names
            if option in service.options_of(name)
        }
        is_wanted = service.is_copied or target > sum(service.counts.values())
        if is_wanted and any(usable.values()):
            shares = divide(target, places(service, usable), service.policy)
            for name in names:
                more = shares.counts.get(name, 0) - service.counts.get(name, 0)
                # Copies in every cluster are more than the number that quota was asked for.
                more = min(more, usable.get(name, 0), service.quota_for(option))
                if more > 0:
                    service.add(name, more, option)
        if service.waiting > 0:
            verdict.reasons.extend(_why_not_idle(service, group, sorted(usable), option))


def _why_not_idle(
    service: Service, group: str, names: list[str], option: Assignment
) -> Iterator[Reason]:
    """What keeps the replicas that wait from idle room: quota, somebody's place, or no room."""
    planning, workload, form = service.planning, service.workload, service.form
    quota = quota_reason(planning, workload, full_usage(form, option), option)
    if quota is not None:
        yield quota
        return
    for name in names:
        if service.room_for(name, option):
            continue  # it is rules of division that keep them from here
        kept = kept_reason(planning, workload, form, option, (group, name))
        pods = form.pod_sets[0]
        flavor, count = ",".join(option.names), pods.count * service.waiting
        yield kept or no_room(name, group, flavor, pods.name, count)


def _preempt(service: Service, group: str, names: tuple[str, ...], verdict: Outcome) -> None:
    """Makes room replica by replica, each time where it does the least harm."""
    while service.waiting > 0:
        result = [
            victims
            for name in names
            for option in service.options_of(name)
            if (victims := service.victims(name, option)) is not None
        ]
        if not result:
            verdict.reasons.extend(service.planning.no_victims(group, names))
            return
        count, best = min(result, key=lambda pair: (pair[1].harm, pair[0]))
        evict(service.planning, service.workload, best, verdict)
        if are_of_others(best):
            service.rung = "Preempt"
        service.add(best.cluster, count, best.assignment)
        service.top_up(best.cluster, best.assignment)


def _provision(service: Service, group: str, names: tuple[str, ...], verdict: Outcome) -> None:
    """Asks elastic pools for as many replicas as they can still hold."""
    del group  # pools are the same for all
    for name in names:
        for option in service.options_of(name):
            if service.waiting <= 0:
                return
            result = service.pool_for(name, option)
            if isinstance(result, Reason):
                verdict.reasons.append(result)
                continue
            replicas, nodes = result
            service.planning.ledger.provision(name, nodes.pool, nodes.count)
            verdict.steps.append(
                Provision(
                    workload=service.workload.key, cluster=name, pool=nodes.pool, count=nodes.count
                )
            )
            service.keep(name, replicas, option, (nodes.packed, nodes.on_existing))
            if service.rung != "Preempt":
                service.rung = "Provision"
            break  # one set of flavors in a cluster


_RUNGS = {"Idle": _fill, "Preempt": _preempt, "Provision": _provision}


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
