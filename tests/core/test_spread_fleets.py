"""Random fleets with a gang and a service: victims, spread and division agree with brute force.

In two of three fleets a gang goes first, in the same plan. Holders are of three queues, with
priorities, sizes and ages of their own, and some leave already: those that yield to the gang have
the least harmful key of all sets (`preemption_oracle`), and nobody yields where it starts as things
are. Then an exhaustive search over all counts judges the service: what idle room can hold within
the rules starts, and is divided as its weights say among all legal counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import Form, Placed, Policy, Shape, Workload
from fairway.core.plan import Admit, Plan, Preempt, Provision
from fairway.core.snapshot import Facts, Settings, Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import GPU, H100, NOW, Plain, cluster, leaving, policy, pool, queue, workload
from tests.core.preemption_oracle import Harm, World, best_victims, books, harm_of, starts
from tests.properties.checks import IS_LONG, seed

REGION = "topology.kubernetes.io/region"
Counts = Mapping[str, int]


# Fleets.


def rule(random_: random.Random) -> Plain:
    least = random_.randint(1, 3)
    made: Plain = {"by": random_.choice(("Cluster", "Region")), "least": least}
    if random_.random() < 0.4:
        made["most"] = least + random_.randint(0, 2)
    if random_.random() < 0.5:
        made["skew"] = random_.randint(1, 2)
    return made


def division(random_: random.Random, names: str) -> Plain:
    made: Plain = {"type": random_.choice(("Aggregated", "DynamicWeight", "StaticWeight"))}
    if random_.random() < 0.2:
        made["perClusterMax"] = random_.randint(1, 3)
    if made["type"] == "StaticWeight" and random_.random() < 0.7:
        made["weights"] = [
            {"selector": {"names": [name]}, "weight": random_.randint(1, 4)}
            for name in random_.sample(names, random_.randint(2, len(names)))
        ]
    return made


def holders(random_: random.Random, name: str, gpus: int) -> Iterator[Plain]:
    """Workloads that run in a cluster, or leave it, as long as there is room for them."""
    for number in range(random_.randint(0, 2)):
        count = random_.randint(1, 2)
        if count > gpus:
            return
        gpus -= count
        made = workload(
            f"{name}{number}",
            random_.choice("bbbcq"),
            count=count,
            running=name,
            priority=random_.choice((-3, 0, 1, 2, 7)),
            since=random_.choice((60, 600, 7200, 36000)),
        )
        yield leaving(made) if random_.random() < 0.1 else made


def objects(random_: random.Random) -> list[Plain]:
    """Three to five clusters of one node, some full, some with new nodes; and a service."""
    names = "abcde"[: random_.randint(3, 5)]
    rules = {"reclaim": "Any", "withinQueue": random_.choice(("Never", "LowerPriority"))}
    made = [
        queue("root"),
        queue("q", random_.randint(3, 12), parent="root", preemption=rules),
        queue("b", 0, parent="root", weight=random_.choice((1, 1, 2))),
        queue("c", random_.randint(0, 2), parent="root", preemption={"reclaim": "Any"}),
    ]
    has_pools = random_.random() < 0.3
    for name in names:
        gpus = random_.randint(1, 4)
        is_elastic = has_pools and random_.random() < 0.5
        pools = [pool("n", 1, stock=random_.randint(1, 2))] if is_elastic else []
        made.append(cluster(name, gpus, labels={REGION: random_.choice("xyz")}, pools=pools))
        made += holders(random_, name, gpus)
    cut = random_.randint(1, len(names))
    groups = [names[:cut], names[cut:]] if random_.random() < 0.4 and cut < len(names) else []
    spread = [rule(random_) for _ in range(random_.randint(0, 2))]
    made.append(policy("p", *groups, spread=spread, division=division(random_, names)))
    replicas = random_.choice((1, 1, 2, 3, 4, 5, 6, 7))
    made.append(workload("s", "q", mode="Divided", replicas=replicas, policy="p"))
    return made


def gang(random_: random.Random) -> Plain:
    """A gang that goes before the service; clusters have one node, so how it is packed is clear."""
    count = random_.randint(1, 4)
    least = {"leastCount": random_.randint(1, count)} if random_.random() < 0.3 else {}
    return workload("g", "q", count=count, priority=5, **least)


# Those that yield, by the whole key.


def gpus_only(item: Workload) -> Workload:
    """The same workload without its CPUs, which have no quota and are never short."""

    def part(placed: Placed) -> Placed:
        pods = tuple(
            replace(each, shape=gpus_of(each.shape), flavors=((GPU, "h100"),))
            for each in placed.pods
        )
        return replace(placed, pods=pods, bound={each.name: {0: each.count} for each in pods})

    form = item.forms[0]
    sets = tuple(replace(each, shape=gpus_of(each.shape)) for each in form.pod_sets)
    held = item.held and replace(item.held, placed=tuple(map(part, item.held.placed)))
    releasing = tuple(map(part, item.releasing))
    return replace(item, forms=(Form(pod_sets=sets),), held=held, releasing=releasing)


def gpus_of(shape: Shape) -> Shape:
    return Shape(requests=tuple(each for each in shape.requests if each[0] == GPU))


def world_of(facts: Facts, key: str, count: int) -> World:
    """The fleet as brute force sees it, with one that comes with so many pods."""
    plain = [gpus_only(each) for each in facts.workloads.values()]
    comes = next(each for each in plain if each.key == key)
    pods = replace(comes.forms[0].pod_sets[0], count=count, least=count)
    queues, pair = facts.queues, ("h100", GPU)
    return World(
        now=facts.now,
        parents={name: each.parent for name, each in queues.items()},
        nominal={
            name: {pair: each.quotas[pair].nominal // 1000 if pair in each.quotas else 0}
            for name, each in queues.items()
        },
        limits=dict.fromkeys(queues),
        lends=dict.fromkeys(queues),
        weights={name: each.weight_nanos // 1_000_000_000 for name, each in queues.items()},
        rules={name: each.preemption for name, each in queues.items()},
        minimum=dict.fromkeys(queues, (0, 0)),
        remembered={name: {} for name in queues},
        nodes={
            name: [{GPU: int(each.nodes.capacity[GPU][0]) // 1000}]
            for name, each in facts.clusters.items()
        },
        flavor="h100",
        holders=[each for each in plain if each.held],
        leaving=[each for each in plain if each.releasing],
        comes=replace(comes, forms=(Form(pod_sets=(pods,)),)),
        fair=True,
        tests=Settings().preemption_tests,
    )


@dataclass(frozen=True)
class Verdict:
    """With how many pods one starts, and the harm of those that yield to it."""

    count: int = 0
    harm: Harm | None = None


def verdict(facts: Facts, key: str, sizes: Sequence[int], clusters: Sequence[str]) -> Verdict:
    """What becomes of one that waits, without new nodes: the largest size that can start."""
    for count in sizes:
        world = world_of(facts, key, count)
        everybody = [*world.holders, *world.leaving]
        if any(starts(world, name, everybody) for name in clusters):
            return Verdict(count)
        offers = [best for name in clusters if (best := best_victims(world, name)) is not None]
        if offers:
            best = min(offers, key=lambda chosen: price_of(world, chosen))
            return Verdict(count, harm_of(world, best) if best else None)
    return Verdict()


def price_of(world: World, chosen: Sequence[Workload]) -> tuple[object, ...]:
    """The order of clusters: nobody yields, quota is only reclaimed, nothing borrowed, the key."""
    pairs = list(world.nominal["q"])
    staying = [each for each in world.holders if each not in chosen]
    is_within = books(world, *staying, world.comes).is_within("q", pairs)
    is_reclaimed = is_within and all(each.queue != "q" for each in chosen)
    mode = 0 if not chosen else 1 if is_reclaimed else 2
    return (mode, not is_within, harm_of(world, chosen))


def outcome(facts: Facts, result: Plan, key: str) -> Verdict:
    """What the plan does with one that waits."""
    steps = part_of(result, key).steps
    count = sum(
        pods.count
        for step in steps
        if isinstance(step, Admit)
        for placed in step.placed
        for pods in placed.pods
    )
    keys = {step.workload for step in steps if isinstance(step, Preempt)}
    if not keys:
        return Verdict(count)
    world = world_of(facts, key, count)
    return Verdict(count, harm_of(world, [each for each in world.holders if each.key in keys]))


def part_of(result: Plan, key: str) -> Plan:
    """The steps for one workload."""
    steps = tuple(
        step
        for step in result.steps
        if (step.for_ if isinstance(step, Preempt) else step.workload) == key
    )
    return replace(result, steps=steps, reservations=())


def wrong_victims(
    facts: Facts, result: Plan, key: str, sizes: Sequence[int], clusters: Sequence[str]
) -> Iterator[str]:
    """What is wrong with those that yield; new nodes are the last resort before a gang shrinks."""
    actual = outcome(facts, result, key)
    if any(isinstance(step, Provision) for step in part_of(result, key).steps):
        if verdict(facts, key, sizes[:1], clusters) != Verdict():
            yield f"{key} gets new nodes, which it does not need"
        return
    expected = verdict(facts, key, sizes, clusters)
    if actual != expected:
        yield f"{key}: {actual}, not {expected}"


# The counts of the service.


@dataclass(frozen=True)
class Service:
    """The service and its rules, before it is divided."""

    facts: Facts

    @cached_property
    def policy(self) -> Policy:
        return self.facts.policies["fairway-system/p"]

    @cached_property
    def replicas(self) -> int:
        return self.facts.workloads["team/s"].replicas

    @cached_property
    def names(self) -> list[str]:
        return sorted(self.facts.clusters)

    @cached_property
    def domains(self) -> list[dict[str, str]]:
        """For each rule of spread, the domain of each cluster."""
        return [
            {
                name: name if spread.by == "Cluster" else each.labels[REGION]
                for name, each in self.facts.clusters.items()
            }
            for spread in self.policy.spread
        ]

    @cached_property
    def group_of(self) -> dict[str, str]:
        return {
            name: next(
                (
                    group.name
                    for group in self.policy.groups
                    if group.clusters is None or name in group.clusters
                ),
                "",
            )
            for name in self.names
        }

    @cached_property
    def is_one_pod(self) -> bool:
        """Whether nothing but victims decides where it goes: then it is a gang of one pod."""
        return self.replicas == 1 and not (
            self.policy.groups or self.policy.spread or self.policy.division.type == "StaticWeight"
        )

    @cached_property
    def rooms(self) -> dict[str, int]:
        """Idle GPUs of each cluster."""
        ledger = Snapshot(self.facts).ledger
        return {
            name: max(0, int(room.free[GPU].sum()) // 1000) for name, room in ledger.rooms.items()
        }

    @cached_property
    def seats(self) -> dict[str, int]:
        """The most that each cluster may get."""
        most = self.policy.division.cluster_max
        return {
            name: room if most is None else min(room, most) for name, room in self.rooms.items()
        }

    @cached_property
    def weights(self) -> dict[str, int]:
        """Given weights, equal in a group that has none; or what each cluster may get."""
        if self.policy.division.type != "StaticWeight":
            return self.seats
        given = dict.fromkeys(self.names, 0)
        for clusters, weight in self.policy.division.weights:
            given |= dict.fromkeys(clusters or self.names, weight)
        groups = {self.group_of[name] for name, weight in given.items() if weight}
        return {
            name: weight if self.group_of[name] in groups else 1 for name, weight in given.items()
        }

    @cached_property
    def quota_left(self) -> int:
        """What is left of the quota; there is one tree, and nothing limits borrowing."""
        nominal = sum(
            quota.nominal // 1000 for each in self.facts.queues.values() for quota in
            each.quotas.values()
        )  # fmt: skip
        return nominal - sum(
            pods.count
            for each in self.facts.workloads.values()
            for placed in (*(each.held.placed if each.held else ()), *each.releasing)
            for pods in placed.pods
        )

    def faults(self, counts: Counts) -> Iterator[str]:
        """What is wrong with some counts."""
        if sum(counts.values()) > self.replicas:
            yield f"{sum(counts.values())} of {self.replicas} replicas"
        most = self.policy.division.cluster_max
        if most is not None and max(counts.values(), default=0) > most:
            yield f"more than {most} in a cluster"
        for name, count in counts.items():
            if count and not self.weights[name] and self.policy.division.type == "StaticWeight":
                yield f"{count} in {name}, which has no weight"
        for spread, domain in zip(self.policy.spread, self.domains, strict=True):
            used = {domain[name] for name, count in counts.items() if count}
            if counts and len(used) < min(spread.least, self.replicas):
                yield f"{len(used)} domains, not {spread.least}"
            if spread.most is not None and len(used) > spread.most:
                yield f"{len(used)} domains, more than {spread.most}"
            if spread.skew is not None:
                yield from self._uneven(counts, domain, spread.skew)

    def _uneven(self, counts: Counts, domain: Mapping[str, str], skew: int) -> Iterator[str]:
        """Domains of one group that differ too much; where a rule leaves some out, those in use."""
        leaves_out = any(each.most is not None for each in self.policy.spread)
        totals: dict[str, Counter[str]] = {}
        for name in self.names:
            if counts.get(name) or not leaves_out:
                totals.setdefault(self.group_of[name], Counter())[domain[name]] += counts.get(
                    name, 0
                )
        for here in totals.values():
            if max(here.values()) - min(here.values()) > skew:
                yield f"uneven: {dict(here)}"

    def legal(self) -> Iterator[dict[str, int]]:
        """All counts that idle room, quota and the rules allow."""
        for several in product(*(range(self.seats[name] + 1) for name in self.names)):
            if 0 < sum(several) <= min(self.replicas, self.quota_left):
                counts = {name: n for name, n in zip(self.names, several, strict=True) if n}
                if not any(self.faults(counts)):
                    yield counts

    def price(self, counts: Counts) -> Fraction:
        """Webster's method makes the sum of squares over weights the least."""
        return sum((Fraction(n * n, self.weights[name]) for name, n in counts.items()), Fraction(0))

    def is_like(self, counts: Counts, other: Counts) -> bool:
        """Whether both give each group as much, in domains that rules choose alike.

        Where a rule leaves domains out, the others need not be in use, and are compared too: so
        none of the counts is beyond what was even in the other.
        """
        if self._totals(counts, self.group_of) != self._totals(other, self.group_of):
            return False
        leaves_out = any(each.most is not None for each in self.policy.spread)
        for spread, domain in zip(self.policy.spread, self.domains, strict=True):
            ours, theirs = self._totals(counts, domain), self._totals(other, domain)
            is_chosen = spread.most is not None or min(spread.least, self.replicas) > 1
            if is_chosen and ours.keys() != theirs.keys():
                return False
            if leaves_out and spread.skew and max(ours.values()) > max(theirs.values()):
                return False
        return True

    def _totals(self, counts: Counts, part_of: Mapping[str, str]) -> Counter[str]:
        totals: Counter[str] = Counter()
        for name, count in counts.items():
            totals[part_of[name]] += count
        return totals

    def wrong_division(self, counts: Counts, *, may_wait: bool) -> Iterator[str]:
        """What is wrong with the counts that only idle room gave.

        Groups are filled in order, so the first may use up the domains that a rule allows.
        """
        is_in_order = self.policy.groups and any(each.most for each in self.policy.spread)
        all_legal = list(self.legal())
        most = max((sum(each.values()) for each in all_legal), default=0)
        if sum(counts.values()) < most and not may_wait and not is_in_order:
            yield f"{sum(counts.values())} start, though {most} could"
        if counts and counts not in all_legal:
            yield f"{dict(counts)} is not legal: room {self.rooms}, quota {self.quota_left}"
            return
        alike = [each for each in all_legal if self.is_like(each, counts)]
        if self.policy.division.type == "Aggregated":
            fewest = min(map(len, alike), default=0)
            if len(counts) > fewest and all(each.skew is None for each in self.policy.spread):
                yield f"in {len(counts)} clusters, though {fewest} are enough"
        elif alike and self.price(counts) > self.price(best := min(alike, key=self.price)):
            yield f"{dict(counts)} is further from {self.weights} than {best}"


