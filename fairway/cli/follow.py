"""Follows workloads to their end: the state of each, in a line that updates; and their output.

On a terminal there is one line per workload, redrawn in place below the output; elsewhere a line is
written at each change. Both go to standard error, so that standard output has only the programs'
own output.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairway.api.errors import ApiError, NotFound
from fairway.cli import terminal, workloads
from fairway.cli.output import Source, copy
from fairway.cli.session import Failure, Session, say
from fairway.client.asynchronous import WORKLOADS, AsyncClient
from fairway.client.errors import ConnectionFailed
from fairway.client.wire import Object, Scope

WHY_FIRST_SECONDS = 0.3
WHY_SECONDS = 5.0  # how often to ask why a workload waits
ANSWER_SECONDS = 1.0  # how long to wait at the end for an unneeded answer
DRAIN_SECONDS = 10.0  # how long output may still arrive after the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How workloads are followed."""

    seconds: float | None = None  # maximum time
    with_logs: bool = False
    is_quiet: bool = False


@dataclass(slots=True)
class ProgressLines:
    """The latest known state of each workload, shown as it changes."""

    is_quiet: bool = False
    _lines: dict[str, Text] = field(default_factory=dict)
    _live: Live | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and terminal.is_rich() and not self.is_quiet:
            console = Console(stderr=True, highlight=False, emoji=False, markup=False)
            self._live = Live(console=console, refresh_per_second=8, transient=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.settle()

    def settle(self) -> None:
        """Writes lines below each other from now on, because output comes between them."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tell(self, workload: Object, why: str = "") -> None:
        name = workloads.name_of(workload)
        line = workloads.line(workload, why, with_time=self._live is not None)
        text = Text.assemble((name, "bold"), " ", line)
        if self._lines.get(name) == text:
            return
        self._lines[name] = text
        if self._live is not None:
            self._live.update(Text("\n").join(self._lines.values()), refresh=True)
        elif not self.is_quiet:
            say(text.plain)


class Followed:
    """One workload, followed to its end."""

    def __init__(
        self, client: AsyncClient, workload: Object, board: ProgressLines, wish: Wish
    ) -> None:
        self._client = client
        self._namespace = str(workload["metadata"]["namespace"])
        self._name = workloads.name_of(workload)
        self._uid = workload["metadata"].get("uid")
        self._board = board
        self._wish = wish
        self._copying: dict[int, asyncio.Task[None]] = {}  # by attempt
        self._last = workload
        self._question: asyncio.Future[str] | None = None

    async def to_its_end(self) -> Object:
        """The workload once it is over, with its output copied."""
        asking = asyncio.ensure_future(self._keep_telling())
        try:
            async with aclosing(self._changes()) as changes:
                async for change in changes:
                    self._take(change)
                    if workloads.is_settled(change):
                        await self._drain()
                        return change
        finally:
            for task in (asking, *self._copying.values()):
                task.cancel()
            await asyncio.gather(asking, *self._copying.values(), return_exceptions=True)
            if self._question is not None:
                await asyncio.wait((self._question,), timeout=ANSWER_SECONDS)
        raise Failure(f"{self._name} was deleted")

    def _take(self, workload: Object) -> None:
        """Shows a change, and begins to copy output once there may be some."""
        self._last = workload
        phase = workloads.phase_of(workload)
        if self._wish.with_logs and phase in workloads.STARTED:
            self._copy(workload)
        if phase != "Waiting":
            self._board.tell(workload)

    async def _changes(self) -> AsyncGenerator[Object, None]:
        """The workload now and at each change; ends when it is deleted."""
        scope = Scope(namespace=self._namespace, fields=f"metadata.name={self._name}")
        is_seen = False
        async with aclosing(self._client.watch(WORKLOADS, scope=scope)) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    if not is_seen:
                        return
                elif event.type == "DELETED" or event.object["metadata"].get("uid") != self._uid:
                    return
                else:
                    is_seen = True
                    yield event.object

    async def _keep_telling(self) -> None:
        """Shows why it waits, as long as it does, and how long it has run."""
        await asyncio.sleep(WHY_FIRST_SECONDS)  # most start at once
        asked_at, why = float("-inf"), ""
        while True:
            if workloads.phase_of(self._last) == "Waiting":
                if time.monotonic() - asked_at >= WHY_SECONDS:
                    asked_at, why = time.monotonic(), await self._ask_why()
                if workloads.phase_of(self._last) == "Waiting":
                    self._board.tell(self._last, why)
            elif not self._copying:
                self._board.tell(self._last)
            await asyncio.sleep(1.0)

    async def _ask_why(self) -> str:
        """Asks why, shielded from cancellation: a half-open connection cannot be closed cleanly."""
        self._question = asyncio.ensure_future(self._why())
        return await asyncio.shield(self._question)

    async def _why(self) -> str:
        with suppress(ApiError, ConnectionFailed):
            answer = await self._client.ask(
                WORKLOADS, self._name, "explain", namespace=self._namespace
            )
            return workloads.why_waiting(answer)
        return ""

    def _copy(self, workload: Object) -> None:
        attempt = workloads.attempt_of(workload)
        if attempt not in self._copying:
            self._board.settle()
            source = Source(client=self._client, workload=workload)
            self._copying[attempt] = asyncio.ensure_future(copy(source, follow=True))

    async def _drain(self) -> None:
        """Waits for output that is still in flight."""
        if self._copying:
            # A service writes output as long as it runs.
            patience = DRAIN_SECONDS if workloads.is_over(self._last) else None
            _, late = await asyncio.wait(self._copying.values(), timeout=patience)
            for task in late:
                task.cancel()
            for error in await asyncio.gather(*self._copying.values(), return_exceptions=True):
                if isinstance(error, ApiError | ConnectionFailed) and not isinstance(
                    error, NotFound
                ):
                    say(f"warning: output of {self._name} is missing: {error}")


def follow(session: Session, items: Sequence[Object], wish: Wish) -> list[Object]:
    """Follows workloads to their end; raises TimeoutError when that takes too long."""
    client = session.client
    with ProgressLines(wish.is_quiet) as board:
        return client.loop.run(_follow(client.asynchronous, items, board, wish))


async def _follow(
    client: AsyncClient, items: Sequence[Object], board: ProgressLines, wish: Wish
) -> list[Object]:
    async with asyncio.timeout(wish.seconds):
        followed = [Followed(client, entry, board, wish) for entry in items]
        ended = await asyncio.gather(*(other.to_its_end() for other in followed))
    return list(ended)
