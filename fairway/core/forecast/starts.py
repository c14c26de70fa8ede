"""Expected starts: the planner is run forward until the heads of all queues have started.

Workloads end at their expected ends (see `run_ends`), the plan for that time is made by the same
code as in production, and so on. Three runs give a start and its range: likely, by estimates (else
limits, else a default); early, with half of the remaining time by the estimate, or a tenth by the
limit; late, by limits (else twice the estimate). The start is that of the likely run; earliest and
latest are the extremes of the three. Later arrivals are not predicted.

A run time by default is no knowledge: a start that depends on one is a guess, and has no range.

The cost is bounded: a limited number of workloads at the head of each queue take part (those behind
do not delay them, except through the shares of other queues), and a run has a limited number of
plans. If more workloads end than there are plans left, several ends are taken together, and a start
may be predicted as late as the last of them. Both limits depend on the fleet alone (`reach`), so
that whoever asks for the start of a workload gets the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fairway.api.reasons import Reason
from fairway.core.cycle import plan
from fairway.core.forecast.ever_possible import empty_round, impossible, never_starts
from fairway.core.model import Placed, Workload
from fairway.core.plan import Admit, Plan, Preempt
from fairway.core.reservations.run_ends import (
    EARLY,
    LATE,
    LIKELY,
    Reckoning,
    end_of,
    has_no_run_time,
)
from fairway.core.snapshot import Facts, Snapshot, precedence
from fairway.core.task_numbers import numbers_of, ranges
from fairway.core.transitions import after

__all__ = ["Expected", "Start", "expected_start", "first_starts", "forecast", "impossible"]

HORIZON_SECONDS: Final = 30 * 86_400.0
_HEADS_MOST: Final = 60  # of all queues together, but at least one per queue
_PLANS_MOST: Final = 32  # in one run
_PLANS_LEAST: Final = 2  # one plan shows only the workloads that start now
LOOKS_MOST: Final = 60_000  # workloads and nodes, summed over all plans of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a workload is expected to start; None: not within the horizon, or unknown."""

    start: float | None = None
    earliest: float | None = None
    latest: float | None = None
    because: str = ""  # the workload whose end lets it start
    is_guess: bool = False  # it depends on a run time that is not known, so it has no range
    never: Reason | None = None  # why it can never start as the fleet is


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start in one forward run."""

    at: float
    because: str  # the workload whose end it waited for; empty: none
    placed: tuple[Placed, ...]
    until: float  # its expected end
    is_guess: bool = False  # it depends on a run time that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a forecast looks."""

    depth: int  # workloads at the head of each queue
    plans: int  # in one run; 0: the fleet is too large for a forecast


