"""Planning: a state machine of the view, the cursor and the core.

It does no I/O and has no clock: its answers depend only on its calls and their order. So it can run
in another process, and its whole history can be replayed from a record of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import msgspec

from fairway.api.errors import ApiError
from fairway.api.reasons import Code, Reason, headline
from fairway.api.workload import Workload
from fairway.controllers.scheduling.questions import Question, T
from fairway.controllers.scheduling.wake_ups import Notice, charge
from fairway.core import cycle, model
from fairway.core.checks.invariants import broken
from fairway.core.cycle import Cursor
from fairway.core.forecast.judge import Judge
from fairway.core.modes.way_home import Homeward
from fairway.core.plan import Admit, Plan, Reservation, Step, Waits
from fairway.core.quota.limits import limits_waiting
from fairway.core.snapshot import Snapshot
from fairway.view.view import View

_CODES_MOST = 2_000  # changed codes in one part of a plan
_CHECK_SECONDS = 60.0  # least time between checked plans: checking one takes longer than planning
_CHECKED_WORKLOADS_MOST = 5_000  # plans of larger fleets are not checked
_UNJUDGED_MOST = 500  # workloads that are looked at again at a time
_JUDGE_SECONDS = 1.0  # until more is judged, if some that wait are not judged yet
_AGAIN_SECONDS = 30.0  # run times grow and past usage decays: waiting workloads are planned again

# Services away from home are remembered from the first plan on.
_BEGINNING = Cursor(homeward=Homeward())

_decode = msgspec.json.Decoder().decode


class Fed(msgspec.Struct, frozen=True):
    """An object that was created, changed or removed; as the store has it or last had it."""

    raw: bytes
    is_removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """An object that cannot be decoded.

    Its last good version still counts, unless it is a workload that holds nothing.
    """

    kind: str
    namespace: str
    name: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One part of a plan, with what is needed to commit it."""

    now: float
    steps: tuple[Step, ...] = ()
    # Reservations that changed, by workload; None: it is given up.
    reservations: Mapping[str, Reservation | None] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)  # why workloads wait, where it changed
    never: Mapping[str, Reason] = field(default_factory=dict)  # of these: why they can never start
    refused: Mapping[str, Reason] = field(default_factory=dict)  # by their queues, for good
    queues: Mapping[str, str] = field(default_factory=dict)  # of the workloads in the steps
    priorities: Mapping[str, int] = field(default_factory=dict)
    run_limits: Mapping[str, int] = field(default_factory=dict)  # by fleet policies, where any
    versions: Mapping[str, str] = field(default_factory=dict)  # that the decisions saw
    set_aside: tuple[SetAside, ...] = ()  # since the last part
    waiting: int = 0
    faults: tuple[str, ...] | None = None  # invariants that it breaks; None: not checked
    is_done: bool = True  # nothing more to decide until an event or `wake_at`
    wake_at: float | None = None  # when time alone may change a decision


