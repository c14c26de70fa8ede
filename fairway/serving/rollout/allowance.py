"""How many replicas may be unavailable, in total and in each cluster while it changes.

A cluster that is to change may at worst lack its whole allowance at once, so it counts as if it did
until it is done. Replicas that are not ready anyway cost nothing to replace: a service of which
nothing works can still be repaired.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.rollout import ClusterRevision, RolloutStrategy
from fairway.serving.rollout.case import ClusterPart, RolloutCase


def unavailable_most(strategy: RolloutStrategy, replicas: int) -> int:
    """Replicas of the service that may be unavailable; at least one if there is no surge."""
    if strategy.max_unavailable is not None:
        allowed = strategy.max_unavailable
    else:
        allowed = replicas * strategy.max_unavailable_percent // 100
    return allowed if strategy.max_surge else max(1, allowed)


def spare(case: RolloutCase, stages: Mapping[str, ClusterRevision]) -> int:
    """How many ready replicas the service can spare if changing clusters are at their worst."""
    placed = sum(place.replicas for place in case.places)
    floor = min(case.replicas, placed) - unavailable_most(case.spec.strategy, case.replicas)
    return sum(worst(place, stages.get(place.cluster)) for place in case.places) - max(0, floor)


def worst(place: ClusterPart, stage: ClusterRevision | None) -> int:
    """Ready replicas of a cluster that can be relied on while it changes."""
    if stage is None or (
        is_there(place, stage.mark, stage.share)
        and place.beside == stage.beside == beside_goal(place, stage)
    ):
        return place.ready
    return max(0, min(place.ready, place.replicas - stage.allowance))


def beside_goal(place: ClusterPart, stage: ClusterRevision) -> int:
    """Replicas that a second object is to have in the end: the share; none once all are updated."""
    return min(stage.share, place.replicas) if stage.base and stage.share is not None else 0


def allowance_for(case: RolloutCase, place: ClusterPart, left: int) -> int:
    """How many replicas a cluster may lack while it changes; 0: it has to wait."""
    allowance = max(0, left) + place.replicas - place.ready
    if case.step_most is not None:
        # A kind that replaces few at a time never lacks more than those and what is not ready now.
        allowance = min(allowance, case.step_most + place.replicas - place.ready)
    return min(allowance, place.replicas)


def is_there(place: ClusterPart, mark: str, share: int | None) -> bool:
    """Whether a cluster has as many ready replicas of a revision as wanted."""
    wanted = place.replicas if share is None else min(share, place.replicas)
    return place.of(mark).ready >= wanted
