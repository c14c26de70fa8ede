"""Stages: the revision that each cluster is to have from now on.

A cluster whose goal is another revision gets it as soon as the service can spare the replicas that
the cluster may lack meanwhile. A cluster that is new to the service begins with the revision that
is right for it, since it has nothing to lose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from fairway.api.rollout import ClusterRevision, RolloutStatus
from fairway.serving.rollout.allowance import allowance_for, beside_goal, is_there, spare
from fairway.serving.rollout.batches import WHOLE, Goal
from fairway.serving.rollout.case import ClusterPart, RolloutCase


def advance_stages(
    case: RolloutCase, status: RolloutStatus, mark: str, goal: Goal
) -> RolloutStatus:
    """The status with as many clusters moving to a goal as may change at once."""
    home = status.stable or mark
    known = {cluster.cluster: cluster for cluster in status.clusters}
    seen = {cluster.cluster: cluster.beside for cluster in case.status.clusters}
    stages: dict[str, ClusterRevision] = {}
    for place in case.places:
        begins = mark if place.cluster in goal else home
        share = goal.get(place.cluster, WHOLE)
        new = ClusterRevision(cluster=place.cluster, mark=begins, share=share)
        if case.has_second and share is not WHOLE:
            new = replace(new, base=home, beside=min(share, place.replicas))
        stage = known.get(place.cluster, new)
        # One look may pass several batches; what changes objects does so once.
        stages[place.cluster] = replace(stage, beside=seen.get(place.cluster, stage.beside))
    for place in _in_turn(case, goal):
        stage, share = stages[place.cluster], goal[place.cluster]
        if stage.mark == mark and _covers(stage.share, share):
            continue
        others = {name: stage for name, stage in stages.items() if name != place.cluster}
        allowance = allowance_for(case, place, spare(case, others))
        if allowance or not place.replicas:
            base = _base(case, stage, share)
            stages[place.cluster] = replace(
                stage, mark=mark, share=share, base=base, allowance=allowance
            )
    for place in case.places:
        stage = stages[place.cluster]
        stages[place.cluster] = replace(stage, beside=_beside(place, stage))
    return replace(status, clusters=count_stages(case, status, stages))


def _base(case: RolloutCase, stage: ClusterRevision, share: int | None) -> str:
    """The revision that the other replicas keep, if a second object has the share."""
    if not case.has_second or share is WHOLE:
        return ""
    return stage.mark if stage.share is WHOLE else stage.base


def _beside(place: ClusterPart, stage: ClusterRevision) -> int:
    """How many replicas the second object has from now on.

    As many at a time change objects as may be unavailable, once those before have been seen. They
    come back to the first object when all replicas of the cluster have the revision.
    """
    now, goal = min(stage.beside, place.replicas), beside_goal(place, stage)
    may_change = (
        place.is_heard
        and place.beside == now
        and place.of(stage.mark).ready >= (now if goal > now else place.replicas)
    )
    if now == goal or not may_change:
        return now
    most = max(0, stage.allowance - (place.replicas - place.ready))
    return min(goal, now + most) if goal > now else max(goal, now - most)


def keep_stages(case: RolloutCase, status: RolloutStatus) -> RolloutStatus:
    """The status with all clusters as they are; new clusters get the last good revision."""
    return advance_stages(case, status, status.stable or status.target, {})


def _in_turn(case: RolloutCase, goal: Goal) -> Sequence[ClusterPart]:
    """The clusters of a goal, those with the most unready replicas first: they cost nothing."""
    chosen = [place for place in case.places if place.cluster in goal]
    return sorted(chosen, key=lambda part: (part.ready - part.replicas, part.rank, part.cluster))


def _covers(share: int | None, wanted: int | None) -> bool:
    """Whether a share suffices; a batch never takes back what an earlier one gave.

    There may have been fewer replicas in the earlier batch.
    """
    if share is WHOLE:
        return True
    return wanted is not WHOLE and share >= wanted


def count_stages(
    case: RolloutCase, status: RolloutStatus, stages: Mapping[str, ClusterRevision]
) -> tuple[ClusterRevision, ...]:
    """Stages in order of their clusters, with what was seen there."""
    numbers = {revision.mark: revision.revision for revision in status.history}
    revisions = []
    for place in sorted(case.places, key=lambda place: (place.rank, place.cluster)):
        stage = stages[place.cluster]
        seen = place.of(stage.mark)
        revisions.append(
            replace(
                stage,
                group=place.group,
                revision=numbers.get(stage.mark, stage.revision),
                replicas=place.replicas,
                updated=seen.total,
                ready=seen.ready,
                available=place.ready,
                is_unheard=not place.is_heard,
            )
        )
    return tuple(revisions)


def are_there(case: RolloutCase, stages: Sequence[ClusterRevision], mark: str, goal: Goal) -> bool:
    """Whether every cluster of a goal that is not silent has reached it."""
    by_cluster = {stage.cluster: stage for stage in stages}
    return all(
        by_cluster[place.cluster].mark == mark and is_there(place, mark, goal[place.cluster])
        for place in case.places
        if place.cluster in goal and place.is_heard
    )


def ready_replicas(case: RolloutCase, mark: str, goal: Goal) -> int:
    """Ready replicas of a revision in the clusters of a goal."""
    return sum(place.of(mark).ready for place in case.places if place.cluster in goal)
