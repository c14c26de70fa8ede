"""New nodes of an elastic pool: how many make a workload fit."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.core.model import Pool, Shape, Topology
from fairway.core.nodes import Cluster, Nodes, Room, label_column
from fairway.core.packing.pack import Packed, Shortage, Want
from fairway.core.provisioning.new_nodes import Grown, pack_with_new_nodes

GPU = "nvidia.com/gpu"
POD = Shape(requests=((GPU, 4000),))


def room_of(*free: int) -> Room:
    nodes = Nodes(
        names=tuple(f"n{position}" for position in range(len(free))),
        capacity={GPU: np.full(len(free), 8000, dtype=np.int64)},
        ready=np.ones(len(free), dtype=np.bool_),
        labels={
            "zone": label_column(["z1"] * len(free)),
            "slice": label_column([f"s{position}" for position in range(len(free))]),
        },
    )
    room = Room(Cluster(name="c", nodes=nodes, levels=(("zone", "zone"), ("slice", "slice"))))
    room.free[GPU] = np.array(free, dtype=np.int64)
    return room


def pool(unit: int = 1, labels: tuple[tuple[str, str], ...] = ()) -> Pool:
    return Pool(name="p", shape=((GPU, 8000),), unit=unit, labels=labels)


@pytest.mark.parametrize(
    ("free", "pods", "unit", "left", "expected"),
    [
        pytest.param((8000,), 2, 1, 9, (0, {0: 2}), id="no new node where it fits already"),
        pytest.param((4000,), 3, 1, 9, (1, {0: 1, 1: 2}), id="the existing node is used as well"),
        pytest.param((0, 0), 5, 1, 9, (3, {2: 2, 3: 2, 4: 1}), id="as few new nodes as possible"),
        pytest.param((0,), 5, 4, 9, (4, {1: 2, 2: 2, 3: 1}), id="whole units"),
        pytest.param((0,), 5, 1, 2, None, id="no more than are left"),
        pytest.param((0,), 5, 4, 3, None, id="no part of a unit"),
    ],
)
def test_new_nodes_needed(
    free: tuple[int, ...],
    pods: int,
    unit: int,
    left: int,
    expected: tuple[int, dict[int, int]] | None,
) -> None:
    want = Want(name="a", shape=POD, count=pods)
    found = pack_with_new_nodes(room_of(*free), [want], pool(unit), left=left, takes=[True])
    if expected is None:
        assert isinstance(found, Shortage)
    else:
        assert found == Grown(packed=Packed(packing={"a": expected[1]}), new_nodes=expected[0])


def test_a_set_for_which_new_nodes_are_not_eligible_stays_on_existing_ones() -> None:
    wants = [Want(name="a", shape=POD, count=1), Want(name="b", shape=POD, count=2)]
    found = pack_with_new_nodes(room_of(4000), wants, pool(), left=9, takes=[False, True])
    assert found == Grown(packed=Packed(packing={"a": {0: 1}, "b": {1: 2}}), new_nodes=1)
    refused = pack_with_new_nodes(room_of(0), wants, pool(), left=9, takes=[False, True])
    assert isinstance(refused, Shortage)


@pytest.mark.parametrize(
    ("unit", "labels", "level", "expected"),
    [
        pytest.param(1, (("zone", "z1"),), "zone", (("z1", 3),), id="labels of the pool count"),
        pytest.param(2, (), "slice", (("p+0", 3),), id="a unit of several nodes is a domain"),
        pytest.param(1, (), "slice", None, id="a single node without the label is in no domain"),
    ],
)
def test_domains_of_new_nodes(
    unit: int,
    labels: tuple[tuple[str, str], ...],
    level: str,
    expected: tuple[tuple[str, int], ...] | None,
) -> None:
    want = Want(name="a", shape=POD, count=3, topology=Topology(required=level))
    found = pack_with_new_nodes(room_of(4000), [want], pool(unit, labels), left=4, takes=[True])
    if expected is None:
        assert isinstance(found, Shortage)
    else:
        assert isinstance(found, Grown)
        assert found.packed.domains["a"] == expected


def test_new_nodes_have_whole_devices() -> None:
    room = room_of(0)
    want = Want(name="a", shape=Shape(requests=((GPU, 600),)), count=9)
    found = pack_with_new_nodes(room, [want], pool(), left=9, takes=[True])
    assert found == Grown(packed=Packed(packing={"a": {1: 8, 2: 1}}), new_nodes=2)
