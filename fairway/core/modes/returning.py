"""Services that come home: replicas move back to an earlier group once it has room again.

Looked at after everything that waits, since who waits comes first. The rule itself, slow on
purpose, is in `homecoming`; here are the services it applies to, and the steps that come of it.
Where neither the surge nor quota allows a replica in both places, one at a time stops and starts.
"""

from __future__ import annotations

from collections.abc import Set

from fairway.api.reasons import Code, Reason
from fairway.core.desk import Desk
from fairway.core.dividing import homecoming
from fairway.core.dividing.homecoming import Pace, return_home
from fairway.core.model import Workload
from fairway.core.modes.multiples import full_usage
from fairway.core.modes.services import Service, placements, places, service_of
from fairway.core.snapshot import wants_more
from fairway.core.steps import Move, Step
from fairway.core.turns.flavors import Assignment

_MINUTE = 60.0


def returns(desk: Desk, decided: Set[str]) -> list[Step]:
    """The moves that are due now, of services on which nothing else was decided."""
    steps: list[Step] = []
    facts = desk.snapshot.facts
    policies = (facts.default_policy, *facts.policies.values())
    if "Moves" in facts.settings.open_breakers:
        return steps
    if not any(one.return_home.enabled for one in policies):
        return steps
    for key in sorted(facts.workloads):
        workload = facts.workloads[key]
        if key not in decided and key not in desk.preempted and _may_return(desk, workload):
            steps.extend(_moves(desk, workload))
    return steps


def _may_return(desk: Desk, workload: Workload) -> bool:
    if workload.mode != "Divided" or workload.held is None or workload.is_held:
        return False
    policy = desk.snapshot.policy(workload)
    return (
        policy.return_home.enabled
        and bool(policy.groups)
        and not wants_more(workload, policy)
        and workload.queue in desk.snapshot.facts.queues
        and not desk.queue(workload).is_held
    )


def _quota(service: Service, option: Assignment) -> int:
    """How many replicas quota would admit beside all that run now."""
    usage = full_usage(service.form, option)
    most = service.desk.copies(service.workload, usage)
    return service.workload.replicas if most is None else most


def _moves(desk: Desk, workload: Workload) -> list[Step]:
    assert workload.held is not None
    service = service_of(desk, workload)
    policy, candidates = service.policy, service.candidates
    usable = {
        name: service.room_for(name, option)
        for name in candidates.allowed
        for option in service.options_of(name)[:1]
    }
    since = workload.held.decided_at
    pace = Pace(
        room_since={group: since for group, _ in candidates.groups},
        moved_in_last_minute=policy.return_home.per_minute if desk.now - since < _MINUTE else 0,
        quota_left=min((_quota(service, one) for one in service.options.values()), default=0),
    )
    steps: list[Step] = []
    for move in return_home(places(service, usable), policy, pace, desk.now):
        step = _move(service, move)
        if step is not None:
            steps.append(step)
    return steps


def _move(service: Service, move: homecoming.Move) -> Move | None:
    """Takes what a move needs; none where quota does not allow it even one after the other."""
    desk, workload = service.desk, service.workload
    option = service.options_of(move.target)[0]
    with desk.ledger.trial() as trial:
        if not move.starts_first:
            leaving = full_usage(service.form, service.options[move.source])
            gone = {pair: -amount * move.count for pair, amount in leaving.items()}
            desk.charge(workload, gone)
        if service.quota_for(option) < move.count:
            if not move.starts_first:
                desk.claims.add(workload.queue, workload.user, gone, -1)
            return None
        service.add(move.target, move.count, option)
        trial.keep()
    (placed,) = [one for one in placements(service) if one.cluster == move.target]
    return Move(
        workload=workload.key,
        source=move.source,
        placed=placed,
        count=move.count,
        stops_first=not move.starts_first,
        reasons=(Reason(code=Code.RETURNS_HOME, cluster=move.target),),
    )
