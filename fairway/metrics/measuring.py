"""Carries out what scorers measure; bounded in time, in bytes and in numbers.

The HTTP scorer speaks the protocol of OCM's dynamic scoring framework: its configuration is read,
or else its health; the series of some queries are sent to it; it answers with scores.
"""

from __future__ import annotations

import asyncio
import math
from typing import TypeVar
from urllib.parse import urlsplit

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
    Sources,
    Unreachable,
)
from fairway.metrics.measurements import Asked, Measurement, confirm_number, read_values

T = TypeVar("T")
_BYTES_MAX = 4 << 20  # of an answer
_SENT_BYTES_MAX = 16 << 20
_SHOWN_MAX = 200  # characters of a server's answer
_MISSING = 404


class _Params(msgspec.Struct):
    query: str = ""
    range: float = 3600
    step: float = 60


class _Source(msgspec.Struct):
    type: str = ""
    host: str | None = None
    params: _Params | None = None


class _Scoring(msgspec.Struct):
    host: str | None = None
    path: str = ""


class _Config(msgspec.Struct):
    """The part of a scorer's configuration that is read."""

    source: _Source = msgspec.field(default_factory=_Source)
    scoring: _Scoring = msgspec.field(default_factory=_Scoring)


class _Result(msgspec.Struct):
    score: float
    metric: dict[str, str | int | float | bool | None] = {}


class _Results(msgspec.Struct):
    results: list[_Result]


async def measure(measurement: Measurement, sources: Sources, clock: Clock) -> tuple[Sample, ...]:
    """Carries out a measurement; MetricsFault if it fails."""
    try:
        async with asyncio.timeout(measurement.seconds):
            if measurement.query:
                return await _query(measurement, sources, clock)
            if measurement.file is not None:
                return tuple(read_values(await _get(measurement.file, clock), clock.now()))
            return await _score(measurement, sources, clock)
    except TimeoutError as fault:
        raise Unreachable(f"there was no answer within {measurement.seconds:g} s") from fault


async def _query(measurement: Measurement, sources: Sources, clock: Clock) -> tuple[Sample, ...]:
    if measurement.server is None:
        raise Refused("no Prometheus is named")
    return await sources.at(measurement.server).vector(measurement.query, clock.now())


# An HTTP scorer.


async def _score(measurement: Measurement, sources: Sources, clock: Clock) -> tuple[Sample, ...]:
    config = _Config()
    if measurement.config is not None:
        config = _decode(await _get(measurement.config, clock), _Config, measurement.config.url)
    scorer = _scorer(measurement, config)
    if measurement.config is None:
        await _confirm_health(scorer, clock)
    data = [
        {"metric": dict(series.labels), "values": [list(value) for value in series.values]}
        for series in await _series(measurement, config, sources, clock)
    ]
    body = msgspec.json.encode({"data": data or None})
    if len(body) > _SENT_BYTES_MAX:
        raise Refused(f"the series have {len(body)} bytes, and at most {_SENT_BYTES_MAX} are sent")
    answer = _well(scorer.url, await _send(scorer, clock, body))
    results = _decode(answer, _Results, scorer.url).results
    confirm_number(len(results), scorer.url)
    return tuple(
        Sample(
            value=result.score,
            at=clock.now(),
            labels={key: str(value) for key, value in result.metric.items() if value is not None},
        )
        for result in results
        if math.isfinite(result.score)
    )


def _scorer(measurement: Measurement, config: _Config) -> Address:
    """Where series are sent. A token goes to the servers that were named to us, and no other."""
    if measurement.scorer is not None:
        return measurement.scorer
    if measurement.config is None:
        raise Refused("neither a scorer nor its configuration is named")
    own = measurement.config
    at = config.scoring.host or _origin(own.url)
    url = f"{at.rstrip('/')}/{config.scoring.path.lstrip('/')}"
    if _origin(url) == _origin(own.url):
        return Address(url=url, token=own.token, authority=own.authority)
    return Address(url=url)


async def _series(
    measurement: Measurement, config: _Config, sources: Sources, clock: Clock
) -> list[Series]:
    asked, params = list(measurement.series), config.source.params
    if not asked and params is not None and config.source.type.lower() != "none":
        asked = [
            Asked(query=query.strip(), range_seconds=params.range, step_seconds=params.step)
            for query in params.query.split(";")
            if query.strip()
        ]
    if not asked:
        return []
    server = measurement.server
    if config.source.host and server is None:
        server = Address(url=config.source.host)
    if server is None:
        raise Refused("no Prometheus is named for the series")
    now = clock.now()
    series: list[Series] = []
    for query in asked:
        if query.step_seconds <= 0 or query.range_seconds <= 0:
            raise Refused("a range and its step are more than 0 seconds")
        over = Range(start=now - query.range_seconds, end=now, step=query.step_seconds)
        series.extend(await sources.at(server).series(query.query, over))
    return series


async def _confirm_health(scorer: Address, clock: Clock) -> None:
    health = Address(url=f"{_origin(scorer.url)}/healthz", authority=scorer.authority)
    answer = await _send(health, clock)
    if answer.status not in (200, 204, _MISSING):
        raise Unreachable(f"{health.url} answers {answer.status}: the scorer is not healthy")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


# Requests.


def _decode(content: bytes, kind: type[T], url: str) -> T:
    try:
        return msgspec.json.decode(content, type=kind, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise Refused(f"the answer of {url} is not understood: {fault}") from fault


async def _get(address: Address, clock: Clock) -> bytes:
    return _well(address.url, await _send(address, clock))


def _well(url: str, answer: Answer) -> bytes:
    if answer.status == 200:
        return answer.body
    said = " ".join(answer.body.decode(errors="replace").split())[:_SHOWN_MAX]
    message = f"{url} answers {answer.status}" + (f": {said}" if said else "")
    is_passing = answer.status >= 500 or answer.status == 429
    raise Unreachable(message) if is_passing else Refused(message)


async def _send(address: Address, clock: Clock, body: bytes | None = None) -> Answer:
    """One request on a connection of its own: runs are minutes apart."""
    parts = urlsplit(address.url)
    access = Access(
        server=_origin(address.url), token=address.token, authority=address.authority.encode()
    )
    path = parts.path or "/"
    request = Request(
        method="GET" if body is None else "POST",
        path=f"{path}?{parts.query}" if parts.query else path,
        body=body,
        accept="*/*",
        answer_bytes_max=_BYTES_MAX,
    )
    transport = Transport(access, clock, connections_most=1)
    try:
        return await transport.send(request)
    except ConfigError as fault:
        raise Refused(str(fault)) from fault
    except ClientError as fault:
        raise Unreachable(str(fault)) from fault
    finally:
        await transport.close()
