"""Which of the workloads that wait can never start, at a bounded cost per plan.

Whether a workload could ever start (`ever_possible`) depends on its likeness and on what lasts of
the fleet: shapes of nodes and pools, quota, policies. So each likeness is judged once, and again
only after one of these has changed; pods that come and go change nothing. A call judges a limited
number of likenesses: those on trial first, then those that were never judged, then the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairway.api.reasons import Reason
from fairway.core.forecast.ever_possible import empty_round, never_starts
from fairway.core.model import Flavor, Policy, Pool, Queue, Workload
from fairway.core.nodes import Cluster, Nodes
from fairway.core.plan import Plan, Waits
from fairway.core.planning_round import PlanningRound
from fairway.core.snapshot import Facts, Snapshot

_LOOKS_MOST = 20  # likenesses in one call; each may look at every cluster
_KNOWN_MOST = 100_000  # likenesses that are remembered
_UNKNOWN: Final = (-1, None)  # judged on no fleet


def judged(snapshot: Snapshot, plan: Plan) -> Plan:
    """A plan that says of all that waits whether it can never start."""
    return Judge().judge(snapshot, plan, most=len(plan.waiting))


class Judge:
    """Judges plans, one after the other, and remembers what it knows of likenesses."""

    def __init__(self) -> None:
        self._ground: _Ground | None = None
        self._number = 0  # of the ground: increases with each change
        self._empty: PlanningRound | None = None  # on the empty fleet, if made
        self._known: dict[Hashable, tuple[int, Reason | None]] = {}
        self.left: frozenset[str] = frozenset()  # of the last plan: workloads not judged yet

    def judge(self, snapshot: Snapshot, plan: Plan, most: int = _LOOKS_MOST) -> Plan:
        """The plan, with what is known of those that wait in it."""
        self._stand_on(snapshot.facts)
        workloads = snapshot.facts.workloads
        waiting = [(waits, _likeness(workloads[waits.workload])) for waits in plan.waiting]
        due: dict[Hashable, Workload] = {}
        for waits, likeness in waiting:
            if likeness is not None and self._known.get(likeness, _UNKNOWN)[0] < self._number:
                workload = workloads[waits.workload]
                if likeness not in due or workload.is_on_trial:
                    due[likeness] = workload
        rest = self._look(due, snapshot.facts, most)
        self.left = frozenset(
            waits.workload for waits, likeness in waiting if rest and likeness in rest
        )
        return replace(
            plan,
            waiting=tuple(self._tell(waits, likeness, workloads) for waits, likeness in waiting),
        )

    def _look(
        self, due: Mapping[Hashable, Workload], facts: Facts, most: int
    ) -> frozenset[Hashable]:
        """Judges some of the likenesses that were not judged on this fleet; returns the rest."""

        def precedence(likeness: Hashable) -> tuple[bool, int, str]:
            workload, (number, _) = due[likeness], self._known.get(likeness, _UNKNOWN)
            return (not workload.is_on_trial, number, workload.key)

        line = sorted(due, key=precedence)
        first, rest = line[:most], line[most:]
        if len(self._known) + len(first) > _KNOWN_MOST:
            self._known.clear()
        for likeness in first:
            if self._empty is None:
                self._empty = empty_round(facts)
            never = never_starts(self._empty, due[likeness])
            self._known[likeness] = (self._number, never)
        return frozenset(rest)

    def _tell(self, waits: Waits, likeness: Hashable, workloads: Mapping[str, Workload]) -> Waits:
        number, never = self._known.get(likeness, _UNKNOWN)
        if never is None:
            return waits
        # A refusal is final, so it is never made on what was true of an earlier fleet.
        is_refused = workloads[waits.workload].is_on_trial and number == self._number
        return replace(waits, never=never, is_refused=is_refused)

    def _stand_on(self, facts: Facts) -> None:
        """Notices whether what lasts of the fleet has changed."""
        ground = _Ground(
            clusters=dict(facts.clusters),
            queues=dict(facts.queues),
            flavors=facts.flavors,
            policies=facts.policies,
            default_policy=facts.default_policy,
        )
        if self._ground is None or not ground.is_like(self._ground):
            self._number += 1
            self._empty = None
        self._ground = ground


def _likeness(workload: Workload) -> Hashable:
    """Workloads of equal likeness are judged alike; None: it is not judged."""
    if not workload.is_waiting or workload.is_held or workload.is_refused:
        return None
    if len(workload.forms) == 1:
        return workload.likeness
    forms = tuple(form.likeness for form in workload.forms)
    return (workload.likeness, workload.queue, workload.policy, forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What judgements depend on."""

    clusters: Mapping[str, Cluster]
    queues: Mapping[str, Queue]
    flavors: Mapping[str, Flavor]
    policies: Mapping[str, Policy]
    default_policy: Policy

    def is_like(self, other: _Ground) -> bool:
        # Almost always all of it is the same, object by object.
        mine, others = self._objects(), other._objects()
        return mine == others or (
            self.clusters.keys() == other.clusters.keys()
            and self.queues.keys() == other.queues.keys()
            and (self.flavors is other.flavors or self.flavors == other.flavors)
            and (self.policies is other.policies or self.policies == other.policies)
            and self.default_policy == other.default_policy
            and all(_is_alike(queue, other.queues[name]) for name, queue in self.queues.items())
            and all(
                _is_same_place(cluster, other.clusters[name])
                for name, cluster in self.clusters.items()
            )
        )

    def _objects(self) -> tuple[object, ...]:
        clusters, queues = tuple(self.clusters.values()), tuple(self.queues.values())
        return (clusters, queues, self.flavors, self.policies, self.default_policy)


def _is_alike(queue: Queue, other: Queue) -> bool:
    """Whether two states of a queue allow the same workloads; past usage changes all the time."""
    return queue is other or queue == replace(other, remembered=queue.remembered)


def _is_same_place(cluster: Cluster, other: Cluster) -> bool:
    """Whether the same workloads could ever run in two states of a cluster."""
    return cluster is other or (
        _lasting(cluster) == _lasting(other)
        and (cluster.nodes is other.nodes or _have_same_shapes(cluster.nodes, other.nodes))
    )


def _lasting(cluster: Cluster) -> tuple[object, ...]:
    return (
        cluster.labels,
        cluster.has_reported,
        cluster.kinds,
        cluster.runs_pods_alone,
        cluster.levels,
        tuple(map(_pool_shape, cluster.pools)),
    )


def _pool_shape(pool: Pool) -> tuple[object, ...]:
    return (pool.name, pool.shape, pool.labels, pool.taints, pool.unit, pool.quota, pool.limited)


def _have_same_shapes(nodes: Nodes, other: Nodes) -> bool:
    return (
        nodes.names == other.names
        and nodes.devices == other.devices
        and nodes.taint_sets == other.taint_sets
        and (nodes.taint_set is None) == (other.taint_set is None)
        and (nodes.taint_set is None or np.array_equal(nodes.taint_set, other.taint_set))  # type: ignore[arg-type]  # checked before
        and nodes.labels.keys() == other.labels.keys()
        and all(
            column.values == other.labels[key].values
            and np.array_equal(column.codes, other.labels[key].codes)
            for key, column in nodes.labels.items()
        )
        and nodes.capacity.keys() == other.capacity.keys()
        and all(
            np.array_equal(
                nodes.whole.get(resource, column),
                other.whole.get(resource, other.capacity[resource]),
            )
            for resource, column in nodes.capacity.items()
        )
    )
