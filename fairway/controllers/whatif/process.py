"""The process that answers what-if questions: objects and a change in, plans out."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import msgspec

from fairway.api.errors import ApiError
from fairway.controllers.whatif.edits import Change, JsonObject, apply_change, read_change
from fairway.controllers.whatif.outcome import Side, compare
from fairway.core.cycle import plan
from fairway.core.explain.shortfalls import completed
from fairway.core.plan import Plan
from fairway.core.snapshot import Facts, Snapshot
from fairway.view.objects import Objects

_NICENESS = 10  # decisions and the API go first


def main() -> None:
    with suppress(OSError):
        os.nice(_NICENESS)
    asked = msgspec.json.decode(sys.stdin.buffer.read())
    try:
        answer = compare_plans(asked["objects"], read_change(asked["change"]), asked["now"])
    except ApiError as refusal:
        answer = {"refused": refusal.message}
    sys.stdout.buffer.write(msgspec.json.encode(answer))


def compare_plans(before: list[JsonObject], change: Change, now: float) -> JsonObject:
    """Both plans, and which workloads the difference affects."""
    after = apply_change(before, change, now)
    facts = [Objects.of(objects).facts(now) for objects in (before, after)]
    plans = [_plan(fact) for fact in facts]
    was, then = (Side.of(*both) for both in zip(facts, plans, strict=True))
    return {
        "before": completed(facts[0], plans[0]).render(),
        "after": completed(facts[1], plans[1]).render(),
        **compare(was, then),
    }


def make_plan(objects: list[JsonObject], now: float) -> JsonObject:
    """What `fairway plan` says about these objects."""
    facts = Objects.of(objects).facts(now)
    return completed(facts, _plan(facts)).render()


def _plan(facts: Facts) -> Plan:
    made, _ = plan(Snapshot(facts))
    return made
