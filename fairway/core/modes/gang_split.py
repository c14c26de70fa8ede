"""Split gangs: a gang made of members (the jobs of a JobSet, say) in several clusters.

A pod set with a member size may be split between members, over as many clusters as the workload
allows; a pod set without one stays whole. The gang is still all or nothing: every member is placed,
or nothing is taken. Only idle room is used, of one group of clusters; if the policy says so, and no
step of the ladder places the gang, of several groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fairway.core.model import Form, PodSet, Workload
from fairway.core.modes.ladder import steps_of
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a split gang that one cluster gets."""

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
    """The parts of the whole gang, in the order of clusters; None if it does not fit.

    Each cluster in turn gets as many members as fit, so that few clusters are used. If the gang may
    use fewer clusters than there are, and does not fit in this way, those that hold most are tried.
    """
    parts = _in_order(planning, request, clusters)
    if parts is not None or len(clusters) <= request.workload.clusters_max:
        return parts
    whole = {pod_set.name: pod_set.count for pod_set in request.form.pod_sets}
    holds: dict[str, int] = {}
    for cluster in clusters:
        part = _most(planning, request, cluster, whole)
        holds[cluster] = sum(pods.count for pods in part.form.pod_sets) if part else 0
    return _in_order(planning, request, sorted(clusters, key=lambda name: -holds[name]))


def _in_order(
    planning: PlanningRound, request: PlacementRequest, clusters: Sequence[str]
) -> list[Part] | None:
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


def is_ever_split(
    planning: PlanningRound, request: PlacementRequest, clusters: tuple[str, ...]
) -> bool:
    """Whether each pod set alone can be split over these clusters: all may fit together, or not."""
    return all(
        split(planning, request.of(replace(request.form, pod_sets=(pod_set,))), clusters)
        for pod_set in request.form.pod_sets
        if pod_set.count
    )


def across_groups(planning: PlanningRound, workload: Workload) -> dict[str, str]:
    """The clusters of all groups, each with its group, over which a gang may split; earlier groups
    first. Empty: its policy does not say so, or there is only one group.
    """
    groups = within_groups(planning, workload)
    if not planning.snapshot.policy(workload).splits_across_groups or len(groups) < 2:
        return {}
    together: dict[str, str] = {}
    for clusters in groups:
        together.update((name, group) for name, group in clusters.items() if name not in together)
    return together


def within_groups(planning: PlanningRound, workload: Workload) -> list[dict[str, str]]:
    """For each group whose idle room may be used, its clusters, best first, with the group."""
    policy = planning.snapshot.policy(workload)
    groups: dict[str, dict[str, str]] = {}
    for group, rung, names in steps_of(planning, workload):
        if rung == "Idle":
            ranked = planning.rank(names, workload, policy)
            groups[group] = {ranked_cluster.cluster: group for ranked_cluster in ranked}
    return list(groups.values())


def _most(
    planning: PlanningRound, request: PlacementRequest, cluster: str, left: dict[str, int]
) -> Part | None:
    """As many members of each pod set as fit in a cluster; sets that stay whole go first."""
    best: Part | None = None
    taken: dict[str, int] = {}
    for pod_set in sorted(request.form.pod_sets, key=lambda pods: pods.member_size > 0):
        for count in _counts(pod_set, left[pod_set.name]):
            some = request.of(_form(request.form, {**taken, pod_set.name: count}))
            packed = pack.pack(planning.ledger.rooms[cluster], planning.wants(cluster, some))
            if isinstance(packed, pack.Packed):
                best = Part(cluster=cluster, form=some.form, packed=packed)
                taken[pod_set.name] = count
                break
    return best


def _counts(pod_set: PodSet, left: int) -> Iterator[int]:
    """The numbers of pods to try, the largest first: whole members only."""
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
