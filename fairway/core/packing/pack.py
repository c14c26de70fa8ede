"""How many pods of a shape fit where, and packings that prove it.

For one pod set the answer is exact. Several sets are placed one after another by best fit, in two
orders: largest pods first (by their largest share of what is free), then those with the least
choice (the smallest ratio of pods that fit to pods wanted). If both fail, a small case is searched
exactly (see `search`). A packing is its own proof; a shortage says how many pods of which set were
placed at most.

Obvious misfits are refused by the total and the largest free amount of each resource, which the
room keeps up to date; and by what the cluster allows in the namespace of the pods (`admission`),
which is no matter of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairway.core.admission import admission_in, asked_by, beyond, left_of, shape_in
from fairway.core.allowances import ADMITTED, Beyond
from fairway.core.model import Shape
from fairway.core.nodes import UNLIMITED, Amounts, Mask, Room
from fairway.core.packing.search import search
from fairway.core.packing.space import Space, bounds, total_free
from fairway.core.packing.topology import (
    NO_TOPOLOGY,
    Level,
    Spot,
    Want,
    level_index,
    levels_of,
    most_of,
    place_one,
    spot_of,
    sum_by,
)

__all__ = [
    "UNLIMITED",
    "Packed",
    "Short",
    "Shortage",
    "Want",
    "as_admitted",
    "copies",
    "count",
    "not_admitted",
    "pack",
    "pack_most",
    "placeable",
    "short_allowances",
    "slots",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Where the pods of each set go."""

    packing: Mapping[str, Mapping[int, int]]  # pod set -> {position of node: pods}
    levels: Mapping[str, str] = field(default_factory=dict)  # pod set -> level of its domains
    domains: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    # pod set -> pods per topology domain, where domains decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A set of which not all pods can be placed."""

    name: str
    wanted: int
    placeable: int
    is_bound: bool = False  # `placeable` is an upper bound

    @property
    def missing(self) -> int:
        return self.wanted - self.placeable


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why there is no packing: the sets that fall short."""

    short: tuple[Short, ...]
    domain: str = ""  # the nearest domain, where one must hold the whole workload
    beyond: Beyond | None = None  # the allowance that is too small, whatever nodes have free
    refusal: str = ""  # why the cluster refuses such pods


def as_admitted(want: Want, cluster: str) -> Want:
    """The pods of a set as a cluster admits them."""
    admission = admission_in(want.shape, cluster)
    if admission is ADMITTED:
        return want
    return replace(want, shape=shape_in(want.shape, cluster), admission=admission)


def slots(room: Room, shape: Shape, mask: Mask | None = None) -> Amounts:
    """How many pods of a shape fit on each node."""
    space = Space(room)
    column = np.zeros(len(room.cluster.nodes), dtype=np.int64)
    positions = space.candidates(shape.needs, mask)
    column[positions] = space.pods_at(shape.needs, positions)
    return column


def count(room: Room, shape: Shape, mask: Mask | None = None) -> int:
    """How many pods of a shape fit on all nodes together. Exact."""
    for resource, amount in shape.needs:
        if bounds(room, resource)[1] < amount:
            return 0
    space = Space(room)
    positions = space.candidates(shape.needs, mask)
    return int(space.pods_at(shape.needs, positions).sum())


def placeable(room: Room, want: Want) -> int:
    """How many pods of a set fit on nodes, and in what the cluster allows in their namespace."""
    each = replace(want, count=1)
    return _allowed(room, [each], count(room, want.shape, want.mask))


def pack(room: Room, wants: Sequence[Want], domain: str = "") -> Packed | Shortage:
    """A packing of all sets; `domain` names a level of which one domain must hold them all."""
    plain = _plainly_short(room, wants)
    if plain is not None:
        return plain
    space = Space(room)
    if domain:
        return _in_one_domain(space, wants, domain)
    result = _place_all(space, wants)
    return _pack(result) if isinstance(result, dict) else Shortage(short=result)


def pack_most(room: Room, wants: Sequence[Want], domain: str = "") -> Packed | Shortage:
    """The packing of as many pods as possible, between `least` and `count` of each set.

    All sets shrink together, as in Kueue's partial admission: with D the sum of count - least over
    all sets, step i of D leaves count - floor((count - least) * i / D) of a set.
    """
    full = pack(room, wants, domain)
    spare = [want.count - (want.count if want.least is None else want.least) for want in wants]
    total = sum(spare)
    if isinstance(full, Packed) or total == 0:
        return full

    def shrunk(step: int) -> list[Want]:
        return [
            replace(want, count=want.count - some * step // total)
            for want, some in zip(wants, spare, strict=True)
        ]

    best = pack(room, shrunk(total), domain)
    if isinstance(best, Shortage):
        return best
    low, high = 1, total  # `high` is known to fit
    while low < high:
        middle = (low + high) // 2
        packed = pack(room, shrunk(middle), domain)
        if isinstance(packed, Packed):
            best, high = packed, middle
        else:
            low = middle + 1
    return best


def copies(room: Room, wants: Sequence[Want], most: int = UNLIMITED) -> int:
    """How many copies of all sets can be packed together, up to `most`."""
    most = _allowed(room, wants, most)
    for want in wants:
        if want.count > 0 and most > 0:
            most = min(most, count(room, want.shape, want.mask) // want.count)
    if len(wants) == 1 and wants[0].topology == NO_TOPOLOGY:
        return max(0, most)
    low, high = 0, max(0, most)
    while low < high:
        middle = (low + high + 1) // 2
        if isinstance(pack(room, [_times(want, middle) for want in wants]), Packed):
            low = middle
        else:
            high = middle - 1
    return low


def _times(want: Want, copies: int) -> Want:
    if copies == 1:
        return want
    return replace(want, count=want.count * copies, topology=want.topology.of_each(want.count))


def _plainly_short(room: Room, wants: Sequence[Want]) -> Shortage | None:
    """A shortage by rules, or by the total and the largest free amount, without a look at nodes."""
    refused = not_admitted(room, wants)
    if refused is not None:
        return refused
    needed: dict[str, int] = {}
    for want in wants:
        if want.count <= 0:
            continue
        for resource, amount in want.shape.needs:
            total, largest = bounds(room, resource)
            needed[resource] = before = needed.get(resource, 0) + amount * want.count
            if largest < amount:
                return _bound(want, 0)
            if total < before:
                left = total - (before - amount * want.count)
                return _bound(want, max(0, left) // amount)
    return None


def _is_unruled(wants: Sequence[Want]) -> bool:
    """Whether the cluster has no rules for these pods, as in most fleets."""
    for want in wants:  # noqa: SIM110 - every packing asks, and a generator costs more
        if want.admission is not ADMITTED:
            return False
    return True


def not_admitted(room: Room, wants: Sequence[Want]) -> Shortage | None:
    """A shortage because the cluster refuses some pods, or allows too few in their namespace."""
    if _is_unruled(wants):
        return None
    for want in wants:
        if want.count > 0 and want.admission.refusal:
            return replace(_bound(want, 0), refusal=want.admission.refusal)
    short = short_allowances(room, wants)
    if not short:
        return None
    takers = [want for want in wants if dict(want.admission.takes).get(short[0].key)]
    worst = max(takers, key=lambda want: (want.count, want.name))
    each = dict(worst.admission.takes)[short[0].key]
    missing = -(-(short[0].asked - max(0, short[0].left)) // each)
    return replace(_bound(worst, max(0, worst.count - missing)), beyond=short[0])


def short_allowances(room: Room, wants: Sequence[Want]) -> list[Beyond]:
    """The allowances that are too small for all sets together."""
    if _is_unruled(wants):
        return []
    return beyond(room, asked_by((want.admission, want.count) for want in wants))


def _allowed(room: Room, wants: Sequence[Want], most: int) -> int:
    """How many copies of all sets the allowances of the cluster hold, up to `most`."""
    if _is_unruled(wants):
        return most
    if any(want.count > 0 and want.admission.refusal for want in wants):
        return 0
    for key, amount in asked_by((want.admission, want.count) for want in wants).items():
        left = left_of(room, key)
        if left is not None:
            most = min(most, max(0, left) // amount)
    return most


def _bound(want: Want, placeable: int) -> Shortage:
    short = Short(name=want.name, wanted=want.count, placeable=placeable, is_bound=True)
    return Shortage(short=(short,))


def _pack(spots: Mapping[str, Spot]) -> Packed:
    named = {name: spot for name, spot in spots.items() if spot.level}
    return Packed(
        packing={name: spot.counts for name, spot in spots.items()},
        levels={name: spot.level for name, spot in named.items()},
        domains={name: spot.domains for name, spot in named.items()},
    )


def _place_all(space: Space, wants: Sequence[Want]) -> dict[str, Spot] | tuple[Short, ...]:
    largest_first = _largest_first(space, wants)
    first = _in_order(space, largest_first)
    if isinstance(first, dict):
        return first
    if len(wants) == 1:
        return (first,)
    most = {want.name: most_of(space, want) if want.count > 0 else 0 for want in wants}
    alone = tuple(
        Short(name=want.name, wanted=want.count, placeable=most[want.name])
        for want in largest_first
        if most[want.name] < want.count
    )
    if alone:
        return alone
    least_choice_first = sorted(wants, key=lambda want: (_ratio(most[want.name], want), want.name))
    if [want.name for want in least_choice_first] != [want.name for want in largest_first]:
        second = _in_order(space, least_choice_first)
        if isinstance(second, dict):
            return second
    spots = search(space, largest_first)
    return (first,) if spots is None else spots


def _in_order(space: Space, wants: Sequence[Want]) -> dict[str, Spot] | Short:
    """Places one set after another; returns the shortage of the first that does not fit."""
    trial = space.copy() if len(wants) > 1 else space
    spots: dict[str, Spot] = {}
    for want in wants:
        spot = place_one(trial, want)
        if isinstance(spot, int):
            return Short(name=want.name, wanted=want.count, placeable=spot)
        spots[want.name] = spot
        if len(spots) < len(wants):
            trial.take(want.shape.needs, spot.counts)
    return spots


def _largest_first(space: Space, wants: Sequence[Want]) -> Sequence[Want]:
    if len(wants) == 1:
        return wants

    def size(want: Want) -> float:
        return max(
            (amount / (total_free(space.room, name) or 1) for name, amount in want.shape.requests),
            default=0.0,
        )

    return sorted(wants, key=lambda want: (-size(want), want.name))


def _in_one_domain(space: Space, wants: Sequence[Want], domain: str) -> Packed | Shortage:
    """A packing inside one domain, trying domains with the least room first."""
    index = level_index(space.room, domain)
    if index is None:
        return Shortage(short=tuple(_none(want) for want in wants if want.count > 0))
    level = levels_of(space.room)[index]
    if not level.names:
        return Shortage(short=tuple(_none(want) for want in wants if want.count > 0))
    held = [_by_domain(space, want, level) for want in wants]
    ratios = [
        (min(_ratio(value[code], want) for value, want in zip(held, wants, strict=True)), code)
        for code in range(len(level.names))
    ]
    failed: Shortage | None = None
    for ratio, code in sorted(ratios):
        if ratio >= 1.0:
            result = _place_all(space, [_inside(space, want, level, code) for want in wants])
            if isinstance(result, dict):
                return _pack(
                    {
                        name: spot if spot.level else spot_of(level, spot.counts)
                        for name, spot in result.items()
                    }
                )
            failed = Shortage(short=result, domain=level.names[code])
    if failed is not None:
        return failed
    best = max(ratios, key=lambda ratio: (ratio[0], -ratio[1]))[1]
    short = tuple(
        Short(name=want.name, wanted=want.count, placeable=value[best])
        for value, want in zip(held, wants, strict=True)
        if value[best] < want.count
    )
    return Shortage(short=short, domain=level.names[best])


def _by_domain(space: Space, want: Want, level: Level) -> list[int]:
    """How many pods of a set each domain holds, ignoring the set's own topology."""
    positions = space.candidates(want.shape.needs, want.mask)
    pods = space.pods_at(want.shape.needs, positions)
    result: list[int] = sum_by(level.codes.take(positions), pods, len(level.names)).tolist()
    return result


def _ratio(held: int, want: Want) -> float:
    return held / want.count if want.count > 0 else float("inf")


def _inside(space: Space, want: Want, level: Level, code: int) -> Want:
    mask = space.room.cluster.nodes.ready if want.mask is None else want.mask
    return replace(want, mask=(level.codes == code) & mask)


def _none(want: Want) -> Short:
    return Short(name=want.name, wanted=want.count, placeable=0)
