"""Bounds over clusters never refuse what fits, and the fast ranking equals the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core import model, nodes
from fairway.core.clusters import balance_order, ranking
from fairway.core.packing import pack, space
from fairway.core.quota.flavors import Assignment
from fairway.core.snapshot import Facts, Snapshot
from tests.core.score_facts import Given

GPU, CPU = "nvidia.com/gpu", "cpu"
ON_ANY = Assignment(flavors={"main": {}}, names=())


def snapshot_of(*frees: list[tuple[int, int]]) -> Snapshot:
    """A cluster for each list of nodes with their GPUs and CPUs."""
    clusters = {}
    for number, free in enumerate(frees):
        columns = {
            GPU: np.array([item[0] * 1000 for item in free], dtype=np.int64),
            CPU: np.array([item[1] * 1000 for item in free], dtype=np.int64),
        }
        name = f"cluster-{number}"
        clusters[name] = nodes.Cluster(
            name=name,
            nodes=nodes.Nodes(
                names=tuple(f"node-{at}" for at in range(len(free))),
                capacity=columns,
                ready=np.ones(len(free), dtype=np.bool_),
            ),
        )
    return Snapshot(Facts(now=0.0, clusters=clusters))


def form_of(count: int, gpus: int, cpus: int) -> model.Form:
    shape = model.Shape(requests=((CPU, cpus * 1000), (GPU, gpus * 1000)))
    return model.Form(pod_sets=(model.PodSet(name="main", shape=shape, count=count, least=count),))


def fits(snapshot: Snapshot, form: model.Form) -> list[bool]:
    return snapshot.stock.chance(ON_ANY, form).fits.tolist()


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param(form_of(1, 8, 8), [True, False], id="a pod needs a node as large"),
        pytest.param(
            form_of(3, 4, 1), [False, False], id="all pods together need as much in total"
        ),
        pytest.param(form_of(2, 4, 1), [True, True], id="what fits is not refused"),
    ],
)
def test_clusters_without_room_are_passed_over(form: model.Form, expected: list[bool]) -> None:
    snapshot = snapshot_of([(8, 32), (3, 4)], [(4, 8), (4, 8)])
    assert fits(snapshot, form) == expected


def test_what_is_given_back_is_seen() -> None:
    snapshot = snapshot_of([(8, 32)])
    form = form_of(1, 8, 1)
    requests = {"main": form.pod_sets[0].shape.requests}
    with snapshot.ledger.trial():
        snapshot.ledger.take("cluster-0", {"main": {0: 1}}, requests)
        assert fits(snapshot, form) == [False]
    assert fits(snapshot, form) == [True]


def test_a_bound_that_promised_too_much_is_made_exact_when_told() -> None:
    snapshot = snapshot_of([(8, 32)])
    form = form_of(1, 8, 1)
    assert fits(snapshot, form) == [True]
    requests = {"main": form.pod_sets[0].shape.requests}
    snapshot.ledger.take("cluster-0", {"main": {0: 1}}, requests)
    snapshot.stock.look_again("cluster-0", ON_ANY, form)
    assert fits(snapshot, form) == [False]


NODE = st.tuples(st.integers(0, 8), st.integers(0, 16))


@given(
    st.lists(st.lists(NODE, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.integers(1, 8)), max_size=6),
)
def test_whatever_is_packed_was_promised(
    frees: list[list[tuple[int, int]]], wanted: list[tuple[int, int, int]]
) -> None:
    snapshot = snapshot_of(*frees)
    for numbers in wanted:
        form = form_of(*numbers)
        promised = fits(snapshot, form)
        want = pack.Want(name="main", shape=form.pod_sets[0].shape, count=numbers[0])
        for at, room in enumerate(snapshot.ledger.rooms.values()):
            found = pack.pack(room, [want])
            if isinstance(found, pack.Packed):
                assert promised[at]
                requests = {"main": want.shape.requests}
                snapshot.ledger.take(room.cluster.name, found.packing, requests)
                break
            snapshot.stock.look_again(room.cluster.name, ON_ANY, form)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=1, max_size=30),
    st.lists(st.tuples(st.sampled_from(["Steady", "Balance"]), st.integers(-10, 10)), max_size=3),
)
def test_the_order_in_arrays_equals_the_plain_ranking(
    rows: list[tuple[int, bool]], scored: list[tuple[str, int]]
) -> None:
    names = tuple(f"cluster-{at:02}" for at in range(len(rows)))
    scores = tuple(model.Score(name=name, weight=weight) for name, weight in scored)
    facts = [Given(name, others=others) for name, (others, _) in zip(names, rows, strict=True)]
    unwelcome = {name for name, (_, is_bad) in zip(names, rows, strict=True) if is_bad}
    plain = ranking.rank(facts, scores, 0.0, unwelcome=unwelcome)
    order = balance_order.Order(
        names,
        np.array([others for others, _ in rows], dtype=np.int64),
        scores,
        np.array([is_bad for _, is_bad in rows]) if unwelcome else None,
    )
    assert list(order) == plain
    assert list(order.totals().items()) == [(item.cluster, item.total) for item in plain]


@given(
    st.lists(st.integers(-3, 8), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 3), st.sampled_from([-2, -1, 1, 2])),
        max_size=20,
    ),
)
def test_bounds_kept_change_by_change_equal_bounds_made_anew(
    free: list[int], changes: list[tuple[int, int, int]]
) -> None:
    column = np.array(free, dtype=np.int64)
    names = tuple(f"node-{at}" for at in range(len(free)))
    ready = np.ones(len(free), dtype=np.bool_)
    kept = nodes.Nodes(names=names, capacity={GPU: column}, ready=ready)
    room = nodes.Room(nodes.Cluster(name="here", nodes=kept))
    for at, count, amount in changes:
        space.bounds(room, GPU)
        room.change(GPU, {at % len(free): count}, amount)
        now = room.free[GPU]
        assert space.bounds(room, GPU) == (int(now.clip(min=0).sum()), max(0, int(now.max())))
    assert column.tolist() == free
