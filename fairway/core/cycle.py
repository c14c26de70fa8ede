"""The cycle: a snapshot in, a plan out.

`plan` reads as a table of contents: line up the queues, take the best head, decide, record the
outcome. A long cycle comes in parts: a budget limits the number of decisions, and the cursor says
where to continue. Everything that one part remembers for the next is in the cursor.

Workloads of equal likeness (same queue, priority, user, policy, forms and so on) get the same
answer. If the first of them cannot start, all are set aside until something is freed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from fairway.api.names import namespace_and_name
from fairway.api.reasons import Code, Reason, violation_reason
from fairway.core.model import Workload
from fairway.core.modes import gang, gang_growth, service, sweep
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.return_home import returns, watch
from fairway.core.modes.way_home import Homeward
from fairway.core.plan import Admit, Plan, Preempt, Step, Waits
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.order import Candidate, Tournament
from fairway.core.reasons import place_reason, warnings, warnings_for
from fairway.core.snapshot import Snapshot, precedence, wants_more

_DECIDE = {"Gang": gang.decide, "Divided": service.decide, "Independent": sweep.decide}


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a cycle continues: which workloads were decided, and which likenesses cannot start.

    While nothing is freed, only new workloads are looked at: `woken` continues with these. What was
    set aside stays so until something is freed; then a new cycle begins (`START` or `anew`).
    """

    seen: frozenset[str] = frozenset()
    set_aside: Mapping[Hashable, Sequence[Reason]] = field(default_factory=dict)
    blocked: Mapping[str, str] = field(default_factory=dict)  # strict queue -> its head
    only: frozenset[str] | None = None  # the workloads to look at; None: all that wait
    homeward: Homeward | None = None  # services away from home; None: nothing is remembered
    kept: Mapping[str, str] = field(default_factory=dict)  # queue -> head for which quota is kept
    is_done: bool = False

    def wake(self, keys: Iterable[str]) -> Cursor:
        """A cursor that continues with these workloads only."""
        return Cursor(
            set_aside=self.set_aside,
            blocked=self.blocked,
            only=frozenset(keys),
            homeward=self.homeward,
            kept=self.kept,
        )

    def anew(self) -> Cursor:
        """A cursor that begins again with all; what is known of services away from home stays."""
        return Cursor(homeward=self.homeward)


START = Cursor()


