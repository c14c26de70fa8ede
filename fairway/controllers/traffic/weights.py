"""The weights of a service, from what the hub watches."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from msgspec.structs import replace

from fairway.api.amounts import NANO, is_accelerator
from fairway.api.claim import Placement
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.names import work_name
from fairway.api.report import WorkState
from fairway.api.workload import TrafficWeight, Workload
from fairway.controllers.cache import Cache
from fairway.controllers.lifecycle.leaving_replicas import placements_now
from fairway.controllers.work_states import States
from fairway.serving.traffic import Backend, weights


def traffic_of(cache: Cache, states: States, workload: Workload) -> tuple[TrafficWeight, ...]:
    """How the traffic of a service should be shared by the clusters that it is to be in."""
    backends = list(backends_of(cache, states, workload))
    shares = weights(backends)
    return tuple(
        TrafficWeight(cluster=backend.cluster, weight=shares[backend.cluster], ready=backend.ready)
        for backend in sorted(backends, key=lambda each: each.cluster)
    )


def backends_of(cache: Cache, states: States, workload: Workload) -> Iterable[Backend]:
    """The clusters of a service, with those where replicas run until others have replaced them.

    Replicas that only wait for their traffic to go elsewhere do not count.

    Ready replicas of a silent cluster count until the cluster is lost: an agent that cannot reach
    the hub does not mean that clients cannot reach the cluster.
    """
    claim = workload.status.claim
    if workload.spec.mode != "Divided" or claim is None:
        return
    work = work_name(workload.metadata.namespace, workload.metadata.name)
    serving = [
        placement for placement in workload.status.releasing if placement.leaves != "AfterTraffic"
    ]
    for other in placements_now(claim, serving):
        if not other.cluster:
            continue
        placement = replace(other, attempt=other.attempt or claim.attempt)
        cluster = cache.get(Cluster, placement.cluster)
        is_lost = cluster is None or cluster.status.phase == "Lost"
        state = None if is_lost else states.get(placement.cluster, work)
        yield Backend(
            cluster=placement.cluster,
            ready=ready_replicas(placement, state),
            speed=speed_of(cache, placement),
        )


def ready_replicas(placement: Placement, state: WorkState | None) -> int:
    """Replicas whose pods are all ready."""
    if state is None or not placement.replicas or state.attempt != placement.attempt:
        return 0
    ready = {pod.name: pod.ready for pod in state.pods}
    counts = [
        ready.get(pod_set.name, 0) // max(1, pod_set.count // placement.replicas)
        for pod_set in placement.pod_sets
    ]
    return min(placement.replicas, *counts) if counts else 0


def speed_of(cache: Cache, placement: Placement) -> Fraction:
    """The speed of its slowest flavor; of accelerators, if it has any."""
    flavors = {
        (resource, name) for pods in placement.pod_sets for resource, name in pods.flavors.items()
    }
    telling = [flavor for flavor in flavors if is_accelerator(flavor[0])] or flavors
    result = [cache.get(Flavor, name) for _, name in telling]
    return min(
        (Fraction(flavor.spec.speed.nanos, NANO) for flavor in result if flavor is not None),
        default=Fraction(1),
    )
