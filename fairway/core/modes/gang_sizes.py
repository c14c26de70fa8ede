"""Gangs that may shrink: the most pods that quota and a cluster can hold, at least the minimum.

All pod sets shrink together, as in Kueue's partial admission: with D the sum of count - least over
all sets, step i of D leaves count - floor((count - least) * i / D) pods of a set. First the lowest
step that quota allows is found, then for each cluster the lowest step that fits. The place with the
most pods wins; ties go to the first flavor, then to the cluster that ranks first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from fairway.core.model import Form, Workload
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment
from fairway.core.reasons import quota_reason

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A gang with fewer pods, and its placement."""

    cluster: str
    form: Form
    option: Assignment
    packed: pack.Packed | None

    @property
    def pods(self) -> int:
        return sum(pod_set.count for pod_set in self.form.pod_sets)


def most_of(planning: PlanningRound, workload: Workload, form: Form) -> Shrunk | None:
    """The placement with the most pods of a gang; None if not even the minimum fits."""
    best: Shrunk | None = None
    for option in planning.assignments(workload, form):
        first = _least_given_up(planning, workload, form, option)
        if first is not None:
            for place in _places(planning, workload, shrunk_by(form, first), option):
                if best is None or place.pods > best.pods:
                    best = place
    return best


def spare_of(form: Form) -> int:
    """How many pods the form can do without: as many steps as there are."""
    return sum(pod_set.count - pod_set.least for pod_set in form.pod_sets)


def shrunk_by(form: Form, step: int) -> Form:
    """The form at one step between all its pods and the minimum."""
    total = max(1, spare_of(form))
    return replace(
        form,
        pod_sets=tuple(
            replace(pod_set, count=pod_set.count - (pod_set.count - pod_set.least) * step // total)
            for pod_set in form.pod_sets
        ),
    )


def _least_given_up(
    planning: PlanningRound, workload: Workload, form: Form, option: Assignment
) -> int | None:
    """The lowest step that quota allows; None if it does not even allow the last."""

    def allows(step: int) -> int | None:
        request = PlacementRequest(workload, shrunk_by(form, step), option)
        return step if quota_reason(planning, request) is None else None

    return first_that_works(range(spare_of(form) + 1), allows)


def sizes_above(form: Form, pods: int) -> range:
    """The steps below the full size at which a form still has more than so many pods."""

    def fewer(step: int) -> int:
        return -sum(pod_set.count for pod_set in shrunk_by(form, step).pod_sets)

    steps = range(1, spare_of(form) + 1)
    return steps[: bisect_left(steps, -pods, key=fewer)]


def first_that_works(steps: range, attempt: Callable[[int], T | None]) -> T | None:
    """The result of the lowest step that works; the later ones work if it does."""
    result = attempt(steps[-1])
    if result is None:
        return None
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        better = attempt(steps[middle])
        if better is None:
            low = middle + 1
        else:
            result, high = better, middle
    return result


def _places(
    planning: PlanningRound, workload: Workload, form: Form, option: Assignment
) -> Iterator[Shrunk]:
    """The most pods that each cluster can hold, the best cluster first."""
    if not planning.has_clusters:
        yield Shrunk(cluster="", form=form, option=option, packed=None)
        return
    request = PlacementRequest(workload, form, option)
    candidates, policy = planning.candidates(workload), planning.snapshot.policy(workload)
    for ranked_cluster in planning.rank(candidates.allowed, workload, policy):
        wants = planning.wants(ranked_cluster.cluster, request)
        packed = pack.pack_most(
            planning.ledger.rooms[ranked_cluster.cluster], wants, workload.domain
        )
        if isinstance(packed, pack.Packed):
            counts = {name: sum(some.values()) for name, some in packed.packing.items()}
            held = replace(
                form,
                pod_sets=tuple(replace(each, count=counts[each.name]) for each in form.pod_sets),
            )
            yield Shrunk(cluster=ranked_cluster.cluster, form=held, option=option, packed=packed)
