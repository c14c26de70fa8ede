"""A Prometheus, or a server with its HTTP API: Thanos, Mimir, VictoriaMetrics.

Queries are sent in the body, since a proxy may cut a long URL. The server is given a timeout, so
that it does not go on with a query that is no longer awaited.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from fairway.client.access import Access
from fairway.client.errors import ClientError, ConfigError
from fairway.client.transport import Transport
from fairway.client.wire import Answer, Request
from fairway.clock import Clock
from fairway.metrics.interface import (
    Address,
    Range,
    Refused,
    Sample,
    Series,
    Source,
    Unreachable,
)

T = TypeVar("T")

_FORM = "application/x-www-form-urlencoded"
_INSTANT, _RANGE = "/api/v1/query", "/api/v1/query_range"
_QUERY_SECONDS = 10
_SAMPLES_MOST = 10_000
_POINTS_MOST = 1_000_000  # of all series of a range
_BYTES_MOST = 64 << 20
_CONNECTIONS_MOST = 8
_SOURCES_MOST = 256  # beyond it the least recently used source is closed
_SHOWN_MOST = 300  # characters shown of a server's message


class _Data(msgspec.Struct, rename="camel"):
    result_type: Literal["vector", "scalar", "matrix", "string"]
    result: Any


class _Body(msgspec.Struct, rename="camel"):
    """The part of an answer that is read."""

    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


class _Measured(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: tuple[tuple[float, str], ...]


_read = msgspec.json.Decoder(_Body).decode


class Prometheus:
    """One server."""

    def __init__(self, address: Address, clock: Clock) -> None:
        access = Access(
            server=address.url, token=address.token, authority=address.authority.encode()
        )
        self._url = address.url
        self._transport = Transport(access, clock, connections_most=_CONNECTIONS_MOST)

    async def vector(self, query: str, at: float | None = None) -> tuple[Sample, ...]:
        fields = {"query": query, "timeout": f"{_QUERY_SECONDS}s"}
        if at is not None:
            fields["time"] = f"{at:.3f}"
        data = await self._ask(_INSTANT, fields)
        match data.result_type:
            case "vector":
                measured = self._convert(data.result, list[_Measured])
            case "scalar":
                measured = [_Measured({}, self._convert(data.result, tuple[float, str]))]
            case other:
                raise Refused(f"{self._url}: the query yields a {other}, and no vector")
        if len(measured) > _SAMPLES_MOST:
            raise Refused(
                f"{self._url}: the query yields {len(measured)} samples, and at most "
                f"{_SAMPLES_MOST} are taken"
            )
        samples = (
            Sample(value=self._number(other.value[1]), at=other.value[0], labels=other.metric)
            for other in measured
        )
        return tuple(sample for sample in samples if math.isfinite(sample.value))

    async def series(self, query: str, over: Range) -> tuple[Series, ...]:
        fields = {
            "query": query,
            "timeout": f"{_QUERY_SECONDS}s",
            "start": f"{over.start:.3f}",
            "end": f"{over.end:.3f}",
            "step": f"{over.step:.3f}",
        }
        data = await self._ask(_RANGE, fields)
        if data.result_type != "matrix":
            raise Refused(f"{self._url}: the query yields a {data.result_type}, and no matrix")
        series = self._convert(data.result, list[_Series])
        points = sum(len(each.values) for each in series)
        if points > _POINTS_MOST:
            raise Refused(
                f"{self._url}: the query yields {points} samples, and at most {_POINTS_MOST} "
                "are taken"
            )
        return tuple(Series(labels=each.metric, values=each.values) for each in series)

    def _convert(self, result: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(result, kind)
        except msgspec.ValidationError as error:
            raise Refused(f"{self._url}: the answer is not understood: {error}") from error

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise Refused(f"{self._url}: {_show(text)!r} is not a number") from error

    async def _ask(self, path: str, fields: dict[str, str]) -> _Data:
        request = Request(
            method="POST",
            path=path,
            body=urlencode(fields).encode(),
            content_type=_FORM,
            read_timeout_seconds=_QUERY_SECONDS + 5.0,
            answer_bytes_max=_BYTES_MOST,
        )
        try:
            answer = await self._transport.send(request)
        except ConfigError as error:
            raise Refused(str(error)) from error
        except ClientError as error:
            raise Unreachable(str(error)) from error
        try:
            body = _read(answer.body)
        except msgspec.MsgspecError as error:
            raise self._failure(answer, _show(answer.body.decode(errors="replace"))) from error
        if body.status != "success" or body.data is None:
            raise self._failure(answer, _show(body.error or body.status))
        return body.data

    def _failure(self, answer: Answer, why: str) -> Refused | Unreachable:
        """An overloaded or starting server may answer later; other errors need a change."""
        message = f"{self._url} answered {answer.status}: {why}"
        is_passing = answer.status >= 500 or answer.status == 429
        return Unreachable(message) if is_passing else Refused(message)

    async def close(self) -> None:
        await self._transport.close()


class PrometheusSources:
    """Servers by address, each with its own few connections."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._found: OrderedDict[Address, Prometheus] = OrderedDict()
        self._closing: set[asyncio.Future[None]] = set()

    def at(self, address: Address) -> Source:
        prometheus = self._found.get(address)
        if prometheus is None:
            prometheus = self._found[address] = Prometheus(address, self.clock)
            if len(self._found) > _SOURCES_MOST:
                _, oldest = self._found.popitem(last=False)
                closing = asyncio.ensure_future(oldest.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._found.move_to_end(address)
        return prometheus

    async def close(self) -> None:
        while self._found:
            await self._found.popitem()[1].close()


def _show(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_MOST else f"{text[:_SHOWN_MOST]}…"
