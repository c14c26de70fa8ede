"""Calls to the planner: inline, or in a child process.

A plan of 100,000 workloads takes seconds of CPU time. In production the planner runs in another
process, so that the API stays responsive. On virtual time, and wherever everything must run in one
thread, the same state machine is called inline.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import struct
from collections.abc import Sequence
from typing import Any, Protocol, cast

from fairway.controllers.child_processes import start_python
from fairway.controllers.scheduling.planner_state import Fed, Planned, Planning
from fairway.controllers.scheduling.questions import Question, T

_LENGTH = struct.Struct("<I")
_END_SECONDS = 5.0


class PlannerLost(Exception):
    """The planner process has ended; a new one must be fed from the beginning."""


class PlannerFault(Exception):
    """A call to the planner failed; has the traceback. Its state can no longer be trusted."""


class Planner(Protocol):
    """The calls that the scheduler makes; see `Planning`."""

    @property
    def pid(self) -> int | None:
        """The process that plans; None: this one, or none yet."""
        ...

    async def feed(self, events: Sequence[Fed]) -> None: ...

    async def forget(self, keys: Sequence[str]) -> None: ...

    async def plan(self, now: float, budget: int) -> Planned: ...

    async def ask(self, question: Question[T], now: float) -> T: ...

    async def close(self) -> None: ...


class InlinePlanner:
    """The state machine, called inline."""

    pid = None

    def __init__(self, planning: Planning | None = None) -> None:
        self._planning = planning or Planning()

    async def feed(self, events: Sequence[Fed]) -> None:
        self._planning.feed(events)

    async def forget(self, keys: Sequence[str]) -> None:
        self._planning.forget(keys)

    async def plan(self, now: float, budget: int) -> Planned:
        return self._planning.plan(now, budget)

    async def ask(self, question: Question[T], now: float) -> T:
        return self._planning.ask(question, now)

    async def close(self) -> None:
        return


class ProcessPlanner:
    """The state machine in a child process, called by messages over its standard streams.

    Calls are answered in order, one at a time. The child exits when its input ends, or when the hub
    is killed.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._calling = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def feed(self, events: Sequence[Fed]) -> None:
        await self._call("feed", events)

    async def forget(self, keys: Sequence[str]) -> None:
        await self._call("forget", keys)

    async def plan(self, now: float, budget: int) -> Planned:
        return cast("Planned", await self._call("plan", now, budget))

    async def ask(self, question: Question[T], now: float) -> T:
        return cast("T", await self._call("ask", question, now))

    async def close(self) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _call(self, method: str, *arguments: Any) -> Any:
        """Calls the child, and reads the answer even if the caller is cancelled.

        An answer left in the pipe would be taken for that of the next call.
        """
        exchange = asyncio.ensure_future(self._exchange(method, arguments))
        exchange.add_done_callback(_look_at_fault)
        is_fault, value = await asyncio.shield(exchange)
        if is_fault:
            raise PlannerFault(value)
        return value

    async def _exchange(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        async with self._calling:
            process = await self._running()
            assert process.stdin is not None, "it is a pipe"
            assert process.stdout is not None, "it is a pipe"
            body = pickle.dumps((method, arguments), protocol=pickle.HIGHEST_PROTOCOL)
            try:
                process.stdin.write(_LENGTH.pack(len(body)) + body)
                await process.stdin.drain()
                head = await process.stdout.readexactly(_LENGTH.size)
                answer = await process.stdout.readexactly(_LENGTH.unpack(head)[0])
            except (asyncio.IncompleteReadError, ConnectionError) as fault:
                raise PlannerLost(f"it ended with {await process.wait()}") from fault
        return cast("tuple[bool, Any]", pickle.loads(answer))  # noqa: S301 - from our own child

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await start_python("fairway.controllers.scheduling.planner_process")
        return self._process


def _look_at_fault(exchange: asyncio.Future[tuple[bool, Any]]) -> None:
    """Marks a fault as seen if its caller was cancelled: the next call gets it too."""
    if not exchange.cancelled():
        exchange.exception()
