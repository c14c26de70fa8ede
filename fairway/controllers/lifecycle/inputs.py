"""Gathers the inputs of the lifecycle from the cache, as plain values."""

from __future__ import annotations

from datetime import datetime

from fairway.api.cluster import Cluster
from fairway.api.fleet import FleetSpec
from fairway.api.meta import Toleration
from fairway.api.names import work_name
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.report import WorkState
from fairway.api.taint_times import taints_of
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.controllers.clusters.health import Heard
from fairway.controllers.lifecycle.case import (
    ClusterFacts,
    PodsSeen,
    Settings,
    WorkObservation,
    settings_of,
)
from fairway.controllers.work_states import States
from fairway.core import model
from fairway.core.clusters.candidates import is_outside
from fairway.governance.cluster_selectors import facts_of
from fairway.kinds.registry import KnownKinds
from fairway.view import policies
from fairway.view.selectors import both, choose
from fairway.view.workloads import ends

_QUEUES_DEEP = 64  # the queue tree is not deeper; deeper is a cycle


def seen_of(state: WorkState) -> WorkObservation:
    """The reported state of a work, as plain numbers."""
    return WorkObservation(
        attempt=state.attempt,
        phase=state.phase,
        reason=state.reason,
        message=state.message,
        exit_code=state.exit_code,
        node=state.node,
        started_at=_seconds(state.started_at),
        ready_at=_seconds(state.ready_at),
        finished_at=_seconds(state.finished_at),
        pods={
            pod.name: PodsSeen(
                pending=pod.pending,
                bound=pod.bound,
                ready=pod.ready,
                succeeded=pod.succeeded,
                failed=pod.failed,
                terminating=pod.terminating,
                pending_since=_seconds(pod.pending_since),
                unready_since=_seconds(pod.unready_since),
            )
            for pod in state.pods
        },
        succeeded_tasks=state.succeeded_tasks,
        failed_tasks=state.failed_tasks,
    )


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment is not None else None


def states_of(
    states: States, workload: tuple[str, str], clusters: set[str]
) -> dict[str, WorkObservation]:
    """The observed works of a workload, by cluster."""
    name = work_name(*workload)
    observations = {}
    for cluster in clusters:
        state = states.get(cluster, name)
        if state is not None:
            observations[cluster] = seen_of(state)
    return observations


def place_of(cluster: Cluster, heard: Heard | None) -> ClusterFacts:
    return ClusterFacts(
        phase=cluster.status.phase or "Pending",
        silent_seconds=heard.silent_seconds if heard else 0.0,
        is_cut_off=heard is not None and heard.is_cut_off,
        hold=cluster.spec.hold,
        mode=cluster.spec.mode,
        taints=taints_of(cluster),
        when_lost=cluster.spec.when_lost,
        awaited_pools=frozenset(
            pool.name for pool in cluster.status.elastic_pools if pool.provisioning
        ),
        failed_pools=failed_pools(cluster),
    )


def relevant(cluster: Cluster) -> tuple[object, ...]:
    """What matters about a cluster for the workloads that run there."""
    status, metadata = cluster.status, cluster.metadata
    facts = (metadata.labels, status.claims, status.taints)
    return (cluster.spec, status.phase, failed_pools(cluster), *facts)


def failed_pools(cluster: Cluster) -> dict[str, float]:
    """Pools whose last provisioning failed, and when, unless nodes are being provisioned."""
    coming = {pool.name for pool in cluster.status.elastic_pools if pool.provisioning}
    return {
        belief.name: belief.failed_at.timestamp()
        for belief in cluster.status.stock
        if belief.failed_at is not None and belief.name not in coming
    }


def outside(cache: Cache, workload: Workload, fleet: FleetSpec, held: set[str]) -> frozenset[str]:
    """Those of some clusters that the policy of a workload, or its queue, does not allow."""
    if not held:
        return frozenset()
    queues = queues_of(cache, workload, fleet)
    known = (cache.get(Cluster, name) for name in held)
    facts = {each.metadata.name: facts_of(each) for each in known if each is not None}
    fence: model.Clusters = None
    for queue in queues:
        fence = both(fence, choose(queue.spec.clusters, facts))
    policy = policy_of(cache, workload, queues, fleet)
    rules = policies.policy_of(policy, facts) if policy is not None else policies.DEFAULT
    fenced = model.Queue(name=workload.spec.queue, fence=fence)
    return frozenset(name for name in facts if is_outside(name, rules, fenced))


def is_copied(cache: Cache, workload: Workload, fleet: FleetSpec, kinds: KnownKinds) -> bool:
    """Whether copies of a workload run to completion, each in a cluster of its own.

    A claim that counts copies keeps doing so until the scheduler decides otherwise.
    """
    claim = workload.status.claim
    if claim is not None and claim.missing_copies is not None:
        return True
    if not ends(workload, kinds):
        return False
    policy = policy_of(cache, workload, queues_of(cache, workload, fleet), fleet)
    return policy is not None and policy.spec.division.type == "Duplicated"


def settings(cache: Cache, workload: Workload, fleet: FleetSpec) -> Settings:
    """The settings of a workload."""
    queues = queues_of(cache, workload, fleet)
    return settings_of(workload, queues, fleet, _tolerations(cache, workload, queues, fleet))


def _queue_name(cache: Cache, workload: Workload, fleet: FleetSpec) -> str:
    """The queue that it is charged to, else the one that it waits in."""
    claim, status = workload.status.claim, workload.status
    named = (claim.queue if claim else "") or workload.spec.queue or status.queue
    return named or cache.default_queue(workload.metadata.namespace) or fleet.defaults.queue


def queues_of(cache: Cache, workload: Workload, fleet: FleetSpec) -> list[Queue]:
    """The queue of a workload and its ancestors."""
    name = _queue_name(cache, workload, fleet)
    queues: list[Queue] = []
    while name and len(queues) < _QUEUES_DEEP:
        queue = cache.get(Queue, name)
        if queue is None:
            break
        queues.append(queue)
        name = queue.spec.parent
    return queues


def _tolerations(
    cache: Cache, workload: Workload, queues: list[Queue], fleet: FleetSpec
) -> tuple[Toleration, ...]:
    policy = policy_of(cache, workload, queues, fleet)
    return policy.spec.tolerations if policy is not None else ()


def policy_of(
    cache: Cache, workload: Workload, queues: list[Queue], fleet: FleetSpec
) -> PlacementPolicy | None:
    """Its named policy (own or system namespace); without a name its queue's or the fleet's."""
    own, system = workload.metadata.namespace, fleet.system_namespace
    named = workload.spec.policy
    fallback = next(
        (queue.spec.defaults.policy for queue in queues if queue.spec.defaults.policy), ""
    )
    fallback = fallback or fleet.defaults.policy
    candidates = [(own, named), (system, named)] if named else [(system, fallback)]
    for namespace, name in candidates:
        policy = cache.get(PlacementPolicy, name, namespace) if name else None
        if policy is not None:
            return policy
    return None
