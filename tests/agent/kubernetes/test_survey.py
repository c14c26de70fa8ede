"""A first look at a cluster: nodes that are alike, and the drafts that are made of them."""

from __future__ import annotations

import msgspec
import pytest

from fairway.agent.drivers.kubernetes import survey
from fairway.agent.drivers.kubernetes.nodes import Node, ReadNode
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.flavor import Flavor

PRODUCT = "nvidia.com/gpu.product"
H100 = "NVIDIA-H100-80GB-HBM3"
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def node(
    *,
    gpus: int = 8,
    product: str = H100,
    taints: tuple[dict, ...] = (),
    ready: bool = True,
    **more: str,
) -> Node:
    labels = {key.replace("__", "/").replace("_", "."): value for key, value in more.items()}
    if gpus:
        labels[PRODUCT] = product
    allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110", "hugepages-2Mi": "0"}
    body = {
        "metadata": {"labels": labels},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {**allocatable, **({"nvidia.com/gpu": str(gpus)} if gpus else {})},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return ReadNode()(msgspec.json.encode(body))


def test_nodes_that_are_alike_make_a_pool_and_the_largest_comes_first() -> None:
    zone = "topology_kubernetes_io__zone"
    pools = survey.pools_of(
        [
            node(gpus=0),
            node(**{zone: "b"}),
            node(**{zone: "a"}, ready=False),
            node(gpus=4),
            node(product="NVIDIA-L4", gpus=2),
        ]
    )
    shown = [(pool.model, pool.each, len(pool.nodes), pool.ready, pool.zones) for pool in pools]
    assert shown == [
        (H100, 8, 2, 1, ["a", "b"]),
        (H100, 4, 1, 1, []),
        ("NVIDIA-L4", 2, 1, 1, []),
        ("", 0, 1, 1, []),
    ]


def test_each_model_is_a_flavor_and_spot_nodes_another() -> None:
    class_of = "karpenter_sh__capacity-type"
    nodes = [node(**{class_of: "on-demand"}), node(gpus=0), node(**{class_of: "spot"})]
    decoded = [decode(flavor, Flavor) for flavor in survey.flavors(survey.pools_of(nodes))]
    by_name = {item.metadata.name: item.spec for item in decoded}
    assert sorted(by_name) == ["nvidia-h100-80gb-hbm3", "nvidia-h100-80gb-hbm3-spot"]
    lasting, spot = (by_name[item] for item in sorted(by_name))
    assert (lasting.interruptible, spot.interruptible) == (False, True)
    # Told apart by the label, so that no node is of both.
    assert lasting.node_labels == {PRODUCT: H100, "karpenter.sh/capacity-type": "on-demand"}
    assert spot.node_labels == {PRODUCT: H100, "karpenter.sh/capacity-type": "spot"}


def test_taints_that_all_nodes_of_a_model_have_are_the_flavors_but_not_their_ills() -> None:
    (draft,) = survey.flavors(
        survey.pools_of([node(taints=(TAINT, CORDON)), node(taints=(TAINT,))])
    )
    flavor = decode(draft, Flavor)
    assert [node_taint.key for node_taint in flavor.spec.node_taints] == ["nvidia.com/gpu"]
    assert [toleration.key for toleration in flavor.spec.tolerations] == ["nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        ({}, ["node"]),
        ({"topology_kubernetes_io__zone": "a", "rack": "1"}, ["zone", "rack", "node"]),
        ({"example_com__rack": "1", "example_com__block": "1"}, ["block", "rack", "node"]),
        ({"example_com__topology-rack": "1"}, ["rack", "node"]),
        ({"cluster_example_com__crack": "1"}, ["node"]),
    ],
    ids=[
        "nodes without labels have only themselves",
        "zones are outside of racks",
        "blocks are outside of racks, whoever labelled them",
        "the last word of a label counts",
        "a word inside another is no word",
    ],
)
def test_levels_of_the_network_are_found_by_their_labels(
    labels: dict[str, str], levels: list[str]
) -> None:
    found = survey.topology([node(**labels)])
    assert [item["name"] for item in found] == levels
    spec = {"kubernetes": {}, "topology": found}
    body = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "a"}}
    assert len(decode({**body, "spec": spec}, Cluster).spec.topology) == len(levels)


def test_pools_of_a_provider_are_drafted_and_others_are_not() -> None:
    nodes = [node(agentpool="gpu"), node(agentpool="gpu"), node(gpus=4)]
    (pool,) = survey.elastic_pools(survey.pools_of(nodes))
    assert (pool["name"], pool["countMax"]) == ("gpu", 2)
    assert pool["labels"] == {PRODUCT: H100, "agentpool": "gpu"}
    assert pool["shape"] == {
        "cpu": "64",
        "memory": str(512 << 30),
        "nvidia.com/gpu": "8",
        "pods": "110",
    }
    spec = {"kubernetes": {}, "elasticPools": [pool]}
    body = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "a"}}
    assert decode({**body, "spec": spec}, Cluster).spec.elastic_pools[0].count_max == 2
