"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: idle room in a group is divided by the policy's rules,
then the next group. Scale-in takes from the last group first. What a service holds stays where it
is unless its number or its places change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fairway.api.reasons import Code, Reason
from fairway.core import fit, where
from fairway.core.desk import Desk
from fairway.core.division import Place, divide, static_weights
from fairway.core.flavors import Assignment
from fairway.core.gangs import Verdict, full_usage, refusal_reason
from fairway.core.model import Form, Placed, PlacedPods, Policy, Workload
from fairway.core.spread import domains
from fairway.core.steps import Admit


@dataclass(slots=True)
class _Service:
    """A service while it is being placed: replicas and flavors of each cluster."""

    desk: Desk
    workload: Workload
    form: Form
    policy: Policy
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Assignment] = field(default_factory=dict)

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

    def add(self, cluster: str, count: int, option: Assignment) -> None:
        """Places replicas in a cluster, in the ledger as well."""
        wants = [
            replace(one, count=one.count * count)
            for one in self.desk.wants(cluster, option, self.form)
        ]
        packed = fit.pack(self.desk.ledger.rooms[cluster], wants)
        assert isinstance(packed, fit.Packed), "what was counted fits"
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
    service = _Service(desk, workload, form, desk.snapshot.policy(workload))
    _read_held(service)
    before = dict(service.counts)
    candidates = desk.candidates(workload)
    verdict.reasons.extend(refusal_reason(*one) for one in candidates.refused)
    if service.waiting < 0:
        _scale_in(service, candidates)
    elif service.waiting > 0:
        _grow(service, candidates, verdict)
    if service.counts != before:
        placed = _placements(service, candidates.group_of())
        verdict.steps.append(Admit(workload=workload.key, placed=placed))
    if service.waiting > 0:
        verdict.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        verdict.reasons.clear()
    return verdict


def _read_held(service: _Service) -> None:
    held = service.workload.held
    for placed in held.placed if held else ():
        service.counts[placed.cluster] = placed.replicas
        flavors = {pods.name: dict(pods.flavors) for pods in placed.pods}
        names = sorted({flavor for one in flavors.values() for flavor in one.values() if flavor})
        service.options[placed.cluster] = Assignment(flavors=flavors, names=tuple(names))


def _grow(service: _Service, candidates: where.Candidates, verdict: Verdict) -> None:
    groups = tuple(name for name, _ in candidates.groups)
    for group, rung in where.ladder(service.policy, groups):
        names = candidates.in_group(group)
        if service.waiting <= 0 or not names:
            continue
        if rung == "Idle":
            _fill(service, group, names, candidates)
    if service.waiting > 0 and not service.desk.assignments(service.workload, service.form):
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=service.workload.queue))


def _fill(
    service: _Service, group: str, names: tuple[str, ...], candidates: where.Candidates
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
        shares = divide(target, _places(service, candidates, usable), service.policy)
        for name in names:
            more = shares.counts.get(name, 0) - service.counts.get(name, 0)
            if more > 0:
                service.add(name, min(more, usable.get(name, 0)), option)


def _places(
    service: _Service, candidates: where.Candidates, usable: Mapping[str, int]
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


def _scale_in(service: _Service, candidates: where.Candidates) -> None:
    places = _places(service, candidates, {})
    shares = divide(service.workload.replicas, places, service.policy)
    for name in list(service.counts):
        count = shares.counts.get(name, 0)
        if count:
            service.counts[name] = count
        else:
            del service.counts[name]


def _placements(service: _Service, group_of: Mapping[str, str]) -> tuple[Placed, ...]:
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
