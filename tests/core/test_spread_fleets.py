"""Random fleets with services: rules of spread and division hold together, on every rung.

An exhaustive search over all counts is the oracle: what idle room can hold within the rules starts.
In half of the fleets a gang goes first, in the same plan: nobody yields to it where it starts as
things are, and else as few as brute force finds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import Policy
from fairway.core.plan import Admit, Plan, Preempt
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain, cluster, policy, pool, queue, workload
from tests.properties.checks import IS_LONG

REGION = "topology.kubernetes.io/region"


def rule(random_: random.Random) -> Plain:
    least = random_.randint(1, 3)
    made: Plain = {"by": random_.choice(("Cluster", "Region")), "least": least}
    if random_.random() < 0.4:
        made["most"] = least + random_.randint(0, 2)
    if random_.random() < 0.5:
        made["skew"] = random_.randint(1, 2)
    return made


def objects(random_: random.Random) -> list[Plain]:
    """Three to five clusters, some full of what yields, some with new nodes; and a service."""
    names = "abcde"[: random_.randint(3, 5)]
    made = [
        queue("root"),
        queue("q", random_.randint(3, 20), parent="root", preemption={"reclaim": "Any"}),
        queue("b", 0, parent="root"),
    ]
    for name in names:
        gpus = random_.randint(1, 4)
        pools = [pool("n", 1, stock=random_.randint(1, 2))] if random_.random() < 0.3 else []
        labels = {REGION: random_.choice("xyz")}
        made.append(cluster(name, gpus, labels=labels, pools=pools))
        busy = random_.randint(0, gpus)
        made += [workload(f"{name}{at}", "b", running=name) for at in range(busy)]
    kinds = ("Aggregated", "DynamicWeight", "StaticWeight")
    division: Plain = {"type": random_.choice(kinds)}
    if random_.random() < 0.2:
        division["perClusterMax"] = random_.randint(1, 3)
    cut = random_.randint(1, len(names))
    groups = [names[:cut], names[cut:]] if random_.random() < 0.5 and cut < len(names) else []
    rules = [rule(random_) for _ in range(random_.randint(1, 2))]
    made.append(policy("p", *groups, spread=rules, division=division))
    made.append(workload("s", "q", mode="Divided", replicas=random_.randint(1, 7), policy="p"))
    return made


def gang(random_: random.Random) -> Plain:
    """A gang that goes before the service; clusters have one node, so how it is packed is clear."""
    return workload("g", "q", count=random_.randint(1, 4), priority=5)


def counts_of(facts: Facts) -> dict[str, int]:
    held = facts.workloads["team/s"].held
    return {each.cluster: each.replicas for each in held.placed} if held else {}


def group_of(name: str, rules: Policy) -> str:
    for group in rules.groups:
        if group.clusters is None or name in group.clusters:
            return group.name
    return ""


def faults(counts: Mapping[str, int], facts: Facts) -> Iterator[str]:
    """What is wrong with the counts of the service."""
    rules = facts.policies["fairway-system/p"]
    replicas = facts.workloads["team/s"].replicas
    if sum(counts.values()) > replicas:
        yield f"{sum(counts.values())} of {replicas} replicas"
    most = rules.division.cluster_max
    if most is not None and max(counts.values(), default=0) > most:
        yield f"more than {most} in a cluster"
    for spread in rules.spread:
        domain = {
            name: name if spread.by == "Cluster" else each.labels[REGION]
            for name, each in facts.clusters.items()
        }
        used = {domain[name] for name, count in counts.items() if count}
        if counts and len(used) < min(spread.least, replicas):
            yield f"{len(used)} domains, not {spread.least}"
        if spread.most is not None and len(used) > spread.most:
            yield f"{len(used)} domains, more than {spread.most}"
        # Where a rule leaves domains out, only those that may be used are compared.
        if spread.skew is not None and all(each.most is None for each in rules.spread):
            yield from uneven(counts, domain, spread.skew, facts, rules)


def uneven(
    counts: Mapping[str, int], domain: Mapping[str, str], skew: int, facts: Facts, rules: Policy
) -> Iterator[str]:
    totals: dict[str, dict[str, int]] = {}
    for name in facts.clusters:
        here = totals.setdefault(group_of(name, rules), {})
        here[domain[name]] = here.get(domain[name], 0) + counts.get(name, 0)
    for here in totals.values():
        if max(here.values()) - min(here.values()) > skew:
            yield f"uneven: {here}"


def idle_room(facts: Facts) -> dict[str, int]:
    snapshot = Snapshot(facts)
    return {
        name: int(room.free["nvidia.com/gpu"].sum()) // 1000
        for name, room in snapshot.ledger.rooms.items()
    }


def quota_left(facts: Facts) -> int:
    """What is left of the only quota; others than its owner borrow."""
    nominal = facts.queues["q"].quotas["h100", "nvidia.com/gpu"].nominal // 1000
    return nominal - sum(
        pods.count
        for each in facts.workloads.values()
        for placed in (each.held.placed if each.held else ())
        for pods in placed.pods
    )


def can_start(facts: Facts) -> bool:
    """Whether idle room and the queue's own quota can hold all replicas within the rules."""
    names, rooms = sorted(facts.clusters), idle_room(facts)
    replicas = facts.workloads["team/s"].replicas
    if replicas > quota_left(facts):
        return False
    for counts in product(*(range(min(rooms[name], replicas) + 1) for name in names)):
        if sum(counts) != replicas:
            continue
        used = {name: count for name, count in zip(names, counts, strict=True) if count}
        if not any(faults(used, facts)):
            return True
    return False


