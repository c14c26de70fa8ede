"""A service while it is placed: replicas and flavors of each cluster, and what may be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.admission import taken_in
from fairway.core.clusters.candidates import (
    Avoided,
    Candidates,
    Closed,
    group_names,
    group_of,
)
from fairway.core.clusters.ranking import is_plain
from fairway.core.clusters.spread import domains
from fairway.core.model import Division, Form, Placed, PlacedPods, PodSet, Policy, Workload
from fairway.core.modes.allocation import placed_of
from fairway.core.modes.copies import carriers, missing_copies
from fairway.core.modes.division import DivisionTally, DivisionTarget, divide, static_weights
from fairway.core.modes.forms import times, together
from fairway.core.modes.ladder import held_form
from fairway.core.modes.restraint import has_made_yield
from fairway.core.nodes import Cluster
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE
from fairway.core.seats import needs_of

ONE = 1_000_000_000  # speed at which a replica counts as one
_UNWELCOME = 1_000_000  # more than all scores together: a cluster that is a last choice


@dataclass(slots=True)
class Service:
    """A service while it is placed: replicas and flavors in each cluster."""

    planning: PlanningRound
    workload: Workload
    form: Form
    policy: Policy
    candidates: Candidates
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Assignment] = field(default_factory=dict)
    pods: dict[str, tuple[PlacedPods, ...]] = field(default_factory=dict)  # by cluster
    bought: dict[str, int] = field(default_factory=dict)  # see `_bought`; computed when needed
    rung: Rung = "Idle"  # the last that gave something; Preempt stays
    scores: Mapping[str, int] = field(default_factory=dict)  # by cluster; empty if all are equal
    # By the clusters that have a copy: the copies that groups lack; computed when needed.
    lacks: dict[frozenset[str], dict[str, int]] = field(default_factory=dict)

    def copy(self) -> Service:
        """The same state, to try what follows from it."""
        twin = replace(self, counts=dict(self.counts), options=dict(self.options))
        twin.pods = dict(self.pods)
        return twin

    @property
    def is_copied(self) -> bool:
        """Whether every cluster gets a copy of all replicas."""
        return self.policy.division.type == "Duplicated"

    @property
    def counts_speed(self) -> bool:
        """Whether a replica counts by the speed of its flavors, rather than as one."""
        return self.policy.division.counts_speed and not self.is_copied

    @property
    def is_bound(self) -> bool:
        """Whether clusters must be divided together: by given weights, or by rules of spread."""
        division = self.policy.division
        return not self.counts_speed and (
            bool(self.policy.spread) or division.type == "StaticWeight"
        )

    @property
    def is_spread(self) -> bool:
        """Whether rules of spread bind it."""
        return self.is_bound and bool(self.policy.spread)

    @property
    def waiting(self) -> int:
        """Replicas that are not placed.

        Of copies, those missing in clusters that have one, and copies that a group lacks.
        """
        if self.counts_speed:
            return -(-(self.workload.replicas * ONE - self.worth(self.counts)) // ONE)
        copies = len(self.counts) + sum(self.missing_copies.values()) if self.is_copied else 1
        least = 0 if self.over else 1
        return self.workload.replicas * max(least, copies) - sum(self.counts.values())

    @property
    def missing_copies(self) -> dict[str, int]:
        """Copies that groups lack, of those that say how many of their clusters carry one.

        If each copy runs to completion, all that the policy asks for are waited for.
        """
        if self.lacking is None:
            return missing_copies(self.counts, self.planning.snapshot.facts.clusters, self.policy)
        return self._lacks()

    @property
    def lacking(self) -> int | None:
        """Copies without a place, if each runs to completion; None for a service."""
        if not (self.is_copied and self.workload.ends):
            return None
        return sum(self._lacks().values())

    def _lacks(self) -> dict[str, int]:
        held = frozenset(self.counts)
        if held not in self.lacks:
            self.lacks[held] = lacking_copies(self)
        return self.lacks[held]

    @property
    def over(self) -> tuple[str, ...]:
        """Clusters of the fleet in which a copy has succeeded: they count as carrying one."""
        if not self.is_copied or not self.workload.copies_over:
            return ()
        known = self.planning.snapshot.facts.clusters
        return tuple(name for name in self.workload.copies_over if name in known)

    @property
    def carried(self) -> dict[str, int]:
        """Replicas by cluster, with those of copies that have succeeded."""
        return {**dict.fromkeys(self.over, self.workload.replicas), **self.counts}

    @property
    def has_too_many(self) -> bool:
        if self.is_copied:
            return any(count > self.workload.replicas for count in self.counts.values())
        return self.surplus() > 0

    @property
    def is_unsettled(self) -> bool:
        """Whether it has fewer or more replicas than it asks for."""
        return self.waiting > 0 or self.has_too_many

    def speed(self, option: Assignment) -> int:
        """How much one replica counts on some flavors; the slowest flavor decides."""
        flavors = self.planning.snapshot.facts.flavors
        speeds = [flavors[name].speed_nanos for name in option.names if name in flavors]
        return max(1, min(speeds, default=ONE)) if self.counts_speed else ONE

    def worth(self, counts: Mapping[str, int]) -> int:
        """How much replicas count together; each counts `ONE` unless speed counts."""
        return sum(count * self.speed(self.options[name]) for name, count in counts.items())

    def shortage(self, option: Assignment) -> int:
        """How many more replicas on some flavors are needed so that none is missing."""
        if not self.counts_speed:
            return self.waiting
        missing = self.workload.replicas * ONE - self.worth(self.counts)
        return max(0, -(-missing // self.speed(option)))

    def surplus(self) -> int:
        """How many replicas can be removed, in the order of division, before one is missing.

        If speed counts, the search goes in leaps: each removes as many as would be too many even if
        all were of the fastest flavor.
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

    def overhang(self) -> int:
        """Replicas beyond the limits of the policy, which division does not count."""
        limits = [self.policy.division.cluster_max]
        limits.extend(group.replicas_max for group in self.policy.groups)
        if self.is_copied or all(limit is None for limit in limits):
            return 0
        return sum(self.counts.values()) - sum(kept_within(self).values())

    def limits_on(self, clusters: Iterable[str]) -> dict[str, Reason]:
        """Those clusters that have as many replicas as the policy allows, each with the limit."""
        most = self.policy.division.cluster_max
        groups = {
            group.name: group.replicas_max
            for group in self.policy.groups
            if group.replicas_max is not None
        }
        if self.is_copied or (most is None and not groups):
            return {}
        in_group: dict[str, int] = {}
        for name, count in self.counts.items():
            group = group_of(name, self.policy) or ""
            in_group[group] = in_group.get(group, 0) + count
        limits: dict[str, Reason] = {}
        for name in clusters:
            group = group_of(name, self.policy) or ""
            if most is not None and self.counts.get(name, 0) >= most:
                limits[name] = Reason(
                    code=Code.REPLICAS_LIMITED, cluster=name, rule="perClusterMax", count=most
                )
            elif group in groups and in_group.get(group, 0) >= groups[group]:
                limits[name] = Reason(
                    code=Code.REPLICAS_LIMITED, group=group, rule="replicasMax", count=groups[group]
                )
        return limits

    def options_of(self, cluster: str) -> list[Assignment]:
        """The flavors to try in a cluster; a cluster that has replicas keeps its flavors."""
        kept = self.options.get(cluster)
        return [kept] if kept is not None else self.planning.assignments(self.workload, self.form)

    def room_for(self, cluster: str, option: Assignment) -> int:
        """How many more replicas fit on the nodes of a cluster."""
        wants = self.planning.wants(cluster, self.request(option))
        return pack.copies(self.planning.ledger.rooms[cluster], wants)

    def request(self, option: Assignment, count: int | None = None) -> PlacementRequest:
        """A request for one replica on some flavors, or for `count` whole replicas."""
        form = self.form if count is None else times(self.form, count)
        return PlacementRequest(self.workload, form, option)

    def quota_for(self, option: Assignment, *, reach: int = ANYWHERE) -> int:
        """How many more replicas the queue allows on some flavors."""
        usage = option.full_usage(self.form)
        is_restrained = self.rung == "Preempt"
        most = self.planning.copies(self.workload, usage, reach=reach, is_restrained=is_restrained)
        return pack.UNLIMITED if most is None else most

    def allowed_in(self, cluster: str, most: int) -> int:
        """How many of `most` more replicas the rules of division allow in a cluster."""
        has = self.counts.get(cluster, 0)
        total = self.workload.replicas if self.is_copied else sum(self.counts.values()) + most
        usable = {cluster: most}
        shares = divide(total, places(self, usable), self.policy, asked=self.workload.replicas)
        return max(0, shares.counts.get(cluster, 0) - has)

    def may_open(self, cluster: str) -> bool:
        """Whether capacity may be made for a cluster.

        Not for a further copy beside others, unless its group says how many copies it has.
        """
        if not self.is_copied or not self.counts or cluster in self.counts:
            return True
        return group_of(cluster, self.policy) in self.missing_copies

    def least_in(self, cluster: str) -> int:
        """The fewest replicas that a cluster can get: one more, or the minimum of a new one."""
        return 1 if cluster in self.counts else max(1, self.policy.division.cluster_min)

    def add(self, cluster: str, count: int, option: Assignment) -> None:
        """Places replicas on the nodes of a cluster."""
        wants = self.planning.wants(cluster, self.request(option, count))
        packed = pack.pack(self.planning.ledger.rooms[cluster], wants)
        assert isinstance(packed, pack.Packed), "what was counted fits"
        self.keep(cluster, count, option, (packed, packed))

    def top_up(self, cluster: str, option: Assignment, *, most: int) -> None:
        """Takes the rest of what victims freed in a cluster: it may be more than a replica."""
        wanted = max(0, min(self.shortage(option), self.quota_for(option)))
        allowed = self.allowed_in(cluster, min(wanted, most))
        more = min(allowed, self.room_for(cluster, option))
        if more > 0:
            self.add(cluster, more, option)

    def keep(
        self,
        cluster: str,
        count: int,
        option: Assignment,
        packed: tuple[pack.Packed, pack.Packed],
    ) -> None:
        """Charges replicas to quota, and their pods on existing nodes to these nodes."""
        whole, on_existing = packed
        each = option.full_usage(self.form)
        usage = {pair: amount * count for pair, amount in each.items()}
        placed = placed_of(self.request(option, count), cluster, "", whole)
        needs, allowance = needs_of(placed), taken_in(cluster, [placed])
        self.planning.take(self.workload, usage, cluster, on_existing.packing, needs, allowance)
        earlier = {pod.name: pod for pod in self.pods.get(cluster, ())}
        self.pods[cluster] = tuple(together(earlier.get(pod.name), pod) for pod in placed.pods)
        if cluster not in self.counts:
            self.planning.hold(cluster)
        self.counts[cluster] = self.counts.get(cluster, 0) + count
        self.options[cluster] = option


