"""Which nodes may take a pod: selectors, affinity, taints and flavors."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.api.meta import NodeRequirement, NodeTerm, Taint, Toleration
from fairway.core.model import Flavor, Pool, ResourceGroup, Shape
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.packing.eligibility import (
    Eligibility,
    eligible,
    overlaps,
    pool_takes,
    rivals_of,
    tolerates,
)

DEDICATED = Taint(key="dedicated", value="ml", effect="NoSchedule")
DRAINED = Taint(key="drained", effect="NoExecute")
RATHER_NOT = Taint(key="rather-not", effect="PreferNoSchedule")


def cluster_of(name: str = "c") -> Cluster:
    """Five nodes: plain, dedicated, drained, rather not, not ready."""
    return Cluster(
        name=name,
        labels={"provider": "here"},
        nodes=Nodes(
            names=("n0", "n1", "n2", "n3", "n4"),
            capacity={},
            ready=np.array([True, True, True, True, False]),
            labels={
                "gpu": label_column(["h100", "h100", "a100", None, "h100"]),
                "cores": label_column(["8", "16", "many", "32", "64"]),
                "spot": label_column([None, "yes", None, None, None]),
            },
            taint_sets=((DEDICATED,), (DRAINED,), (RATHER_NOT,)),
            taint_set=np.array([-1, 0, 1, 2, -1], dtype=np.int32),
        ),
    )


ANYTHING = (Toleration(operator="Exists"),)


def names(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    return " ".join(f"n{at}" for at in mask.nonzero()[0].tolist())


def term(*requirements: tuple[str, str, tuple[str, ...]]) -> NodeTerm:
    return NodeTerm(
        match_expressions=tuple(
            NodeRequirement(key=key, operator=operator, values=values)  # type: ignore[arg-type]  # table of literals
            for key, operator, values in requirements
        )
    )


@pytest.mark.parametrize(
    ("selector", "affinity", "expected"),
    [
        pytest.param((), (), "n0 n1 n2 n3", id="every node that is ready"),
        pytest.param((("gpu", "h100"),), (), "n0 n1", id="a selector needs the value"),
        pytest.param((("gpu", "v100"),), (), "", id="a value that no node has"),
        pytest.param((("none", "x"),), (), "", id="a label that no node has"),
        pytest.param(
            (), (term(("gpu", "In", ("a100", "v100"))),), "n2", id="In: one of the values"
        ),
        pytest.param(
            (), (term(("gpu", "NotIn", ("h100",))),), "n2 n3", id="NotIn: also without the label"
        ),
        pytest.param((), (term(("spot", "Exists", ())),), "n1", id="Exists: any value"),
        pytest.param(
            (), (term(("spot", "DoesNotExist", ())),), "n0 n2 n3", id="DoesNotExist: no value"
        ),
        pytest.param((), (term(("none", "Exists", ())),), "", id="Exists: of an unknown label"),
        pytest.param(
            (), (term(("none", "NotIn", ("x",))),), "n0 n1 n2 n3", id="NotIn: of an unknown label"
        ),
        pytest.param((), (term(("cores", "Gt", ("8",))),), "n1 n3", id="Gt: numbers only"),
        pytest.param((), (term(("cores", "Lt", ("32",))),), "n0 n1", id="Lt: numbers only"),
        pytest.param((), (term(("cores", "Gt", ("few",))),), "", id="Gt: of no number is never so"),
        pytest.param(
            (),
            (term(("gpu", "In", ("h100",)), ("spot", "Exists", ())),),
            "n1",
            id="all tests of a term must hold",
        ),
        pytest.param(
            (),
            (term(("gpu", "In", ("a100",))), term(("spot", "Exists", ()))),
            "n1 n2",
            id="one of several terms suffices",
        ),
        pytest.param((), (NodeTerm(),), "", id="a term that tests nothing holds nowhere"),
        pytest.param(
            (("gpu", "h100"),),
            (term(("cores", "Gt", ("8",))),),
            "n1",
            id="selector and affinity must both hold",
        ),
    ],
)
def test_eligible_by_labels(
    selector: tuple[tuple[str, str], ...], affinity: tuple[NodeTerm, ...], expected: str
) -> None:
    shape = Shape(requests=(), node_selector=selector, node_affinity=affinity, tolerations=ANYTHING)
    assert names(eligible(cluster_of(), shape)) == expected


@pytest.mark.parametrize(
    ("own", "extra", "expected"),
    [
        pytest.param((), (), "n0 n3", id="a preference keeps nobody away"),
        pytest.param(
            (Toleration(key="dedicated", value="ml"),), (), "n0 n1 n3", id="the pod tolerates"
        ),
        pytest.param(
            (), (Toleration(key="dedicated", value="ml"),), "n0 n1 n3", id="the flavor tolerates"
        ),
        pytest.param((Toleration(key="dedicated", value="x"),), (), "n0 n3", id="another value"),
        pytest.param(
            (Toleration(key="drained", operator="Exists", effect="NoExecute"),),
            (),
            "n0 n2 n3",
            id="a key with any value",
        ),
        pytest.param(
            (Toleration(key="drained", operator="Exists", effect="NoSchedule"),),
            (),
            "n0 n3",
            id="another effect",
        ),
        pytest.param(ANYTHING, (), "n0 n1 n2 n3", id="everything"),
    ],
)
def test_eligible_by_taints(
    own: tuple[Toleration, ...], extra: tuple[Toleration, ...], expected: str
) -> None:
    shape = Shape(requests=(), tolerations=own)
    assert names(eligible(cluster_of(), shape, None, extra)) == expected


def test_a_toleration_of_equal_value_needs_the_same_key() -> None:
    assert not tolerates(Toleration(key="other", value="ml"), DEDICATED)


H100 = Flavor(
    name="h100",
    node_labels=(("gpu", "h100"),),
    tolerations=(Toleration(key="dedicated", value="ml"),),
)
SPOT = Flavor(name="spot", node_labels=(("spot", "yes"),))
HERE = Flavor(name="here", cluster_labels=(("provider", "here"),))
THERE = Flavor(name="there", cluster_labels=(("provider", "there"),))


@pytest.mark.parametrize(
    ("flavors", "expected"),
    [
        pytest.param((), "n0 n3", id="no flavor"),
        pytest.param((H100,), "n0 n1", id="its nodes, with its tolerations"),
        pytest.param((H100, SPOT), "n1", id="two flavors at once"),
        pytest.param((HERE,), "n0 n3", id="a flavor of this cluster"),
        pytest.param((THERE,), "", id="a flavor of another cluster"),
    ],
)
def test_eligible_by_flavors(flavors: tuple[Flavor, ...], expected: str) -> None:
    assert names(Eligibility().of(cluster_of(), Shape(requests=()), flavors)) == expected


def test_answers_are_remembered_per_selecting_parts_and_not_per_amounts() -> None:
    known, cluster = Eligibility(), cluster_of()
    first = known.of(cluster, Shape(requests=(("cpu", 1000),)), (H100,))
    assert known.of(cluster, Shape(requests=(("cpu", 2000),)), (H100,)) is first
    assert known.of(cluster, Shape(requests=(("cpu", 1000),))) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = False


def test_a_cluster_that_was_replaced_is_asked_anew() -> None:
    known = Eligibility()
    old = known.of(cluster_of(), Shape(requests=()))
    assert known.of(cluster_of(), Shape(requests=())) is not old


def test_a_new_node_of_a_pool_is_judged_like_any_node() -> None:
    pool = Pool(name="p", shape=(), labels=(("gpu", "h100"),), taints=(DEDICATED,))
    cluster = cluster_of()
    assert pool_takes(cluster, pool, Shape(requests=()), (H100,))
    assert not pool_takes(cluster, pool, Shape(requests=()))
    assert not pool_takes(cluster, pool, Shape(requests=()), (H100, SPOT))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param([("h100", "spot")], [("n1", 1)], id="one node has both"),
        pytest.param([("h100",), ("spot",)], [], id="in two resource groups both are fine"),
        pytest.param(
            [("here", "spot"), ("spot", "here")], [("n1", 1)], id="each pair is told once"
        ),
        pytest.param([("there", "h100", "unknown")], [], id="no node has both"),
        pytest.param([("h100", "here")], [("n0", 3)], id="several nodes have both"),
    ],
)
def test_flavors_that_overlap(
    groups: list[tuple[str, ...]], expected: list[tuple[str, int]]
) -> None:
    flavors = {item.name: item for item in (H100, SPOT, HERE, THERE)}
    rivals = rivals_of(
        [ResourceGroup(resources=("cpu",), flavors=names) for names in groups], flavors
    )
    found = overlaps({"c": cluster_of()}, flavors, rivals)
    assert [(item.node, item.count) for item in found] == expected
    for first in flavors.values():
        known = Eligibility(rivals)
        own = known.of(cluster_of(), Shape(requests=()), (first,))
        for second in rivals.get(first.name, ()):
            assert not (own & cluster_of().flavor_nodes(second)).any()
