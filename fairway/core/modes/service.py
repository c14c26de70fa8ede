"""Services: replicas divided over clusters, as many as fit; the rest waits.

Each step of the ladder adds what it can: the idle room of a group is divided by the policy's rules,
then victims or new nodes make room for more, then the next group follows. Scale-in takes from the
last group first. Replicas stay where they are unless their number or the allowed places change.

Replicas in clusters that the policy no longer allows, or beyond its limits, leave: they no longer
count, so that the ladder places others, and stop as fast as the disruption budget allows. They stay
if the policy says so, if no cluster is allowed at all (the policy may be mistaken), or while the
breaker of moves is open.

A Duplicated division puts a copy of all replicas in every cluster that is allowed and has room for
a replica. Replicas that an incomplete copy lacks are placed by every rung. Once there is a copy,
further clusters are opened by idle room only: nothing is preempted or provisioned for them. A group
may say how many of its clusters carry a copy: these are placed by every rung, and a cluster of the
group takes over from one that has lost its copy.

Copies that run to completion, such as Jobs, are all placed by every rung, in each cluster that the
policy asks for one, also in one that is closed or full for now: the claim says how many are
missing. A cluster in which a copy has succeeded carries it for good, and gets no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import is_outside
from fairway.core.model import Workload
from fairway.core.modes.division import divide
from fairway.core.modes.ladder import forms_due
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.rebalance import rebalance
from fairway.core.modes.service_growth import grow
from fairway.core.modes.service_state import (
    Service,
    kept_within,
    placements,
    places,
    service_of,
)
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Places the replicas that a service lacks; what it takes stays charged in the ledger."""
    outcome = Outcome()
    for form in forms_due(planning, workload, outcome):
        service = service_of(planning, workload, form)
        before = dict(service.counts)
        left: tuple[Reason, ...] = ()
        if service.has_too_many:
            _scale_in(service)
        else:
            left = tuple(_leave(service))
            if service.waiting > 0 or service.is_copied:
                grow(service, outcome, is_last_resort=is_last_resort)
        if service.counts != before or _is_recounted(service):
            outcome.steps.append(
                Admit(
                    workload=workload.key,
                    placed=placements(service),
                    form=form.name,
                    rung=service.rung,
                    leaving=sum(reason.count for reason in left),
                    missing_copies=service.lacking,
                    reasons=left,
                )
            )
        if service.counts or not service.waiting:
            break  # alternatives are for services without any replica
    if service.waiting > 0:
        outcome.reasons.append(Reason(code=Code.PARTLY_PLACED, count=service.waiting))
    else:
        outcome.reasons.clear()
    if service.counts == before and not outcome.steps:
        outcome.steps.extend(rebalance(service))
    return outcome


def _is_recounted(service: Service) -> bool:
    """Whether a claim says wrongly how many copies are missing.

    A workload without a claim gets one, which is empty, once nothing is missing: it is over.
    """
    held, lacking = service.workload.held, service.lacking
    if held is not None:
        return lacking != held.missing_copies
    return not service.counts and bool(service.over) and lacking == 0


def _leave(service: Service) -> Iterator[Reason]:
    """Gives up the replicas that the policy no longer allows; a reason for each cluster."""
    planning, policy = service.planning, service.policy
    if not policy.moves_services or policy.faults or not service.candidates.allowed:
        return
    if "Moves" in planning.snapshot.facts.settings.open_breakers:
        return
    queue = planning.snapshot.facts.queues.get(service.workload.queue)
    for name, kept in kept_within(service).items():
        stays = 0 if is_outside(name, policy, queue) else kept
        gone = service.counts[name] - stays
        if gone:
            _set(service, name, stays)
            yield Reason(code=Code.NO_LONGER_ALLOWED, cluster=name, count=gone)


def _scale_in(service: Service) -> None:
    target = service.workload.replicas
    if service.counts_speed:
        target = sum(service.counts.values()) - service.surplus()
    shares = divide(target, places(service, {}), service.policy)
    # What is only beyond a limit leaves in its own time: no more stops at once than is asked for.
    spared = 0 if service.is_copied else target - sum(shares.counts.values())
    for name in list(service.counts):
        count = shares.counts.get(name, 0)
        back = min(spared, service.counts[name] - count)
        spared -= back
        _set(service, name, count + back)


def _set(service: Service, cluster: str, count: int) -> None:
    if count:
        service.counts[cluster] = count
    else:
        del service.counts[cluster]