def service_of(planning: PlanningRound, workload: Workload, form: Form | None = None) -> Service:
    """The current state of a service; `form` is for a service that holds nothing yet."""
    policy, candidates = planning.snapshot.policy(workload), planning.candidates(workload)
    service = Service(planning, workload, form or held_form(workload), policy, candidates)
    if not is_plain(policy.scores):
        ranked = planning.rank(candidates.allowed, workload, policy)
        service.scores = {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}
    if has_made_yield(workload):
        service.rung = "Preempt"
    _read_held(service)
    return service


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


def places(service: Service, usable: Mapping[str, int]) -> list[DivisionTarget]:
    """Every cluster that has replicas or may get some, as a target of division."""
    group_of = service.candidates.group_of()
    carried = service.carried
    names = sorted({*carried, *usable})
    weights = _weights(service.policy.division, group_of, names)
    clusters = service.planning.snapshot.facts.clusters
    unwelcome = service.candidates.unwelcome
    return [
        DivisionTarget(
            cluster=name,
            group=group_of.get(name, ""),
            available=usable.get(name, 0),
            assigned=carried.get(name, 0),
            bought=_bought(service, name) if service.counts.get(name) else 0,
            is_usable=name in group_of,
            weight=weights[name],
            score=service.scores.get(name, 0) - (_UNWELCOME if name in unwelcome else 0),
            domains=domains(clusters[name], service.policy.spread) if name in clusters else (),
        )
        for name in names
    ]


