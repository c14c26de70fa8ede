"""Connections to a hub: how many, from which address, and for how long without a request.

A connection is idle while none of its requests is being answered: during the TLS handshake, while
headers arrive, and between requests. Each address may have some idle connections; one more closes
the oldest of them. So a client that only opens connections, or sends its headers byte by byte,
takes the places of its own connections and of no others. A new client always finds a place as long
as any connection is idle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fairway.clock import Clock
from fairway.server.wire.addresses import neighbourhood

_OTHER_FILES = 1_024  # of the store, logs, agents and child processes

# Why a connection was closed: its headers came too late or were too large, or another one took its
# place.
Reason = Literal["late", "large", "replaced", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What clients may use of a server before they have shown who they are."""

    most: int = 8_192
    by_address: int = 2_048
    idle_by_address: int = 512
    header_seconds: float = 10.0  # from the connection, or the first byte, to the last header
    body_seconds: float = 60.0
    idle_seconds: float = 120.0  # between two requests
    stalled_seconds: float = 60.0  # in which a client takes nothing of an answer
    bytes_per_second_least: int = 16 << 10  # that a client takes of an answer

    def most_with(self, files: int) -> int:
        """How many connections there can be if the process may open so many files."""
        if files < 0:  # any number
            return self.most
        return max(1, min(self.most, max(files - _OTHER_FILES, files // 2)))


class Turns:
    """Begins a few things in each turn of the loop, one address after the other.

    A handshake takes about a millisecond of the loop's time. When many clients connect at once,
    requests are answered in between, and a client waits for those of its own address only.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def add(self, address: str, begin: Callable[[], None]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._begin_some)
        self._waiting.setdefault(address, deque()).append(begin)

    def _begin_some(self) -> None:
        for _ in range(min(self._at_once, len(self._waiting))):
            address, line = next(iter(self._waiting.items()))
            begin = line.popleft()
            del self._waiting[address]
            if line:
                self._waiting[address] = line  # behind the other addresses
            begin()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin_some)


class Connection:
    """One connection of a client."""

    __slots__ = ("address", "close")

    def __init__(self, address: str, close: Callable[[], None]) -> None:
        self.address = address
        self.close = close


@dataclass(slots=True)
class _Neighbours:
    """The connections of one address."""

    count: int = 0
    idle: dict[Connection, None] = field(default_factory=dict)  # the oldest first


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        limits: ConnectionLimits,
        clock: Clock,
        *,
        most: int | None = None,
        closed: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        """`most` is how many there can be, if that is less than the limit says."""
        self._limits = limits
        self._clock = clock
        self._most = limits.most if most is None else most
        self._closed = closed
        self._by_address: dict[str, _Neighbours] = {}
        self._open: set[Connection] = set()
        # Those of which some headers are missing, the oldest first, and until when they may be.
        self._expected: dict[Connection, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    def arrive(self, address: str, close: Callable[[], None]) -> Connection | None:
        """A new connection; None: there is no room for it."""
        address = neighbourhood(address)
        neighbours = self._by_address.get(address) or _Neighbours()
        has_room = self._make_room_among(neighbours) and self._make_room()
        if not has_room:
            self._closed("full")
            return None
        # Making room may have emptied and dropped the entry.
        neighbours = self._by_address.setdefault(address, neighbours)
        connection = Connection(address, close)
        neighbours.count += 1
        neighbours.idle[connection] = None
        self._open.add(connection)
        self._expect(connection)
        return connection

    def receive(self, connection: Connection) -> None:
        """Some bytes arrived."""
        if connection not in self._expected and self._is_idle(connection):
            self._expect(connection)

    def begin(self, connection: Connection) -> None:
        """All headers of a request are there."""
        self._expected.pop(connection, None)
        if connection in self._open:
            self._by_address[connection.address].idle.pop(connection, None)

    def rest(self, connection: Connection) -> None:
        """The request was answered."""
        if connection not in self._open:
            return
        neighbours = self._by_address[connection.address]
        neighbours.idle[connection] = None
        if len(neighbours.idle) > self._limits.idle_by_address:
            self._replace_oldest(neighbours)

    def refuse(self, connection: Connection) -> None:
        """Closes a connection whose headers are too large."""
        if connection in self._open:
            self._close(connection, "large")

    def leave(self, connection: Connection) -> None:
        """The connection is closed."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._expected.pop(connection, None)
        neighbours = self._by_address[connection.address]
        neighbours.idle.pop(connection, None)
        neighbours.count -= 1
        if not neighbours.count:
            del self._by_address[connection.address]

    def close_late(self) -> None:
        """Closes connections whose headers take too long."""
        now = self._clock.monotonic()
        while self._expected:
            connection, until = next(iter(self._expected.items()))
            if until > now:
                return
            self._close(connection, "late")

    def _expect(self, connection: Connection) -> None:
        self._expected[connection] = self._clock.monotonic() + self._limits.header_seconds

    def _is_idle(self, connection: Connection) -> bool:
        return connection in self._open and connection in self._by_address[connection.address].idle

    def _make_room_among(self, neighbours: _Neighbours) -> bool:
        limits = self._limits
        if len(neighbours.idle) < limits.idle_by_address and neighbours.count < limits.by_address:
            return True
        return self._replace_oldest(neighbours)

    def _make_room(self) -> bool:
        """Room among all: at the cost of the address with the most idle connections."""
        if len(self._open) < self._most:
            return True
        fullest = max(self._by_address.values(), key=lambda neighbours: len(neighbours.idle))
        return self._replace_oldest(fullest)

    def _replace_oldest(self, neighbours: _Neighbours) -> bool:
        oldest = next(iter(neighbours.idle), None)
        if oldest is None:
            return False
        self._close(oldest, "replaced")
        return True

    def _close(self, connection: Connection, reason: Reason) -> None:
        self.leave(connection)
        self._closed(reason)
        connection.close()
