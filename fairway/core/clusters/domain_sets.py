"""Which options to use, so that enough domains are open, and not too many.

All subsets of up to ten unused options are tried. Beyond that the search is exact where the domains
nest, as zones do in regions (`nested_domains`). Where they do not nest it is greedy, in time
proportional to options times rules times the domains needed, and may miss a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.core.clusters.nested_domains import Level, Place, choose, coarse_to_fine, is_small

_EXACT = 10  # the most unused options for which all subsets are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Something that can get seats: a cluster, with its domain for each rule."""

    name: str
    domains: tuple[str, ...] = ()
    group: str = ""
    seats: int = 0  # that it has already
    room: int = 1  # seats that it can get in addition


@dataclass(frozen=True, slots=True)
class Bounds:
    """The domains in use for one rule, and the least and the most that it allows."""

    position: int
    open_now: set[str]
    least: int
    most: int

    def level(self, options: Sequence[Option]) -> Level:
        """The bounds of a level of domains that nest."""
        is_limited = self.most < len({option.domains[self.position] for option in options})
        return Level(
            open_now=frozenset(self.open_now),
            least=self.least,
            most=self.most if is_limited else None,
        )

    def is_idle(self, options: Sequence[Option]) -> bool:
        """Whether it excludes nothing: enough domains are open, and all may be opened."""
        reachable = {option.domains[self.position] for option in options}
        return len(self.open_now) >= self.least and len(reachable) <= self.most

    def is_hopeless(self, unused: Sequence[Option]) -> bool:
        reachable = self.open_now | {option.domains[self.position] for option in unused}
        return min(len(reachable), self.most) < self.least


# The options that may be used in addition, and those among them that must be; None: no set will do.
Match = tuple[list[Option], list[Option]] | None


def best_set(
    options: Sequence[Option],
    unused: Sequence[Option],
    bounds: Sequence[Bounds],
    wanted: int,
    room: int,
    opening: int,
) -> Match:
    """The unused options to use, so that the bounds hold and as much as possible has room."""
    if len(unused) <= _EXACT:
        return _exact(unused, bounds, wanted, room, opening)
    paths = [tuple(option.domains[bound.position] for bound in bounds) for option in options]
    order = coarse_to_fine(paths)
    levels = [bound.level(options) for bound in bounds]
    if order is None or not is_small(levels):
        return _greedy(unused, bounds, wanted, room, opening)
    return _nested(unused, bounds, levels, order, wanted - room, wanted // opening)


def _nested(
    unused: Sequence[Option],
    bounds: Sequence[Bounds],
    levels: Sequence[Level],
    order: Sequence[int],
    lacking: int,
    covers_most: int,
) -> Match:
    """The best set where domains nest: then a cover as small as any is found step by step."""
    places = [
        Place(room=option.room, domains=tuple(option.domains[bound.position] for bound in bounds))
        for option in unused
    ]
    chosen = choose(places, levels, order, max(0, lacking))
    if chosen is None:
        return None
    allowed = [unused[at] for at in chosen]
    cover = _cover(allowed, bounds, [set(bound.open_now) for bound in bounds])
    return None if cover is None or len(cover) > covers_most else (allowed, cover)


def _exact(
    unused: Sequence[Option], bounds: Sequence[Bounds], wanted: int, room: int, opening: int
) -> Match:
    """Tries all subsets. The first option is the highest bit: a larger number is preferred."""
    size = len(unused)
    sets = 1 << size
    bits = [1 << (size - 1 - index) for index in range(size)]
    rooms = [0] * sets
    is_legal, is_cover = [True] * sets, [True] * sets
    for bound in bounds:
        codes: dict[str, int] = {}
        for name in sorted(bound.open_now):
            codes[name] = 1 << len(codes)
        start = sum(codes.values())
        of_bit = {
            bit: codes.setdefault(option.domains[bound.position], 1 << len(codes))
            for bit, option in zip(bits, unused, strict=True)
        }
        reach = [start] * sets
        for number in range(1, sets):
            low = number & -number
            reach[number] = reach[number ^ low] | of_bit[low]
        for number in range(sets):
            domains_open = reach[number].bit_count()
            is_legal[number] = is_legal[number] and bound.least <= domains_open <= bound.most
            is_cover[number] = is_cover[number] and bound.least <= domains_open
    of_room = {bit: option.room for bit, option in zip(bits, unused, strict=True)}
    for number in range(1, sets):
        low = number & -number
        rooms[number] = rooms[number ^ low] + of_room[low]
    covers = sorted(
        (number for number in range(sets) if is_cover[number]),
        key=lambda number: (number.bit_count(), -number),
    )
    covers = [number for number in covers if number.bit_count() * opening <= wanted]
    best = sorted(
        (number for number in range(sets) if is_legal[number]),
        key=lambda number: (-min(room + rooms[number], wanted), -number),
    )
    for number in best:
        for cover in covers:
            if not cover & ~number:
                return _members(unused, bits, number), _members(unused, bits, cover)
    return None


def _members(unused: Sequence[Option], bits: Sequence[int], number: int) -> list[Option]:
    return [option for option, bit in zip(unused, bits, strict=True) if number & bit]


def _greedy(
    unused: Sequence[Option], bounds: Sequence[Bounds], wanted: int, room: int, opening: int
) -> Match:
    """Takes what `least` needs, then what `most` admits; largest first if room is short."""
    roomiest = sorted(
        unused, key=lambda option: (-_domain_room(option, unused, bounds), -option.room)
    )
    result: Match = None
    found_room = -1
    for order in (unused, roomiest):
        open_now = [set(bound.open_now) for bound in bounds]
        cover = _cover(order, bounds, open_now)
        if cover is None or len(cover) * opening > wanted:
            continue
        allowed = list(cover)
        for option in order:
            if option not in cover and _opens(option, bounds, open_now) is not None:
                allowed.append(option)
                _open(option, bounds, open_now)
        held = min(room + sum(option.room for option in allowed), wanted)
        if held > found_room:
            result, found_room = (allowed, cover), held
    return result


def _domain_room(option: Option, unused: Sequence[Option], bounds: Sequence[Bounds]) -> int:
    """The room of its whole domain, by the first rule whose `most` excludes domains."""
    for bound in bounds:
        if len({other.domains[bound.position] for other in unused} | bound.open_now) > bound.most:
            name = option.domains[bound.position]
            return sum(other.room for other in unused if other.domains[bound.position] == name)
    return 0


def _cover(
    order: Sequence[Option], bounds: Sequence[Bounds], open_now: list[set[str]]
) -> list[Option] | None:
    """Options that open the domains still needed, those that serve the most rules first."""
    cover: list[Option] = []
    while any(len(names) < bound.least for bound, names in zip(bounds, open_now, strict=True)):
        best: Option | None = None
        best_gain = 0
        for option in order:
            gain = _opens(option, bounds, open_now)
            if gain is not None and gain > best_gain:
                best, best_gain = option, gain
        if best is None:
            return None
        cover.append(best)
        _open(best, bounds, open_now)
    return cover


def _opens(option: Option, bounds: Sequence[Bounds], open_now: Sequence[set[str]]) -> int | None:
    """How many needed domains it would open; None if it would exceed the `most` of a rule."""
    gain = 0
    for bound, names in zip(bounds, open_now, strict=True):
        if option.domains[bound.position] in names:
            continue
        if len(names) >= bound.most:
            return None
        gain += len(names) < bound.least
    return gain


def _open(option: Option, bounds: Sequence[Bounds], open_now: Sequence[set[str]]) -> None:
    for bound, names in zip(bounds, open_now, strict=True):
        names.add(option.domains[bound.position])