# The comparison.


def counts_of(facts: Facts) -> dict[str, int]:
    held = facts.workloads["team/s"].held
    return {each.cluster: each.replicas for each in held.placed} if held else {}


def faults_of(facts: Facts, result: Plan, seen: Counter[str]) -> Iterator[str]:
    """All that brute force has against a plan."""
    yield from broken(facts, result)
    leavers = {each.key for each in facts.workloads.values() if each.releasing}
    item = facts.workloads.get("team/g")
    if item is not None:
        pods = item.forms[0].pod_sets[0]
        sizes = range(pods.count, pods.least - 1, -1)
        yield from wrong_victims(facts, result, "team/g", sizes, sorted(facts.clusters))
        actual = outcome(facts, result, "team/g")
        seen["gangs"] += actual.count > 0
        seen["victims"] += actual.harm is not None
        facts = after(facts, part_of(result, "team/g"))
    service = Service(facts)
    counts = counts_of(after(facts, part_of(result, "team/s")))
    yield from service.faults(counts)
    seen["services"] += bool(counts)
    if result.reservations:
        return  # what is kept for a gang that waits is not idle
    steps = part_of(result, "team/s").steps
    if not any(
        isinstance(step, Preempt | Provision)
        or (isinstance(step, Admit) and leavers.intersection(step.waits_for))
        for step in steps
    ):  # What leaves is charged until it is gone.
        yield from service.wrong_division(counts, may_wait=bool(leavers))
        seen["divided"] += bool(counts)
    if service.is_one_pod:
        yield from wrong_victims(facts, result, "team/s", [1], service.names)
        seen["one replica"] += 1


def run(made: Sequence[Plain]) -> tuple[Facts, Plan]:
    facts = Objects.of([H100, *made]).facts(NOW)
    result, _ = plan(Snapshot(facts))
    return facts, result


def examine(cases: int, seed: int) -> None:
    random_ = random.Random(seed)
    seen: Counter[str] = Counter()
    for number in range(cases):
        made = objects(random_)
        if number % 3:
            made.insert(-2, gang(random_))
        facts, result = run(made)
        wrong = list(faults_of(facts, result, seen))
        assert wrong == [], (seed, number)
    assert seen["services"] > cases // 3
    assert seen["gangs"] > cases // 3
    assert seen["victims"] > cases // 10
    assert seen["divided"] > cases // 5


def test_rules_hold_in_random_fleets_and_what_can_start_does() -> None:
    examine(5_000 if IS_LONG else 400, seed=seed(7))
