"""Rules of spread over domains that nest, held against an integer program.

`HYPOTHESIS_PROFILE=long` tries ten thousand cases, new ones each time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import highspy
import numpy as np

from fairway.core.clusters.domain_sets import Option
from fairway.core.clusters.spread import Picked, Unmet, pick
from fairway.core.model import Spread
from tests.properties.checks import IS_LONG, seed

Case = tuple[list[Option], tuple[Spread, ...], int, int]


def least_of(rule: Spread, options: Sequence[Option], wanted: int, opening: int) -> int:
    total = wanted + sum(option.seats for option in options)
    least = min(rule.least, total // opening)
    return least if least > 1 else 0  # anything that is placed uses one domain


def most_room(
    options: Sequence[Option], rules: Sequence[Spread], wanted: int, opening: int
) -> int | None:
    """The most of what is wanted that any legal set of options holds; None: no set is legal."""
    program = highspy.Highs()
    program.setOptionValue("output_flag", False)
    free = [option for option in options if not option.seats and option.room >= opening]
    used = [option for option in options if option.seats]
    takes = {option.name: program.addBinary() for option in free}
    covers = {option.name: program.addBinary() for option in free}
    for option in free:
        program.addConstr(covers[option.name] <= takes[option.name])
    for position, rule in enumerate(rules):
        open_now = {option.domains[position] for option in used}
        least, opens, covered = least_of(rule, options, wanted, opening), [], []
        for name in sorted({option.domains[position] for option in free} - open_now):
            members = [option for option in free if option.domains[position] == name]
            is_open, is_covered = program.addBinary(), program.addBinary()
            for member in members:
                program.addConstr(is_open >= takes[member.name])
            program.addConstr(is_open <= sum(takes[member.name] for member in members))
            program.addConstr(is_covered <= sum(covers[member.name] for member in members))
            opens.append(is_open)
            covered.append(is_covered)
        if len(open_now) < least:
            if not covered:
                return None
            program.addConstr(sum(covered) >= least - len(open_now))
        if rule.most is not None and opens:
            program.addConstr(sum(opens) <= max(0, rule.most - len(open_now)))
    if free:
        program.addConstr(sum(covers.values()) <= wanted // opening)
    held = program.addVariable(0, wanted)
    rooms = sum(option.room for option in used)
    program.addConstr(held <= rooms + sum(option.room * takes[option.name] for option in free))
    program.maximize(held)
    if program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return round(program.getObjectiveValue())


def case(random_: random.Random) -> Case:
    """Clusters in zones in regions in providers, some in use; rules on two to four levels."""
    providers, regions = random_.randint(1, 4), random_.randint(1, 8)
    zones, count = random_.randint(1, 16), random_.randint(11, 50)
    provider_of = [random_.randrange(providers) for _ in range(regions)]
    region_of = [random_.randrange(regions) for _ in range(zones)]
    uses = random_.random() < 0.4
    options = []
    for number in range(count):
        zone = random_.randrange(zones)
        region = region_of[zone]
        name = f"c{number:02}"
        options.append(
            Option(
                name=name,
                domains=(f"p{provider_of[region]}", f"r{region}", f"z{zone}", name),
                seats=random_.randint(1, 3) if uses and random_.random() < 0.1 else 0,
                room=random_.choice((0, 1, 1, 2, 3, 5, 8)),
            )
        )
    kept = sorted(random_.sample(range(4), random_.randint(2, 4)))
    options = [
        Option(
            name=option.name,
            domains=tuple(option.domains[at] for at in kept),
            seats=option.seats,
            room=option.room,
        )
        for option in options
    ]
    rules = []
    for at in kept:
        least = random_.randint(1, (3, 4, 6, 8)[at])
        most = random_.choice((None, least, least + random_.randint(0, 4)))
        by = ("Provider", "Region", "Zone", "Cluster")[at]
        rules.append(Spread(by=by, least=least, most=most))
    random_.shuffle(order := list(range(len(rules))))
    rules = [rules[at] for at in order]
    options = [
        Option(
            name=option.name,
            domains=tuple(option.domains[at] for at in order),
            seats=option.seats,
            room=option.room,
        )
        for option in options
    ]
    return options, tuple(rules), random_.randint(1, 40), random_.choice((1, 1, 2))


def faults(found: Picked | Unmet, asked: Case) -> list[str]:
    options, rules, wanted, opening = asked
    best = most_room(options, rules, wanted, opening)
    if isinstance(found, Unmet):
        return [] if best is None else [f"unmet, though {best} of {wanted} can be held"]
    if best is None:
        return ["picked, though no set is legal"]
    told = []
    for position, rule in enumerate(rules):
        used = {option.domains[position] for option in options if option.seats}
        opened = {option.domains[position] for option in found.allowed if option.room} | used
        covered = {option.domains[position] for option in found.cover} | used
        if rule.most is not None and len(opened) > max(rule.most, len(used)):
            told.append(f"{len(opened)} domains of {rule}")
        if len(covered) < least_of(rule, options, wanted, opening):
            told.append(f"covers {len(covered)} domains of {rule}")
    if len(found.cover) * opening > wanted:
        told.append(f"covers with {len(found.cover)} options")
    room = sum(option.room for option in found.allowed if option.seats or option.room >= opening)
    if min(room, wanted) != best:
        told.append(f"holds {min(room, wanted)} of {wanted}, not {best}")
    return told


def examine(cases: int, seed: int) -> None:
    random_ = random.Random(seed)
    verdicts = np.zeros(2, dtype=np.int64)
    for number in range(cases):
        asked = case(random_)
        options, rules, wanted, opening = asked
        found = pick(options, rules, wanted, active=range(len(rules)), opening=opening)
        verdicts[isinstance(found, Unmet)] += 1
        assert faults(found, asked) == [], (seed, number, asked)
    assert verdicts.min() > cases // 20, "both verdicts occur"


def test_nested_rules_are_held_to_exactly_however_many_clusters_there_are() -> None:
    examine(10_000 if IS_LONG else 300, seed=seed(2))
