"""Topology domains, required and preferred, and slices: small cases told as sentences."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.core.model import Shape, Topology
from fairway.core.nodes import Cluster, Nodes, Room, label_column
from fairway.core.packing.pack import Packed, Short, Shortage, Want, pack

GPU = "nvidia.com/gpu"
POD = Shape(requests=((GPU, 1000),))

# (block, rack, free GPUs); the two racks named r1 are different ones.
Row = tuple[str | None, str | None, int]
FLEET: list[Row] = [
    ("b1", "r1", 2),
    ("b1", "r1", 2),
    ("b1", "r2", 3),
    ("b2", "r1", 4),
    ("b2", "r1", 4),
    ("b2", "r3", 1),
    (None, None, 8),
]


def room_of(rows: list[Row]) -> Room:
    nodes = Nodes(
        names=tuple(f"n{position}" for position in range(len(rows))),
        capacity={GPU: np.full(len(rows), 9000, dtype=np.int64)},
        ready=np.ones(len(rows), dtype=np.bool_),
        labels={
            "example/block": label_column([block for block, _, _ in rows]),
            "example/rack": label_column([rack for _, rack, _ in rows]),
        },
    )
    levels = (("block", "example/block"), ("rack", "example/rack"))
    room = Room(Cluster(name="c", nodes=nodes, levels=levels))
    room.free[GPU] = np.array([free * 1000 for _, _, free in rows], dtype=np.int64)
    return room


@pytest.mark.parametrize(
    ("topology", "pods", "level", "domains"),
    [
        pytest.param(
            Topology(required="rack"), 3, "rack", {"r2": 3}, id="the smallest rack that holds all"
        ),
        pytest.param(
            Topology(required="rack"), 4, "rack", {"b1/r1": 4}, id="a rack told apart by its block"
        ),
        pytest.param(
            Topology(required="rack"), 8, "rack", {"b2/r1": 8}, id="the only rack that holds all"
        ),
        pytest.param(
            Topology(required="block"),
            7,
            "block",
            {"b1": 7},
            id="the smallest block that holds all",
        ),
        pytest.param(
            Topology(preferred="rack"),
            3,
            "rack",
            {"r2": 3},
            id="the preferred level where it holds",
        ),
        pytest.param(
            Topology(preferred="rack"), 9, "block", {"b2": 9}, id="one level outwards where not"
        ),
        pytest.param(
            Topology(preferred="rack"),
            12,
            "block",
            {"b1": 3, "b2": 9},
            id="several of the outermost at last, the largest filled first",
        ),
        pytest.param(
            Topology(preferred="rack"), 20, "", {}, id="any nodes where domains do not suffice"
        ),
        pytest.param(
            Topology(required="block", slice_level="rack", slice_size=2),
            6,
            "rack",
            {"b1/r1": 4, "r2": 2},
            id="slices whole inside racks of one block",
        ),
        pytest.param(
            Topology(slice_level="rack", slice_size=4),
            12,
            "rack",
            {"b1/r1": 4, "b2/r1": 8},
            id="slices in as few racks as possible",
        ),
        pytest.param(
            Topology(slice_level="rack", slice_size=4),
            3,
            "rack",
            {"b1/r1": 3},
            id="a slice that is not full needs room for a whole one",
        ),
        pytest.param(
            Topology(required="example/rack"),
            3,
            "rack",
            {"r2": 3},
            id="a level that is named by its node label",
        ),
        pytest.param(
            Topology(preferred="planet"), 2, "", {}, id="no domain where the level is unknown"
        ),
    ],
)
def test_pods_are_placed_in(
    topology: Topology, pods: int, level: str, domains: dict[str, int]
) -> None:
    found = pack(room_of(FLEET), [Want(name="a", shape=POD, count=pods, topology=topology)])
    assert isinstance(found, Packed)
    assert sum(found.packing["a"].values()) == pods
    assert found.levels.get("a", "") == level
    assert dict(found.domains.get("a", ())) == domains


@pytest.mark.parametrize(
    ("topology", "pods", "placeable"),
    [
        pytest.param(Topology(required="rack"), 9, 8, id="no rack holds as many"),
        pytest.param(Topology(required="block"), 10, 9, id="no block holds as many"),
        pytest.param(Topology(required="planet"), 1, 0, id="the cluster has no such level"),
        pytest.param(Topology(slice_level="planet", slice_size=2), 2, 0, id="nor such slices"),
        pytest.param(
            Topology(slice_level="rack", slice_size=4), 16, 12, id="too few whole slices are left"
        ),
        pytest.param(
            Topology(required="block", slice_level="rack", slice_size=3),
            7,
            6,
            id="too few slices in one block",
        ),
    ],
)
def test_pods_that_find_no_domain_say_how_many_would(
    topology: Topology, pods: int, placeable: int
) -> None:
    found = pack(room_of(FLEET), [Want(name="a", shape=POD, count=pods, topology=topology)])
    assert found == Shortage(short=(Short(name="a", wanted=pods, placeable=placeable),))


def test_on_the_way_down_pods_are_put_into_as_few_racks_as_possible() -> None:
    rows: list[Row] = [("b1", "r1", 2), ("b1", "r2", 2), ("b1", "r3", 4), ("b1", "r4", 3)]
    want = Want(name="a", shape=POD, count=6, topology=Topology(required="block"))
    found = pack(room_of(rows), [want])
    assert found == Packed(
        packing={"a": {2: 4, 0: 2}}, levels={"a": "block"}, domains={"a": (("b1", 6),)}
    )


def test_nodes_without_the_inner_label_still_belong_to_the_outer_domain() -> None:
    rows: list[Row] = [("b1", None, 3), ("b1", "r1", 2)]
    want = Want(name="a", shape=POD, count=5, topology=Topology(required="block"))
    found = pack(room_of(rows), [want])
    assert isinstance(found, Packed)
    assert found.packing == {"a": {0: 3, 1: 2}}


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        pytest.param(3, {"a": (("b1/r1", 3),), "b": (("b1/r1", 1),)}, id="the smallest that holds"),
        pytest.param(7, {"a": (("b2/r1", 7),), "b": (("b2/r1", 1),)}, id="a larger one if need be"),
    ],
)
def test_one_domain_holds_the_whole_workload(
    workers: int, expected: dict[str, tuple[tuple[str, int], ...]]
) -> None:
    wants = [Want(name="a", shape=POD, count=workers), Want(name="b", shape=POD, count=1)]
    found = pack(room_of(FLEET), wants, "rack")
    assert isinstance(found, Packed)
    assert found.domains == expected
    assert found.levels == {"a": "rack", "b": "rack"}


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        pytest.param(
            8,
            Shortage(short=(Short(name="b", wanted=1, placeable=0),), domain="b2/r1"),
            id="each set fits alone in the nearest domain, and both do not",
        ),
        pytest.param(
            10,
            Shortage(short=(Short(name="a", wanted=10, placeable=8),), domain="b2/r1"),
            id="a set does not fit in any domain",
        ),
    ],
)
def test_a_workload_that_no_domain_holds_names_the_nearest(
    workers: int, expected: Shortage
) -> None:
    wants = [Want(name="a", shape=POD, count=workers), Want(name="b", shape=POD, count=1)]
    assert pack(room_of(FLEET), wants, "rack") == expected


def test_a_cluster_without_the_level_holds_no_workload_that_needs_it() -> None:
    found = pack(room_of(FLEET), [Want(name="a", shape=POD, count=1)], "planet")
    assert found == Shortage(short=(Short(name="a", wanted=1, placeable=0),))