class Planning:
    """Holds the view, and plans in parts."""

    def __init__(self, check_seconds: float = _CHECK_SECONDS) -> None:
        self._check_seconds = check_seconds
        self._checked_at = float("-inf")
        self._view = View()
        self._notice = Notice()
        self._cursor: Cursor | None = None  # of the plan under way; None: none is
        self._settled = _BEGINNING  # the cursor with which the last plan ended
        self._judge = Judge()
        self._unjudged: dict[str, Waits] = {}  # may wait for a judgement
        # The codes last reported, each with whether it is for ever.
        self._codes: dict[str, tuple[str, bool]] = {}
        self._refused: dict[str, str] = {}  # workload -> the version that was refused
        self._versions: dict[str, str] = {}  # of workloads, as fed
        self._looked_at = 0.0  # when the last plan of all workloads began
        self._set_aside: dict[tuple[str, str, str], SetAside] = {}  # not yet reported

    def feed(self, events: Iterable[Fed]) -> None:
        for event in events:
            try:
                self._take(event)
            except ApiError as fault:
                self._put_aside(event, str(fault))

    def _take(self, event: Fed) -> None:
        take = self._view.remove if event.is_removed else self._view.put
        touched = take(event.raw)
        if touched is None:
            return
        self._notice.note(touched)
        if touched.kind == "Workload":
            self._remember(touched.key, touched.after)

    def _put_aside(self, event: Fed, fault: str) -> None:
        """An object that cannot be decoded must not block planning of the others."""
        plain = _decode(event.raw)
        metadata = plain["metadata"]
        set_aside = SetAside(
            kind=str(plain.get("kind", "")),
            namespace=str(metadata.get("namespace", "")),
            name=str(metadata["name"]),
            fault=fault,
        )
        self._set_aside[set_aside.kind, set_aside.namespace, set_aside.name] = set_aside
        workload = self._view.workload(f"{set_aside.namespace}/{set_aside.name}")
        if set_aside.kind == "Workload" and not charge(workload):
            self._take(Fed(event.raw, is_removed=True))  # a claim could not be written to it

    def _remember(self, key: str, workload: Workload | None) -> None:
        if workload is None:
            self._versions.pop(key, None)
        else:
            self._versions[key] = workload.metadata.resource_version
        if workload is None or self._versions[key] != self._refused.get(key):
            self._refused.pop(key, None)
        if workload is None or workload.status.phase not in (None, "Waiting"):
            self._codes.pop(key, None)  # reported again if it waits again

    def forget(self, keys: Iterable[str]) -> None:
        """Drops decisions that were not written: the workloads are again as the store has them."""
        for key in keys:
            self._view.forget(key)
            self._refused.pop(key, None)
            self._notice.woken.add(key)
        self._notice.is_freed = True

    def plan(self, now: float, budget: int) -> Planned:
        """The next part: up to `budget` decisions, on all workloads or on the woken ones."""
        self._ring(now)
        if self._cursor is None and not self._notice.is_freed and not self._notice.woken:
            # Most events, such as reports, trigger no plan: the next plan sees them.
            return self._nothing(now)
        snapshot = self._view.snapshot(now)
        cursor = self._next_cursor(snapshot.facts.workloads)
        if cursor is None:
            return self._nothing(now)
        if cursor.only is None and not cursor.seen:
            self._looked_at = now
        result, cursor = cycle.plan(snapshot, cursor, budget)
        result = self._judge_plan(snapshot, result)
        is_whole = cursor.only is None
        self._cursor = None if cursor.is_done else cursor
        if cursor.is_done:
            self._settled = cursor
            reserved = (reservation.workload for reservation in result.reservations)
            self._notice.blockers = {*cursor.kept.values(), *cursor.blocked.values(), *reserved}
        planned = self._plan(result, snapshot, is_whole=is_whole)
        self._view.assume(result)
        return planned

    def _judge_plan(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """Says which of the waiting workloads can never start; some are judged later."""
        judged = self._judge.judge(snapshot, plan)
        if self._judge.left:
            left = {
                item.workload: item for item in plan.waiting if item.workload in self._judge.left
            }
            self._unjudged.update(left)
        return judged

    def _judge_more(self, now: float) -> Planned:
        """Judges some of those that are left from earlier plans."""
        snapshot = self._view.snapshot(now)
        workloads = snapshot.facts.workloads
        first = list(islice(self._unjudged.values(), _UNJUDGED_MOST))
        waiting = tuple(waits for waits in first if waits.workload in workloads)
        plan = self._judge.judge(snapshot, Plan(now=now, waiting=waiting))
        for waits in first:
            if waits.workload not in self._judge.left:
                del self._unjudged[waits.workload]
        known = tuple(waits for waits in plan.waiting if waits.never is not None)
        return self._plan(replace(plan, waiting=known), snapshot, is_whole=False)

    def _faults(self, plan: Plan, snapshot: Snapshot) -> tuple[str, ...] | None:
        """The invariants that a plan breaks; checks a sample, and none of a large fleet."""
        if not plan.steps:
            return None
        if 0 <= plan.now - self._checked_at < self._check_seconds:
            return None
        if len(snapshot.facts.workloads) > _CHECKED_WORKLOADS_MOST:
            return None
        self._checked_at = plan.now
        return tuple(broken(snapshot.facts, plan, proves_room=False))

    def _nothing(self, now: float) -> Planned:
        if self._unjudged:
            return self._judge_more(now)
        return Planned(now=now, set_aside=self._told_aside(), wake_at=self._wake_at(now))

    def _ring(self, now: float) -> None:
        """Wakes workloads whose timer is due, and from time to time all that wait."""
        self._notice.ring(now)
        self._looked_at = min(self._looked_at, now)  # in case the clock was set back
        if self._codes and now >= self._looked_at + _AGAIN_SECONDS:
            self._notice.is_freed = True
        home_at = self._home_at()
        if home_at is not None and now >= home_at:
            self._notice.is_freed = True

    def _home_at(self) -> float | None:
        """When services may move back home."""
        return self._settled.homeward.look_at if self._settled.homeward else None

    def _next_cursor(self, workloads: Mapping[str, Any]) -> Cursor | None:
        """Where to continue: the plan under way, a new one of all workloads, or the woken ones.

        A plan under way is completed even if something is freed meanwhile; otherwise the last
        workloads in order might never get their turn.
        """
        notice = self._notice
        if self._cursor is not None:
            return self._cursor
        if notice.is_freed:
            notice.clear()
            return self._settled.anew()
        woken = [key for key in notice.woken if key in workloads]
        notice.clear()
        return self._settled.wake(woken) if woken else None

    def _plan(self, plan: Plan, snapshot: Snapshot, *, is_whole: bool) -> Planned:
        workloads = snapshot.facts.workloads
        if plan.steps and any(map(limits_waiting, snapshot.facts.queues.values())):
            # What was decided may have left a place in a full queue.
            self._notice.is_freed |= any(_has_no_place(waits) for waits in plan.waiting)
        touched = {step.workload for step in plan.steps}
        reservations = _changed_reservations(plan, snapshot) if is_whole else {}
        is_done = self._cursor is None and not self._notice.is_freed and not self._notice.woken
        refused = self._newly_refused(plan)
        codes = self._changed_codes(plan)
        return Planned(
            now=plan.now,
            steps=plan.steps,
            reservations=reservations,
            codes=codes,
            never={
                waits.workload: waits.never
                for waits in plan.waiting
                if waits.never is not None and waits.workload in codes
            },
            refused=refused,
            queues={key: workloads[key].queue for key in touched},
            priorities={key: workloads[key].priority for key in touched},
            run_limits=_run_limits(workloads[key] for key in touched),
            versions={key: self._versions[key] for key in touched | {*reservations, *refused}},
            set_aside=self._told_aside(),
            waiting=len(plan.waiting),
            faults=self._faults(plan, snapshot),
            is_done=is_done,
            wake_at=self._wake_at(plan.now),
        )

    def _told_aside(self) -> tuple[SetAside, ...]:
        result = tuple(self._set_aside.values())
        self._set_aside.clear()
        return result

    def _wake_at(self, now: float) -> float | None:
        moments = [self._looked_at + _AGAIN_SECONDS] if self._codes else []
        if self._unjudged:
            moments.append(now + _JUDGE_SECONDS)
        next_moment = self._notice.next_moment()
        moments.extend(number for number in (next_moment, self._home_at()) if number is not None)
        return min(moments, default=None)

    def _newly_refused(self, plan: Plan) -> dict[str, Reason]:
        """The workloads that their queues refuse, with why; each once for each version of it."""
        refused: dict[str, Reason] = {}
        for waits in plan.waiting:
            version = self._versions[waits.workload] if waits.is_refused else ""
            if waits.never is None or self._refused.get(waits.workload, "") == version:
                continue
            refused[waits.workload] = waits.never
            self._refused[waits.workload] = version
        return refused

    def _changed_codes(self, plan: Plan) -> dict[str, str]:
        """The codes for why workloads wait, where they differ from those last reported."""
        changed: dict[str, str] = {}
        for step in plan.steps:
            self._codes.pop(step.workload, None)
        for waits in plan.waiting:
            if len(changed) >= _CODES_MOST:
                break
            if waits.is_refused:
                continue
            is_for_ever = waits.never is not None
            code = waits.never.code.value if waits.never else headline(waits.reasons)
            if self._codes.get(waits.workload) != (code, is_for_ever):
                self._codes[waits.workload] = (code, is_for_ever)
                changed[waits.workload] = code
        return changed

    def ask(self, question: Question[T], now: float) -> T:
        """Answers a question; decides nothing."""
        return question.answer(self._view, now)


def _run_limits(workloads: Iterable[model.Workload]) -> dict[str, int]:
    """The longest runs that fleet policies allow, by workload."""
    allowed = {workload.key: workload.allowed_run_seconds for workload in workloads}
    return {key: seconds for key, seconds in allowed.items() if seconds is not None}


def _has_no_place(waits: Waits) -> bool:
    return bool(waits.reasons) and waits.reasons[0].code is Code.QUEUE_FULL


def _changed_reservations(plan: Plan, snapshot: Snapshot) -> dict[str, Reservation | None]:
    """Reservations that differ from the workloads' statuses; an admission clears its own."""
    admitted = {step.workload for step in plan.steps if isinstance(step, Admit)}
    held = {reservation.workload: reservation for reservation in plan.reservations}
    changed: dict[str, Reservation | None] = {}
    workloads = snapshot.facts.workloads
    for key, reservation in held.items():
        if workloads[key].reservation != (reservation.cluster, reservation.flavors):
            changed[key] = reservation
    for key in snapshot.reserving:
        if key not in held and key not in admitted:
            changed[key] = None
    return changed
