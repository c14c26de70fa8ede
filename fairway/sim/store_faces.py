"""The store as one participant reaches it: through a faulty network and API server.

A call may be late, lost before it arrives, refused with a spurious conflict, or executed with its
answer lost. A watch may be late, repeat events, end, or expire. A paused participant gets its
answers when it resumes; what it had sent is executed before or after that, by chance. A dead one
gets none. Requests are copied: a sender sees what the store did only in the answer.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from fairway.api.errors import ApiError, Conflict, Expired, Timeout, Unavailable
from fairway.api.meta import JsonObject
from fairway.kinds.plain import copy_of
from fairway.sim.log import Log
from fairway.sim.time import Gate, Time
from fairway.store.interface import (
    EVERYTHING,
    PLAIN_DELETION,
    WHOLE,
    Deletion,
    Listing,
    Page,
    Patch,
    ResourceKey,
    Selection,
    Store,
    Stored,
    Watch,
    WatchEvent,
    WatchFrom,
    Write,
)

T = TypeVar("T")

_REPEATED_MOST = 4
_PATIENCE_SECONDS = 1.0  # after which an unanswered call is given up


@dataclass(slots=True, kw_only=True)
class Weather:
    """The probability of each fault per call, answer or batch of events."""

    late: float = 0.05
    late_seconds: float = 0.6
    lost: float = 0.0
    conflict: float = 0.0
    unanswered: float = 0.0
    repeated: float = 0.0
    held_up: float = 0.0
    held_up_seconds: float = 2.0


class StoreFace:
    """The store, for one run of one participant."""

    def __init__(
        self,
        live_store: Callable[[], Store],
        *,
        name: str,
        time: Time,
        gate: Gate,
        weather: Weather,
        log: Log,
        chance: random.Random,
    ) -> None:
        self._live_store = live_store
        self._name = name
        self._time = time
        self._gate = gate
        self._log = log
        self._watches: dict[FaultyWatch, None] = {}
        self.weather = weather
        self.chance = chance
        self.is_cut = False
        self.is_dead = False
        # Called for each executed write, before its writer gets the answer.
        self.on_written: Callable[[ResourceKey, JsonObject, str], None] = lambda *_: None

    # Faults started from outside.

    def die(self) -> None:
        """Drops everything in flight, in both directions."""
        self.is_dead = True
        self._end_watches(None)

    def cut(self) -> None:
        """Cuts the network: calls fail and watches end, until it is mended."""
        self.is_cut = True
        self._end_watches(Unavailable("the connection was lost"))

    def mend(self) -> None:
        self.is_cut = False

    def drop_watches(self, *, expired: bool) -> int:
        """Ends all watches; followers must resume from their position, or list again."""
        count = len(self._watches)
        self._end_watches(Expired("too old resource version") if expired else None)
        return count

    def _end_watches(self, fault: ApiError | None) -> None:
        for watch in list(self._watches):
            watch.end(fault)
        self._watches.clear()

    # Events in flight.

    async def deliver(self, events: list[WatchEvent], last: deque[WatchEvent]) -> list[WatchEvent]:
        """Events as the reader gets them: late, or with the last ones repeated."""
        weather = self.weather
        if self.chance.random() < weather.held_up:
            self._log.fault("events are late", self._name)
            await self._time.sleep(self.chance.random() * weather.held_up_seconds)
        elif self.chance.random() < weather.late:
            await self._time.sleep(self.chance.random() * weather.late_seconds)
        await self._gate.wait()
        shuffled = list(events)
        last.extend(events)
        if self.chance.random() < weather.repeated:
            self._log.fault("events are told again", self._name)
            shuffled.extend(list(last)[-self.chance.randint(1, _REPEATED_MOST) :])
        return shuffled

    def forget(self, watch: FaultyWatch) -> None:
        self._watches.pop(watch, None)

    # Calls.

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored:
        return await self._read(lambda: self._live_store().get(kind, name, namespace))

    async def list(
        self, kind: ResourceKey, selection: Selection = EVERYTHING, page: Page = WHOLE
    ) -> Listing:
        return await self._read(lambda: self._live_store().list(kind, selection, page))

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
    ) -> Watch:
        inner = await self._read(lambda: self._live_store().watch(kind, selection, start))
        watch = FaultyWatch(inner, self)
        self._watches[watch] = None
        return watch

    async def create(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str = "", write: Write
    ) -> Stored:
        body = copy_of(body)
        return await self._write(
            kind,
            body,
            "",
            lambda: self._live_store().create(kind, body, namespace=namespace, write=write),
        )

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        body = copy_of(body)
        return await self._write(
            kind,
            body,
            subresource,
            lambda: self._live_store().update(
                kind, body, namespace=namespace, subresource=subresource, write=write
            ),
            may_conflict=True,
        )

    async def patch(
        self,
        kind: ResourceKey,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> tuple[Stored, bool]:
        body = patch.body if isinstance(patch.body, dict) else {}
        return await self._write(
            kind,
            body,
            subresource,
            lambda: self._live_store().patch(
                kind, name, patch, namespace=namespace, subresource=subresource, write=write
            ),
            may_conflict=True,
        )

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write,
    ) -> tuple[Stored, bool]:
        return await self._write(
            kind,
            {},
            "",
            lambda: self._live_store().delete(
                kind, name, namespace=namespace, how=how, write=write
            ),
        )

    # Requests and answers in flight.

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        await self._travel()
        answer = await call()
        await self._travel()
        return answer

    async def _write(
        self,
        kind: ResourceKey,
        body: JsonObject,
        subresource: str,
        call: Callable[[], Awaitable[T]],
        *,
        may_conflict: bool = False,
    ) -> T:
        await self._travel()
        weather, chance = self.weather, self.chance.random()
        if chance < weather.lost:
            self._fail("a call is lost", f"{kind.plural}", Unavailable("the server is overloaded"))
        if may_conflict and chance < weather.lost + weather.conflict:
            self._fail("a spurious conflict", f"{kind.plural}", Conflict("try again"))
        answer = await call()
        self.on_written(kind, body, subresource)
        if self.chance.random() < weather.unanswered:
            fault = Timeout("no answer in time") if chance < 0.5 else ConnectionResetError()
            self._fail("an answer is lost", f"{kind.plural}", fault)
        await self._travel()
        return answer

    def _fail(self, kind: str, text: str, fault: Exception) -> NoReturn:
        self._log.fault(kind, f"{self._name}: {text}")
        raise fault

    async def _travel(self) -> None:
        if self.chance.random() < self.weather.late:
            await self._time.sleep(self.chance.random() * self.weather.late_seconds)
        await self._gate.wait()
        if self.is_cut:
            await self._time.sleep(_PATIENCE_SECONDS)
            await self._gate.wait()
            if not self.is_dead:
                raise Unavailable("the store cannot be reached")
        self.check_alive()

    def check_alive(self) -> None:
        """Stops whatever a dead process still does: it is torn down, and waits for nothing."""
        if self.is_dead:
            raise asyncio.CancelledError


class FaultyWatch:
    """A watch through a face."""

    def __init__(self, watch: Watch, face: StoreFace) -> None:
        self._watch = watch
        self._face = face
        self._last: deque[WatchEvent] = deque(maxlen=_REPEATED_MOST)
        self._is_ended = False
        self._fault: ApiError | None = None
        self._closing: asyncio.Future[None] | None = None

    def end(self, fault: ApiError | None) -> None:
        """Ends it from outside; events in flight to the reader are lost."""
        self._is_ended, self._fault = True, fault
        self._closing = asyncio.ensure_future(self._watch.close())

    async def batch(self) -> list[WatchEvent]:
        events = [] if self._is_ended else await self._watch.batch()
        if events and not self._is_ended:
            events = await self._face.deliver(events, self._last)
        self._face.check_alive()
        if not self._is_ended:
            return events
        if self._fault is not None:
            raise self._fault
        return []

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        self._face.forget(self)
        await self._watch.close()