@dataclass(slots=True)
class _Line:
    """The next workload: one head per queue, ordered among siblings at each level of the tree."""

    planning: PlanningRound
    cursor: Cursor
    steps: list[Step] = field(default_factory=list)
    waiting: list[Waits] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    set_aside: dict[Hashable, Sequence[Reason]] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)  # strict queue -> its head
    _heads: dict[str, Iterator[Workload]] = field(default_factory=dict)
    _offered: dict[str, Workload] = field(default_factory=dict)
    _tournament: Tournament = field(init=False)

    def __post_init__(self) -> None:
        settings = self.planning.snapshot.facts.settings
        rules = settings.share_rules
        lines = _lines(self.planning.snapshot, self.cursor.only)
        self._tournament = Tournament(self.planning.ledger.tree, rules, among=lines)
        self.seen.update(self.cursor.seen)
        self.set_aside = dict(self.cursor.set_aside)
        self.blocked = dict(self.cursor.blocked)
        for queue, line in sorted(lines.items()):
            self._heads[queue] = iter(line)
            self._offer_next(queue)

    def _offer_next(self, queue: str) -> None:
        """Offers the next workload of a queue that can be decided now."""
        seen, is_blocked = self.seen, queue in self.blocked
        is_open = _is_open(self.planning, queue)
        for workload in self._heads[queue]:
            if workload.key in seen:
                continue
            reason = _standing(self.planning, workload, is_open=is_open)
            reasons = self._set_aside_with(workload) if reason is None else (reason,)
            if reasons is not None:
                self._wait(workload, reasons)
            elif is_blocked and self._is_behind_head(workload):
                other = self.blocked[queue]
                self._wait(workload, (Reason(code=Code.BEHIND_HEAD, queue=queue, other=other),))
            else:
                self._offered[queue] = workload
                self._tournament.offer(queue, _candidate(self.planning, workload))
                return
        self._offered.pop(queue, None)

    def _is_behind_head(self, workload: Workload) -> bool:
        """Whether a workload is behind the blocked head of a strict queue."""
        head = self.planning.snapshot.facts.workloads.get(self.blocked.get(workload.queue, ""))
        return head is not None and precedence(head) < precedence(workload)

    def next(self) -> Workload | None:
        while (queue := self._tournament.pop_best()) is not None:
            workload = self._offered[queue]
            if workload.key in self.planning.preempted:
                # It was preempted in this plan, and is decided again later.
                self.seen.add(workload.key)
                self._offer_next(queue)
                continue
            # A decision since it was offered may have taken the last claim.
            reason = _limit_reason(self.planning, workload)
            if reason is None:
                return workload
            self._wait(workload, (reason,))
            self._offer_next(queue)
        return None

    def tell(self, workload: Workload, verdict: Outcome) -> None:
        """Records an outcome, and offers the next workload of the queue."""
        self.seen.add(workload.key)
        self.planning.kept_quota.settle(workload, is_started=verdict.is_decided)
        self.steps.extend(map(self._await_victims, verdict.steps))
        if verdict.is_decided:
            self.planning.reservations.drop(workload)
            if workload.held is None:
                self.planning.claims.count(workload.queue, workload.user, 1)
            else:
                self.planning.changed.add(workload.key)
            self._tournament.refresh(workload.queue)
            if any(isinstance(step, Preempt) for step in verdict.steps):
                self.set_aside.clear()  # something is freed: others may start now
            for step in verdict.steps:
                victim = self.planning.snapshot.facts.workloads.get(step.workload)
                if victim is not None and victim.queue != workload.queue:
                    self._tournament.refresh(victim.queue)
        if verdict.reasons:
            verdict.reasons.extend(warnings_for(self.planning, workload))
            reasons = verdict.reasons
            self._wait(workload, reasons)
            if not verdict.is_decided:
                self._set_aside(workload, reasons)
                if reasons.has_code(Code.QUOTA_EXCEEDED):
                    self._keep_quota(workload)
                if self.planning.queue(workload).is_strict:
                    self.blocked[workload.queue] = workload.key
        self._offer_next(workload.queue)

    def _await_victims(self, step: Step) -> Step:
        """An admission waits for the victims whose quota or nodes it takes."""
        if not isinstance(step, Admit):
            return step
        return replace(step, waits_for=self.planning.leaving.victims())

    def _wait(self, workload: Workload, reasons: Sequence[Reason]) -> None:
        self.seen.add(workload.key)
        self.waiting.append(Waits(workload=workload.key, reasons=reasons))
        if self.planning.reservations:
            self.planning.reservations.waits(workload, reasons)

    def _set_aside(self, workload: Workload, reasons: Sequence[Reason]) -> None:
        """Sets a likeness aside; where reservations hold it back, its run-time limit counts too."""
        likeness = workload.likeness
        if self.planning.reservations.is_held_back(workload):
            self.set_aside[likeness, workload.limit_seconds] = reasons
        else:
            self.set_aside[likeness] = reasons
        self.planning.reservations.award(workload, reasons)

    def _keep_quota(self, workload: Workload) -> None:
        if self.planning.kept_quota.keep(workload):
            self._tournament.refresh(workload.queue)

    def _set_aside_with(self, workload: Workload) -> Sequence[Reason] | None:
        likeness = workload.likeness
        if self.cursor.only is not None and likeness.value == workload.key:
            return None  # it is like no other, and woken: it may ask for something else by now
        reasons = self.set_aside.get(likeness)
        if reasons is None and self.planning.reservations:
            reasons = self.set_aside.get((likeness, workload.limit_seconds))
        return reasons


def _decide(planning: PlanningRound, workload: Workload) -> Outcome:
    """Decides on a workload; pools that may be out of stock are the last resort."""
    decide = gang_growth.decide if workload.grows else _DECIDE[workload.mode]
    outcome = decide(planning, workload)
    if outcome.is_decided or not outcome.has_passed_over:
        return outcome
    bolder = decide(planning, workload, is_last_resort=True)
    return bolder if bolder.is_decided else outcome


def plan(
    snapshot: Snapshot, cursor: Cursor = START, budget: int | None = None
) -> tuple[Plan, Cursor]:
    """The plan for this moment, and where to continue. The snapshot is left unchanged."""
    planning = PlanningRound(snapshot)
    with planning.ledger.trial():
        planning.kept_quota.remember(cursor.kept)
        line = _Line(planning, cursor)
        decisions = 0
        workload: Workload | None = None
        is_paused = snapshot.facts.settings.is_paused
        while not is_paused and (budget is None or decisions < budget):
            workload = line.next()
            if workload is None:
                break
            planning.turn_to(workload)
            line.tell(workload, _decide(planning, workload))
            decisions += 1
        is_done = workload is None or is_paused
        homeward = cursor.homeward
        # A move does not wait for victims: services return in a plan that preempts nothing.
        if is_done and not is_paused and cursor.only is None and not planning.preempted:
            moves, homeward = returns(planning, {step.workload for step in line.steps}, homeward)
            line.steps.extend(moves)
        elif is_done and not is_paused:
            homeward = watch(planning, homeward)
        result = Plan(
            now=snapshot.now,
            steps=tuple(line.steps),
            waiting=tuple(sorted(line.waiting, key=attrgetter("workload"))),
            reservations=planning.reservations.entries(),
            warnings=warnings(planning) if is_done else (),
        )
    cursor = Cursor(
        seen=frozenset(line.seen),
        set_aside=line.set_aside,
        blocked=line.blocked,
        only=cursor.only,
        homeward=homeward,
        kept=planning.kept_quota.heads,
        is_done=is_done,
    )
    return result, cursor


