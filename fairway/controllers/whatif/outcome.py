"""What a change would mean: which workloads it affects and how, and usage before and after.

Both sides are the fleet once its plan is carried out: victims are gone, and admitted workloads have
started. The later starts of workloads at the head of the queues are a forecast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairway.api.amounts import MILLI, is_accelerator
from fairway.controllers.scheduling.expected_starts import Ahead, ahead
from fairway.core.costs.accounts import supplies
from fairway.core.explain.queue_status import standings
from fairway.core.model import Placed, Workload, unit_nanos
from fairway.core.plan import Admit, Move, Plan, Preempt
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after

_TOUCHED_MOST = 500
_SAME_SECONDS = 1.0  # starts within this time are the same

Amounts = dict[str, dict[str, dict[str, float]]]  # cluster or queue -> flavor -> what -> GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The fleet as it was taken, its plan, and the fleet after the plan."""

    facts: Facts
    plan: Plan
    then: Facts
    ahead: dict[str, float]  # expected starts

    @classmethod
    def of(cls, facts: Facts, plan: Plan) -> Side:
        then = after(facts, plan)
        starts: dict[str, float] = {}
        for expected in ahead(then):
            _first(starts, expected)
        return cls(facts=facts, plan=plan, then=then, ahead=starts)

    def states(self) -> dict[str, dict[str, Any]]:
        """What becomes of every workload."""
        steps: dict[str, str] = {}
        whom: dict[str, str] = {}
        for step in self.plan.steps:
            match step:
                case Preempt():
                    steps[step.workload], whom[step.workload] = "Preempted", step.for_
                case Admit():
                    was = self.facts.workloads[step.workload].held is not None
                    # A workload that is preempted and starts elsewhere in one plan starts.
                    grows = "Moves" if step.leaving else "Grows"
                    steps[step.workload] = grows if was else "Starts"
                case Move():
                    steps[step.workload] = "Moves"
                case _:
                    continue
        return {
            key: self._state(workload, steps.get(key, ""), whom.get(key, ""))
            for key, workload in self.then.workloads.items()
            if not workload.is_over
        }

    def _state(self, workload: Workload, step: str, whom: str) -> dict[str, Any]:
        held = workload.held
        result: dict[str, Any] = {"state": step or ("Runs" if held is not None else "Waits")}
        if held is not None:
            result["places"] = [
                {"cluster": placement.cluster, "gpus": sum(_gpus(placement).values()) / 1000}
                for placement in held.placed
            ]
        elif workload.key in self.ahead:
            result["expected"] = self.ahead[workload.key]
        if whom and held is None:
            result["for"] = whom
        return result

    def clusters(self) -> Amounts:
        result: Amounts = {name: {} for name in self.then.clusters}
        for (cluster, flavor), gpus in supplies(Snapshot(self.facts)).items():
            result[cluster][flavor] = {"room": gpus / 1000, "used": 0.0}
        for workload in self.then.workloads.values():
            for placed in _place(workload):
                for flavor, gpus in _gpus(placed).items():
                    here = result.setdefault(placed.cluster, {})
                    setdefault = here.setdefault(flavor, {"room": 0.0, "used": 0.0})
                    setdefault["used"] += gpus / 1000
        return {name: amounts for name, amounts in result.items() if amounts}

    def queues(self) -> Amounts:
        result: Amounts = {}
        for standing in standings(Snapshot(self.then)):
            for each in standing.holdings:
                if is_accelerator(each.resource):
                    result.setdefault(standing.queue, {})[each.flavor] = {
                        "room": each.nominal / MILLI / 1000,
                        "used": each.used / MILLI / 1000,
                    }
        return result


def compare(before: Side, other: Side) -> dict[str, Any]:
    """Which workloads a change affects, and amounts on both sides."""
    was, now = before.states(), other.states()
    touched: list[dict[str, Any]] = [
        {
            "workload": key,
            "queue": _queue(other, before, key),
            "gpus": _wanted(other, before, key),
            "before": was.get(key, {"state": "Absent"}),
            "after": now.get(key, {"state": "Absent"}),
        }
        for key in sorted(was.keys() | now.keys())
        if _differ(was.get(key, {}), now.get(key, {}))
    ]
    # Workloads with another state come before those that only start at another time.
    touched.sort(key=lambda entry: entry["before"]["state"] == entry["after"]["state"])
    return {
        "touched": touched[:_TOUCHED_MOST],
        "touchedLeft": max(0, len(touched) - _TOUCHED_MOST),
        "clusters": {"before": before.clusters(), "after": other.clusters()},
        "queues": {"before": before.queues(), "after": other.queues()},
    }


def _differ(entry: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two outcomes differ; expected starts less than a second apart are the same."""
    was, then = entry.get("expected"), other.get("expected")
    if was is None or then is None or {**entry, "expected": then} != other:
        return entry != other
    return bool(abs(was - then) >= _SAME_SECONDS)


def _queue(side: Side, other: Side, key: str) -> str:
    return (side.facts.workloads.get(key) or other.facts.workloads[key]).queue


def _wanted(side: Side, other: Side, key: str) -> float:
    """GPUs that it holds, or asks for."""
    workload = side.then.workloads.get(key) or other.then.workloads[key]
    held = sum(gpus for placed in _place(workload) for gpus in _gpus(placed).values())
    if held:
        return held / 1000
    asked = sum(
        amount * pods.count * unit_nanos(resource)
        for pods in workload.forms[0].pod_sets
        for resource, amount in pods.shape.requests
        if is_accelerator(resource)
    )
    return asked * (workload.replicas if workload.mode == "Divided" else 1) / MILLI / 1000


def _place(workload: Workload) -> Iterator[Placed]:
    if workload.held is not None:
        yield from workload.held.placed


def _gpus(placed: Placed) -> dict[str, int]:
    """Thousandths of accelerators by flavor."""
    result: dict[str, int] = {}
    for pods in placed.pods:
        flavors = dict(pods.flavors)
        for resource, amount in pods.shape.requests:
            if is_accelerator(resource):
                flavor = flavors.get(resource, "")
                gpus = amount * unit_nanos(resource) * pods.count // MILLI
                result[flavor] = result.get(flavor, 0) + gpus
    return result


def _first(starts: dict[str, float], expected: Ahead) -> None:
    if expected.start is not None:
        starts[expected.workload] = min(
            expected.start, starts.get(expected.workload, expected.start)
        )
