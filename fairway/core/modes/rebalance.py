"""Services that are divided afresh on request: of a user, or of their policy.

A fresh division ignores where replicas are now. Each replica that is elsewhere starts in its new
cluster before it stops in the old one; without quota for both, one at a time stops first, if the
disruption budget allows it and all replicas are ready. Only idle room is used. If not all can move
at once, the rest follows when these have moved; the request is fulfilled when nothing more is to
move, or can. A plan that preempts moves nothing: a move does not wait for victims.
"""

from __future__ import annotations

from dataclasses import replace

from fairway.api.reasons import Code, Reason
from fairway.core.modes.division import divide
from fairway.core.modes.return_home import make_move, seats_of
from fairway.core.modes.service_state import Service, placements, places
from fairway.core.modes.way_home import Move, differences, pair
from fairway.core.plan import Admit, Step
from fairway.core.plan import Move as MoveStep


def rebalance(service: Service) -> list[Step]:
    """The moves that a request makes due now; the last ones fulfil it."""
    workload, planning = service.workload, service.planning
    if not _is_due(service) or planning.preempted:
        return []
    if "Moves" in planning.snapshot.facts.settings.open_breakers:
        return []
    may_stop = workload.unavailable_max > 0 and workload.is_ready
    steps, is_complete = _moves(service, may_stop=may_stop)
    if steps and is_complete:
        return [*steps[:-1], replace(steps[-1], is_rebalanced=True)]
    if steps or (not is_complete and not workload.is_ready):
        return list(steps)
    # Nothing is to move, or what is left cannot: that fulfils the request, too.
    done = Reason(code=Code.REBALANCED)
    return [
        Admit(
            workload=workload.key,
            placed=placements(service),
            form=service.form.name,
            rung=service.rung,
            is_rebalanced=True,
            missing_copies=service.lacking,
            reasons=(done,),
        )
    ]


def _is_due(service: Service) -> bool:
    workload, held = service.workload, service.workload.held
    if held is None or workload.releasing or service.planning.leaving.victims():
        return False  # victims of an earlier decision may still be here
    if held.attempt < 0:
        return False  # its claim may yet be refused
    requested_at = max(workload.rebalance_at, service.policy.rebalance_at)
    return workload.rebalanced_at < requested_at <= service.planning.now


def _moves(service: Service, *, may_stop: bool) -> tuple[list[MoveStep], bool]:
    """Moves towards a fresh division, and whether they complete it."""
    before = dict(service.counts)
    seats = seats_of(service)
    usable = {name: seat.room for name, seat in seats.items()}
    total = sum(before.values())
    shares = divide(total, places(service, usable), service.policy, is_fresh=True)
    fresh = {name: shares.counts.get(name, 0) for name in {*before, *shares.counts}}
    now = {name: before.get(name, 0) for name in fresh}
    if service.is_copied or shares.waiting or sum(fresh.values()) != total:
        return [], True  # rules that hold less than what runs now are no reason to stop it
    steps: list[MoveStep] = []
    is_complete = True
    reason = Reason(code=Code.REBALANCED)
    for source, target, count in pair(differences(now, fresh), differences(fresh, now)):
        option = seats[target].option
        many = min(count, max(0, service.quota_for(option)))
        starts_first = many > 0
        if not starts_first and may_stop and not steps:
            many = 1
        move = Move(source=source, target=target, count=many, starts_first=starts_first)
        step = make_move(service, move, option, reason) if many else None
        if step is not None:
            steps.append(step)
        is_complete = is_complete and step is not None and many == count
    return steps, is_complete