def reach(facts: Facts) -> Reach:
    """How far forecasts on a fleet look: the larger the fleet, the less."""
    waiting = [workload for workload in facts.workloads.values() if workload.is_waiting]
    queues = max(1, len({workload.queue for workload in waiting}))
    depth = min(facts.settings.forecast_depth, max(1, _HEADS_MOST // queues))
    size = len(facts.workloads) - len(waiting) + min(len(waiting), depth * queues)
    size += sum(len(cluster.nodes) for cluster in facts.clusters.values())
    plans = min(_PLANS_MOST, LOOKS_MOST // max(1, size))
    return Reach(depth=depth, plans=plans if plans >= _PLANS_LEAST else 0)


def forecast(
    facts: Facts,
    *,
    depth: int | None = None,
    horizon_seconds: float = HORIZON_SECONDS,
    plans_max: int | None = None,
    limit_share: float = 1.0,
) -> dict[str, Expected]:
    """Expected starts of the first workloads that wait in each queue, as far as `reach` says.

    `limit_share` is the share of their limits that workloads have used so far; it gives the likely
    run time of workloads without an estimate.
    """
    usual = replace(LIKELY, share_of_limit=limit_share)
    runs = _Runs(facts, depth=depth, horizon_seconds=horizon_seconds, plans_max=plans_max)
    likely, *others = [runs.starts(reckoning) for reckoning in (usual, EARLY, LATE)]
    result = {key: Expected(never=reason) for key, reason in runs.never.items()}
    for key in runs.wanted:
        result[key] = _expected(likely.get(key), [entry.get(key) for entry in others])
    return {key: result[key] for key in sorted(result)}


def expected_start(facts: Facts, workload: Workload) -> Expected:
    """When one workload is expected to start: what `forecast` says of it.

    A workload that it does not reach, though the fleet's depth includes it, is forecast with as
    many workloads of each queue as are before it in its own.
    """
    line = [other for other in facts.workloads.values() if other.queue == workload.queue]
    before = sum(_takes_part(other) for other in line if precedence(other) < precedence(workload))
    depth = max(reach(facts).depth, min(before + 1, facts.settings.forecast_depth))
    if workload.key not in heads(facts, depth).workloads or workload.queue not in facts.queues:
        return Expected()
    return forecast(facts, depth=depth).get(workload.key, Expected())


def first_starts(
    facts: Facts, *, depth: int | None = None, plans_max: int | None = None
) -> dict[str, Start]:
    """The likely starts of a forecast, with placements and ends."""
    starts = _Runs(facts, depth=depth, plans_max=plans_max).starts(LIKELY)
    return {key: starts[key] for key in sorted(starts)}


class _Runs:
    """The forward runs of one forecast: those that take part, and those that can never start."""

    def __init__(
        self,
        facts: Facts,
        *,
        depth: int | None,
        plans_max: int | None,
        horizon_seconds: float = HORIZON_SECONDS,
    ) -> None:
        limits = reach(facts)
        self._plans = limits.plans if plans_max is None else plans_max
        self._facts = heads(facts, limits.depth if depth is None else depth)
        self._until = facts.now + horizon_seconds
        waiting = sorted(
            key
            for key, workload in self._facts.workloads.items()
            if workload.is_waiting and self._plans > 0
        )
        self.never: dict[str, Reason] = {}
        if waiting:
            empty = empty_round(self._facts)
            for key in waiting:
                never = never_starts(empty, self._facts.workloads[key])
                if never is not None:
                    self.never[key] = never
        self.wanted = [key for key in waiting if key not in self.never]

    def starts(self, reckoning: Reckoning) -> Mapping[str, Start]:
        if not self.wanted:
            return {}
        return _Run(self._facts, self.wanted, reckoning, self._until, self._plans).starts()


def _expected(likely: Start | None, others: list[Start | None]) -> Expected:
    if likely is not None and likely.is_guess:
        return Expected(start=likely.at, because=likely.because, is_guess=True)
    known = [start for start in (likely, *others) if start is not None and not start.is_guess]
    return Expected(
        start=likely.at if likely else None,
        earliest=min((start.at for start in known), default=None),
        latest=max(start.at for start in known) if len(known) == len(others) + 1 else None,
        because=likely.because if likely else "",
    )


def _takes_part(workload: Workload) -> bool:
    """Whether a workload is in the line of its queue."""
    return workload.is_waiting and not workload.is_held and not workload.is_refused


def heads(facts: Facts, depth: int) -> Facts:
    """The facts with only the first `depth` waiting workloads of each queue.

    Running workloads, those being released and those with a reservation stay.
    """
    lines: dict[str, list[Workload]] = {}
    for workload in facts.workloads.values():
        if _takes_part(workload):
            lines.setdefault(workload.queue, []).append(workload)
    first = {
        workload.key for line in lines.values() for workload in sorted(line, key=precedence)[:depth]
    }
    kept = {
        key: workload
        for key, workload in sorted(facts.workloads.items())
        if not workload.is_waiting
        or key in first
        or workload.reservation is not None
        or workload.releasing
    }
    return replace(facts, workloads=kept)


@dataclass(slots=True)
class _Run:
    """One forward run."""

    facts: Facts
    wanted: list[str]
    reckoning: Reckoning
    until: float
    plans_left: int
    ends: dict[str, float] = field(default_factory=dict)
    known: dict[str, Start] = field(default_factory=dict)
    guessed: set[str] = field(default_factory=set)  # workloads whose end is not known
    guessed_in: set[str] = field(default_factory=set)  # clusters where one of them has ended

    def starts(self) -> Mapping[str, Start]:
        """When each workload starts, and the end that it waited for."""
        self.ends = {
            key: end_of(workload, self.facts.now, self.reckoning)
            for key, workload in self.facts.workloads.items()
            if workload.held is not None
        }
        self.guessed = {key for key in self.ends if has_no_run_time(self.facts.workloads[key])}
        gone: list[Workload] = []
        while self.plans_left > 0:
            self.plans_left -= 1
            made, _ = plan(Snapshot(self.facts))
            self._note(made, gone)
            self.facts = after(self.facts, made)
            if len(self.known) == len(self.wanted):
                break
            moment = self._next()
            if moment is None or moment > self.until:
                break
            gone = self._advance(moment)
        return self.known

    def _note(self, made: Plan, gone: list[Workload]) -> None:
        """Records the workloads that start now, and their expected ends."""
        now = self.facts.now
        for step in made.steps:
            if isinstance(step, Preempt):
                self.ends.pop(step.workload, None)
            if not isinstance(step, Admit):
                continue
            workload = self.facts.workloads[step.workload]
            start = now + self._provision_seconds(step)
            because = _cause(step, gone)
            is_guess = because in self.guessed or any(
                placement.cluster in self.guessed_in for placement in step.placed
            )
            if step.workload not in self.ends:
                self.ends[step.workload] = start + self.reckoning.from_now(workload)
                if is_guess or has_no_run_time(workload):
                    self.guessed.add(step.workload)
            if workload.held is None and step.workload not in self.known:
                self.known[step.workload] = Start(
                    at=start,
                    because=because,
                    placed=step.placed,
                    until=self.ends[step.workload],
                    is_guess=is_guess,
                )

    def _provision_seconds(self, step: Admit) -> float:
        """How long new nodes take to come, for a workload that needs them."""
        if step.rung != "Provision":
            return 0.0
        pools = [
            pool
            for placement in step.placed
            for pool in self.facts.clusters[placement.cluster].pools
        ]
        return max((pool.provision_seconds for pool in pools), default=0.0)

    def _next(self) -> float | None:
        """The next time to plan for: one or several ends, or when a back-off or a wait is over."""
        ends = sorted(end for end in self.ends.values() if end <= self.until)
        moments = []
        if ends:
            together = -(-len(ends) // max(1, self.plans_left))
            moments.append(ends[together - 1])
        for key in self.wanted:
            workload = self.facts.workloads.get(key)
            if workload is None or workload.held is not None:
                continue
            times = [workload.not_before]
            times += [workload.queued_at + form.after_seconds for form in workload.forms]
            moments += [time for time in times if time > self.facts.now]
        return min(moments, default=None)

    def _advance(self, moment: float) -> list[Workload]:
        """Advances time; workloads that end by then are gone, and are returned."""
        over = sorted(key for key, end in self.ends.items() if end <= moment)
        over.sort(key=lambda key: self.ends[key])
        workloads = dict(self.facts.workloads)
        gone = [workloads[key] for key in over]
        for key in over:
            del self.ends[key]
            if key in self.guessed and (held := workloads[key].held) is not None:
                self.guessed_in.update(placement.cluster for placement in held.placed)
            left = _rest(workloads[key])
            if left is None:
                del workloads[key]
            else:
                workloads[key] = left
        for key, workload in workloads.items():
            if workload.releasing:  # gone by then
                workloads[key] = replace(workload, releasing=())
        self.facts = replace(self.facts, now=moment, workloads=workloads)
        return gone


def _rest(workload: Workload) -> Workload | None:
    """The rest of a workload whose pods ended: the remaining tasks of a sweep; else None."""
    if workload.mode != "Independent" or workload.held is None:
        return None
    ended = {number for placement in workload.held.placed for number in numbers_of(placement.tasks)}
    over = ended | set(numbers_of(workload.tasks_over))
    if not ended or len(over) >= workload.tasks:
        return None
    return replace(workload, held=None, tasks_over=ranges(sorted(over)))


def _cause(step: Admit, gone: list[Workload]) -> str:
    """The last workload that ended, preferably in a cluster where the workload is placed."""
    places = {placement.cluster for placement in step.placed}
    near = [
        workload.key
        for workload in gone
        if workload.held is not None
        and any(each.cluster in places for each in workload.held.placed)
    ]
    return near[-1] if near else gone[-1].key if gone else ""
