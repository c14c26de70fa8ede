"""Whether a workload could ever start: on an empty fleet with every cluster open.

A workload that does not fit here can never start, whatever ends, until the fleet, a queue or the
workload is changed. Only lasting limits count. Closed clusters, taints of clusters, nodes that are
cordoned or not ready, pods of others and stock-outs of elastic pools are temporary, so pools are
assumed to have enough nodes. Nothing is said of a workload that may use a cluster whose first
report is awaited.

That must be so in every form, at the smallest size, and on every flavor. If it would fit somewhere
but may not go there, the rule that keeps it away is named, not its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairway.api.meta import Rung, Taint
from fairway.api.reasons import Code, Reason
from fairway.core.allowances import ADMITTED, Allowance
from fairway.core.model import PodSet, Topology, Workload
from fairway.core.modes.gang_split import across_groups, can_split, is_ever_split, within_groups
from fairway.core.modes.ladder import steps_of
from fairway.core.nodes import Cluster
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.provisioning.pools import Provisioned, find_pool
from fairway.core.reasons import no_flavor, not_allowed, quota_reason, refusal_reason
from fairway.core.snapshot import Facts, Snapshot

_NODES_ENOUGH = 1_000_000  # of a pool
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


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
    is_gang = workload.mode == "Gang"
    for form in (form.smallest if is_gang else form for form in workload.forms):
        options = planning.assignments(lasting, form)
        if not options:
            reasons.append(no_flavor(planning, lasting, form))
        for option in options:
            request = PlacementRequest(lasting, form, option)
            reason = quota_reason(planning, request)
            if reason is not None:
                reasons.append(_for_ever(reason))
            elif (
                not planning.has_clusters
                or _has_room(planning, request)
                or _is_unknown(planning, lasting)
            ):
                return None
            else:
                reasons.extend(_excluded(planning, request))
                reasons.append(_too_small(planning, request))
    return min(reasons, key=_blame, default=Reason(code=Code.IMPOSSIBLE))


def _blame(reason: Reason) -> int:
    """A sort key: rules that keep it from where it would fit, then its size, then quota."""
    return 0 if reason.cluster else 1 if reason.code == Code.IMPOSSIBLE else 2


def _is_unknown(planning: PlanningRound, workload: Workload) -> bool:
    """Whether a cluster that it may use has not reported its nodes yet."""
    allowed = planning.candidates(workload).allowed
    return not all(planning.cluster(name).has_reported for name in allowed)


def _open(cluster: Cluster) -> Cluster:
    nodes = cluster.nodes
    return replace(
        cluster,
        nodes=replace(
            nodes,
            ready=np.ones(len(nodes), dtype=np.bool_),
            capacity={**nodes.capacity, **nodes.whole},
            taint_sets=tuple(map(_lasting_taints, nodes.taint_sets)),
        ),
        taints=(),
        is_open=True,
        pools=tuple(
            replace(pool, left=_NODES_ENOUGH, is_doubtful=False, awaits_stock=False)
            for pool in cluster.pools
        ),
        # Others may leave a namespace; its quotas are rules of the cluster, like its fences.
        allowances={
            key: Allowance(hard=allowance.hard, left=allowance.hard)
            for key, allowance in cluster.allowances.items()
        },
    )


def _lasting_taints(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Taints but those that Kubernetes sets for a while: cordoned, under pressure, not ready."""
    return tuple(taint for taint in taints if not taint.key.startswith(_PASSING_TAINTS))


def _has_room(planning: PlanningRound, request: PlacementRequest) -> bool:
    """Whether the clusters that its policy reaches have room, or pools for it."""
    workload, reach = request.workload, _reach(planning, request.workload)
    if any(
        _fits(planning, request, cluster, may_buy="Provision" in rungs)
        for cluster, rungs in reach.items()
    ):
        return True
    if not can_split(workload, request.form):
        return False
    grounds = (*within_groups(planning, workload), across_groups(planning, workload))
    return any(is_ever_split(planning, request, tuple(clusters)) for clusters in grounds)


def _too_small(planning: PlanningRound, request: PlacementRequest) -> Reason:
    """What is too small: each domain of a topology level, each cluster, or each node."""
    workload, form = request.workload, request.form

    def has_room(pod_set: PodSet, count: int, level: str = "") -> bool:
        pods = replace(pod_set, count=count, least=count, topology=Topology(required=level))
        alone = PlacementRequest(
            replace(workload, domain=""), replace(form, pod_sets=(pods,)), request.assignment
        )
        return _has_room(planning, alone)

    for pod_set in form.pod_sets:
        topology = pod_set.topology
        for level, count in (
            (topology.slice_level, topology.slice_size),
            (topology.required, pod_set.count),
        ):
            if level and has_room(pod_set, count) and not has_room(pod_set, count, level):
                return Reason(code=Code.IMPOSSIBLE, level=level)
    anywhere = PlacementRequest(replace(workload, domain=""), form, request.assignment)
    if workload.domain and _has_room(planning, anywhere):
        return Reason(code=Code.IMPOSSIBLE, level=workload.domain)
    if all(has_room(pod_set, 1) for pod_set in form.pod_sets if pod_set.count):
        most = workload.clusters_max if can_split(workload, form) else 0
        return Reason(code=Code.IMPOSSIBLE, level="cluster", count=most)
    return Reason(code=Code.IMPOSSIBLE)


def _reach(planning: PlanningRound, workload: Workload) -> dict[str, set[Rung]]:
    """The clusters on the policy's ladder, each with its rungs."""
    reach: dict[str, set[Rung]] = {}
    for _, rung, clusters in steps_of(planning, workload):
        for cluster in clusters:
            reach.setdefault(cluster, set()).add(rung)
    return reach


def _fits(
    planning: PlanningRound,
    request: PlacementRequest,
    cluster: str,
    *,
    may_buy: bool,
    by_nodes: bool = False,
) -> bool:
    """Whether a cluster has room; `by_nodes`: whatever its rules for the namespace say."""
    wants = planning.wants(cluster, request)
    if by_nodes:
        wants = [replace(want, admission=ADMITTED) for want in wants]
    room = planning.ledger.rooms[cluster]
    if isinstance(pack.pack(room, wants, request.workload.domain), pack.Packed):
        return True
    return may_buy and isinstance(find_pool(planning, request, cluster), Provisioned)


def _excluded(planning: PlanningRound, request: PlacementRequest) -> Iterator[Reason]:
    """Why it may not use the clusters where it would fit: a policy, a fence, a group, a volume."""
    candidates = planning.candidates(request.workload)
    for cluster, refusal in candidates.refused:
        if _fits(planning, request, cluster, may_buy=True, by_nodes=True):
            yield refusal_reason(cluster, refusal)
    reach = _reach(planning, request.workload)
    for cluster in candidates.allowed:
        reason = not_allowed(planning, request, "", cluster)
        if reason is not None:
            if _fits(planning, request, cluster, may_buy=True, by_nodes=True):
                yield reason
            continue
        if "Provision" in reach.get(cluster, ()):
            continue  # it has no room in any way
        if _fits(planning, request, cluster, may_buy=True):
            group = candidates.group_of()[cluster]
            yield Reason(code=Code.NOT_SELECTED, cluster=cluster, group=group)


def _for_ever(reason: Reason) -> Reason:
    """Quota that is too small on an empty fleet is always too small."""
    if reason.code == Code.QUOTA_EXCEEDED:
        return replace(reason, code=Code.QUOTA_TOO_SMALL)
    return reason
