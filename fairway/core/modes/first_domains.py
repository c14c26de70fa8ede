"""Opens as many domains as rules of spread ask for at least, before replicas are divided.

A step of the ladder knows the clusters of one group on one rung. What `least` asks for may take
several: idle room here, victims there, new nodes elsewhere, or clusters of another group or flavor.
So the domains are chosen over all clusters at once, and each gets the fewest replicas that it can,
in the cheapest way that its cluster offers. Victims and new nodes are used only for a rule that
must hold, never for one that is preferred. Then the ladder is climbed as usual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import RUNGS, Names
from fairway.core.clusters.domain_sets import Option
from fairway.core.clusters.spread import Picked, Tally, pick
from fairway.core.model import Spread
from fairway.core.modes.division import DivisionTally
from fairway.core.modes.ladder import LadderStep, steps_of
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.service_state import Service, places
from fairway.core.provisioning.pools import NoNodes
from fairway.core.quota.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.modes.service_growth import Growth


_IDLE: tuple[Rung, ...] = ("Idle",)


@dataclass(frozen=True, slots=True)
class _Chance:
    """The cheapest way to get replicas into a cluster."""

    step: int  # of the ladder
    rung: Rung
    option: Assignment
    room: int


def open_first_domains(growth: Growth, outcome: Outcome) -> None:
    """Places the fewest replicas in domains that rules need and no single step can open."""
    service = growth.service
    rules = service.policy.spread
    required = tuple(at for at, rule in enumerate(rules) if not rule.is_preferred)
    if _wanted(service) <= 0 or all(_is_met(service, rule, at) for at, rule in enumerate(rules)):
        return
    for rungs, active in (
        (_IDLE, tuple(range(len(rules)))),
        (_IDLE, required),
        (RUNGS, required),
    ):
        chances = _chances(growth, rungs)
        picked = _pick(service, chances, active)
        if picked is None:
            continue
        if _is_for_one_step(service, picked, chances):
            return
        cover = [(option.name, chances[option.name]) for option in picked.cover]
        if _can_open(growth, cover, required):
            for name, chance in cover:
                _open(growth, name, chance, outcome)
            return
    outcome.reasons.append(spread_reason([rules[at] for at in required]))


def _can_open(
    growth: Growth, cover: Sequence[tuple[str, _Chance]], required: Sequence[int]
) -> bool:
    """Whether all these can be opened one after the other: they may need the same quota."""
    service = growth.service
    with growth.planning.rehearsal():
        twin = replace(growth, service=service.copy())
        outcome = Outcome()
        for name, chance in cover:
            _open(twin, name, chance, outcome)
        rules = service.policy.spread
        if not all(_is_met(twin.service, rules[at], at) for at in required):
            return False
        return service.is_copied or _is_even(twin.service, required)


def _is_even(service: Service, active: Sequence[int]) -> bool:
    """Whether the counts are as even as rules ask for."""
    rooms = dict.fromkeys(service.candidates.allowed, 0)
    board = DivisionTally(places(service, rooms), service.policy)
    board.counts.update(service.carried)
    options = board.options()
    if any(service.policy.spread[at].most is not None for at in active):
        options = [option for option in options if option.seats]  # others may be left out
    tally = Tally(options, service.policy.spread, active)
    return all(tally.is_even(option) for option in options)


def spread_reason(rules: Sequence[Spread], group: str = "") -> Reason:
    """The reason for replicas that rules of spread keep from being placed."""
    text = ", ".join(_words(rule) for rule in rules if _words(rule))
    return Reason(code=Code.SPREAD_UNMET, group=group, other=text)


def _words(rule: Spread) -> str:
    noun = f"value of {rule.label}" if rule.by == "Label" else rule.by.lower()
    parts = []
    if rule.least > 1:
        parts.append(f"at least {rule.least}")
    if rule.most is not None:
        parts.append(f"at most {rule.most}")
    if rule.skew is not None:
        parts.append(f"a difference of at most {rule.skew}")
    return f"{' and '.join(parts)} by {noun}" if parts else ""


def _opening(service: Service) -> int:
    return 1 if service.is_copied else max(service.policy.division.cluster_min, 1)


def _wanted(service: Service) -> int:
    """Replicas to place; of copies, those in clusters that have none, as many as rules ask for."""
    if not service.is_copied:
        return service.waiting
    least = max(rule.least for rule in service.policy.spread)
    others = len(set(service.candidates.allowed) - set(service.counts))
    return max(others, least - len(service.carried))


def _is_met(service: Service, rule: Spread, position: int) -> bool:
    held = [place for place in places(service, {}) if place.assigned]
    total = len(service.carried) if service.is_copied else sum(service.counts.values())
    possible = (total + _wanted(service)) // _opening(service)
    used = {place.domains[position] for place in held}
    least = min(rule.least, possible)
    return least <= 1 or len(used) >= least


def _chances(growth: Growth, rungs: Sequence[Rung]) -> dict[str, _Chance]:
    """For each cluster the first step of the ladder that can place replicas there."""
    service = growth.service
    chances: dict[str, _Chance] = {}
    steps = steps_of(growth.planning, service.workload)
    for position, (group, rung, names) in enumerate(steps):
        if rung not in rungs or growth.planning.stopped_by(rung) is not None:
            continue
        step = LadderStep(group=group, clusters=names, options=[])
        for name in names:
            for option in service.options_of(name) if name not in chances else ():
                room = _room(growth, step, name, option, rung)
                if room >= service.least_in(name):
                    chances[name] = _Chance(position, rung, option, room)
                    break
    return chances


def _room(growth: Growth, step: LadderStep, cluster: str, option: Assignment, rung: Rung) -> int:
    """How many replicas a rung can place in a cluster, or the fewest that it can get."""
    least = growth.service.least_in(cluster)
    if rung == "Preempt":
        return least if growth.victims_in(cluster, option, opens=True) is not None else 0
    quota = growth.service.quota_for(option)
    if rung == "Provision":
        nodes = growth.nodes_in(cluster, option, opens=True)
        return least if quota >= least and not isinstance(nodes, NoNodes) else 0
    here = replace(step, clusters=Names((cluster,)))
    return min(growth.usable(here, option).get(cluster, 0), quota)


def _pick(service: Service, chances: Mapping[str, _Chance], active: Sequence[int]) -> Picked | None:
    """The clusters that must be used for some rules, if these can hold."""
    rooms = {name: chance.room for name, chance in chances.items()}
    board = DivisionTally(places(service, rooms), service.policy)
    board.counts.update(service.carried)
    options = board.options()
    if service.is_copied:
        options = [
            Option(
                name=option.name,
                domains=option.domains,
                group=option.group,
                seats=min(option.seats, 1),
                room=min(option.room, 1),
            )
            for option in options
        ]
    picked = pick(
        options,
        service.policy.spread,
        _wanted(service),
        active=tuple(active),
        opening=_opening(service),
    )
    return picked if isinstance(picked, Picked) else None


def _is_for_one_step(service: Service, picked: Picked, chances: Mapping[str, _Chance]) -> bool:
    """Whether the first step that the ladder takes opens these domains by itself."""
    if service.is_copied or not picked.cover:
        return not picked.cover
    first = min(chance.step for chance in chances.values())
    quota = min(service.quota_for(chances[option.name].option) for option in picked.cover)
    return quota >= len(picked.cover) * _opening(service) and all(
        chances[option.name].step == first and chances[option.name].rung == "Idle"
        for option in picked.cover
    )


def _open(growth: Growth, cluster: str, chance: _Chance, outcome: Outcome) -> None:
    """Places the fewest replicas that a cluster can get."""
    service, option = growth.service, chance.option
    least = service.least_in(cluster)
    match chance.rung:
        case "Idle" if min(service.room_for(cluster, option), service.quota_for(option)) >= least:
            service.add(cluster, least, option)
        case "Preempt":
            victims = growth.victims_in(cluster, option, opens=True)
            if victims is not None:
                growth.take(victims, outcome)
        case "Provision" if service.quota_for(option) >= least:
            nodes = growth.nodes_in(cluster, option, opens=True)
            if not isinstance(nodes, NoNodes):
                growth.buy(cluster, option, (least, nodes), outcome)
        case _:
            return
