"""Jobs made of jobs: a gang that may run in several clusters, member by member.

A pod set whose members have a size (the jobs of a JobSet, say) may put some members here and some
there, up to the number of clusters that the workload allows; a set without one stays whole. Still
all or nothing: either every member has its place, or nothing is taken. Only idle room is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fairway.core.model import Form, PodSet, Workload
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one cluster gets of a gang that is split."""

    cluster: str
    form: Form  # only the pod sets, and only the pods, that go there
    packed: pack.Packed


def can_split(workload: Workload, form: Form) -> bool:
    return workload.clusters_max > 1 and any(
        0 < pod_set.member_size < pod_set.count for pod_set in form.pod_sets
    )


def split(
    planning: PlanningRound, request: PlacementRequest, clusters: tuple[str, ...]
) -> list[Part] | None:
    """Parts that hold the whole gang, in the order of clusters; None where it cannot be held.

    Each cluster in turn gets as many members as fit, so that few clusters are used.
    """
    left = {pod_set.name: pod_set.count for pod_set in request.form.pod_sets}
    parts: list[Part] = []
    for cluster in clusters:
        if not any(left.values()) or len(parts) == request.workload.clusters_max:
            break
        part = _most(planning, request, cluster, left)
        if part is not None:
            parts.append(part)
            for pod_set in part.form.pod_sets:
                left[pod_set.name] -= pod_set.count
    return parts if parts and not any(left.values()) else None


def _most(
    planning: PlanningRound, request: PlacementRequest, cluster: str, left: dict[str, int]
) -> Part | None:
    """As many members of each set as fit in a cluster, the sets in order."""
    best: Part | None = None
    taken: dict[str, int] = {}
    for pod_set in request.form.pod_sets:
        for count in _counts(pod_set, left[pod_set.name]):
            some = request.of(_form(request.form, {**taken, pod_set.name: count}))
            packed = pack.pack(planning.ledger.rooms[cluster], planning.wants(cluster, some))
            if isinstance(packed, pack.Packed):
                best = Part(cluster=cluster, form=some.form, packed=packed)
                taken[pod_set.name] = count
                break
    return best


def _counts(pod_set: PodSet, left: int) -> Iterator[int]:
    """How many pods to try, the most first: whole members only."""
    size = pod_set.member_size or left
    if left and size:
        yield from range(left - left % size, 0, -size)


def _form(form: Form, counts: dict[str, int]) -> Form:
    return replace(
        form,
        pod_sets=tuple(
            replace(pod_set, count=counts[pod_set.name], least=counts[pod_set.name])
            for pod_set in form.pod_sets
            if counts.get(pod_set.name)
        ),
    )
