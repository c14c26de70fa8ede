"""What is asked of every generated fleet, and how many cases there are.

`HYPOTHESIS_PROFILE=long` looks at thousands of cases, new ones each time; without it there are a
few hundred, always the same.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, settings

from fairway.core.checks.invariants import broken, forgotten_workloads, overfull, same
from fairway.core.cycle import Cursor, plan
from fairway.core.model import Topology, Workload
from fairway.core.plan import Admit, Move, Plan, Preempt, Provision, Step
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after
from fairway.simulate.course import Course

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def cases(number: int) -> settings:
    """So many cases; ten times as many in the long run."""
    return settings(
        max_examples=number * 10 if IS_LONG else number,
        derandomize=not IS_LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def seed(usual: int) -> int:
    """The seed of cases that are drawn by hand: a fresh one in the long run, told on failure."""
    return random.randrange(2**32) if IS_LONG else usual


def planned(facts: Facts) -> Plan:
    """The whole plan, with everything that must hold of it checked."""
    snapshot = Snapshot(facts)
    before = state(snapshot)
    found, cursor = plan(snapshot)
    assert cursor.is_done
    assert state(snapshot) == before, "planning changed the snapshot"
    hold(broken(facts, found))
    hold(forgotten_workloads(facts, found))
    hold(overdrawn(facts, found))
    return found


def overdrawn(facts: Facts, found: Plan) -> list[str]:
    """Queues of which more is in use than they may have, while victims are gone one by one.

    Whoever waits for victims runs once they are gone; nobody runs beside one that he counted on.
    """
    admitted = [step for step in found.steps if isinstance(step, Admit)]
    victims = [step for step in found.steps if isinstance(step, Preempt)]
    before = Snapshot(facts).tree
    told: list[str] = []
    for gone in {frozenset(): None} | {frozenset(item.waits_for): None for item in admitted}:
        steps: list[Step] = [victim for victim in victims if victim.workload in gone]
        steps += [item for item in admitted if gone.issuperset(item.waits_for)]
        later = Snapshot(after(facts, replace(found, steps=tuple(steps)))).tree
        told += [
            f"{node.name} has {cell.available()} left of {pair}, and had {had}"
            for node, known in zip(later.nodes, before.nodes, strict=True)
            for pair, cell in node.cells.items()
            if node.is_usable
            and cell.is_limited
            and cell.available() < min(0, had := known.cell(pair).available())
        ]
    return told


def hold(sentences: list[str]) -> None:
    assert not sentences, "; ".join(sentences)


def state(snapshot: Snapshot) -> object:
    """All that a plan might change."""
    ledger = snapshot.ledger
    return (
        {name: dict(ledger.tree.usage(name)) for name in sorted(snapshot.facts.queues)},
        {
            name: {
                resource: column.tolist()
                for resource, column in sorted(room.free.items())
                if np.any(column)
            }
            for name, room in sorted(ledger.rooms.items())
        },
        dict(ledger._pools),
        {queue: [item.key for item in line] for queue, line in sorted(snapshot.lines.items())},
    )


def turned(facts: Facts) -> Facts:
    """The same facts, every mapping the other way round."""
    return replace(
        facts,
        queues={
            name: replace(queue, quotas=dict(reversed(queue.quotas.items())))
            for name, queue in reversed(facts.queues.items())
        },
        flavors=dict(reversed(facts.flavors.items())),
        policies=dict(reversed(facts.policies.items())),
        clusters=dict(reversed(facts.clusters.items())),
        workloads=dict(reversed(facts.workloads.items())),
    )


def check_same(facts: Facts, found: Plan) -> None:
    other, _ = plan(Snapshot(turned(facts)))
    assert same(found, other), "another order of the input, another plan"


class Peace(Course):
    """Plans follow each other, with nothing else happening, until nothing is left to do."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.preempted: set[tuple[str, str]] = set()
        self.growing: set[str] = set()  # clusters that nodes were asked for
        self.has_moved = False
        self.has_kept = False  # a place for somebody who waits

    def make(self, cursor: Cursor, budget: int | None) -> tuple[Plan, Cursor]:
        if budget is None:
            found, cursor = planned(self.facts), replace(cursor, is_done=True)
        else:
            found, cursor = super().make(cursor, budget)
            hold(broken(self.facts, found))
        self._note(found)
        return found, cursor

    def carry_out(self, made: Plan) -> None:
        self.growing.update(step.cluster for step in made.steps if isinstance(step, Provision))
        was_overfull = overfull(self.facts)
        super().carry_out(made)
        # Where some still leave, others may be packed on nodes that these are about to free.
        is_settled = not any(workload.releasing for workload in self.facts.workloads.values())
        if is_settled and not was_overfull:
            hold(overfull(self.facts, self.growing))

    def _note(self, found: Plan) -> None:
        self.has_moved = self.has_moved or any(isinstance(step, Move) for step in found.steps)
        self.has_kept = self.has_kept or bool(found.reservations)
        for step in found.steps:
            if isinstance(step, Preempt):
                assert (step.workload, step.for_) not in self.preempted, "they preempt each other"
                self.preempted.add((step.for_, step.workload))

    def come_to_rest(self, budget: int | None = None) -> None:
        cycles = len(self.facts.workloads)
        for _ in range(cycles):
            if not self.cycle(budget):
                return
        assert not self.cycle(budget), f"no rest after {cycles} cycles: {sorted(self.preempted)}"


# How rich the cases are.


class Tally:
    """Counts of what the cases have in them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.total = 0

    def note(self, before: Facts, peace: Peace) -> None:
        self.total += 1
        features = {
            "borrowing": _borrows(before) or _borrows(peace.facts),
            "preemption": bool(peace.preempted),
            "two or more pod sets": _any(before, lambda item: len(item.forms[0].pod_sets) > 1),
            "topology": _any(before, _has_topology),
            "several clusters": len(before.clusters) > 1,
            "running": _any(before, lambda item: item.held is not None),
            "three levels": "left" in before.queues,
            "services": _any(before, lambda item: item.mode == "Divided"),
            "sweeps": _any(before, lambda item: item.mode == "Independent"),
            "places kept": peace.has_kept,
            "moves": peace.has_moved,
            "split gangs": _any(
                peace.facts,
                lambda fact: fact.mode == "Gang" and fact.held and len(fact.held.placed) > 1,
            ),
            "fractions": _any(before, _has_fractions),
            "leaving": _any(before, lambda item: bool(item.releasing)),
        }
        self.counts.update(name for name, holds in features.items() if holds)

    def share(self, name: str) -> float:
        return self.counts[name] / max(1, self.total)

    def __str__(self) -> str:
        shares = (f"{name} {self.share(name):.0%}" for name in sorted(self.counts))
        return f"{self.total} fleets: {', '.join(shares)}"


def _any(facts: Facts, holds: object) -> bool:
    assert callable(holds)
    return any(holds(workload) for workload in facts.workloads.values())


def _has_fractions(workload: Workload) -> bool:
    return any(
        "/" in name and amount % 1000
        for form in workload.forms
        for pod_set in form.pod_sets
        for name, amount in pod_set.shape.requests
    )


def _has_topology(workload: Workload) -> bool:
    return bool(workload.domain) or any(
        pod_set.topology != Topology() for form in workload.forms for pod_set in form.pod_sets
    )


def _borrows(facts: Facts) -> bool:
    tree = Snapshot(facts).tree
    return any(
        tree.borrows(name, pair)
        for name, queue in facts.queues.items()
        if queue.parent
        for pair in queue.quotas
    )
