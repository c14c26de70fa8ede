"""What fits where, best fit, and packings of pod sets that compete, told as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fairway.core.model import ONE_POD, Shape, Topology
from fairway.core.nodes import Cluster, Mask, Nodes, Room, label_column
from fairway.core.packing.near_fit import Miss, nearest_miss
from fairway.core.packing.pack import (
    UNLIMITED,
    Packed,
    Short,
    Shortage,
    Want,
    count,
    pack,
    pack_most,
    slots,
)

GPU = "nvidia.com/gpu"


def room_of(
    free: Mapping[str, Sequence[int]],
    *,
    capacity: Mapping[str, int] | None = None,
    racks: Sequence[str | None] | None = None,
) -> Room:
    """A room with these free amounts, on nodes that have more than is free of anything."""
    number = len(next(iter(free.values())))
    most = dict.fromkeys(free, 1000000) | dict(capacity or {})
    nodes = Nodes(
        names=tuple(f"n{position}" for position in range(number)),
        capacity={name: np.full(number, most[name], dtype=np.int64) for name in free},
        ready=np.ones(number, dtype=np.bool_),
        labels={} if racks is None else {"rack": label_column(racks)},
    )
    levels = () if racks is None else (("rack", "rack"),)
    room = Room(Cluster(name="c", nodes=nodes, levels=levels))
    for name, column in free.items():
        room.free[name] = np.array(column, dtype=np.int64)
    return room


def shape(**amounts: int) -> Shape:
    named = {"gpu": GPU, "cpu": "cpu", "memory": "memory"}
    return Shape(requests=tuple(sorted((named[key], amount) for key, amount in amounts.items())))


def only(*positions: int, of: int) -> Mask:
    return np.array([position in positions for position in range(of)])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(shape(cpu=2000), [2, 0, 5], id="free divided by what one pod needs"),
        pytest.param(shape(cpu=2000, memory=8), [1, 0, 0], id="the scarcest resource decides"),
        pytest.param(shape(gpu=1000), [0, 0, 0], id="a resource the cluster lacks fits nowhere"),
        pytest.param(
            shape(), [UNLIMITED // ONE_POD] * 3, id="a pod that needs nothing fits without limit"
        ),
    ],
)
def test_slots_say_how_many_pods_fit_on_each_node(pod: Shape, expected: list[int]) -> None:
    room = room_of({"cpu": [4000, -500, 10000], "memory": [8, 100, 7]})
    assert slots(room, pod).tolist() == expected
    assert count(room, pod) == sum(expected)


def test_slots_are_counted_on_eligible_nodes_only() -> None:
    room = room_of({"cpu": [4000, 6000]})
    assert slots(room, shape(cpu=2000), only(1, of=2)).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("free", "pods", "expected"),
    [
        pytest.param([8000, 3000, 2000], 1, {2: 1}, id="the node that is filled most tightly"),
        pytest.param([8000, 2000, 2000], 1, {1: 1}, id="the earlier of two nodes alike"),
        pytest.param([8000, 8000, 5000], 2, {2: 2}, id="whole nodes stay whole"),
        pytest.param([8000, 2000, 8000], 2, {1: 1, 0: 1}, id="a whole node only for the rest"),
        pytest.param([5000, 4000, 8000], 2, {1: 2}, id="no remainder rather than a remainder"),
        pytest.param([2000, 7000, 5000], 3, {0: 1, 2: 2}, id="the last node is the tightest one"),
        pytest.param([8000, 8000, 8000], 12, {0: 4, 1: 4, 2: 4}, id="everything, if need be"),
    ],
)
def test_pods_of_two_gpus_go_to(free: list[int], pods: int, expected: dict[int, int]) -> None:
    room = room_of({GPU: free}, capacity={GPU: 8000})
    found = pack(room, [Want(name="a", shape=shape(gpu=2000), count=pods)])
    assert found == Packed(packing={"a": expected})


def test_a_set_that_does_not_fit_says_how_many_pods_do() -> None:
    room = room_of({GPU: [3000, 3000]})
    found = pack(room, [Want(name="a", shape=shape(gpu=2000), count=3)])
    assert found == Shortage(short=(Short(name="a", wanted=3, placeable=2),))


def test_what_is_plainly_impossible_is_refused_with_a_bound() -> None:
    room = room_of({GPU: [3000, 3000]})
    found = pack(room, [Want(name="a", shape=shape(gpu=2000), count=4)])
    assert found == Shortage(short=(Short(name="a", wanted=4, placeable=3, is_bound=True),))
    assert isinstance(found, Shortage)
    assert found.short[0].missing == 1


def test_a_node_with_more_used_than_it_has_hides_nothing() -> None:
    room = room_of({GPU: [-9000, 2000]})
    assert pack(room, [Want(name="a", shape=shape(gpu=1000), count=2)]) == Packed(
        packing={"a": {1: 2}}
    )


def test_a_change_of_the_room_is_seen_at_once() -> None:
    room = room_of({GPU: [2000]})
    want = [Want(name="a", shape=shape(gpu=2000), count=1)]
    assert isinstance(pack(room, want), Packed)
    room.change(GPU, {0: 1}, -1000)
    assert isinstance(pack(room, want), Shortage)
    room.change(GPU, {0: 1}, 1000)
    assert isinstance(pack(room, want), Packed)


def test_sets_that_compete_are_packed_largest_pods_first() -> None:
    room = room_of({"cpu": [4000, 3000]})
    found = pack(
        room,
        [
            Want(name="small", shape=shape(cpu=1000), count=3),
            Want(name="large", shape=shape(cpu=4000), count=1),
        ],
    )
    assert found == Packed(packing={"large": {0: 1}, "small": {1: 3}})


def test_sets_with_less_choice_come_first_where_the_largest_first_fails() -> None:
    room = room_of({GPU: [1000, 1000], "memory": [3, 1], "cpu": [0, 0]})
    found = pack(
        room,
        [
            Want(name="a", shape=shape(gpu=1000, memory=1), count=1),
            Want(name="b", shape=shape(gpu=1000, memory=1), count=1, mask=only(0, of=2)),
        ],
    )
    assert found == Packed(packing={"b": {0: 1}, "a": {1: 1}})


def test_a_small_case_is_searched_where_both_orders_fail() -> None:
    # Both sets have twice the room they need, and best fit alone puts `a` where `b` must go.
    room = room_of({GPU: [1000, 1000], "memory": [4, 3]})
    found = pack(
        room,
        [
            Want(name="a", shape=shape(gpu=1000, memory=3), count=1),
            Want(name="b", shape=shape(memory=1), count=2, mask=only(0, of=2)),
        ],
    )
    assert found == Packed(packing={"a": {1: 1}, "b": {0: 2}})


def test_sets_that_fit_alone_and_not_together_fall_short() -> None:
    room = room_of({"cpu": [4000, 4000]})
    found = pack(
        room,
        [
            Want(name="a", shape=shape(cpu=3000), count=2),
            Want(name="b", shape=shape(cpu=2000), count=1),
        ],
    )
    assert found == Shortage(short=(Short(name="b", wanted=1, placeable=0),))


def test_a_set_without_pods_needs_nothing() -> None:
    room = room_of({"cpu": [1000]})
    found = pack(
        room,
        [
            Want(name="none", shape=shape(gpu=9000), count=0),
            Want(name="one", shape=shape(cpu=1000), count=1),
        ],
    )
    assert found == Packed(packing={"none": {}, "one": {0: 1}})


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param(10, (8, 2), id="both sets in full where both fit"),
        pytest.param(9, (7, 2), id="sets shrink in proportion to what they may give up"),
        pytest.param(6, (4, 2), id="the smallest step down that fits"),
        pytest.param(3, (2, 1), id="at least the least of each"),
        pytest.param(2, None, id="less than the least is a shortage"),
    ],
)
def test_elastic_sets_shrink_together(gpus: int, expected: tuple[int, int] | None) -> None:
    # May give up 6 and 1 of 7 steps: i = 1 leaves 8 - 6*1//7 = 8 and 2 - 1*1//7 = 2, and so on.
    room = room_of({GPU: [gpus * 1000]})
    found = pack_most(
        room,
        [
            Want(name="workers", shape=shape(gpu=1000), count=8, least=2),
            Want(name="servers", shape=shape(gpu=1000), count=2, least=1),
        ],
    )
    if expected is None:
        assert isinstance(found, Shortage)
    else:
        assert isinstance(found, Packed)
        assert (
            tuple(sum(found.packing[item].values()) for item in ("workers", "servers")) == expected
        )


@pytest.mark.parametrize(
    ("pod", "pods", "topology", "expected"),
    [
        pytest.param(shape(gpu=2000), 1, Topology(), None, id="nothing, where it fits"),
        pytest.param(
            shape(gpu=8000, cpu=1000),
            1,
            Topology(),
            Miss(name="a", placeable=0, node="n1", short=((GPU, 2000),)),
            id="the node that lacks least, and what it lacks",
        ),
        pytest.param(
            shape(gpu=2000),
            6,
            Topology(),
            Miss(name="a", placeable=5, short=((GPU, 2000),)),
            id="the amount that is missing in all",
        ),
        pytest.param(
            shape(gpu=2000),
            4,
            Topology(required="rack"),
            Miss(name="a", placeable=3, domain="r2", short=((GPU, 2000),)),
            id="the domain that holds most",
        ),
    ],
)
def test_the_nearest_miss_is(
    pod: Shape, pods: int, topology: Topology, expected: Miss | None
) -> None:
    room = room_of({GPU: [4000, 6000], "cpu": [9000, 9000]}, racks=["r1", "r2"])
    want = Want(name="a", shape=pod, count=pods, topology=topology)
    assert nearest_miss(room, want) == expected
