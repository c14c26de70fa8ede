"""Batches: how many replicas of each cluster have the new revision when each batch is done.

Each batch includes those before it, so that a service which grows, shrinks or moves meanwhile never
loses its place: the goal of the present batch is computed again from the present clusters.
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
    ordered = sorted(places, key=lambda place: (place.rank, place.cluster))
    goals: list[Goal] = []
    reached: Goal = {}
    if strategy.canary is not None:
        reached = _canary(strategy.canary, ordered, is_divisible=is_divisible)
        goals.append(reached)
    for batch in _list(strategy, ordered):
        reached = _with(reached, batch, ordered, is_divisible=is_divisible)
        goals.append(reached)
    everything = {part.cluster: WHOLE for part in ordered}
    if not goals or goals[-1] != everything:
        goals.append(everything)
    return goals


def _list(strategy: RolloutStrategy, places: Sequence[ClusterPart]) -> Iterable[Batch]:
    if not strategy.by_group:
        return strategy.batches
    groups = dict.fromkeys(place.group for place in places)
    return [
        Batch(clusters=tuple(place.cluster for place in places if place.group == group))
        for group in groups
    ]


def _canary(canary: Canary, places: Sequence[ClusterPart], *, is_divisible: bool) -> Goal:
    """The fewest replicas that suffice: from the named clusters, else from the smallest ones."""
    named = [place for place in places if place.cluster in canary.clusters]
    smallest = sorted(places, key=lambda place: (place.replicas, place.cluster))
    order = named if canary.clusters else smallest
    wanted = _part(places, canary.percent)
    return _fill({}, order, wanted, is_divisible=is_divisible)


def _with(
    reached: Goal, batch: Batch, places: Sequence[ClusterPart], *, is_divisible: bool
) -> Goal:
    if batch.percent is not None:
        wanted = _part(places, batch.percent)
        return _fill(reached, places, wanted, is_divisible=is_divisible)
    chosen = {
        place.cluster: WHOLE
        for place in places
        if place.cluster in batch.clusters or (batch.group and place.group == batch.group)
    }
    return {**reached, **chosen}


def _part(places: Sequence[ClusterPart], percent: int) -> int:
    """A share of all replicas, rounded up."""
    return -(-sum(place.replicas for place in places) * percent // 100)


def _fill(reached: Goal, order: Sequence[ClusterPart], wanted: int, *, is_divisible: bool) -> Goal:
    """Adds as many replicas as are wanted to a goal; whole clusters if they are not divisible."""
    goal = dict(reached)
    have = {part.cluster: _count(goal, part) for part in order}
    lacking = wanted - sum(have.values())
    for part in order:
        room = part.replicas - have[part.cluster]
        if lacking <= 0:
            break
        if room <= 0:
            continue
        taken = min(room, lacking) if is_divisible else room
        goal[part.cluster] = WHOLE if taken == room else have[part.cluster] + taken
        lacking -= taken
    return goal


def _count(goal: Goal, place: ClusterPart) -> int:
    if place.cluster not in goal:
        return 0
    share = goal[place.cluster]
    return place.replicas if share is WHOLE else min(share, place.replicas)
