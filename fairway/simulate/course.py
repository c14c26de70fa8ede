"""The course of a fleet: plans are carried out one after the other on virtual time, until it rests.

Nothing arrives and nothing ends. At one moment plan follows plan until a plan is empty; victims are
gone at once, and what was admitted in their place runs. Then time moves to the next moment at which
time alone may change a decision: a minimum run time or a backoff is over, an alternative is due.

A fleet that goes round never rests: two plans at one moment leave the same claims, and something
was preempted in between. That is an error, with the names of those that preempted each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from fairway.core.cycle import START, Cursor, plan
from fairway.core.model import Placed, Workload
from fairway.core.plan import Plan, Preempt
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after


class GoesRound(Exception):
    """Plans that follow each other come back to where they were."""


@dataclass(slots=True)
class Course:
    """A fleet, and what was decided for it so far."""

    facts: Facts
    plans: list[Plan] = field(default_factory=list)

    def follow(self, *, until: float = float("inf")) -> None:
        """Follows the fleet until nothing is left to do, or until a moment."""
        self.settle()
        while (moment := self.next_moment()) is not None and moment <= until:
            self.advance(moment)
            self.settle()

    def settle(self) -> None:
        """Plans at this moment, and carries out each plan, until one is empty."""
        seen = {self._claims()}
        since = len(self.plans)
        while self.cycle():
            claims = self._claims()
            if claims in seen:
                raise GoesRound(self._who_went_round(self.plans[since:]))
            seen.add(claims)

    def cycle(self, budget: int | None = None) -> bool:
        """One cycle, in parts of up to `budget` decisions; False if it decided nothing."""
        cursor, is_moved = START, False
        while not cursor.is_done:
            made, cursor = self.make(cursor, budget)
            self.plans.append(made)
            self.carry_out(made)
            is_moved = is_moved or bool(made.steps)
        return is_moved

    def make(self, cursor: Cursor, budget: int | None) -> tuple[Plan, Cursor]:
        """The next part of a plan."""
        return plan(Snapshot(self.facts), cursor, budget)

    def carry_out(self, made: Plan) -> None:
        """Does what a plan says."""
        self.facts = after(self.facts, made)

    def advance(self, moment: float) -> None:
        """Lets time pass; what was being released is gone by then."""
        workloads = {
            key: replace(workload, releasing=()) if workload.releasing else workload
            for key, workload in self.facts.workloads.items()
        }
        self.facts = replace(self.facts, now=moment, workloads=workloads)

    def next_moment(self) -> float | None:
        """When time alone may next change a decision; None: never."""
        moments = (
            moment
            for workload in self.facts.workloads.values()
            for moment in self._moments(workload)
            if moment > self.facts.now
        )
        return min(moments, default=None)

    def preemptions(self) -> Iterator[tuple[str, str]]:
        """Who preempted whom, in order."""
        for made in self.plans:
            yield from _preemptions(made)

    def _moments(self, workload: Workload) -> Iterator[float]:
        held = workload.held
        if held is None:
            yield workload.not_before
            yield from (workload.queued_at + form.after_seconds for form in workload.forms)
            return
        queue = self.facts.queues.get(held.queue or workload.queue)
        since = held.decided_at if held.started_at is None else held.started_at
        if queue is not None:
            yield since + queue.minimum_run_within
            yield since + queue.minimum_run_reclaim

    def _claims(self) -> Hashable:
        return tuple(
            (key, workload.held.form, tuple(map(_place, workload.held.placed)))
            for key, workload in sorted(self.facts.workloads.items())
            if workload.held is not None
        )

    def _who_went_round(self, plans: list[Plan]) -> str:
        pairs = [f"{victim} for {other}" for made in plans for other, victim in _preemptions(made)]
        return f"plans go round: {', '.join(pairs) or 'nothing is preempted'}"


def _place(placed: Placed) -> Hashable:
    pods = tuple((pods.name, pods.count, pods.flavors) for pods in placed.pods)
    return (placed.cluster, placed.replicas, placed.tasks, pods)


def _preemptions(made: Plan) -> Iterator[tuple[str, str]]:
    for step in made.steps:
        if isinstance(step, Preempt):
            yield step.for_, step.workload
