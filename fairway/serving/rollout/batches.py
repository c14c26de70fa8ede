"""Batches: how many replicas of each cluster have the new revision once each of them is done.

Each batch includes those before it, so that a service which grows, shrinks or moves meanwhile never
loses its place: the goal of the batch under way is worked out anew from the clusters there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairway.api.rollout import Batch, Canary, RolloutStrategy
from fairway.serving.rollout.case import ClusterPart

WHOLE = None  # all replicas of a cluster, however many there will be
Goal = Mapping[str, int | None]  # replicas by cluster


def batches_of(
    strategy: RolloutStrategy, places: Sequence[ClusterPart], *, is_divisible: bool
) -> list[Goal]:
    """The goals of all batches, in order; the last is the whole service."""
    ordered = sorted(places, key=lambda one: (one.rank, one.cluster))
    goals: list[Goal] = []
    reached: Goal = {}
    if strategy.canary is not None:
        reached = _canary(strategy.canary, ordered, is_divisible=is_divisible)
        goals.append(reached)
    for batch in _listed(strategy, ordered):
        reached = _with(reached, batch, ordered, is_divisible=is_divisible)
        goals.append(reached)
    everything = {one.cluster: WHOLE for one in ordered}
    if not goals or goals[-1] != everything:
        goals.append(everything)
    return goals


def _listed(strategy: RolloutStrategy, places: Sequence[ClusterPart]) -> Iterable[Batch]:
    if not strategy.by_group:
        return strategy.batches
    groups = dict.fromkeys(one.group for one in places)
    return [
        Batch(clusters=tuple(one.cluster for one in places if one.group == group))
        for group in groups
    ]


def _canary(canary: Canary, places: Sequence[ClusterPart], *, is_divisible: bool) -> Goal:
    """The fewest replicas that do: from the clusters named, else from the smallest ones."""
    named = [one for one in places if one.cluster in canary.clusters]
    smallest = sorted(places, key=lambda one: (one.replicas, one.cluster))
    order = named if canary.clusters else smallest
    wanted = _part(places, canary.percent)
    return _filled({}, order, wanted, is_divisible=is_divisible)


def _with(
    reached: Goal, batch: Batch, places: Sequence[ClusterPart], *, is_divisible: bool
) -> Goal:
    if batch.percent is not None:
        wanted = _part(places, batch.percent)
        return _filled(reached, places, wanted, is_divisible=is_divisible)
    chosen = {
        one.cluster: WHOLE
        for one in places
        if one.cluster in batch.clusters or (batch.group and one.group == batch.group)
    }
    return {**reached, **chosen}


def _part(places: Sequence[ClusterPart], percent: int) -> int:
    """A share of all replicas, rounded up."""
    return -(-sum(one.replicas for one in places) * percent // 100)


def _filled(
    reached: Goal, order: Sequence[ClusterPart], wanted: int, *, is_divisible: bool
) -> Goal:
    """What was reached, and as many more as are wanted; whole clusters where none is divisible."""
    goal = dict(reached)
    have = {one.cluster: _count(goal, one) for one in order}
    lacking = wanted - sum(have.values())
    for one in order:
        room = one.replicas - have[one.cluster]
        if lacking <= 0:
            break
        if room <= 0:
            continue
        taken = min(room, lacking) if is_divisible else room
        goal[one.cluster] = WHOLE if taken == room else have[one.cluster] + taken
        lacking -= taken
    return goal


def _count(goal: Goal, place: ClusterPart) -> int:
    if place.cluster not in goal:
        return 0
    share = goal[place.cluster]
    return place.replicas if share is WHOLE else min(share, place.replicas)
