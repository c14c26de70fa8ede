"""A fleet that is followed comes to rest, at the moments at which something changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from fairway.core.cycle import Cursor
from fairway.core.plan import Admit, Plan, Preempt
from fairway.core.snapshot import Facts
from fairway.simulate.course import Course, GoesRound
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain, cluster, queue, told, workload
from tests.properties.checks import cases
from tests.properties.fleets import noted_fleet, seeds


def facts(*objects: Plain) -> Facts:
    return Objects.of([H100, *objects]).facts(NOW)


def followed(*objects: Plain) -> list[tuple[float, list[str]]]:
    """The plans that decide something, with the seconds until each."""
    course = Course(facts(*objects))
    course.follow()
    return [
        (made.now - NOW, told(replace(made, waiting=()))) for made in course.plans if made.steps
    ]


def test_a_minimum_run_time_is_waited_for() -> None:
    rules: dict[str, Any] = {"minimumRun": {"withinQueueSeconds": 600}}
    assert followed(
        queue("q", 8, preemption={"withinQueue": "LowerPriority"}, **rules),
        cluster("east", 8),
        workload("low", "q", count=8, running="east", since=60),
        workload("urgent", "q", count=8, priority=9),
    ) == [(540.0, ["low yields to urgent", "urgent starts in east:8@h100 after low"])]


def test_an_alternative_starts_when_it_is_due() -> None:
    assert followed(
        queue("q", 4),
        cluster("east", 8),
        workload("w", "q", count=8, waited=0, alternatives=[
            {"name": "small", "afterSeconds": 300, "podSets": [{"name": "worker", "count": 4}]}]),
    ) == [(300.0, ["w starts as small in east:4@h100"])]  # fmt: skip


@cases(150)
@given(seeds())
def test_no_fleet_goes_round(seed: int) -> None:
    facts = noted_fleet(seed)
    Course(facts).follow(until=facts.now + 86_400.0)


class Quarrel(Course):
    """Two workloads that preempt each other for ever."""

    def make(self, cursor: Cursor, budget: int | None) -> tuple[Plan, Cursor]:
        held = [key for key, each in self.facts.workloads.items() if each.held is not None]
        other = next(key for key in self.facts.workloads if key not in held)
        claim = self.facts.workloads[held[0]].held
        assert claim is not None
        steps = (Preempt(workload=held[0], for_=other), Admit(workload=other, placed=claim.placed))
        return Plan(now=self.facts.now, steps=steps), replace(cursor, is_done=True)


def test_a_fleet_that_goes_round_is_an_error_that_names_who_does() -> None:
    quarrel = Quarrel(
        facts(
            queue("q", 8),
            cluster("east", 8),
            workload("a", "q", count=8, running="east"),
            workload("b", "q", count=8),
        )
    )
    with pytest.raises(GoesRound, match="team/a for team/b, team/b for team/a"):
        quarrel.settle()
