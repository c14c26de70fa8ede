"""Gates: metrics that must meet a condition while a batch soaks.

An answer without a number says neither that the revision is good nor that it is bad. The rollout
does not proceed without a number, and a gate that answers too late fails the batch by its deadline.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api.rollout import Gate, GateStatus
from fairway.serving.rollout.case import Answer

_TESTS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def holds(condition: str, value: float) -> bool:
    """Whether a number meets a condition such as `< 0.01`."""
    sign = next(name for name in _TESTS if condition.startswith(name))
    return _TESTS[sign](value, float(condition.removeprefix(sign)))


def heard(
    gates: Sequence[Gate], before: Sequence[GateStatus], answers: Sequence[Answer]
) -> tuple[GateStatus, ...]:
    """The status of gates in this batch, with the latest answers."""
    known = {gate_status.name: gate_status for gate_status in before}
    return tuple(
        _describe(gate, known.get(gate.name, GateStatus(name=gate.name)), answers) for gate in gates
    )


def _describe(gate: Gate, status: GateStatus, answers: Sequence[Answer]) -> GateStatus:
    for answer in answers:
        if answer.gate != gate.name:
            continue
        is_good = answer.value is not None and holds(gate.condition, answer.value)
        is_bad = answer.value is not None and not is_good
        status = replace(
            status,
            value="" if answer.value is None else f"{answer.value:g}",
            message=answer.message[:1024],
            successes=status.successes + is_good,
            failures=status.failures + is_bad,
            asked_at=datetime.fromtimestamp(answer.at, UTC),
        )
    return status


def failed_gate(gates: Sequence[Gate], statuses: Sequence[GateStatus]) -> str:
    """The gate that has failed, as a sentence; empty: none has."""
    known = {status.name: status for status in statuses}
    for gate in gates:
        status = known.get(gate.name)
        if status is not None and status.failures > gate.failure_limit:
            return f"gate {gate.name}: {status.value} is not {gate.condition}"
    return ""


def waiting_gates(gates: Sequence[Gate], statuses: Sequence[GateStatus]) -> list[str]:
    """Gates that do not have enough successes yet."""
    known = {status.name: status.successes for status in statuses}
    return [gate.name for gate in gates if known.get(gate.name, 0) < gate.successes]


def due_at(gate: Gate, statuses: Sequence[GateStatus]) -> float:
    """When a gate is to be asked next; in the past if it was never asked."""
    asked = next((status.asked_at for status in statuses if status.name == gate.name), None)
    return asked.timestamp() + gate.interval_seconds if asked is not None else 0.0
