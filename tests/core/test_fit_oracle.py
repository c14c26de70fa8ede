"""Fit agrees with brute force on small clusters, and every packing it returns is a valid one.

The oracle tries every way to put two pod sets on at most four nodes, by the rules as stated and
none of the code under test.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import Shape, Topology
from fairway.core.nodes import Cluster, Nodes, Room, label_column
from fairway.core.packing.pack import Packed, Shortage, Want, count, pack, pack_most
from fairway.core.packing.search import search
from fairway.core.packing.space import Space

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
LEVELS = ("block", "rack")
Domain = tuple[str | None, ...]


@st.composite
def rooms(draw: st.DrawFn) -> Room:
    number = draw(st.integers(1, 4))
    free = {
        name: draw(st.lists(st.integers(0, 8), min_size=number, max_size=number))
        for name in RESOURCES
    }
    blocks = [draw(st.sampled_from([None, "b1", "b2", "b1", "b2"])) for _ in range(number)]
    racks = [draw(st.sampled_from([None, "r1", "r2", "r1", "r2"])) for _ in range(number)]
    nodes = Nodes(
        names=tuple(f"n{position}" for position in range(number)),
        capacity={name: np.full(number, 8000, dtype=np.int64) for name in RESOURCES},
        ready=np.ones(number, dtype=np.bool_),
        labels={"example/block": label_column(blocks), "example/rack": label_column(racks)},
    )
    levels = (("block", "example/block"), ("rack", "example/rack"))
    room = Room(Cluster(name="c", nodes=nodes, levels=levels))
    for name, column in free.items():
        room.free[name] = np.array(column, dtype=np.int64) * 1000
    return room


@st.composite
def wants(draw: st.DrawFn, name: str, nodes: int) -> Want:
    request = tuple(
        (resource, draw(st.integers(1, 3)) * 1000)
        for resource in draw(st.sampled_from([RESOURCES, RESOURCES[:1], RESOURCES[1:], RESOURCES]))
    )
    size = draw(st.sampled_from([0, 0, 1, 2]))
    topology = Topology(
        required=draw(st.sampled_from(["", "", *LEVELS])),
        preferred=draw(st.sampled_from(["", *LEVELS])),
        slice_level=draw(st.sampled_from(LEVELS)) if size else "",
        slice_size=max(size, 1),
    )
    if topology.required:
        topology = Topology(
            required=topology.required,
            slice_level=topology.slice_level,
            slice_size=topology.slice_size,
        )
    mask = np.array(
        draw(st.lists(st.sampled_from([True, True, True, False]), min_size=nodes, max_size=nodes))
    )
    number = draw(st.integers(1, 4))
    return Want(
        name=name,
        shape=Shape(requests=request),
        count=max(size, 1) * -(-number // max(size, 1)),
        mask=mask,
        topology=topology,
        least=draw(st.integers(0, 1)),
    )


@st.composite
def cases(draw: st.DrawFn, sets: int) -> tuple[Room, list[Want]]:
    room = draw(rooms())
    return room, [draw(wants(f"set-{index}", len(room.cluster.nodes))) for index in range(sets)]


def domain_of(room: Room, level: str, position: int) -> Domain | None:
    """The domain of a node: the value of the level's label and of those around it."""
    values = [room.cluster.nodes.labels[f"example/{other}"].value(position) for other in LEVELS]
    path = values[: LEVELS.index(level) + 1]
    return None if path[-1] is None else tuple(path)


def per_domain(room: Room, level: str, counts: tuple[int, ...]) -> Counter[Domain | None]:
    found: Counter[Domain | None] = Counter()
    for position, pods in enumerate(counts):
        if pods:
            found[domain_of(room, level, position)] += pods
    return found


def is_near(room: Room, topology: Topology, counts: tuple[int, ...]) -> bool:
    """Whether a set is as near together as it must be."""
    if topology.required:
        found = per_domain(room, topology.required, counts)
        if None in found or len(found) > 1:
            return False
    if topology.slice_level:
        found = per_domain(room, topology.slice_level, counts)
        if None in found or any(pods % topology.slice_size for pods in found.values()):
            return False
    return True


def ways(room: Room, want: Want, inside: list[bool]) -> Iterator[tuple[int, ...]]:
    assert want.mask is not None
    limits = [want.count if want.mask[at] and inside[at] else 0 for at in range(len(inside))]
    for counts in itertools.product(*(range(limit + 1) for limit in limits)):
        if sum(counts) == want.count and is_near(room, want.topology, counts):
            yield counts


def fits(room: Room, sets: list[Want], placed: list[tuple[int, ...]]) -> bool:
    for position in range(len(room.cluster.nodes)):
        for resource in RESOURCES:
            used = sum(
                dict(want.shape.requests).get(resource, 0) * counts[position]
                for want, counts in zip(sets, placed, strict=True)
            )
            if used > room.free[resource][position]:
                return False
    return True


def is_feasible(room: Room, sets: list[Want], domain: str = "") -> bool:
    everywhere = [True] * len(room.cluster.nodes)
    choices = [everywhere]
    if domain:
        domains = [domain_of(room, domain, at) for at in range(len(everywhere))]
        choices = [
            [other == it for other in domains] for it in {other for other in domains if other}
        ]
    return any(
        fits(room, sets, list(placed))
        for inside in choices
        for placed in itertools.product(*(list(ways(room, want, inside)) for want in sets))
    )


