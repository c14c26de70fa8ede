"""What a decision takes: quota and room for a placement, claims of victims, nodes of a pool.

The modes share these functions. `evict` and `provision` also add their steps to the plan.
"""

from __future__ import annotations

from fairway.api.reasons import Reason
from fairway.core.admission import taken_in
from fairway.core.handover import queue_of
from fairway.core.model import Placed, PlacedPods, Workload, usage_of
from fairway.core.modes.outcome import Outcome
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Preempt, Provision
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.provisioning.pools import Provisioned
from fairway.core.reservations.future_room import Started
from fairway.core.seats import needs_of


def placed_of(
    request: PlacementRequest, cluster: str, group: str, packed: pack.Packed | None
) -> Placed:
    """The placement of a request in a cluster; without a packing, all its pods."""
    pods = []
    for pod_set in request.form.pod_sets:
        count = pod_set.count
        if packed is not None:
            count = sum(packed.packing.get(pod_set.name, {}).values())
        pods.append(
            PlacedPods(
                name=pod_set.name,
                count=count,
                shape=pod_set.shape,
                flavors=request.assignment.flavors_of(pod_set.name),
                level=packed.levels.get(pod_set.name, "") if packed else "",
                domains=packed.domains.get(pod_set.name, ()) if packed else (),
            )
        )
    return Placed(cluster=cluster, group=group, pods=tuple(pods))


def charge(
    planning: PlanningRound, workload: Workload, placed: Placed, packed: pack.Packed | None
) -> None:
    """Takes quota and room for a placement."""
    usage = usage_of(placed)
    if packed is None:
        planning.take(workload, usage)
    else:
        needs = needs_of(placed)
        allowance = taken_in(placed.cluster, [placed])
        planning.take(workload, usage, placed.cluster, packed.packing, needs, allowance)
        planning.hold(placed.cluster)
        started = Started(
            workload=workload, packing=packed.packing, requests=needs, allowance=allowance
        )
        planning.reservations.note_started(placed.cluster, started)


def evict(planning: PlanningRound, workload: Workload, victims: Victims, outcome: Outcome) -> None:
    """Takes the claims of the victims away, in the ledger and in the plan."""
    for victim in victims.victims:
        planning.preempted.add(victim.key)
        _forget_claim(planning, planning.snapshot.facts.workloads[victim.key])
        outcome.steps.append(
            Preempt(
                workload=victim.key,
                for_=workload.key,
                cluster=victims.cluster,
                lost_seconds=victim.lost_seconds,
                reasons=(Reason(code=victim.code, queue=workload.queue, other=workload.key),),
            )
        )
    victims.remove(planning)


def _forget_claim(planning: PlanningRound, victim: Workload) -> None:
    assert victim.held is not None, "only what runs can be a victim"
    queue = queue_of(victim)
    usage = usage_of(*victim.held.placed)
    planning.leaving.add(victim, usage)
    planning.claims.count(queue, victim.user, -1)
    planning.claims.add(queue, victim.user, usage, -1)


def provision(
    planning: PlanningRound, workload: Workload, cluster: str, nodes: Provisioned, outcome: Outcome
) -> None:
    """Asks a pool for nodes, in the ledger and in the plan."""
    planning.ledger.provision(cluster, nodes.pool, nodes.count)
    outcome.steps.append(
        Provision(workload=workload.key, cluster=cluster, pool=nodes.pool, count=nodes.count)
    )
