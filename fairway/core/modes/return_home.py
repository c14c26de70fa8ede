"""Services that return home: replicas move back to an earlier group once it has room again.

Moves are decided after all workloads that wait, which come first. `way_home` has the rule, which is
slow on purpose; this module finds the services it applies to, and makes the steps. If the surge or
quota does not allow a replica in both clusters, one replica at a time stops and then starts,
provided that the service's disruption budget allows it and all its replicas are ready.

The cursor remembers from plan to plan since when a group has had room. A plan without that memory
assumes that the room has been there since the last decision on the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from fairway.api.reasons import Code, Reason
from fairway.core.model import Policy, Workload
from fairway.core.modes import way_home
from fairway.core.modes.service_state import Service, placements, places, service_of
from fairway.core.modes.way_home import Homeward, Pace, return_home
from fairway.core.plan import Move, Step
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment
from fairway.core.snapshot import wants_more

_MINUTE = 60.0
# When to look again at a service that may return but cannot yet; soon, while replicas are moving.
_SOON_SECONDS = 10.0
_LATER_SECONDS = 60.0


@dataclass(slots=True)
class _Notes:
    """What is remembered for the next plan."""

    room_since: dict[tuple[str, str], float] = field(default_factory=dict)
    moves: dict[str, tuple[tuple[float, int], ...]] = field(default_factory=dict)
    moments: list[float] = field(default_factory=list)

    def finish(self) -> Homeward:
        look_at = min(self.moments, default=None)
        return Homeward(room_since=self.room_since, moves=self.moves, look_at=look_at)


def returns(
    planning: PlanningRound, decided: Set[str], before: Homeward | None
) -> tuple[list[Step], Homeward | None]:
    """The moves that are due now, of services that this plan has not decided otherwise."""
    steps: list[Step] = []
    notes = _Notes()
    for service in _services(planning, planning.snapshot.facts.workloads, decided):
        steps.extend(_moves(service, before, notes))
    if before is None:
        return steps, None
    for key in decided:  # these are looked at again in the next plan
        _keep(key, before, notes)
    return steps, notes.finish()


def watch(planning: PlanningRound, before: Homeward | None) -> Homeward | None:
    """The memory after a plan without moves: groups that no longer have room are dropped."""
    if before is None or not before.room_since:
        return before
    workloads = planning.snapshot.facts.workloads
    notes = _Notes(moves=dict(before.moves))
    keys = {key: workloads[key] for key, _ in before.room_since if key in workloads}
    for service in _services(planning, keys, frozenset()):
        _note_room(service, seats_of(service), before, notes)
    if before.look_at is not None:
        notes.moments.append(before.look_at)
    return notes.finish()


def _services(
    planning: PlanningRound, workloads: Mapping[str, Workload], decided: Set[str]
) -> Iterable[Service]:
    """Services that may return home, by name."""
    facts = planning.snapshot.facts
    policies = (facts.default_policy, *facts.policies.values())
    if "Moves" in facts.settings.open_breakers:
        return
    if not any(policy.return_home.enabled for policy in policies):
        return
    for key in sorted(workloads):
        workload = workloads[key]
        if key not in decided and key not in planning.preempted and _may_return(planning, workload):
            service = service_of(planning, workload)
            if not service.is_unsettled:
                yield service


def _may_return(planning: PlanningRound, workload: Workload) -> bool:
    if workload.mode != "Divided" or workload.held is None:
        return False
    if workload.is_held or workload.is_refused:
        return False
    policy = planning.snapshot.policy(workload)
    return (
        policy.return_home.enabled
        and bool(policy.groups)
        and _is_away(workload, policy)
        and (policy.division.counts_speed or not wants_more(workload, policy))
        and workload.queue in planning.snapshot.facts.queues
        and not planning.queue(workload).is_held
    )


def _is_away(workload: Workload, policy: Policy) -> bool:
    """Whether any replicas are outside the first group."""
    home = policy.groups[0].name
    return any(
        placement.group != home for placement in (workload.held.placed if workload.held else ())
    )


def _quota(service: Service, option: Assignment) -> int:
    """How many replicas quota allows in addition to all that run now."""
    most = service.planning.copies(service.workload, option.full_usage(service.form))
    return service.workload.replicas if most is None else max(0, most)


@dataclass(frozen=True, slots=True)
class _Seat:
    """How many more replicas a cluster could take, on the first flavors that fit."""

    option: Assignment
    room: int
    quota: int


def seats_of(service: Service) -> dict[str, _Seat]:
    """Where more replicas of a service would fit, on the first flavors that do."""
    seats: dict[str, _Seat] = {}
    for name in service.candidates.allowed:
        for option in service.options_of(name):
            room = service.room_for(name, option)
            if room > 0:
                seats[name] = _Seat(option, room, _quota(service, option))
                break
    return seats


def _usable(seats: Mapping[str, _Seat]) -> tuple[dict[str, int], int]:
    """How many replicas may move to each cluster, and how many of them quota allows in total.

    If quota allows none anywhere, only room counts: a replica may stop before it starts.
    """
    within = {name: min(seat.room, seat.quota) for name, seat in seats.items()}
    if any(within.values()):
        return within, sum(within.values())
    return {name: seat.room for name, seat in seats.items()}, 0


def _note_room(
    service: Service, seats: Mapping[str, _Seat], before: Homeward | None, notes: _Notes
) -> dict[str, float]:
    """Since when each group has had room for a replica."""
    held, key = service.workload.held, service.workload.key
    assert held is not None, "only what runs comes home"
    result: dict[str, float] = {}
    groups = service.candidates.groups
    position = {name: at for at, (_, names) in enumerate(groups) for name in names}
    away = max(position.get(name, len(groups)) for name in service.counts)
    for group, names in groups[:away]:
        if before is None:
            result[group] = held.decided_at
        elif any(name in seats for name in names):
            result[group] = before.room_since.get((key, group), service.planning.now)
    notes.room_since.update({(key, group): since for group, since in result.items()})
    return result


def _keep(key: str, before: Homeward, notes: _Notes) -> None:
    for (workload, group), since in before.room_since.items():
        if workload == key:
            notes.room_since[workload, group] = since
    if key in before.moves:
        notes.moves[key] = before.moves[key]


def _moved(service: Service, before: Homeward | None) -> tuple[tuple[float, int], ...]:
    """The moves of a service within the last minute: when, and how many replicas."""
    planning, workload = service.planning, service.workload
    if before is not None:
        known = before.moves.get(workload.key, ())
        return tuple(pair for pair in known if planning.now - pair[0] < _MINUTE)
    assert workload.held is not None, "only what runs comes home"
    since = workload.held.decided_at
    return (
        ((since, service.policy.return_home.per_minute),) if planning.now - since < _MINUTE else ()
    )


def _moves(service: Service, before: Homeward | None, notes: _Notes) -> list[Step]:
    planning, workload, policy = service.planning, service.workload, service.policy
    seats = seats_of(service)
    usable, quota_left = _usable(seats)
    room_since = _note_room(service, seats, before, notes)
    recent = _moved(service, before)
    pace = Pace(
        room_since=room_since,
        moved_in_last_minute=sum(count for _, count in recent),
        moving=sum(placement.replicas for placement in workload.releasing),
        quota_left=quota_left,
        may_stop=workload.unavailable_max > 0 and workload.is_ready,
    )
    steps: list[Step] = []
    for move in return_home(places(service, usable), policy, pace, planning.now):
        reason = Reason(code=Code.RETURNS_HOME, cluster=move.target)
        step = make_move(service, move, seats[move.target].option, reason)
        if step is not None:
            steps.append(step)
            recent = (*recent, (planning.now, move.count))
    if recent:
        notes.moves[workload.key] = recent
    soon = _SOON_SECONDS if recent or pace.moving or not workload.is_ready else _LATER_SECONDS
    due = [since + policy.return_home.after_seconds for since in room_since.values()]
    notes.moments.extend(number if number > planning.now else planning.now + soon for number in due)
    return steps


def make_move(
    service: Service, move: way_home.Move, option: Assignment, reason: Reason
) -> Move | None:
    """Takes what a move needs; None if quota does not allow it, even with the old replica gone."""
    planning, workload = service.planning, service.workload
    source = service.options[move.source]
    # A replica that stops first leaves its quota to its replacement, if the flavors are the same.
    is_heir = not move.starts_first and source.flavors == option.flavors
    with planning.ledger.trial() as trial:
        if is_heir:
            leaving = source.full_usage(service.form)
            gone = {pair: -amount * move.count for pair, amount in leaving.items()}
            planning.charge(workload, gone)
        if service.quota_for(option) < move.count:
            if is_heir:
                planning.claims.add(workload.queue, workload.user, gone, -1)
            return None
        service.add(move.target, move.count, option)
        trial.keep()
    (placed,) = [placement for placement in placements(service) if placement.cluster == move.target]
    return Move(
        workload=workload.key,
        source=move.source,
        placed=placed,
        count=move.count,
        stops_first=not move.starts_first,
        reasons=(reason,),
    )