def check(room: Room, sets: list[Want], found: Packed) -> None:
    """A packing is valid: it fits, has all pods on eligible nodes, and names its domains."""
    placed = [
        tuple(found.packing[want.name].get(at, 0) for at in range(len(room.cluster.nodes)))
        for want in sets
    ]
    assert fits(room, sets, placed)
    for want, counts in zip(sets, placed, strict=True):
        assert want.mask is not None
        assert sum(counts) == want.count
        assert all(want.mask[at] for at, pods in enumerate(counts) if pods)
        assert is_near(room, want.topology, counts)
        if want.name in found.levels:
            named = per_domain(room, found.levels[want.name], counts)
            short = Counter({str(path[-1]): 0 for path in named if path})
            for path, pods in named.items():
                if path:
                    short[str(path[-1])] += pods
            told: Counter[str] = Counter()
            for name, pods in found.domains[want.name]:
                told[name.rpartition("/")[2]] += pods
            assert told == short


@settings(max_examples=600, deadline=None)
@given(cases(1))
def test_one_set_fits_exactly_when_brute_force_finds_a_way(case: tuple[Room, list[Want]]) -> None:
    room, sets = case
    found = pack(room, sets)
    feasible = is_feasible(room, sets)
    event(f"feasible: {feasible}")
    assert isinstance(found, Packed) == feasible
    if isinstance(found, Packed):
        check(room, sets, found)


@settings(max_examples=600, deadline=None)
@given(cases(2))
def test_two_sets_fit_exactly_when_brute_force_finds_a_way(case: tuple[Room, list[Want]]) -> None:
    room, sets = case
    found = pack(room, sets)
    assert isinstance(found, Packed) == is_feasible(room, sets)
    if isinstance(found, Packed):
        check(room, sets, found)


@settings(max_examples=300, deadline=None)
@given(cases(2))
def test_the_search_alone_agrees_with_brute_force(case: tuple[Room, list[Want]]) -> None:
    room, sets = case
    found = search(Space(room), sets)
    assert (found is not None) == is_feasible(room, sets)
    if found is not None:
        check(room, sets, Packed(packing={name: spot.counts for name, spot in found.items()}))


@settings(max_examples=300, deadline=None)
@given(cases(2), st.sampled_from(LEVELS))
def test_a_workload_in_one_domain_agrees_with_brute_force(
    case: tuple[Room, list[Want]], level: str
) -> None:
    room, sets = case
    found = pack(room, sets, level)
    assert isinstance(found, Packed) == is_feasible(room, sets, level)
    if isinstance(found, Packed):
        check(room, sets, found)
        used = {at for counts in found.packing.values() for at in counts}
        assert len({domain_of(room, level, at) for at in used}) == 1


@settings(max_examples=300, deadline=None)
@given(cases(1))
def test_the_count_is_the_most_that_brute_force_can_place(case: tuple[Room, list[Want]]) -> None:
    room, (want,) = case
    expected = 0
    assert want.mask is not None
    for at in range(len(room.cluster.nodes)):
        if want.mask[at]:
            expected += min(int(room.free[name][at]) // n for name, n in want.shape.requests)
    assert count(room, want.shape, want.mask) == expected


@settings(max_examples=400, deadline=None)
@given(cases(1))
def test_the_quick_choice_of_tight_nodes_is_the_full_choice(
    case: tuple[Room, list[Want]],
) -> None:
    room, (want,) = case
    space, request = Space(room), want.shape.requests
    quick = space.fill(request, want.mask, want.count)
    event(f"answered quickly: {quick is not None}")
    if quick is not None:
        full = space.choose(request, space.candidates(request, want.mask), want.count)
        assert quick == full


@settings(max_examples=300, deadline=None)
@given(cases(1))
def test_a_shortage_says_how_many_could_be_placed(case: tuple[Room, list[Want]]) -> None:
    room, (want,) = case
    found = pack(room, [want])
    if not isinstance(found, Shortage):
        return
    (short,) = found.short
    assert 0 <= short.placeable < want.count
    fewer = Want(
        name=want.name,
        shape=want.shape,
        count=short.placeable,
        mask=want.mask,
        topology=want.topology,
    )
    if not short.is_bound:
        assert isinstance(pack(room, [fewer]), Packed)


@settings(max_examples=200, deadline=None)
@given(cases(2))
def test_the_same_case_gets_the_same_packing_whatever_the_order_of_sets(
    case: tuple[Room, list[Want]],
) -> None:
    room, sets = case
    first, second = pack(room, sets), pack(room, list(reversed(sets)))
    if isinstance(first, Packed):
        assert isinstance(second, Packed)
        assert dict(first.packing) == dict(second.packing)
    else:
        assert isinstance(second, Shortage)


@settings(max_examples=200, deadline=None)
@given(cases(2))
def test_the_largest_scale_that_fits_is_found_among_all_scales(
    case: tuple[Room, list[Want]],
) -> None:
    room, sets = case
    sets = [
        Want(name=set_.name, shape=set_.shape, count=set_.count, mask=set_.mask, least=set_.least)
        for set_ in sets
    ]
    spare = [want.count - (want.least or 0) for want in sets]
    total = sum(spare)
    scales = [
        [
            want.count - (some * step // total if total else 0)
            for want, some in zip(sets, spare, strict=True)
        ]
        for step in range(total + 1)
    ]
    expected = next(
        (
            counts
            for counts in scales
            if is_feasible(
                room,
                [
                    Want(name=set_.name, shape=set_.shape, count=number, mask=set_.mask)
                    for set_, number in zip(sets, counts, strict=True)
                ],
            )
        ),
        None,
    )
    found = pack_most(room, sets)
    got = (
        [sum(found.packing[want.name].values()) for want in sets]
        if isinstance(found, Packed)
        else None
    )
    assert got == expected
