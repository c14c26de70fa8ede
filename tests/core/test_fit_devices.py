"""Fractions of devices: what one pod takes is on one device, and whole devices stay whole."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.model import Shape
from fairway.core.nodes import Cluster, Nodes, Room
from fairway.core.packing.devices import devices_of, give_back, pods_on, put, put_back, take
from fairway.core.packing.near_fit import Miss, nearest_miss
from fairway.core.packing.pack import Packed, Shortage, Want, count, pack, slots

GPU = "nvidia.com/gpu"


def room_of(*nodes: tuple[int, ...], reported: bool = True, most: int = 8) -> Room:
    """Nodes with these free units per device; unless reported, only their sum is known."""
    capacity = most * 1000 if not reported else max(sum(node) for node in nodes)
    room = Room(
        Cluster(
            name="c",
            nodes=Nodes(
                names=tuple(f"n{position}" for position in range(len(nodes))),
                capacity={GPU: np.full(len(nodes), capacity, dtype=np.int64)},
                ready=np.ones(len(nodes), dtype=np.bool_),
                devices={GPU: nodes} if reported else {},
            ),
        )
    )
    room.free[GPU] = np.array([sum(node) for node in nodes], dtype=np.int64)
    return room


def pod(amount: int) -> Shape:
    return Shape(requests=((GPU, amount),))


@pytest.mark.parametrize(
    ("devices", "amount", "expected"),
    [
        pytest.param((400, 400), 500, 0, id="a fraction is not put together from two devices"),
        pytest.param((500, 1000), 500, 3, id="fractions fill devices one by one"),
        pytest.param((900, 900), 1000, 0, id="a whole device must be wholly free"),
        pytest.param((1000, 900, 1000), 2000, 1, id="two whole devices"),
        pytest.param((1000, 500), 1500, 1, id="one and a half: a whole one and a half"),
        pytest.param((1000, 1000), 1500, 1, id="one and a half may break a whole one"),
        pytest.param((1000, 400, 400), 1500, 0, id="no device has the half"),
        pytest.param((1000, 1000, 1000), 1500, 2, id="two halves share the third device"),
        pytest.param((7000, 3000), 2000, 4, id="slices of devices that are counted finer"),
        pytest.param((7000, 6000), 7000, 1, id="a whole device of those"),
    ],
)
def test_pods_that_fit_on_the_devices_of_a_node(
    devices: tuple[int, ...], amount: int, expected: int
) -> None:
    room = room_of(devices)
    assert slots(room, pod(amount)).tolist() == [expected]


@pytest.mark.parametrize(
    ("free", "amount", "expected"),
    [
        pytest.param(3400, 600, 3, id="each thousand units is a device, the rest a part of one"),
        pytest.param(3400, 400, 7, id="the rest counts where it is enough"),
        pytest.param(3400, 1000, 3, id="whole devices are counted by division"),
        pytest.param(900, 1000, 0, id="a part is not a whole device"),
    ],
)
def test_a_node_without_reported_devices(free: int, amount: int, expected: int) -> None:
    room = room_of((free,), reported=False)
    assert count(room, pod(amount)) == expected


def test_fractions_of_other_resources_need_no_device() -> None:
    nodes = Nodes(
        names=("n0",),
        capacity={"cpu": np.array([3000], dtype=np.int64)},
        ready=np.ones(1, dtype=np.bool_),
    )
    room = Room(Cluster(name="c", nodes=nodes))
    assert count(room, Shape(requests=(("cpu", 1500),))) == 2
    assert not room.devices


@pytest.mark.parametrize(
    ("row", "amount", "expected"),
    [
        pytest.param([1000, 600, 500], 500, [1000, 600, 0], id="the tightest device"),
        pytest.param([1000, 300], 500, [500, 300], id="a whole one if need be"),
        pytest.param([500, 1000], 1000, [500, 0], id="a whole one for a whole"),
        pytest.param([1000, 1000, 500], 1500, [0, 1000, 0], id="a whole one and a part"),
        pytest.param([400, 400], 500, None, id="nothing is taken where it does not fit"),
    ],
)
def test_one_pod_takes(row: list[int], amount: int, expected: list[int] | None) -> None:
    before = list(row)
    assert put(row, 1000, amount) == (expected is not None)
    assert row == (before if expected is None else expected)


@pytest.mark.parametrize(
    ("row", "amount", "expected"),
    [
        pytest.param([0, 500, 1000], 500, [500, 500, 1000], id="to the fullest that can have it"),
        pytest.param([0, 1000], 1000, [1000, 1000], id="a whole one to a used one"),
    ],
)
def test_one_pod_gives_back(row: list[int], amount: int, expected: list[int]) -> None:
    put_back(row, 1000, amount)
    assert row == expected


def test_a_set_of_fractions_goes_where_devices_are_broken_already() -> None:
    room = room_of((1000, 1000), (1000, 500))
    found = pack(room, [Want(name="a", shape=pod(500), count=1)])
    assert found == Packed(packing={"a": {1: 1}})


def test_sets_of_fractions_compete_for_devices_and_not_for_their_sum() -> None:
    room = room_of((1000, 1000))
    fits = [Want(name="a", shape=pod(600), count=2), Want(name="b", shape=pod(400), count=2)]
    assert pack(room, fits) == Packed(packing={"a": {0: 2}, "b": {0: 2}})
    too_large = [Want(name="a", shape=pod(600), count=2), Want(name="b", shape=pod(500), count=1)]
    assert isinstance(pack(room, too_large), Shortage)


def test_a_fraction_that_fits_on_no_device_misses_what_the_best_device_lacks() -> None:
    room = room_of((400, 400), (700, 100))
    assert nearest_miss(room, Want(name="a", shape=pod(900), count=1)) == Miss(
        name="a", placeable=0, node="n1", short=((GPU, 200),)
    )


def test_what_is_taken_is_undone_exactly() -> None:
    room = room_of((1000, 700, 600), (1000, 1000, 1000))
    before = devices_of(room, GPU).free.copy()
    undo = take(room, {"a": {0: 2, 1: 1}}, {"a": ((GPU, 500),)})
    assert devices_of(room, GPU).free.tolist() == [[1000, 200, 100], [500, 1000, 1000]]
    assert room.free[GPU].tolist() == [1300, 2500]
    undo()
    assert (devices_of(room, GPU).free == before).all()
    assert room.free[GPU].tolist() == [2300, 3000]


def test_a_device_used_when_the_table_was_made_can_be_given_back() -> None:
    room = room_of((2000,), reported=False, most=2)
    take(room, {"a": {0: 2}}, {"a": ((GPU, 1000),)})
    assert count(room, pod(500)) == 0
    give_back(room, {"a": {0: 1}}, {"a": ((GPU, 1000),)})
    assert count(room, pod(500)) == 2
    assert count(room, pod(1000)) == 1


def test_fractions_put_where_others_leave_keep_those_devices() -> None:
    room = room_of((1000,) * 4)
    leaves = {"leaves": ((GPU, 1000),)}
    take(room, {"stays": {0: 1}}, {"stays": ((GPU, 1000),)})
    take(room, {"leaves": {0: 2}}, leaves)
    take(room, {"comes": {0: 3}}, {"comes": ((GPU, 750),)})
    assert count(room, pod(500)) == 0, "one is free, and is taken"
    give_back(room, {"leaves": {0: 2}}, leaves)
    assert count(room, pod(500)) == 0, "those that come have a quarter left on each device"
    assert count(room, pod(250)) == 3


def test_devices_counted_where_too_much_was_given_already_are_not_free() -> None:
    room = room_of((2000,), reported=False, most=2)
    whole = ((GPU, 1000),)
    take(room, {"leaves": {0: 2}}, {"leaves": whole})
    take(room, {"comes": {0: 2}}, {"comes": whole})
    assert count(room, pod(500)) == 0
    give_back(room, {"leaves": {0: 2}}, {"leaves": whole})
    assert count(room, pod(500)) == 0


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 10).map(lambda integer: integer * 100), min_size=1, max_size=4),
    st.integers(1, 25).map(lambda integer: integer * 100),
)
def test_the_count_equals_putting_pods_one_by_one(row: list[int], amount: int) -> None:
    rows = np.array([row], dtype=np.int64)
    placed = 0
    left = list(row)
    while put(left, 1000, amount):
        placed += 1
        assert min(left) >= 0
    assert pods_on(rows, 1000, amount).tolist() == [_most(tuple(sorted(row)), amount)] == [placed]


@cache
def _most(row: tuple[int, ...], amount: int) -> int:
    """Brute force: the most pods, over every choice of devices for the next one."""
    whole, rest = divmod(amount, 1000)
    intact = [at for at, free in enumerate(row) if free == 1000]
    if len(intact) < whole:
        return 0
    # Which of the intact devices are taken whole makes no difference.
    left = [0 if at in intact[:whole] else free for at, free in enumerate(row)]
    if not rest:
        return 1 + _most(tuple(sorted(left)), amount)
    best = 0
    for free in sorted({free for free in left if free >= rest}):
        after = list(left)
        after[after.index(free)] -= rest
        best = max(best, 1 + _most(tuple(sorted(after)), amount))
    return best


def test_whole_devices_taken_before_anybody_asked_for_a_fraction_are_gone() -> None:
    room = room_of((1000, 1000), reported=False, most=2)
    whole = Want(name="a", shape=pod(1000), count=1)
    part = Want(name="b", shape=pod(600), count=1)
    assert isinstance(pack(room, [whole, part]), Packed)
    more = Want(name="b", shape=pod(600), count=2)
    assert isinstance(pack(room, [whole, more]), Shortage)


def test_undoing_gives_whole_devices_back_though_the_table_was_made_since() -> None:
    room = room_of((1000, 1000), reported=False, most=2)
    part = Want(name="b", shape=pod(600), count=2)
    undo = take(room, {"a": {0: 1}}, {"a": pod(1000).requests})
    assert isinstance(pack(room, [part]), Shortage)
    undo()
    assert isinstance(pack(room, [part]), Packed)
