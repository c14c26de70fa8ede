"""The pods on the nodes of a cluster, seen there or assumed there.

Three layers, one on top of the other: pods that no claim accounts for; pods of claims that a report
has seen on a node; and pods that are claimed and not seen yet. Claims name clusters, flavors and
domains, not nodes, so unseen pods are packed here as the planner would: those tied to domains
first, then in the order in which they were decided.

A change costs what it changes. A placement that was decided last is packed on top of all others.
Where an earlier one is added or removed, those after it are packed again; where seen pods change,
all unseen pods are. The outcome always equals packing everything from scratch.

A workload may be admitted before its victims are gone. Where it does not fit beside them, it is
packed as if they were gone, on the same nodes. These nodes are then overcommitted, so that no other
workload finds room there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fairway.api.amounts import is_accelerator
from fairway.core.admission import shape_in
from fairway.core.ledger import Ledger
from fairway.core.model import Flavor, Placed, PlacedPods, Request, Stray, on_node
from fairway.core.nodes import Packing, Room
from fairway.core.packing import pack
from fairway.core.packing.devices import DEVICE_UNITS
from fairway.core.packing.eligibility import Eligibility
from fairway.core.packing.topology import level_index, levels_of
from fairway.core.seats import Departure, Seat, Spilled, is_tied, kept_free, needs_of

_NO_DOMAIN = -2  # the code of no node, not even of nodes outside all domains
_STRAY = "stray"


class Occupancy:
    """The pods on the nodes of one cluster."""

    def __init__(
        self,
        ledger: Ledger,
        room: Room,
        *,
        flavors: Mapping[str, Flavor],
        eligibility: Eligibility,
    ) -> None:
        self._ledger = ledger
        self._room = room
        self._name = room.cluster.name
        self._flavors = flavors
        self._eligibility = eligibility
        self._seats: dict[str, list[Seat]] = {}
        self._strays: tuple[Stray, ...] = ()
        self._line: list[Seat] = []  # seats with unseen pods, by turn
        self._is_straight = True  # all seats in the line found room in turn
        self._sharing: set[str] = set()  # workloads that request parts of devices
        self._touched: set[str] = set()  # workloads whose packing may have changed

    def packing(self, key: str) -> Packing | None:
        """Where the pods of a workload are, or are assumed to be; None if it has no placement."""
        seats = self._seats.get(key)
        if seats is None:
            return None
        joined: dict[str, dict[int, int]] = {}
        for seat in seats:
            for packing in (seat.placed.bound, seat.assumed):
                for name, counts in packing.items():
                    into = joined.setdefault(name, {})
                    for position, count in counts.items():
                        into[position] = into.get(position, 0) + count
        return joined

    def spilled(self, key: str) -> Spilled:
        """What is kept free for pods of a workload that fit on no node."""
        return tuple(part for seat in self._seats.get(key, ()) for part in seat.spilled)

    def departures(self) -> list[Departure]:
        """What is being stopped, in order of keys; without what stays for now."""
        return [
            Departure(key=seat.key, packing=packing, requests=needs_of(seat.placed))
            for seat in sorted(self._leaving_seats(), key=lambda seat: (seat.key, seat.decided))
            if not seat.placed.stays
            for packing in (seat.placed.bound, seat.assumed)
        ]

    def change(
        self,
        gone: Iterable[str] = (),
        come: Mapping[str, list[Seat]] | None = None,
        strays: tuple[Stray, ...] | None = None,
    ) -> Collection[str]:
        """Removes, adds or replaces placements; returns the workloads whose packing may differ."""
        come = come or {}
        self._touched = {*gone, *come}
        was_plain = self._is_plain()
        self._sharing -= self._touched
        self._sharing.update(key for key, seats in come.items() if _share(seats))
        if (
            not was_plain
            or self._sharing
            or any(_is_part(stray.requests) for stray in strays or ())
        ):
            for key in gone:
                self._seats.pop(key, None)
            self._seats.update(come)
            self._strays = self._strays if strays is None else strays
            return self.anew()
        # Drops device tables that queries created since: they would differ if created now.
        self._room.devices.clear()
        first = len(self._line)
        if strays is not None and strays != self._strays:
            self._put_strays(strays)
            first = 0
        for key in gone:
            if key not in come:
                for seat in self._seats.pop(key, ()):
                    first = min(first, self._leave(seat))
        for key, seats in come.items():
            if not self._is_reseated(key, seats):
                for seat in self._seats.pop(key, ()):
                    first = min(first, self._leave(seat))
                self._seats[key] = seats
                for seat in seats:
                    first = min(first, self._enter(seat))
        self._assume(first)
        return self._touched

    def anew(self) -> Collection[str]:
        """Packs everything from an empty room."""
        self._room.empty()
        self._touched.update(self._seats)
        strays, self._strays = self._strays, ()
        self._put_strays(strays)
        self._line = []
        seats = [seat for some in self._seats.values() for seat in some]
        for seat in sorted(seats, key=lambda seat: seat.decided):
            seat.assumed, seat.spilled = {}, ()
            self._enter(seat)
        self._assume(0)
        return self._touched

    def _is_plain(self) -> bool:
        """Whether the free columns are enough: no device is shared by pods."""
        return (
            not self._room.cluster.nodes.devices
            and not self._sharing
            and not any(_is_part(stray.requests) for stray in self._strays)
        )

    # Pods whose nodes are known.

    def _put_strays(self, strays: tuple[Stray, ...]) -> None:
        for stray in self._strays:
            self._ledger.give_back(
                self._name, {_STRAY: stray.pods}, {_STRAY: on_node(stray.requests)}
            )
        for stray in strays:
            self._ledger.take(self._name, {_STRAY: stray.pods}, {_STRAY: on_node(stray.requests)})
        self._strays = strays

    def _enter(self, seat: Seat) -> int:
        """Adds a seat; returns the turn from which all seats must be packed again."""
        first = len(self._line)
        if seat.is_unseen:
            first = bisect_left(self._line, seat.turn, key=lambda other: other.turn)
            self._line.insert(first, seat)
        if _pods(seat.placed.bound):
            self._ledger.take(self._name, seat.placed.bound, needs_of(seat.placed))
            first = 0
        return first

    def _leave(self, seat: Seat) -> int:
        first = len(self._line)
        if seat.is_unseen:
            first = self._turn_of(seat)
            del self._line[first]
            self._stand(seat)
        if _pods(seat.placed.bound):
            self._ledger.give_back(self._name, seat.placed.bound, needs_of(seat.placed))
            first = 0
        return first

    def _turn_of(self, seat: Seat) -> int:
        return bisect_left(self._line, seat.turn, key=lambda other: other.turn)

    def _is_reseated(self, key: str, seats: list[Seat]) -> bool:
        """Whether only the time of decision changed, and no turn by it; if so, updates it."""
        known = self._seats.get(key, [])
        if [seat.placed for seat in known] != [seat.placed for seat in seats]:
            return False
        pairs = list(zip(known, seats, strict=True))
        for old, new in pairs:
            if old.is_unseen:
                at = self._turn_of(old)
                around = self._line[max(at - 1, 0) : at] + self._line[at + 1 : at + 2]
                turns = sorted([*(seat.turn for seat in around), new.turn])
                if turns.index(new.turn) != min(at, 1):
                    return False
        for old, new in pairs:
            old.decided = new.decided
        return True

    # Unseen pods.

    def _assume(self, first: int) -> None:
        """Packs unseen pods, from a turn on.

        The order within one plan is no longer known. Where a seat finds no room, the order must
        have been another one. Then the largest pods go first, else all are packed together, else
        as if leaving seats were gone.
        """
        later = self._line[first if self._is_straight else 0 :]
        for seat in later:
            self._stand(seat)
        # A trial, since its undo is exact: which parts of devices are given back is not known.
        with self._ledger.trial() as trial:
            self._is_straight = all(self._sit(seat) for seat in later)
            if self._is_straight:
                trial.keep()
                return
        for seat in later:
            seat.assumed, seat.spilled = {}, ()
        for seat in self._line:
            self._stand(seat)
        largest_first = sorted(
            self._line,
            key=lambda seat: (not is_tied(seat.placed), _size(seat.placed), seat.decided),
        )
        result = (
            self._packed_in(largest_first)
            or self._packed_together()
            or self._packed_after(largest_first)
        )
        for seat in self._line:
            if result is None:
                self._sit(seat)
            else:
                self._put(seat, result[seat.decided])

    def _sit(self, seat: Seat) -> bool:
        """Packs the pods of one seat; returns whether all found room."""
        packing = self._found_for(seat.placed)
        is_whole = _is_whole(seat.placed, packing)
        if is_whole or seat.leaves:
            self._put(seat, packing)
            return is_whole
        packing, is_whole, spilled = self._found_after(seat.placed)
        self._put(seat, packing, spilled)
        return is_whole

    def _found_after(self, placed: Placed) -> tuple[Packing, bool, Spilled]:
        """Where pods will be once leaving seats are gone, and whether all find room then.

        Both are charged meanwhile, so that no other workload takes the rest of such a node: the
        pods need it beside what is about to be free.
        """
        with self._ledger.trial():
            for seat in self._leaving_seats():
                self._go(seat, seat.assumed)
            packing = self._found_for(placed)
            if _is_whole(placed, packing):
                return packing, True, ()
            return self._crowd(placed, packing)

    def _crowd(self, placed: Placed, packing: Packing) -> tuple[Packing, bool, Spilled]:
        """Adds pods that fit nowhere, to the nodes that have most left.

        Smaller pods may have been bound otherwise than they were packed here. What is claimed stays
        claimed: these nodes are overcommitted, and what they lack is kept free on other nodes, so
        that the cluster never has more claims than it can hold.
        """
        result = {name: dict(counts) for name, counts in packing.items()}
        spilled: list[tuple[int, str, int]] = []
        with self._ledger.trial():
            self._ledger.take(self._name, packing, needs_of(placed))
            for pods in placed.pods:
                known = (*placed.bound.get(pods.name, {}).values(), *_counts(packing, pods.name))
                more = self._most_left(pods, pods.count - sum(known))
                self._ledger.take(self._name, {pods.name: more}, needs_of(placed))
                into = result.setdefault(pods.name, {})
                for position, count in more.items():
                    into[position] = into.get(position, 0) + count
                spilled += self._spill(pods, more)
        return result, False, tuple(spilled)

    def _spill(self, pods: PlacedPods, crowded: Mapping[int, int]) -> Spilled:
        """What crowded pods lack on their nodes, taken from what others have left."""
        usable = self._mask(pods) & self._room.cluster.nodes.ready
        result: list[tuple[int, str, int]] = []
        for resource, amount in pods.shape.needs:
            free = self._room.free.get(resource)
            if free is None:
                continue
            lacks = sum(
                min(max(0, -int(free[position])), amount * count)
                for position, count in crowded.items()
            )
            nodes = np.flatnonzero(usable & (free > 0))
            for position in map(int, nodes[np.argsort(-free[nodes], kind="stable")]):
                part = min(lacks, int(free[position]))
                if part > 0:
                    result.append((position, resource, part))
                    lacks -= part
        self._ledger.take(self._name, *kept_free(tuple(result)))
        return tuple(result)

    def _most_left(self, pods: PlacedPods, count: int) -> dict[int, int]:
        """Pods shared out over the nodes that they may use, most to those that have most left."""
        nodes = np.flatnonzero(self._mask(pods) & self._room.cluster.nodes.ready)
        if count <= 0 or not nodes.size:
            return {}
        resource, _ = max(pods.shape.requests, key=_weight, default=("", 0))
        free = self._room.free.get(resource)
        order = nodes if free is None else nodes[np.argsort(-free[nodes], kind="stable")]
        each, more = divmod(count, len(order))
        shared = {int(at): each + (number < more) for number, at in enumerate(order)}
        return {position: number for position, number in shared.items() if number}

    def _leaving_seats(self) -> list[Seat]:
        return [seat for seats in self._seats.values() for seat in seats if seat.leaves]

    def _go(self, seat: Seat, assumed: Packing) -> None:
        """Within a trial: releases the nodes where a leaving seat was seen or assumed."""
        for packing in (seat.placed.bound, assumed):
            self._ledger.give_back(self._name, packing, needs_of(seat.placed))

    def _put(self, seat: Seat, packing: Packing, spilled: Spilled = ()) -> None:
        self._ledger.take(self._name, packing, needs_of(seat.placed))
        self._ledger.take(self._name, *kept_free(spilled))
        seat.assumed, seat.spilled = packing, spilled
        self._touched.add(seat.key)

    def _stand(self, seat: Seat) -> None:
        if seat.spilled:
            self._ledger.give_back(self._name, *kept_free(seat.spilled))
            seat.spilled = ()
        if seat.assumed:
            self._ledger.give_back(self._name, seat.assumed, needs_of(seat.placed))
            seat.assumed = {}
            self._touched.add(seat.key)

    def _packed_in(self, seats: Sequence[Seat]) -> dict[tuple[float, str, int], Packing] | None:
        """Packings in this order; None if a seat does not fit."""
        result: dict[tuple[float, str, int], Packing] = {}
        with self._ledger.trial():
            for seat in seats:
                packing = self._found_for(seat.placed)
                if not _is_whole(seat.placed, packing):
                    return None
                self._ledger.take(self._name, packing, needs_of(seat.placed))
                result[seat.decided] = packing
        return result

    def _packed_after(self, seats: Sequence[Seat]) -> dict[tuple[float, str, int], Packing] | None:
        """As `_packed_in`, as if leaving seats were gone; their nodes are charged meanwhile."""
        result: dict[tuple[float, str, int], Packing] = {}
        leaving = self._leaving_seats()
        if not leaving:
            return None
        with self._ledger.trial():
            for seat in seats:
                if seat.leaves:  # it occupies nodes until then
                    result[seat.decided] = packing = self._found_for(seat.placed)
                    self._ledger.take(self._name, packing, needs_of(seat.placed))
            for seat in leaving:
                self._go(seat, result.get(seat.decided, {}))
            rest = self._packed_in([seat for seat in seats if not seat.leaves])
        return None if rest is None else {**result, **rest}

    def _packed_together(self) -> dict[tuple[float, str, int], Packing] | None:
        """Packings of all seats at once; a small case is searched exactly."""
        wants: list[pack.Want] = []
        owner: dict[str, tuple[tuple[float, str, int], str]] = {}
        seats = sorted(self._line, key=lambda seat: seat.decided)
        for number, seat in enumerate(seats):
            for pods in seat.placed.pods:
                for want in self._wants(pods, seat.placed.bound.get(pods.name, {})):
                    name = f"{number}/{want.name}"
                    owner[name] = (seat.decided, pods.name)
                    wants.append(replace(want, name=name))
        whole = pack.pack(self._room, wants)
        if isinstance(whole, pack.Shortage):
            return None
        packings: dict[tuple[float, str, int], dict[str, dict[int, int]]] = {
            seat.decided: {} for seat in seats
        }
        for name, counts in whole.packing.items():
            decided, pod_set = owner[name]
            into = packings[decided].setdefault(pod_set, {})
            for position, count in counts.items():
                into[position] = into.get(position, 0) + count
        return dict(packings)

    def _found_for(self, placed: Placed) -> Packing:
        """Where unseen pods will be; pods without room are left out."""
        wants: list[pack.Want] = []
        set_of: dict[str, str] = {}
        for pods in placed.pods:
            for want in self._wants(pods, placed.bound.get(pods.name, {})):
                wants.append(want)
                set_of[want.name] = pods.name
        packing: dict[str, dict[int, int]] = {}
        for name, counts in self._most_of(wants).items():
            into = packing.setdefault(set_of[name], {})
            for position, count in counts.items():
                into[position] = into.get(position, 0) + count
        return packing

    def _most_of(self, wants: list[pack.Want]) -> Packing:
        """A packing of all together; else of as many of each as fit, one set after another."""
        whole = pack.pack(self._room, wants)
        if isinstance(whole, pack.Packed):
            return whole.packing
        packing: dict[str, Mapping[int, int]] = {}
        with self._ledger.trial():
            for want in wants:
                packed = pack.pack_most(self._room, [want])
                if isinstance(packed, pack.Packed):
                    packing[want.name] = packed.packing[want.name]
                    taken = {want.name: packing[want.name]}
                    self._ledger.take(self._name, taken, {want.name: want.shape.needs})
        return packing

    def _wants(self, pods: PlacedPods, seen: Mapping[int, int]) -> Iterator[pack.Want]:
        """The unseen pods of a set, separately for each domain that was chosen for them."""
        missing = pods.count - sum(seen.values())
        if missing <= 0:
            return
        room, mask = self._room, self._mask(pods)
        shape = shape_in(pods.shape, self._name)
        index = level_index(room, pods.level) if pods.domains else None
        if index is None:
            yield pack.Want(name=pods.name, shape=shape, count=missing, least=0, mask=mask)
            return
        level = levels_of(room)[index]
        for domain, count in pods.domains:
            code = level.names.index(domain) if domain in level.names else _NO_DOMAIN
            here = sum(some for position, some in seen.items() if level.codes[position] == code)
            left = min(missing, count - here)
            if left > 0:
                missing -= left
                inside = mask & (level.codes == code)
                yield pack.Want(
                    name=f"{pods.name}@{domain}",
                    shape=shape,
                    count=left,
                    least=0,
                    mask=inside,
                )

    def _mask(self, pods: PlacedPods) -> npt.NDArray[np.bool_]:
        """The nodes that the pods of a set may use."""
        names = sorted({flavor for _, flavor in pods.flavors if flavor in self._flavors})
        flavors = [self._flavors[name] for name in names]
        return self._eligibility.of(self._room.cluster, pods.shape, flavors)


def _weight(request: tuple[str, int]) -> tuple[bool, int, str]:
    """A sort key: accelerators above all else."""
    return (is_accelerator(request[0]), request[1], request[0])


def _counts(packing: Packing, pod_set: str) -> Collection[int]:
    return packing.get(pod_set, {}).values()


def _share(seats: Iterable[Seat]) -> bool:
    return any(_is_part(pods.shape.requests) for seat in seats for pods in seat.placed.pods)


def _is_part(requests: Request) -> bool:
    """Whether a part of a device is requested."""
    return any("/" in resource and amount % DEVICE_UNITS for resource, amount in requests)


def _size(placed: Placed) -> tuple[int, ...]:
    """A sort key: the largest pod first, by accelerators, then by its largest amount."""
    return min(
        (
            (
                -sum(amount for name, amount in pods.shape.requests if is_accelerator(name)),
                -max((amount for _, amount in pods.shape.requests), default=0),
            )
            for pods in placed.pods
        ),
        default=(0, 0),
    )


def _pods(packing: Packing) -> int:
    return sum(sum(counts.values()) for counts in packing.values())


def _is_whole(placed: Placed, packing: Packing) -> bool:
    return _pods(packing) + _pods(placed.bound) >= sum(pods.count for pods in placed.pods)
