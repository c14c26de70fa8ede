"""Whether a workload could ever start: on an empty fleet with every cluster open.

A workload that does not fit here can never start, whatever ends, until the fleet, a queue or the
workload is changed. Only lasting limits count. Closed clusters, taints, nodes that are not ready
and stock-outs of elastic pools are temporary, so pools are assumed to have enough nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import Forbidden
from fairway.core.model import Form, Workload
from fairway.core.nodes import Cluster
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.provisioning.pools import Provisioned, find_pool
from fairway.core.reasons import quota_reason, refusal_reason
from fairway.core.snapshot import Facts, Snapshot

_NODES_ENOUGH = 1_000_000  # of a pool


def impossible(facts: Facts, workload: Workload) -> Reason | None:
    """Why a workload can never start as the fleet is; None if it can, or if that is not known."""
    return never_starts(empty_round(facts), workload)


def empty_round(facts: Facts) -> PlanningRound:
    """A planning round on the empty fleet, for many calls of `never_starts`."""
    clusters = {name: _open(cluster) for name, cluster in facts.clusters.items()}
    return PlanningRound(Snapshot(replace(facts, clusters=clusters, workloads={}, strays={})))


def never_starts(planning: PlanningRound, workload: Workload) -> Reason | None:
    """Like `impossible`, in a given planning round."""
    if workload.queue not in planning.snapshot.facts.queues:
        return None  # a missing queue is a reason of its own
    if not planning.ledger.tree.is_usable(workload.queue):
        return None
    lasting = replace(workload, avoids=(), held=None, releasing=())
    reasons: list[Reason] = []
    for form in _least(workload):
        for option in planning.assignments(lasting, form):
            request = PlacementRequest(lasting, form, option)
            reason = quota_reason(planning, request)
            if reason is not None:
                reasons.append(_for_ever(reason))
            elif not planning.has_clusters or _has_room(planning, request):
                return None
            else:
                reasons.append(Reason(code=Code.IMPOSSIBLE, flavor=",".join(option.names)))
    for reason in reasons:
        if reason.code == Code.IMPOSSIBLE:
            return _forbidden(planning, lasting) or Reason(code=Code.IMPOSSIBLE)
    return reasons[0] if reasons else Reason(code=Code.IMPOSSIBLE)


def _forbidden(planning: PlanningRound, workload: Workload) -> Reason | None:
    """The fleet policy that leaves a workload no cluster."""
    candidates = planning.candidates(workload)
    if candidates.allowed:
        return None
    for cluster, refusal in candidates.refused:
        if isinstance(refusal, Forbidden):
            return refusal_reason(cluster, refusal)
    return None


def _open(cluster: Cluster) -> Cluster:
    ready = np.ones(len(cluster.nodes), dtype=np.bool_)
    return replace(
        cluster,
        nodes=replace(cluster.nodes, ready=ready),
        taints=(),
        is_open=True,
        pools=tuple(replace(pool, left=_NODES_ENOUGH, is_doubtful=False) for pool in cluster.pools),
    )


def _least(workload: Workload) -> Iterator[Form]:
    """The forms of a workload, each with the fewest pods that it needs."""
    for form in workload.forms:
        pod_sets = [
            replace(pod_set, count=pod_set.least if workload.mode == "Gang" else pod_set.count)
            for pod_set in form.pod_sets
        ]
        yield replace(form, pod_sets=tuple(pod_sets))


def _has_room(planning: PlanningRound, request: PlacementRequest) -> bool:
    workload = request.workload
    for cluster in planning.candidates(workload).allowed:
        wants = planning.wants(cluster, request)
        if isinstance(
            pack.pack(planning.ledger.rooms[cluster], wants, workload.domain), pack.Packed
        ):
            return True
        if isinstance(find_pool(planning, request, cluster), Provisioned):
            return True
    return False


def _for_ever(reason: Reason) -> Reason:
    """Quota that is too small on an empty fleet is always too small."""
    if reason.code == Code.QUOTA_EXCEEDED:
        return replace(reason, code=Code.QUOTA_TOO_SMALL)
    return reason
