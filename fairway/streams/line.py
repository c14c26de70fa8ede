"""A line: one connection with its talks.

Everything here is bounded. On each talk, a side may send what fits the other side's window, and
gets credit as the other side takes what it received: a slow reader holds up its own talk and no
other. The number of concurrent talks is limited, and an idle talk is ended. A side that violates a
limit is considered broken, and its line is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from fairway.clock import Clock
from fairway.loops import end as end_tasks
from fairway.streams import frames
from fairway.streams.frames import BadFrame, Frame, Kind
from fairway.streams.requests import WELL, Ask, Outcome, TalkEnded

_log = logging.getLogger(__name__)

_NUMBER_MOST = (1 << 32) - 1
_CUT = Outcome(reason="ServiceUnavailable", message="the stream to the agent was cut")
_CANCELLED = Outcome(reason="Cancelled", message="the client is gone")
_BUSY = Outcome(
    reason="TooManyRequests", message="the agent is asked for too much at a time; try again later"
)


class Socket(Protocol):
    """A connection of whole messages."""

    async def send(self, message: bytes) -> None:
        """Returns once there is room for more; OSError where the connection is gone."""
        ...

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one line takes at most."""

    talks: int = 128  # at a time
    window_bytes: int = 256 << 10  # in flight on a talk, in each direction
    idle_seconds: float = 4 * 3600.0  # without a frame on a talk, until it is ended
    look_seconds: float = 60.0  # between checks for idle talks


USUAL = Limits()


class Talk:
    """One request with its answer; bytes go in both directions at once."""

    def __init__(self, line: Line, number: int, limits: Limits) -> None:
        self.number = number
        self.outcome: Outcome | None = None  # once it is over
        self._line = line
        self._room = limits.window_bytes  # left in the other side's window
        self._window = limits.window_bytes
        self._taken = 0  # since the last CREDIT to the other side
        self._held = 0  # received and not taken yet
        self._received: deque[Frame] = deque()
        self._has_begun = False
        self._news = asyncio.Event()
        self.heard_at = 0.0

    async def begin(self) -> None:
        """Signals that the requested stream exists."""
        if not self._has_begun:
            self._has_begun = True
            await self._send(Frame(Kind.BEGUN, self.number))

    async def wait_until_begun(self) -> None:
        """Waits until the other side signals that the stream exists; TalkEnded if it does not."""
        while not self._has_begun:
            if self.outcome is not None:
                raise TalkEnded(self.outcome)
            await self._change()

    async def send(self, channel: int, content: bytes) -> None:
        """Sends bytes on a channel as the window permits; TalkEnded when the talk is over."""
        for at in range(0, len(content), frames.DATA_BYTES_MOST):
            part = content[at : at + frames.DATA_BYTES_MOST]
            await self._spend(frames.data(self.number, channel, part))

    async def end(self, channel: int) -> None:
        """Signals that this side sends nothing more on a channel."""
        await self._spend(frames.end(self.number, channel))

    async def receive(self) -> tuple[int, bytes] | None:
        """The channel and the next bytes; no bytes: the channel ended; None: the talk ended."""
        while not self._received:
            if self.outcome is not None:
                return None
            await self._change()
        frame = self._received.popleft()
        self._held -= frame.cost
        self._taken += frame.cost
        if self._taken >= self._window // 2 and self.outcome is None:
            amount, self._taken = self._taken, 0
            with contextlib.suppress(TalkEnded):
                await self._send(frames.credit(self.number, amount))
        return frame.channel, frame.payload[1:]

    async def close(self, outcome: Outcome = _CANCELLED) -> None:
        """Ends the talk in both directions; a side that just wants no more gives no outcome."""
        if self.outcome is None:
            self.over(outcome)
            message = Frame(Kind.CLOSE, self.number, msgspec.json.encode(outcome))
            with contextlib.suppress(OSError):
                await self._line.send(message)

    def over(self, outcome: Outcome) -> None:
        """Marks the talk as over, whichever side ended it; what was received can still be taken."""
        if self.outcome is None:
            self.outcome = outcome
            self._line.forget(self)
            self._news.set()

    def hear(self, frame: Frame) -> None:
        """Takes a frame from the other side; BadFrame if the frame is not permitted."""
        match frame.kind:
            case Kind.DATA | Kind.END:
                _ = frame.channel
                self._held += frame.cost
                if self._held > self._window:
                    raise BadFrame("more was sent than there is room for")
                self._received.append(frame)
            case Kind.CREDIT:
                self._room += frame.credit
                if self._room > self._window:
                    raise BadFrame("more was taken than was sent")
            case Kind.BEGUN:
                self._has_begun = True
            case Kind.CLOSE:
                try:
                    self.over(msgspec.json.decode(frame.payload, type=Outcome))
                except msgspec.MsgspecError as fault:
                    raise BadFrame(f"a talk ends without an outcome: {fault}") from fault
            case Kind.OPEN:
                raise BadFrame("a talk is opened twice")
        self._news.set()

    async def _spend(self, frame: Frame) -> None:
        while self.outcome is None and self._room < frame.cost:
            await self._change()
        self._room -= frame.cost
        await self._send(frame)

    async def _send(self, frame: Frame) -> None:
        if self.outcome is not None:
            raise TalkEnded(self.outcome)
        try:
            self.heard_at = self._line.now()
            await self._line.send(frame)
        except OSError as fault:
            self.over(_CUT)
            raise TalkEnded(_CUT) from fault

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()


