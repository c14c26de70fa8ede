"""A request and its response, independent of any HTTP library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from fairway.streams.line import Socket

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client sent; the path is decoded."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    source: str = ""
    read: Callable[[], Awaitable[bytes]] | None = None  # reads the body, if it still has to be

    async def whole(self) -> Request:
        """The request with its body, which is read only when the caller has shown its rights."""
        return self if self.read is None else replace(self, body=await self.read(), read=None)

    def header(self, name: str) -> str:
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return ""

    def parameter(self, name: str) -> str:
        for key, value in self.query:
            if key == name:
                return value
        return ""

    def parameters(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be given several times."""
        return tuple(value for key, value in self.query if key == name)

    def flag(self, name: str) -> bool | None:
        """A boolean parameter: false only for `false` and `0`; None: missing."""
        for key, value in self.query:
            if key == name:
                return value.lower() not in ("false", "0")
        return None


class ByteStream(Protocol):
    """Chunks for a client; the sender closes it, whether or not it took any."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A two-way stream of messages, which lasts as long as `hold` does."""

    hold: Callable[[Socket], Awaitable[None]]
    protocols: tuple[str, ...] = ()
    beat_seconds: float | None = None  # between pings of a client that always reads


class Seat(Protocol):
    """The place of a request among those of its caller, until the answer is sent."""

    def charge(self, size: int) -> None:
        """Counts bytes that are sent."""
        ...

    def leave(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class Response:
    """What the client gets: a body, a stream of chunks, or a meeting."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    stream: ByteStream | None = None
    meeting: Meeting | None = None
    seat: Seat | None = None


def json_response(value: Any, status: int = 200, **extra: Any) -> Response:
    return Response(status=status, body=msgspec.json.encode(value), **extra)


def text_response(text: str, status: int = 200) -> Response:
    return Response(status=status, body=text.encode(), content_type="text/plain; charset=utf-8")
