"""Which nodes may take a pod, regardless of what is free on them.

A node is eligible when it is ready, has the labels that the pod's selector and affinity require,
has the chosen flavors and none of their rivals, and has no taint that neither the pod nor its
flavors tolerate. A plan changes none of this, so the answers are cached in an `Eligibility`, which
a snapshot owns.

A node has at most one flavor of each resource group; otherwise its capacity would be counted twice.
A node that has two, by an error in its labels, is used for neither: it gets no new pods, and plans
report it. What runs there stays. Flavors that require different values of one label never share a
node; other flavors of a group are rivals. Most fleets have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairway.api.meta import NodeRequirement, NodeTerm, Taint, Toleration
from fairway.core.model import Flavor, Pool, ResourceGroup, Shape
from fairway.core.nodes import Cluster, LabelColumn, Mask, Nodes, label_column

_Key = tuple[object, ...]
NO_RIVALS: Rivals = {}
_REPELS = ("NoSchedule", "NoExecute")
_MASKS_MOST = 4096  # per cluster; beyond this the cache is cleared


def eligible(
    cluster: Cluster,
    shape: Shape,
    flavor_mask: Mask | None = None,
    extra_tolerations: Sequence[Toleration] = (),
) -> Mask:
    """The nodes of a cluster that may take a pod of this shape."""
    nodes = cluster.nodes
    mask: Mask = nodes.ready & _tolerate(nodes, (*shape.tolerations, *extra_tolerations))
    if flavor_mask is not None:
        mask &= flavor_mask
    if shape.node_selector:
        mask &= nodes.has_labels(shape.node_selector)
    if shape.node_affinity:
        mask &= _any_term(nodes, shape.node_affinity)
    return mask


class Eligibility:
    """A cache of eligible nodes, per cluster, selecting parts of a shape, and flavors.

    An answer depends on the arguments only. The entries of a cluster that was replaced by a new
    value of the same name are dropped on the first lookup of the new one.
    """

    __slots__ = ("_known", "rivals")

    def __init__(self, rivals: Rivals = NO_RIVALS) -> None:
        self.rivals = rivals
        self._known: dict[str, tuple[Cluster, dict[_Key, Mask]]] = {}

    def of(self, cluster: Cluster, shape: Shape, flavors: Sequence[Flavor] = ()) -> Mask:
        """The eligible nodes for a shape that have all of these flavors; read-only."""
        known = self._known.get(cluster.name)
        if known is None or known[0] is not cluster:
            known = self._known[cluster.name] = (cluster, {})
        key: _Key = (
            shape.node_selector,
            shape.node_affinity,
            shape.tolerations,
            tuple(
                (flavor.node_labels, flavor.cluster_labels, flavor.tolerations)
                for flavor in flavors
            ),
        )
        mask = known[1].get(key)
        if mask is None:
            if len(known[1]) >= _MASKS_MOST:
                known[1].clear()
            mask = known[1][key] = _of_flavors(cluster, shape, flavors, self.rivals)
            mask.setflags(write=False)
        return mask

    def forget(self, cluster: str) -> None:
        """Drops the entries of a cluster that is gone."""
        self._known.pop(cluster, None)


def _of_flavors(cluster: Cluster, shape: Shape, flavors: Sequence[Flavor], rivals: Rivals) -> Mask:
    chosen: Mask = np.ones(len(cluster.nodes), dtype=np.bool_)
    for flavor in flavors:
        chosen &= cluster.flavor_nodes(flavor)
        for rival in rivals.get(flavor.name, ()):
            chosen &= ~cluster.flavor_nodes(rival)
    tolerations = tuple(toleration for flavor in flavors for toleration in flavor.tolerations)
    return eligible(cluster, shape, chosen, tolerations)


def pool_takes(
    cluster: Cluster,
    pool: Pool,
    shape: Shape,
    flavors: Sequence[Flavor] = (),
    rivals: Rivals = NO_RIVALS,
) -> bool:
    """Whether a new node of an elastic pool would be eligible."""
    nodes = Nodes(
        names=(pool.name,),
        capacity={},
        ready=np.ones(1, dtype=np.bool_),
        labels={key: label_column([value]) for key, value in pool.labels},
        taint_sets=(pool.taints,),
        taint_set=np.zeros(1, dtype=np.int32),
    )
    alone = Cluster(name=cluster.name, nodes=nodes, labels=cluster.labels)
    return bool(_of_flavors(alone, shape, flavors, rivals)[0])


def _any_term(nodes: Nodes, terms: Sequence[NodeTerm]) -> Mask:
    """Which nodes satisfy one of the terms; no node satisfies an empty term."""
    mask: Mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        if term.match_expressions:
            holds: Mask = np.ones(len(nodes), dtype=np.bool_)
            for requirement in term.match_expressions:
                holds &= _holds(nodes, requirement)
            mask |= holds
    return mask


def _holds(nodes: Nodes, requirement: NodeRequirement) -> Mask:
    """Which nodes satisfy one requirement; NotIn also holds where the label is missing."""
    column = nodes.labels.get(requirement.key)
    if column is None:
        column = LabelColumn(codes=np.full(len(nodes), -1, dtype=np.int32), values=())
    match requirement.operator:
        case "Exists":
            return column.codes >= 0
        case "DoesNotExist":
            return column.codes < 0
        case "In":
            return _value_in(column, [name in requirement.values for name in column.values])
        case "NotIn":
            return ~_value_in(column, [name in requirement.values for name in column.values])
        case _:
            limit = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
            is_greater = requirement.operator == "Gt"
            return _value_in(
                column, [_beyond(_integer(name), limit, is_greater) for name in column.values]
            )


def _value_in(column: LabelColumn, passes: Sequence[bool]) -> Mask:
    # One entry more than there are values, so that code -1 (no label) reads False.
    table = np.array([*passes, False], dtype=np.bool_)
    mask: Mask = table[column.codes]
    return mask


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _beyond(value: int | None, limit: int | None, is_greater: bool) -> bool:
    if value is None or limit is None:
        return False
    return value > limit if is_greater else value < limit


def _tolerate(nodes: Nodes, tolerations: Sequence[Toleration]) -> Mask:
    """Which nodes have no taint that repels the pod."""
    if nodes.taint_set is None:
        return np.ones(len(nodes), dtype=np.bool_)
    # As for labels: a position of -1 means that the node has no taints.
    table = np.array(
        [
            *(all(_bears(taint, tolerations) for taint in taints) for taints in nodes.taint_sets),
            True,
        ],
        dtype=np.bool_,
    )
    mask: Mask = table[nodes.taint_set]
    return mask


def _bears(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return taint.effect not in _REPELS or any(
        tolerates(toleration, taint) for toleration in tolerations
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration accepts a taint, by Kubernetes' rules."""
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