# Answers a request; the talk is over when it returns or raises.
Serve = Callable[[Ask, Talk], Awaitable[Outcome]]


class Line:
    """A connection with its talks. `run` it for its lifetime."""

    def __init__(
        self, socket: Socket, clock: Clock, *, serve: Serve | None = None, limits: Limits = USUAL
    ) -> None:
        """With `serve`, this side answers talks; without it, this side opens them."""
        self._socket = socket
        self._clock = clock
        self._serve = serve
        self._limits = limits
        self._talks: dict[int, Talk] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._last = 0
        self._is_closed = False

    def now(self) -> float:
        return self._clock.monotonic()

    @property
    def count(self) -> int:
        """The number of open talks."""
        return len(self._talks)

    async def run(self) -> None:
        """Receives frames until the connection ends; then all talks end."""
        looking = asyncio.ensure_future(self._look())
        try:
            while (message := await self._socket.receive()) is not None:
                await self._hear(frames.decode(message))
        except BadFrame as fault:
            _log.warning("a stream is closed: %s", fault)
        finally:
            self._is_closed = True
            for talk in list(self._talks.values()):
                talk.over(_CUT)
            await end_tasks([looking, *self._serving.values()])
            await self._socket.close()

    async def open(self, ask: Ask) -> Talk:
        """Opens a talk; TalkEnded if there are too many talks or the connection is gone."""
        if self._is_closed:
            raise TalkEnded(_CUT)
        if len(self._talks) >= self._limits.talks or self._last >= _NUMBER_MOST:
            raise TalkEnded(_BUSY)
        self._last += 1
        talk = self._make(self._last)
        try:
            await self.send(Frame(Kind.OPEN, talk.number, msgspec.json.encode(ask)))
        except OSError as fault:
            talk.over(_CUT)
            raise TalkEnded(_CUT) from fault
        return talk

    async def close(self) -> None:
        await self._socket.close()

    async def send(self, frame: Frame) -> None:
        message = frames.encode(frame)
        if len(message) > frames.FRAME_BYTES_MOST:
            raise ValueError(f"a frame of {len(message)} bytes is too large")
        await self._socket.send(message)

    def forget(self, talk: Talk) -> None:
        self._talks.pop(talk.number, None)
        serving = self._serving.get(talk.number)
        if serving is not None and serving is not asyncio.current_task():
            serving.cancel()

    def _make(self, number: int) -> Talk:
        talk = self._talks[number] = Talk(self, number, self._limits)
        talk.heard_at = self.now()
        return talk

    async def _hear(self, frame: Frame) -> None:
        talk = self._talks.get(frame.number)
        if talk is not None:
            talk.heard_at = self.now()
            talk.hear(frame)
        elif frame.kind is Kind.OPEN:
            await self._take(frame)
        # Otherwise it belongs to a talk that ended here while the frame was in flight.

    async def _take(self, frame: Frame) -> None:
        if self._serve is None or frame.number <= self._last:
            raise BadFrame("a talk was opened by who is not to, or again")
        self._last = frame.number
        try:
            ask = msgspec.json.decode(frame.payload, type=Ask)
        except msgspec.MsgspecError as fault:
            raise BadFrame(f"what is asked cannot be read: {fault}") from fault
        if len(self._talks) >= self._limits.talks:
            refused = Frame(Kind.CLOSE, frame.number, msgspec.json.encode(_BUSY))
            with contextlib.suppress(OSError):
                await self.send(refused)
            return
        talk = self._make(frame.number)
        task = asyncio.ensure_future(self._served(self._serve, ask, talk))
        self._serving[frame.number] = task
        task.add_done_callback(lambda _: self._serving.pop(frame.number, None))

    async def _served(self, serve: Serve, ask: Ask, talk: Talk) -> None:
        outcome = Outcome(reason="InternalError", message="the agent failed; its log says more")
        try:
            outcome = await serve(ask, talk)
        except TalkEnded:
            outcome = WELL  # the other side ended the talk, so it is not sent an outcome
        except Exception:
            _log.exception("a talk failed")
        finally:
            await talk.close(outcome)

    async def _look(self) -> None:
        """Ends idle talks."""
        while True:
            await self._clock.sleep(self._limits.look_seconds)
            before = self.now() - self._limits.idle_seconds
            for talk in [talk for talk in self._talks.values() if talk.heard_at < before]:
                hours = self._limits.idle_seconds / 3600
                message = f"nothing was said for {hours:g} hours"
                await talk.close(Outcome(reason="Timeout", message=message))