def lacking_copies(service: Service) -> dict[str, int]:
    """The copies that the policy asks for, wherever there is room, and that have no place yet.

    A cluster that is closed, or avoided for a while, is waited for; one with a taint that is not
    tolerated is not. By group, without zeros.
    """
    clusters = service.planning.snapshot.facts.clusters
    awaited = (
        name
        for name, refusal in service.candidates.refused
        if isinstance(refusal, Avoided)
        or (isinstance(refusal, Closed) and clusters[name].is_member)
    )
    held = service.carried
    asked = (*service.candidates.allowed, *awaited)
    room = {name: service.workload.replicas for name in asked if name not in held}
    shares = divide(service.workload.replicas, places(service, room), service.policy)
    if shares.unmet:
        return {group_names(service.policy)[0]: 1}
    return dict(
        Counter(group_of(name, service.policy) or "" for name in shares.counts if name in room)
    )


def _weights(
    division: Division, group_of: Mapping[str, str], names: Iterable[str]
) -> dict[str, int]:
    """Given weights, group by group: they do not depend on which clusters a step looks at."""
    members: dict[str, set[str]] = {}
    for name in {*group_of, *names}:
        members.setdefault(group_of.get(name, ""), set()).add(name)
    return {
        name: weight
        for some in members.values()
        for name, weight in static_weights(division, some).items()
    }


