"""The decisions that were written lately, for people who look back.

A decision is noted once its steps are written to the store; steps that were refused are left out.
The last ones are kept in memory, bounded by their steps, and line by line for the next hub, so a
restart forgets none of them. (`record` is another thing: all inputs of the planner, for replay.)
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Container, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from fairway.controllers.kept_lines import LineKeeper
from fairway.controllers.scheduling.planner_state import Planned

_STEPS_MOST = 20_000

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)

Decision = dict[str, Any]  # now, and steps as they are rendered


class Decisions:
    """What was decided, the oldest first."""

    def __init__(self, keeper: LineKeeper) -> None:
        self._keeper = keeper
        self._decisions: deque[Decision] = deque()
        self._steps = 0
        self._take_up()

    def note(self, planned: Planned, refused: Container[str]) -> None:
        """Notes a plan of which all steps were written but those of refused workloads."""
        steps = [step.render() for step in planned.steps if step.workload not in refused]
        if not steps:
            return
        decision: Decision = {"now": planned.now, "steps": steps}
        self._put(decision)
        try:
            self._keeper.keep(_encode(decision))
        except OSError as fault:
            _log.warning("a decision is not kept for the next hub: %s", fault)

    def latest(self, workload: str, most: int, *, since: float = 0.0) -> list[Decision]:
        """The last decisions on all workloads or on one, since a moment, the latest last."""
        result: list[Decision] = []
        for decision in reversed(self._decisions):
            if decision["now"] < since:
                break
            steps = [
                step for step in decision["steps"] if not workload or _concerns(step, workload)
            ]
            if steps:
                result.append({"now": decision["now"], "steps": steps})
            if len(result) >= most:
                break
        return result[::-1]

    def _take_up(self) -> None:
        """Takes up what the last hub decided; a line that cannot be read is left out."""
        try:
            for line in self._keeper.read():
                decision = _read(line)
                if decision is not None:
                    self._put(decision)
        except OSError as fault:
            _log.warning("the decisions of the last hub cannot be read: %s", fault)

    def _put(self, decision: Decision) -> None:
        self._decisions.append(decision)
        self._steps += len(decision["steps"])
        while self._steps > _STEPS_MOST:
            self._steps -= len(self._decisions.popleft()["steps"])


def merge(*remembered: Sequence[Decision], most: int) -> list[Decision]:
    """The last decisions of several replicas, each of which led for a time; the latest last."""
    every = (decision for decisions in remembered for decision in decisions)
    return sorted(every, key=itemgetter("now"))[-most:]


class _Line(msgspec.Struct):
    """The shape of a kept line."""

    now: float
    steps: list[dict[str, Any]]


_decode = msgspec.json.Decoder(_Line).decode


def _read(line: bytes) -> Decision | None:
    try:
        kept = _decode(line)
    except msgspec.MsgspecError:
        return None
    return {"now": kept.now, "steps": kept.steps}


def _concerns(step: dict[str, Any], workload: str) -> bool:
    return workload in (step.get("workload"), step.get("for"))