def _lines(snapshot: Snapshot, only: frozenset[str] | None) -> Mapping[str, Sequence[Workload]]:
    """The workloads that wait, by queue and in order; all, or only some."""
    if only is None:
        return snapshot.lines
    lines: dict[str, list[Workload]] = {}
    for workload in sorted((snapshot.facts.workloads[key] for key in only), key=precedence):
        queue = snapshot.facts.queues.get(workload.queue)
        if workload.is_waiting or wants_more(workload, snapshot.policy(workload), queue):
            lines.setdefault(workload.queue, []).append(workload)
    return lines


def _is_open(planning: PlanningRound, queue: str) -> bool:
    """Whether nothing about a queue can keep its workloads from being decided in this plan."""
    known = planning.snapshot.facts.queues.get(queue)
    return (
        known is not None
        and not known.is_held
        and planning.ledger.tree.is_usable(queue)
        and not planning.claims.limiting_queues(queue)
    )


def _standing(planning: PlanningRound, workload: Workload, *, is_open: bool) -> Reason | None:
    """Why a workload cannot be decided now, whatever is free; None if it can."""
    queue = None if is_open else planning.snapshot.facts.queues.get(workload.queue)
    if not is_open and queue is None:
        return Reason(code=Code.NO_QUEUE, queue=workload.queue)
    if not is_open and not planning.ledger.tree.is_usable(workload.queue):
        return Reason(code=Code.QUEUE_BROKEN, queue=workload.queue, other="it is in a cycle")
    if _gives_up_replicas(planning, workload):
        return None
    if workload.is_held:
        return Reason(code=Code.HELD)
    if workload.is_refused and (refusal := _refusal(workload)) is not None:
        return refusal
    if workload.held is None and workload.releasing:
        # Two attempts at the same time would be two copies of it.
        return Reason(code=Code.STILL_ENDING, cluster=workload.releasing[0].cluster)
    if workload.held is None and workload.runs_in:
        # The hub has lost its claim; the agent's report restores it.
        return Reason(code=Code.RUNS_ALREADY, cluster=workload.runs_in)
    if workload.not_before > planning.now:
        return _back_off(workload)
    if queue is not None and queue.is_held:
        return Reason(code=Code.QUEUE_HELD, queue=queue.name)
    return None if is_open else _limit_reason(planning, workload)


def _gives_up_replicas(planning: PlanningRound, workload: Workload) -> bool:
    """Whether a service has more replicas than it asks for; no rule forbids it to stop them."""
    if workload.mode != "Divided" or workload.held is None:
        return False
    division = planning.snapshot.policy(workload).division
    counts = [placement.replicas for placement in workload.held.placed]
    most = max(counts, default=0) if division.type == "Duplicated" else sum(counts)
    return workload.replicas < most and not division.counts_speed


def _refusal(workload: Workload) -> Reason | None:
    """Why nothing more may run of a workload."""
    if workload.refused_by:
        namespace, _ = namespace_and_name(workload.key)
        return Reason(code=Code.NOT_A_SUBMITTER, queue=workload.refused_by, other=namespace)
    if workload.uncounted is not None:
        return workload.uncounted
    violation = workload.enforced_violation
    return None if violation is None else violation_reason(violation)


def _back_off(workload: Workload) -> Reason:
    """Why a workload waits after a failure: if a cluster refused its template, that."""
    if not workload.refusals:
        return Reason(code=Code.BACK_OFF, until=workload.not_before)
    cluster, said = workload.refusals[-1]
    return Reason(
        code=Code.TEMPLATE_REFUSED, cluster=cluster, other=said, until=workload.not_before
    )


def _limit_reason(planning: PlanningRound, workload: Workload) -> Reason | None:
    if workload.held is not None:
        return None
    full = planning.claims.full_queue(workload)
    if full is not None:
        return Reason(code=Code.CLAIMS_EXCEEDED, queue=full[0], count=full[1])
    queue = planning.claims.full_for_user(workload)
    if queue:
        return Reason(code=Code.USER_LIMIT_EXCEEDED, queue=queue, other=workload.user)
    return place_reason(planning, workload)


def _candidate(planning: PlanningRound, workload: Workload) -> Candidate:
    """A head as a candidate: with what it would be charged on its first flavors."""
    form = workload.forms[0]
    options = planning.assignments(workload, form)
    usage = options[0].full_usage(form) if options else {}
    return Candidate(
        key=workload.key,
        priority=workload.priority,
        queued_at=workload.queued_at,
        usage=usage,
    )
