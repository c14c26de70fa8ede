"""What is known of a service with a Rollout, as the values that decisions depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from fairway.api.claim import Placement
from fairway.api.cluster import Cluster
from fairway.api.names import work_name
from fairway.api.policy import PlacementPolicy
from fairway.api.report import WorkState
from fairway.api.rollout import APPROVED, RESUMED, RevisionNote, Rollout, RolloutStatus
from fairway.api.work import PodSetStatus
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.controllers.lifecycle import inputs
from fairway.controllers.lifecycle.leaving_replicas import placements_now
from fairway.controllers.work_states import States
from fairway.kinds.updates import is_divisible, may_have_second, step_most
from fairway.serving.rollout.case import ClusterPart, Counted, RolloutCase

_SILENT = ("Unready", "Lost")


def case_of(
    cache: Cache, states: States, rollout: Rollout, workload: Workload, status: RolloutStatus
) -> RolloutCase:
    """The case of a Rollout, whose latest revision is the last of the history in `status`."""
    template = workload.spec.template
    assert template is not None, "only workloads with a template have Rollouts that count"
    first, annotations = template.manifests[0], rollout.metadata.annotations
    fleet = cache.fleet().spec
    queues = inputs.queues_of(cache, workload, fleet)
    policy = inputs.policy_of(cache, workload, queues, fleet)
    places = tuple(_places(cache, states, workload, status.history, policy))
    has_second = rollout.spec.strategy.part_of_cluster and may_have_second(template.manifests)
    return RolloutCase(
        spec=rollout.spec,
        status=status,
        now=0.0,
        target=status.history[-1].mark,
        replicas=_wanted(workload, policy, len(places)),
        places=places,
        is_divisible=is_divisible(first) or has_second,
        has_second=has_second,
        step_most=step_most(first),
        approved=annotations.get(APPROVED, ""),
        resumed=annotations.get(RESUMED, ""),
    )


def _wanted(workload: Workload, policy: PlacementPolicy | None, clusters: int) -> int:
    """Replicas of the whole service; a duplicated service has all of them in each cluster."""
    asked = 1 if workload.spec.replicas is None else workload.spec.replicas
    is_duplicated = policy is not None and policy.spec.division.type == "Duplicated"
    return asked * clusters if is_duplicated else asked


def _places(
    cache: Cache,
    states: States,
    workload: Workload,
    history: Iterable[RevisionNote],
    policy: PlacementPolicy | None,
) -> Iterable[ClusterPart]:
    claim = workload.status.claim
    groups = [group.name for group in policy.spec.groups] if policy is not None else []
    marks = {"" if revision.is_unmarked else revision.mark: revision.mark for revision in history}
    work = work_name(workload.metadata.namespace, workload.metadata.name)
    for other in placements_now(claim, workload.status.releasing):
        if not other.cluster:
            continue
        placement = replace(other, attempt=other.attempt or (claim.attempt if claim else 0))
        state = states.get(placement.cluster, work)
        cluster = cache.get(Cluster, placement.cluster)
        rank = groups.index(placement.group) if placement.group in groups else len(groups)
        yield ClusterPart(
            cluster=placement.cluster,
            replicas=placement.replicas or 0,
            group=placement.group,
            rank=rank,
            by_mark=count_replicas(placement, state, marks),
            beside=sum(pods.beside for pods in state.pods) if state is not None else 0,
            is_heard=cluster is not None and cluster.status.phase not in _SILENT,
        )


def count_replicas(
    placement: Placement, state: WorkState | None, marks: Mapping[str, str]
) -> dict[str, Counted]:
    """Whole replicas of each revision: as many as every pod set has the pods for.

    `marks` maps a mark that pods carry to its revision's mark; unmarked pods carry an empty one.
    """
    if state is None or not placement.replicas or state.attempt != placement.attempt:
        return {}
    pods_by_set = {pod.name: _by_mark(pod) for pod in state.pods}
    seen = {mark for entry in pods_by_set.values() for mark in entry}
    result = {}
    for mark in sorted(seen):
        counts = [
            (
                pods_by_set.get(pod_set.name, {}).get(mark, Counted()),
                max(1, pod_set.count // placement.replicas),
            )
            for pod_set in placement.pod_sets
        ]
        if counts:
            result[marks.get(mark, mark)] = Counted(
                total=min(count.total // each for count, each in counts),
                ready=min(count.ready // each for count, each in counts),
            )
    return result


def _by_mark(pods: PodSetStatus) -> dict[str, Counted]:
    marked = {
        revision.mark: Counted(total=revision.pods, ready=revision.ready)
        for revision in pods.revisions
    }
    live = pods.pending + pods.bound + pods.ready
    total = live - sum(count.total for count in marked.values())
    ready = pods.ready - sum(count.ready for count in marked.values())
    return {**marked, "": Counted(total=total, ready=ready)} if total > 0 else marked
