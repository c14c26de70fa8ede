"""The outbox: trace spans on their way to a collector.

Nothing waits for it: spans are put in at once, and sent in batches in the background, the oldest
first, while this replica leads. A span leaves the outbox once the collector took or refused it, and
is not sent again. The outbox is bounded; past it the oldest spans are dropped. What a leader has
not delivered is kept for the next process of the same hub; a replica that does not lead keeps only
the last two minutes, which the last leader may not have delivered. Ids of spans are always the
same, so a collector can tell what it gets twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from fairway.clock import Clock
from fairway.controllers.kept_lines import LineKeeper, NoLineKeeper
from fairway.loops import Alarm, end
from fairway.tracing.encoding import encode_span
from fairway.tracing.interface import Collector, CollectorFault, Later
from fairway.tracing.spans import TraceSpan

_log = logging.getLogger(__name__)

SPANS_MOST: Final = 20_000
OVERLAP_SECONDS: Final = 120.0  # how much a new leader sends of what the last one may have sent
_JUST_NOW_SECONDS: Final = 30.0  # a hub may take that long to end
_BACK_OFF_SECONDS: Final = 1.0
_BACK_OFF_SECONDS_MAX: Final = 60.0
_AFTER_SECONDS_MAX: Final = 3600.0  # that a collector may ask to be left alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is kept, and how much is sent at once."""

    spans: int = SPANS_MOST
    bytes: int = 16 << 20
    request_spans: int = 500
    request_bytes: int = 512 << 10
    gather_seconds: float = 2.0  # how long spans gather before they are sent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    sequence: int
    put_at: float  # by the monotonic clock
    span: bytes


class _Line(msgspec.Struct, omit_defaults=True):
    """A span that is not delivered; without one, everything up to its number is."""

    sequence: int
    span: bytes = b""


class Outbox:
    """Trace spans that are not delivered."""

    def __init__(
        self,
        collector: Collector,
        clock: Clock,
        *,
        keeper: LineKeeper | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.dropped = 0  # because the outbox was full
        self.refused = 0  # by the collector
        self._collector = collector
        self._clock = clock
        self._keeper = keeper or NoLineKeeper()
        self._limits = limits or Limits()
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._sequence = 0  # of the last span
        self._kept = 0  # up to which spans are kept for the next process
        self._leads = False
        self._led_until = float("-inf")
        self._failures = 0  # in a row
        self._said = ""  # the trouble that was logged last
        self._alarm = Alarm(clock)
        self._take_up()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, span: TraceSpan) -> None:
        """Puts a span in; returns at once."""
        self._sequence += 1
        encoded = encode_span(span)
        self._add(self._sequence, encoded)
        if self._leads:
            self._keep_span(self._sequence, encoded)
        else:
            self._forget_old()
        self._alarm.mark()

    async def run(self) -> None:
        """Sends spans until cancelled; only the leader runs this."""
        self._forget_old()
        self._leads = True
        for entry in list(self._entries):
            self._keep_span(entry.sequence, entry.span)
        try:
            while True:
                while not self._entries:
                    await self._alarm.wait()
                await self._clock.sleep(self._limits.gather_seconds)
                while self._entries:
                    await self._clock.sleep(await self._send())
        finally:
            self._leads = False
            self._led_until = self._clock.monotonic()

    async def flush(self, seconds: float) -> None:
        """Sends what is left, trying once and for a limited time; for a leader that ends."""
        if self._clock.monotonic() - self._led_until > _JUST_NOW_SECONDS:
            return
        flushing = asyncio.ensure_future(self._flush())
        limit = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((flushing, limit), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end((flushing, limit))
        if self._entries:
            _log.warning("%d trace spans are not delivered to %s", len(self), self._address)

    async def _flush(self) -> None:
        while self._entries and not await self._send():
            pass

    # What is sent.

    async def _send(self) -> float:
        """Sends the oldest spans; returns the seconds until the next try, 0 if they are gone."""
        batch = self._batch()
        try:
            await self._collector.send([entry.span for entry in batch])
        except Later as fault:
            self._say("takes no trace spans now", fault)
            return self._delay(fault)
        except CollectorFault as fault:
            self.refused += len(batch)
            self._say("refuses trace spans, which are dropped", fault)
        else:
            if self._said:
                lost = self.dropped + self.refused
                _log.info("%s takes trace spans; %d were lost so far", self._address, lost)
                self._said = ""
        self._failures = 0
        self._remove(batch[-1].sequence)
        return 0.0

    def _batch(self) -> Sequence[_Entry]:
        size, batch = 0, list[_Entry]()
        for entry in islice(self._entries, self._limits.request_spans):
            size += len(entry.span)
            if batch and size > self._limits.request_bytes:
                break
            batch.append(entry)
        return batch

    def _delay(self, fault: Later) -> float:
        doubled = _BACK_OFF_SECONDS * 2.0 ** min(self._failures, 16)
        self._failures += 1
        asked = min(fault.after_seconds or 0.0, _AFTER_SECONDS_MAX)
        return max(min(doubled, _BACK_OFF_SECONDS_MAX), asked)

    def _say(self, trouble: str, why: object) -> None:
        """Logs a trouble once, until it is another or over."""
        if self._said != trouble:
            self._said = trouble
            _log.warning("%s %s: %s", self._address, trouble, why)

    @property
    def _address(self) -> str:
        return f"the collector at {self._collector.address}"

    # What is in it.

    def _add(self, sequence: int, span: bytes) -> None:
        now = self._clock.monotonic()
        self._entries.append(_Entry(sequence=sequence, put_at=now, span=span))
        self._bytes += len(span)
        while len(self._entries) > self._limits.spans or self._bytes > self._limits.bytes:
            self._pop()
            if self._leads:
                self.dropped += 1
                if self.dropped == 1:
                    _log.warning("too many spans wait for %s: the oldest go", self._address)

    def _pop(self) -> None:
        self._bytes -= len(self._entries.popleft().span)

    def _remove(self, sequence: int) -> None:
        """Removes what is delivered; some of it may have been dropped meanwhile."""
        while self._entries and self._entries[0].sequence <= sequence:
            self._pop()
        self._keep(_Line(sequence=sequence))

    def _forget_old(self) -> None:
        """Forgets what another leader has delivered or dropped."""
        oldest = self._clock.monotonic() - OVERLAP_SECONDS
        while self._entries and self._entries[0].put_at < oldest:
            self._pop()

    # What is kept for the next process.

    def _keep_span(self, sequence: int, span: bytes) -> None:
        if sequence > self._kept:
            self._kept = sequence
            self._keep(_Line(sequence=sequence, span=span))

    def _keep(self, line: _Line) -> None:
        try:
            self._keeper.keep(_encode(line))
        except OSError as fault:
            _log.warning("a trace span is not kept for the next hub: %s", fault)

    def _take_up(self) -> None:
        try:
            lines = [line for raw in self._keeper.read() if (line := _read(raw)) is not None]
        except OSError as fault:
            _log.warning("the trace spans of the last hub cannot be read: %s", fault)
            return
        self._sequence = self._kept = max((line.sequence for line in lines), default=0)
        delivered = max((line.sequence for line in lines if not line.span), default=0)
        for line in lines:
            if line.span and line.sequence > delivered:
                self._add(line.sequence, line.span)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def _read(raw: bytes) -> _Line | None:
    """A line that was kept; None for a truncated one."""
    try:
        return _decode(raw)
    except msgspec.MsgspecError:
        return None