def fewest_victims(facts: Facts) -> int | None:
    """How many must yield to the gang, all of them alike; None: no number is enough."""
    count = facts.workloads["team/g"].forms[0].pod_sets[0].count
    short = max(0, count - quota_left(facts))
    borrow = [each for each in facts.workloads.values() if each.queue == "b"]
    enough: list[int] = []
    for name, free in idle_room(facts).items():
        here = sum(each.held.placed[0].cluster == name for each in borrow if each.held)
        needed = max(short, count - free)
        if needed <= (len(borrow) if count <= free else here):
            enough.append(max(0, needed))
    return min(enough, default=None)


def part_of(result: Plan, key: str) -> Plan:
    """The steps for one workload."""
    steps = tuple(
        step
        for step in result.steps
        if (step.for_ if isinstance(step, Preempt) else step.workload) == key
    )
    return replace(result, steps=steps, reservations=())


def wrong_victims(facts: Facts, result: Plan) -> Iterator[str]:
    """What is wrong with those that yield to the gang."""
    yielded = sum(isinstance(step, Preempt) for step in part_of(result, "team/g").steps)
    starts = any(isinstance(s, Admit) and s.workload == "team/g" for s in result.steps)
    fewest = fewest_victims(facts)
    has_pools = any(each.pools for each in facts.clusters.values())
    if fewest is None:
        if yielded or (starts and not has_pools):
            yield f"{yielded} yield to the gang, which cannot start so"
    elif not starts:
        yield f"the gang waits, though {fewest} could yield to it"
    elif yielded != fewest and not (has_pools and not yielded):
        yield f"{yielded} yield to the gang, not {fewest}"


def leaves_out(facts: Facts) -> bool:
    """Whether rules compare only the domains that others leave: the oracle does not know which."""
    rules = facts.policies["fairway-system/p"].spread
    return any(each.most is not None for each in rules) and any(
        each.skew is not None for each in rules
    )


def run(made: Sequence[Plain]) -> tuple[Facts, Plan]:
    facts = Objects.of([H100, *made]).facts(NOW)
    result, _ = plan(Snapshot(facts))
    return facts, result


def examine(cases: int, seed: int) -> None:
    random_ = random.Random(seed)
    seen: Counter[str] = Counter()
    for number in range(cases):
        made = objects(random_)
        if number % 2:
            made.insert(-2, gang(random_))
        facts, result = run(made)
        then = after(facts, result)
        counts = counts_of(then)
        wrong: list[Any] = [*broken(facts, result), *faults(counts, then)]
        if number % 2:
            wrong += wrong_victims(facts, result)
            facts = after(facts, part_of(result, "team/g"))
            seen["gangs"] += facts.workloads["team/g"].held is not None
            seen["victims"] += any(isinstance(step, Preempt) for step in result.steps)
        if not counts and can_start(facts) and not leaves_out(then):
            wrong.append("nothing starts, though all could")
        assert wrong == [], (number, made[-2]["spec"], made[-1]["spec"]["replicas"], counts)
        seen["services"] += bool(counts)
    assert seen["services"] > cases // 3
    assert seen["gangs"] > cases // 6
    assert seen["victims"] > cases // 10


def test_rules_hold_in_random_fleets_and_what_can_start_does() -> None:
    examine(5_000 if IS_LONG else 500, seed=7)
