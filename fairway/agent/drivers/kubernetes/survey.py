"""Surveys a cluster that is to join: its nodes by kind, and drafts made from them.

Drafts are what a person would write after a first look: a Flavor for each accelerator model, the
network levels that nodes are labelled with, and the pools that nodes come from. A person should
review drafts before use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairway.agent.drivers.kubernetes.accelerators import accelerators_of, model_label
from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.api.amounts import Quantity
from fairway.api.meta import API_VERSION, JsonObject, Taint

ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"
_INSTANCE = "node.kubernetes.io/instance-type"
# Labels that name the pool of a node, by provider.
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "alibabacloud.com/nodepool-id",
)
# Labels, with their values, that mark a node as spot.
_SPOT = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
# Network levels, the outermost first: name and label.
_LEVELS = (
    ("zone", ZONE),
    ("block", "cloud.google.com/gce-topology-block"),
    ("subblock", "cloud.google.com/gce-topology-subblock"),
    ("layer-1", "topology.k8s.aws/network-node-layer-1"),
    ("layer-2", "topology.k8s.aws/network-node-layer-2"),
    ("layer-3", "topology.k8s.aws/network-node-layer-3"),
    ("nvlink", "nvidia.com/gpu.clique"),
)
# Words that end labels set by hand, the outermost level first.
_WORDS = ("room", "superpod", "spine", "block", "leaf", "switch", "rack")
_HEALTH_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_NAME_MOST = 63
_NANOS = 10**9
_SHAPE = ("cpu", "memory", "ephemeral-storage", "pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one pool, accelerator model, accelerator count and price class."""

    name: str
    model: str = ""
    resource: str = ""  # that pods request to get accelerators
    each: int = 0  # accelerators per node
    spot: tuple[str, str] | None = None  # the label that marks the nodes as spot
    nodes: Sequence[Node] = ()

    @property
    def ready(self) -> int:
        return sum(node.is_ready for node in self.nodes)

    @property
    def zones(self) -> list[str]:
        return sorted({node.labels[ZONE] for node in self.nodes if ZONE in node.labels})


def pools_of(nodes: Iterable[Node]) -> list[Pool]:
    """Nodes grouped into pools; those with the most accelerators first."""
    several: dict[tuple[str, str, str, int, tuple[str, str] | None], list[Node]] = {}
    for node in nodes:
        accelerators = accelerators_of(node.labels, node.allocatable)
        resource = accelerators.resources[0] if accelerators and accelerators.resources else ""
        each = node.allocatable.get(resource, 0) // _NANOS
        spot = next((pair for pair in _SPOT if node.labels.get(pair[0]) == pair[1]), None)
        key = (_pool_name(node), accelerators.model if accelerators else "", resource, each, spot)
        several.setdefault(key, []).append(node)
    pools = [
        Pool(name=name, model=model, resource=resource, each=each, spot=spot, nodes=alike)
        for (name, model, resource, each, spot), alike in several.items()
    ]
    return sorted(pools, key=lambda pool: (-pool.each * len(pool.nodes), pool.name, pool.model))


def flavors(pools: Iterable[Pool]) -> list[JsonObject]:
    """A Flavor for each accelerator model, and another if it is available as spot."""
    result: dict[str, JsonObject] = {}
    for pool in pools:
        label = model_label(pool.nodes[0].labels)
        if not label or not pool.each:
            continue
        name = _name(f"{pool.model}{'-spot' if pool.spot else ''}")
        spec: JsonObject = {"nodeLabels": _told_by(pool.nodes[0], label)}
        if pool.spot:
            spec["interruptible"] = True
        if taints := _shared_taints(pool.nodes):
            spec["nodeTaints"] = taints
            spec["tolerations"] = [{**taint, "operator": "Equal"} for taint in taints]
        identity = {"apiVersion": API_VERSION, "kind": "Flavor", "metadata": {"name": name}}
        result.setdefault(name, {**identity, "spec": spec})
    return list(result.values())


def _told_by(node: Node, label: str) -> dict[str, str]:
    """The labels that identify nodes of a flavor: the model, and the capacity type if labelled."""
    keys = (label, *(key for key, _ in _SPOT if key in node.labels))
    return {key: node.labels[key] for key in keys}


def topology(nodes: Sequence[Node]) -> list[JsonObject]:
    """The network levels that nodes are labelled with, the outermost first."""
    keys = {key for node in nodes for key in node.labels}
    levels = [(name, key) for name, key in _LEVELS if key in keys]
    known = {key for _, key in levels}
    for word in _WORDS:
        ending = sorted(name for name in keys - known if re.split(r"[/._-]", name)[-1] == word)
        levels += [(word, key) for key in ending[:1] if word not in dict(levels)]
    if nodes:
        levels.append(("node", _HOST))
    return [{"name": name, "nodeLabel": key} for name, key in levels]


def elastic_pools(pools: Iterable[Pool]) -> list[JsonObject]:
    """Elastic pools that could provide more nodes like the existing ones."""
    result: dict[str, JsonObject] = {}
    for pool in pools:
        node = pool.nodes[0]
        label = next((name for name in _POOLS if node.labels.get(name)), "")
        if not label:
            continue
        kept = {ZONE, _INSTANCE, label, model_label(node.labels), *(pool.spot or ())[:1]}
        result.setdefault(
            pool.name,
            {
                "name": _name(pool.name),
                "shape": {
                    key: str(Quantity(nanos))
                    for key, nanos in node.allocatable.items()
                    if nanos and key in (*_SHAPE, pool.resource)
                },
                "labels": {key: node.labels[key] for key in sorted(kept) if key in node.labels},
                "countMax": len(pool.nodes),
            },
        )
    return list(result.values())


def _pool_name(node: Node) -> str:
    labels: Mapping[str, str] = node.labels
    return next((labels[key] for key in (*_POOLS, _INSTANCE) if labels.get(key)), "-")


def _shared_taints(nodes: Sequence[Node]) -> list[JsonObject]:
    """Taints that all these nodes share, except health taints and PreferNoSchedule."""
    shared: set[Taint] = set(nodes[0].taints).intersection(*(node.taints for node in nodes[1:]))
    return [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in sorted(shared, key=lambda other: (other.key, other.effect))
        if not taint.key.startswith(_HEALTH_TAINTS) and taint.effect != "PreferNoSchedule"
    ]


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower())[:_NAME_MOST].strip("-") or "flavor"
