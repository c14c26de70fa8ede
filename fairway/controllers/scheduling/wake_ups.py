"""What an event means for the next plan: which workloads are new, what was freed, when to wake.

A plan of all waiting workloads is expensive; one of only the new workloads is cheap. All are
planned only if something was freed since the last such plan: a claim was released, a node came, a
queue changed, a workload for which something was kept no longer waits, a service may return to a
cluster that it avoided. New claims are the echo of
our own decisions, and reports mostly say where pods were bound that were already charged.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fairway.api.claim import Placement
from fairway.api.names import OVER
from fairway.api.workload import Workload
from fairway.view.objects import Touched

_TOGETHER_SECONDS = 0.25
_EVERYBODY = ""  # timer key that wakes all workloads, where time alone frees something


class Notice:
    """The relevant events since the last plan."""

    def __init__(self) -> None:
        self.is_freed = True  # the first plan is of all workloads
        self.woken: set[str] = set()
        self.blockers: Collection[str] = ()  # waiting workloads for which something is kept
        self._timers: list[tuple[float, str]] = []
        self._set: set[tuple[float, str]] = set()  # the timers that are set

    def note(self, touched: Touched) -> None:
        """An object was created, changed or removed."""
        before, after = touched.before, touched.after
        if touched.kind == "Workload":
            self._note_workload(touched.key, before, after)
            return
        if touched.kind == "ClusterScore":
            return  # scores rank clusters, for whatever is planned next, and free nothing
        relevant = _RELEVANT.get(touched.kind, _whole)
        has_changed = (
            before is not after
            if before is None or after is None
            else relevant(before) != relevant(after)
        )
        if not has_changed:
            return
        self.is_freed = True
        if touched.kind == "PlacementPolicy" and after is not None and after.spec.rebalance_at:
            self._wake(_EVERYBODY, after.spec.rebalance_at.timestamp())
        if touched.kind == "Cluster" and after is not None:
            for belief in after.status.stock:
                for moment in (belief.try_at, belief.out_until):
                    if moment is not None:
                        self._wake(_EVERYBODY, moment.timestamp())

    def ring(self, now: float) -> None:
        """Wakes workloads whose timers are due."""
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            self._set.discard(timer)
            if timer[1] == _EVERYBODY:
                self.is_freed = True
            else:
                self.woken.add(timer[1])

    def next_moment(self) -> float | None:
        """When the next timers are due: rounded up, so that close ones fire together."""
        if not self._timers:
            return None
        return math.ceil(self._timers[0][0] / _TOGETHER_SECONDS) * _TOGETHER_SECONDS

    def clear(self) -> None:
        """A plan begins that takes all events so far into account."""
        self.is_freed = False
        self.woken.clear()

    def _note_workload(self, key: str, before: Workload | None, after: Workload | None) -> None:
        if charge(after) < charge(before) or (
            key in self.blockers and _asks(after) != _asks(before)
        ):
            self.is_freed = True
        if after is not None and after.status.claim and _avoided(before) - _avoided(after):
            self.is_freed = True  # services return in plans of all workloads
        if after is None or after.status.phase in OVER:
            self.woken.discard(key)
            return
        self.woken.add(key)
        for moment in _moments(after):
            self._wake(key, moment)

    def _wake(self, key: str, moment: float) -> None:
        if (moment, key) not in self._set:
            self._set.add((moment, key))
            heapq.heappush(self._timers, (moment, key))


def _asks(workload: Workload | None) -> object:
    """What a workload still asks for; None: nothing."""
    if workload is None or workload.status.phase in OVER:
        return None
    return workload.spec


def _avoided(workload: Workload | None) -> frozenset[str]:
    requeue = workload.status.requeue if workload is not None else None
    return frozenset(requeue.avoid if requeue is not None else ())


def charge(workload: Workload | None) -> int:
    """The pods and placements that a workload is charged for."""
    if workload is None:
        return 0
    status = workload.status
    held = status.claim.placements if status.claim is not None else ()
    return _count(held) + _count(status.releasing)


def _count(placements: Sequence[Placement]) -> int:
    pods = sum(
        pod_set.count - pod_set.finished
        for placement in placements
        for pod_set in placement.pod_sets
    )
    return pods + len(placements)


def _moments(workload: Workload) -> Iterator[float]:
    """When time alone may change what is decided on a workload.

    After its backoff, with an alternative, or with a request to divide it afresh.
    """
    requeue = workload.status.requeue
    if workload.spec.rebalance_at is not None:
        yield workload.spec.rebalance_at.timestamp()
    if requeue is not None and requeue.not_before is not None:
        yield requeue.not_before.timestamp()
    since = workload.status.queued_at or workload.metadata.creation_timestamp
    if since is not None:
        moment = since.timestamp()
        for alternative in workload.spec.alternatives:
            moment += alternative.after_seconds
            yield moment


def _whole(object_: Any) -> Any:
    return object_


def _spec(object_: Any) -> Any:
    return object_.spec


def _cluster(cluster: Any) -> Any:
    status = cluster.status
    return (
        cluster.spec,
        cluster.metadata.labels,
        status.phase,
        status.claims,
        status.kinds,
        status.avoided_nodes,
        status.leaving_nodes,
        status.elastic_pools,
        status.offered_pools,
        status.stock,
    )


def _report(report: Any) -> Any:
    spec = report.spec
    pools = [(pool.name, pool.nodes, pool.stock) for pool in spec.pools]
    return spec.nodes, spec.removed_nodes, pools, spec.namespaces


def _fleet(fleet: Any) -> Any:
    breakers = fleet.status.breakers
    return fleet.spec, [breaker.name for breaker in breakers if breaker.open_since]


# The part of an object of each kind that decisions depend on.
_RELEVANT: Mapping[str, Callable[[Any], Any]] = {
    "Cluster": _cluster,
    "ClusterReport": _report,
    "Fleet": _fleet,
    "Flavor": _spec,
    "Queue": _spec,
    "PlacementPolicy": _spec,
    "FleetPolicy": _spec,
    "KindRule": _spec,
}
