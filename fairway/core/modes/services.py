"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: idle room in a group is divided by the policy's rules,
then victims or new nodes make room for more, then the next group. Scale-in takes from the last
group first. What a service holds stays where it is unless its number or its places change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.reasons import Code, Reason
from fairway.core.desk import Desk
from fairway.core.dividing.division import Place, divide, static_weights
from fairway.core.fitting import fit
from fairway.core.making_room.preemption import Victims, find_victims
from fairway.core.making_room.provisioning import Provisioned, find_pool
from fairway.core.model import Form, Placed, PlacedPods, Policy, Workload
from fairway.core.modes.gangs import Verdict, evict, full_usage
from fairway.core.modes.multiples import times
from fairway.core.places import where
from fairway.core.places.spread import domains
from fairway.core.refusals import refusal_reason
from fairway.core.steps import Admit, Provision
from fairway.core.turns.flavors import Assignment


@dataclass(slots=True)
class Service:
    """A service while it is being placed: replicas and flavors of each cluster."""

    desk: Desk
    workload: Workload
    form: Form
    policy: Policy
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Assignment] = field(default_factory=dict)
    waits_for: list[str] = field(default_factory=list)  # victims that must be gone first

    @property
    def waiting(self) -> int:
        return self.workload.replicas - sum(self.counts.values())

    def options_of(self, cluster: str) -> list[Assignment]:
        """The flavors to try in a cluster; one that has replicas keeps its flavors."""
        kept = self.options.get(cluster)
        return [kept] if kept is not None else self.desk.assignments(self.workload, self.form)

    def room_for(self, cluster: str, option: Assignment) -> int:
        """How many more replicas fit in a cluster, as far as nodes go."""
        wants = self.desk.wants(cluster, option, self.form)
        room = self.desk.ledger.rooms[cluster]
        return fit.copies(room, wants)

    def quota_for(self, option: Assignment) -> int:
        """How many more replicas the queue allows on some flavors."""
        most = self.desk.copies(self.workload, full_usage(self.form, option))
        return self.waiting if most is None else most

    def victims(self, cluster: str, option: Assignment) -> Victims | None:
        """Who would have to yield for one more replica."""
        if not self.desk.user_may_have(self.workload, full_usage(self.form, option)):
            return None
        return find_victims(self.desk, self.workload, self.form, option, cluster)

    def pool_for(
        self, cluster: str, option: Assignment, most: int
    ) -> tuple[int, Provisioned] | None:
        """The most replicas that new nodes of a pool can hold, and those nodes."""
        best: tuple[int, Provisioned] | None = None
        low, high = 1, most
        while low <= high:
            middle = (low + high) // 2
            form = times(self.form, middle)
            found = find_pool(self.desk, self.workload, form, option, cluster)
            if isinstance(found, Provisioned):
                best, low = (middle, found), middle + 1
            else:
                high = middle - 1
        return best

    def add(self, cluster: str, count: int, option: Assignment) -> None:
        """Places replicas on the nodes of a cluster."""
        wants = self.desk.wants(cluster, option, times(self.form, count))
        packed = fit.pack(self.desk.ledger.rooms[cluster], wants)
        assert isinstance(packed, fit.Packed), "what was counted fits"
        self.keep(cluster, count, option, packed)

    def keep(self, cluster: str, count: int, option: Assignment, packed: fit.Packed) -> None:
        """Charges replicas to the queue and to the nodes they are on."""
        usage = {pair: amount * count for pair, amount in full_usage(self.form, option).items()}
        self.desk.charge(self.workload, usage)
        requests = {one.name: one.shape.requests for one in self.form.pod_sets}
        self.desk.ledger.take(cluster, packed.packing, requests)
        self.counts[cluster] = self.counts.get(cluster, 0) + count
        self.options[cluster] = option


def decide(desk: Desk, workload: Workload) -> Verdict:
    """Divides what a service lacks; what it takes stays charged in the ledger."""
    verdict = Verdict()
    form = workload.forms[0]
    service = Service(desk, workload, form, desk.snapshot.policy(workload))
    read_held(service)
    before = dict(service.counts)
    candidates = desk.candidates(workload)
    verdict.reasons.extend(refusal_reason(*one) for one in candidates.refused)
    if service.waiting < 0:
        _scale_in(service, candidates)
    elif service.waiting > 0:
        _grow(service, candidates, verdict)
    if service.counts != before:
        placed = placements(service, candidates.group_of())
        verdict.steps.append(
            Admit(workload=workload.key, placed=placed, waits_for=tuple(service.waits_for))
        )
    if service.waiting > 0:
        verdict.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        verdict.reasons.clear()
    return verdict


