"""Records the calls to the planner, so that every decision can be replayed.

The planner is a state machine: a record of all its calls is enough to reproduce its decisions. A
record consists of segments. Each begins with an empty planner that is fed all objects, so any
segment can be replayed alone, and the oldest can be dropped.

An entry is a line of JSON. Plans are recorded with their answers, so a replay shows where it
differs. What Secrets in templates hold is left out: it decides nothing, and a record is for people
to look at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from fairway.controllers.scheduling.planner import Planner
from fairway.controllers.scheduling.planner_state import Fed, Planned, Planning
from fairway.controllers.scheduling.questions import Question, T

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_HELD = ("data", "stringData")


class Sink(Protocol):
    """Where a record is written to."""

    def begin(self) -> None:
        """Begins a segment; may drop the oldest."""
        ...

    def write(self, entry: bytes) -> None: ...

    def end_feed(self) -> None:
        """The segment has the initial state; later entries are new events."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether the segment is long enough to begin another."""
        ...


class NoSink:
    """Records nothing."""

    is_full = False

    def begin(self) -> None:
        return

    def end_feed(self) -> None:
        return

    def write(self, entry: bytes) -> None:
        del entry


class RecordingPlanner:
    """A planner whose calls are recorded."""

    def __init__(self, make: Callable[[], Planner], sink: Sink) -> None:
        self._make = make
        self._sink = sink
        self._planner = make()
        # Calls are recorded in the order in which the planner takes them.
        self._calling = asyncio.Lock()
        self._is_begun = False  # whether the segment has its first plan
        sink.begin()

    @property
    def pid(self) -> int | None:
        """The process that plans now, if that is another one."""
        return self._planner.pid

    @property
    def wants_restart(self) -> bool:
        """Whether a new segment should begin, for which all objects are fed again."""
        return self._sink.is_full

    async def restart(self, everything: Callable[[], Sequence[Fed]], most: int) -> None:
        """Begins a segment with a new planner that is fed everything, `most` events at a time."""
        async with self._calling:
            await self._planner.close()
            self._planner = self._make()
            self._sink.begin()
            self._is_begun = False
            events = everything()
            for start in range(0, len(events), most):
                await self._feed(events[start : start + most])

    async def feed(self, take: Callable[[], Sequence[Fed]]) -> None:
        """Feeds what `take` returns once it is this call's turn."""
        async with self._calling:
            await self._feed(take())

    async def _feed(self, events: Sequence[Fed]) -> None:
        changes = [[msgspec.Raw(without_secrets(event.raw)), event.is_removed] for event in events]
        self._sink.write(_encode({"call": "feed", "events": changes}))
        await self._planner.feed(events)

    async def forget(self, keys: Sequence[str]) -> None:
        async with self._calling:
            self._sink.write(_encode({"call": "forget", "keys": list(keys)}))
            await self._planner.forget(keys)

    async def plan(self, now: float, budget: int) -> Planned:
        async with self._calling:
            planned = await self._planner.plan(now, budget)
            answer = answer_of(planned)
            if not self._is_begun:
                self._is_begun = True
                self._sink.end_feed()
            self._sink.write(_encode({"call": "plan", "now": now, "budget": budget, **answer}))
        return planned

    async def ask(self, question: Question[T], now: float) -> T:
        """Questions are not recorded: they decide nothing."""
        async with self._calling:  # never asks a planner that is not fully fed
            return await self._planner.ask(question, now)

    async def close(self) -> None:
        await self._planner.close()


def without_secrets(raw: bytes) -> bytes:
    """An object without what the Secrets in it hold."""
    return _encode(_emptied(_decode(raw))) if b'"Secret"' in raw else raw


def _emptied(value: Any) -> Any:
    if isinstance(value, list):
        return [_emptied(part) for part in value]
    if not isinstance(value, dict):
        # A copy that kubectl has made of the whole object.
        return "" if isinstance(value, str) and '"Secret"' in value else value
    if value.get("kind") == "Secret":
        value = {key: part for key, part in value.items() if key not in _HELD}
    return {key: _emptied(part) for key, part in value.items()}


def answer_of(planned: Planned) -> dict[str, Any]:
    """The recorded part of an answer: steps, reservations and the number of waiting workloads."""
    return {
        "steps": [step.render() for step in planned.steps],
        "reservations": {
            key: reservation.render() if reservation else None
            for key, reservation in planned.reservations.items()
        },
        "waiting": planned.waiting,
    }


@dataclass(slots=True)
class Replay:
    """The result of a replay."""

    plans: int = 0
    decisions: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)


def replay(entries: Iterable[bytes], *, differences_most: int = 20) -> Replay:
    """Replays a segment and compares the decisions; codes count, messages do not."""
    result = Replay()
    planning = Planning()
    for line in entries:
        entry = _decode(line)
        match entry["call"]:
            case "feed":
                planning.feed(_fed(entry["events"]))
            case "forget":
                planning.forget(entry["keys"])
            case "plan":
                again = answer_of(planning.plan(entry["now"], entry["budget"]))
                before = {key: entry.get(key) for key in again}  # may be of an earlier version
                result.plans += 1
                result.decisions += len(again["steps"])
                if (
                    not _are_same(_decode(_encode(again)), before)
                    and len(result.differences) < differences_most
                ):
                    result.differences.append(
                        {"now": entry["now"], "recorded": before, "replayed": again}
                    )
    return result


def _are_same(again: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether two answers decide the same. An event need not have led to a plan in every version:
    an answer without a plan counts workloads that wait as none."""
    if not (_is_plan(again) and _is_plan(before)):
        again, before = {**again, "waiting": 0}, {**before, "waiting": 0}
    return bool(_without_words(again) == _without_words(before))


def _is_plan(answer: dict[str, Any]) -> bool:
    return bool(answer["steps"] or answer["reservations"] or answer["waiting"])


def _without_words(value: Any) -> Any:
    """A decision without the messages of its reasons, whose wording may change by version."""
    if isinstance(value, dict):
        return {key: _without_words(part) for key, part in value.items() if key != "message"}
    if isinstance(value, list):
        return [_without_words(part) for part in value]
    return value


def _fed(events: list[list[Any]]) -> Iterator[Fed]:
    for plain, is_removed in events:
        yield Fed(_encode(plain), is_removed=is_removed)