def _bought(service: Service, cluster: str) -> int:
    """How many of the replicas held in a cluster use, or wait for, nodes of elastic pools."""
    if cluster not in service.bought:
        held, count = service.workload.held, 0
        place = service.planning.snapshot.facts.clusters.get(cluster)
        if (
            held is not None
            and place is not None
            and (place.nodes.bought is not None or place.pools)
        ):
            replicas = sum(item.replicas for item in held.placed if item.cluster == cluster)
            count = replicas - min(
                _on_owned_nodes(service, place, pod_set) // max(1, pod_set.count)
                for pod_set in service.form.pod_sets
            )
        service.bought[cluster] = max(0, count)
    return service.bought[cluster]


def _on_owned_nodes(service: Service, place: Cluster, pod_set: PodSet) -> int:
    """Pods of a set on nodes that are not of elastic pools.

    A pod that is waited for is assumed on a full node: it waits for a new one.
    """
    planning = service.planning
    packing = planning.snapshot.packings.get((service.workload.key, place.name), {})
    bought, free = place.nodes.bought, planning.ledger.rooms[place.name].free
    pods = 0
    for position, count in packing.get(pod_set.name, {}).items():
        if bought is None or not bought[position]:
            excess = [
                -(int(free[resource][position]) // amount)
                for resource, amount in pod_set.shape.requests
                if resource in free and amount
            ]
            pods += max(0, count - max([0, *excess]))
    return pods


def kept_within(service: Service) -> dict[str, int]:
    """The replicas in each cluster, less those beyond the limits of the policy."""
    board = DivisionTally(places(service, {}), service.policy)
    board.keep(sum(service.carried.values()))
    if service.is_copied:
        carrying = {place.cluster for place in carriers(board.places, service.policy)}
        return {
            name: board.counts[name] if name in carrying else 0 for name in sorted(service.counts)
        }
    return board.counts


def placements(service: Service) -> tuple[Placed, ...]:
    """The placements of a service as they are now."""
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
    """The pods of a set in a cluster; after scale-in it is not known which ones stay."""
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