def read_held(service: Service) -> None:
    held = service.workload.held
    for placed in held.placed if held else ():
        service.counts[placed.cluster] = placed.replicas
        flavors = {pods.name: dict(pods.flavors) for pods in placed.pods}
        names = sorted({flavor for one in flavors.values() for flavor in one.values() if flavor})
        service.options[placed.cluster] = Assignment(flavors=flavors, names=tuple(names))


def _grow(service: Service, candidates: where.Candidates, verdict: Verdict) -> None:
    groups = tuple(name for name, _ in candidates.groups)
    for group, rung in where.ladder(service.policy, groups):
        names = candidates.in_group(group)
        if service.waiting <= 0 or not names:
            continue
        match rung:
            case "Idle":
                _fill(service, group, names, candidates)
            case "Preempt":
                _preempt(service, names, verdict)
            case "Provision":
                _provision(service, names, verdict)
    if service.waiting > 0 and not service.desk.assignments(service.workload, service.form):
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=service.workload.queue))


def _fill(
    service: Service, group: str, names: tuple[str, ...], candidates: where.Candidates
) -> None:
    """Divides as many replicas as fit over the idle room of a group, flavor by flavor."""
    tried: list[Assignment] = []
    for name in names:
        tried.extend(one for one in service.options_of(name) if one not in tried)
    for option in tried:
        target = service.workload.replicas - max(0, service.waiting - service.quota_for(option))
        usable = {
            name: service.room_for(name, option)
            for name in names
            if option in service.options_of(name)
        }
        if target <= sum(service.counts.values()) or not any(usable.values()):
            continue
        shares = divide(target, places(service, candidates, usable), service.policy)
        for name in names:
            more = shares.counts.get(name, 0) - service.counts.get(name, 0)
            # Copies in every cluster are more than the number that quota was asked for.
            more = min(more, usable.get(name, 0), service.quota_for(option))
            if more > 0:
                service.add(name, more, option)


def _preempt(service: Service, names: tuple[str, ...], verdict: Verdict) -> None:
    """Makes room replica by replica, each time where it does the least harm."""
    while service.waiting > 0:
        found = [
            victims
            for name in names
            for option in service.options_of(name)
            if (victims := service.victims(name, option)) is not None
        ]
        if not found:
            return
        best = min(found, key=lambda one: one.harm)
        evict(service.desk, service.workload, best, verdict)
        service.waits_for.extend(one.key for one in best.victims)
        service.add(best.cluster, 1, best.assignment)


def _provision(service: Service, names: tuple[str, ...], verdict: Verdict) -> None:
    """Asks elastic pools for as many replicas as they can still hold."""
    for name in names:
        for option in service.options_of(name):
            count = min(service.waiting, service.quota_for(option))
            found = service.pool_for(name, option, count)
            if found is None:
                continue
            replicas, nodes = found
            service.desk.ledger.provision(name, nodes.pool, nodes.count)
            verdict.steps.append(
                Provision(
                    workload=service.workload.key, cluster=name, pool=nodes.pool, count=nodes.count
                )
            )
            service.keep(name, replicas, option, nodes.on_existing)
            break  # one set of flavors in a cluster


def places(
    service: Service, candidates: where.Candidates, usable: Mapping[str, int]
) -> list[Place]:
    """Every cluster that has replicas or may get some, as division sees it."""
    group_of = candidates.group_of()
    names = sorted({*service.counts, *usable})
    weights = static_weights(service.policy.division, names)
    clusters = service.desk.snapshot.facts.clusters
    return [
        Place(
            cluster=name,
            group=group_of.get(name, ""),
            available=usable.get(name, 0),
            assigned=service.counts.get(name, 0),
            weight=weights[name],
            domains=domains(clusters[name], service.policy.spread) if name in clusters else (),
        )
        for name in names
    ]


def _scale_in(service: Service, candidates: where.Candidates) -> None:
    present = places(service, candidates, {})
    shares = divide(service.workload.replicas, present, service.policy)
    for name in list(service.counts):
        count = shares.counts.get(name, 0)
        if count:
            service.counts[name] = count
        else:
            del service.counts[name]


def placements(service: Service, group_of: Mapping[str, str]) -> tuple[Placed, ...]:
    return tuple(
        Placed(
            cluster=name,
            group=group_of.get(name, ""),
            replicas=service.counts[name],
            pods=tuple(
                PlacedPods(
                    name=one.name,
                    count=one.count * service.counts[name],
                    shape=one.shape,
                    flavors=service.options[name].flavors_of(one.name),
                )
                for one in service.form.pod_sets
            ),
        )
        for name in sorted(service.counts)
        if service.counts[name]
    )
