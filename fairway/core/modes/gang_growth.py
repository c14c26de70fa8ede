"""Gangs that grow while they run: missing pods are added where there is idle room.

Only gangs whose kind accepts more pods at run time grow, in their cluster and on their flavors.
They take idle room only: nothing is preempted and no node is provisioned for growth. The missing
pods are added together; a gang that may run with fewer pods takes as many as fit. Pods with a
topology requirement are left alone, since their domain was chosen for the pods that it holds.
"""

from __future__ import annotations

from dataclasses import replace

from fairway.core.missing_pods import missing_of
from fairway.core.model import Placed, Workload
from fairway.core.modes.allocation import charge, placed_of
from fairway.core.modes.forms import times, together
from fairway.core.modes.outcome import Outcome
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment
from fairway.core.reasons import quota_reason


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Finds room for the missing pods; if there is none, that blocks no other workload."""
    del is_last_resort  # no node is provisioned for growth
    verdict = Outcome()
    missing, held = missing_of(workload), workload.held
    if missing is None or held is None:
        return verdict
    placed = held.placed[0]
    if placed.cluster not in planning.candidates(workload).allowed:
        return verdict
    for option in planning.assignments(workload, missing):
        if not _is_alike(placed, option):
            continue
        request = _fitting(planning, PlacementRequest(workload, missing, option))
        if request is None:
            continue
        packed = pack.pack(
            planning.ledger.rooms[placed.cluster], planning.wants(placed.cluster, request)
        )
        if isinstance(packed, pack.Packed):
            more = placed_of(request, placed.cluster, placed.group, packed)
            charge(planning, workload, more, packed)
            whole = _join(placed, more)
            verdict.steps.append(Admit(workload=workload.key, placed=(whole,), form=held.form))
            return verdict
    return verdict


def _is_alike(placed: Placed, option: Assignment) -> bool:
    """Whether the pods that run are on the same flavors."""
    return all(
        pods.flavors == option.flavors_of(pods.name)
        for pods in placed.pods
        if pods.name in option.flavors
    )


def _fitting(planning: PlanningRound, request: PlacementRequest) -> PlacementRequest | None:
    """All missing pods if they fit; else as many as fit, if the gang may run with fewer."""
    workload, missing = request.workload, request.form
    assert workload.held is not None, "only what runs can grow"
    cluster = workload.held.placed[0].cluster
    room = planning.ledger.rooms[cluster]
    is_allowed = quota_reason(planning, request) is None
    if is_allowed and isinstance(pack.pack(room, planning.wants(cluster, request)), pack.Packed):
        return request
    whole = next(form for form in workload.forms if form.name == workload.held.form)
    pod_set = missing.pod_sets[0]
    if len(missing.pod_sets) > 1 or all(
        pods.least >= pods.count for pods in whole.pod_sets if pods.name == pod_set.name
    ):
        return None
    single = request.of(replace(missing, pod_sets=(replace(pod_set, count=1, least=1),)))
    copies = planning.copies(workload, single.usage)
    most = pod_set.count if copies is None else min(copies, pod_set.count)
    count = pack.copies(room, planning.wants(cluster, single), most)
    return single.of(times(single.form, count)) if count > 0 else None


def _join(before: Placed, more: Placed) -> Placed:
    """Both placements as one; pod sets keep their order."""
    added = {pods.name: pods for pods in more.pods}
    pods = tuple(
        together(pod, added[pod.name]) if pod.name in added else pod for pod in before.pods
    )
    return replace(before, pods=pods)