# Flavor -> other flavors that a node could have too, and must not.
Rivals = Mapping[str, tuple[Flavor, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Nodes of a cluster that have two flavors of one resource group."""

    cluster: str
    first: str
    second: str
    node: str  # the first of them
    count: int


def rivals_of(groups: Iterable[ResourceGroup], flavors: Mapping[str, Flavor]) -> Rivals:
    """The rivals of each flavor that has any, by name of the flavor."""
    lists = {tuple(sorted(set(group.flavors))) for group in groups}
    pairs = {pair for names in lists for pair in combinations(names, 2)}
    rivals: dict[str, list[Flavor]] = {}
    for first, second in sorted(pairs):
        flavor, other = flavors.get(first), flavors.get(second)
        if flavor is not None and other is not None and _may_meet(flavor, other):
            rivals.setdefault(first, []).append(other)
            rivals.setdefault(second, []).append(flavor)
    return {name: tuple(others) for name, others in rivals.items()}


def _may_meet(flavor: Flavor, other: Flavor) -> bool:
    """Whether a node can have both flavors, judged by their labels."""
    return _agree(flavor.node_labels, other.node_labels) and _agree(
        flavor.cluster_labels, other.cluster_labels
    )


def _agree(some: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]) -> bool:
    values = dict(others)
    return all(values.get(key, value) == value for key, value in some)


def overlaps(
    clusters: Mapping[str, Cluster], flavors: Mapping[str, Flavor], rivals: Rivals
) -> Iterator[Overlap]:
    """The nodes that have two rival flavors, by cluster and pair of flavors."""
    for name in sorted(clusters) if rivals else ():
        cluster = clusters[name]
        for first, others in rivals.items():
            mine = cluster.flavor_nodes(flavors[first])
            for other in others:
                both = mine & cluster.flavor_nodes(other)
                if first < other.name and both.any():
                    yield Overlap(
                        cluster=name,
                        first=first,
                        second=other.name,
                        node=cluster.nodes.names[int(both.argmax())],
                        count=int(np.count_nonzero(both)),
                    )
