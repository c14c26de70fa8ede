"""Spans arrive at a real server, by OTLP over HTTP, as OpenTelemetry's own package reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from fairway import __version__
from fairway.clock import VirtualClock
from fairway.controllers.timeline.outbox import Limits, Outbox
from fairway.tracing.collector import Address, Headers, OtlpCollector
from fairway.tracing.encoding import encode_span
from fairway.tracing.interface import CollectorFault, Later, Refused
from fairway.tracing.spans import Event, TraceSpan, root_id, trace_id
from tests.tracing.collectors import Served, leading, serving
from tests.waiting import seen

NOW = 1_800_000_000.0


def span(number: int = 1) -> TraceSpan:
    return TraceSpan(
        uid=f"u{number}",
        stage="waiting",
        attempt=1,
        start=NOW,
        end=NOW + 5,
        attributes={"fairway.workload": f"train-{number}"},
        events=(Event(at=NOW + 2, name="QuotaExceeded"),),
    )


@asynccontextmanager
async def reaching(served: Served, **more: object) -> AsyncIterator[OtlpCollector]:
    collector = OtlpCollector(Address(url=served.url, **more), VirtualClock())
    yield collector
    await collector.close()


async def test_spans_arrive_with_their_headers() -> None:
    headers: Headers = (("Authorization", "Bearer s3cret"), ("X-Scope-OrgID", "fleet"))
    async with serving() as served, reaching(served, headers=lambda: headers) as collector:
        await collector.send([encode_span(span(1)), encode_span(span(2))])
    (request,) = served.requests
    assert (request.method, request.path) == ("POST", "/v1/traces")
    assert request.headers["Content-Type"] == "application/x-protobuf"
    assert request.headers["Authorization"] == "Bearer s3cret"
    assert request.headers["X-Scope-OrgID"] == "fleet"
    assert request.headers["User-Agent"] == f"fairway/{__version__}"
    first, second = served.spans
    assert (first.name, first.trace, first.parent) == ("waiting", trace_id("u1"), root_id("u1"))
    assert first.attributes == {"fairway.workload": "train-1"}
    assert (first.start, first.end) == (NOW, NOW + 5)
    assert first.events == [(NOW + 2, "QuotaExceeded", {})]
    assert second.trace == trace_id("u2")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_collector_that_is_busy_may_be_asked_later(status: int) -> None:
    answer = web.Response(status=status, headers={"Retry-After": "17"}, text="try later")
    async with serving(answer) as served, reaching(served) as collector:
        with pytest.raises(Later, match=f"{status}: try later") as raised:
            await collector.send([encode_span(span())])
        assert raised.value.after_seconds == 17
        await collector.send([encode_span(span())])
    assert len(served.spans) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500])
async def test_any_other_refusal_is_final(status: int) -> None:
    answer = web.Response(status=status, body=b"\x08\x03\x12\x08no\x01 thanks")
    async with serving(answer) as served, reaching(served) as collector:
        with pytest.raises(Refused, match="no thanks"):
            await collector.send([encode_span(span())])


async def test_a_collector_that_is_not_there_may_be_asked_later() -> None:
    async with serving() as served:
        pass
    async with reaching(served) as collector:
        with pytest.raises(Later, match="connection refused"):
            await collector.send([encode_span(span())])


async def test_spans_that_a_collector_rejects_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    partial = ExportTracePartialSuccess(rejected_spans=1, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    async with serving(web.Response(body=body)) as served, reaching(served) as collector:
        await collector.send([encode_span(span())])
    assert "rejected 1 trace spans: too old" in caplog.text


async def test_headers_are_read_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"

    def headers() -> Headers:
        return (("Authorization", token.read_text()),)

    async with serving() as served, reaching(served, headers=headers) as collector:
        with pytest.raises(CollectorFault, match="headers cannot be read"):
            await collector.send([encode_span(span())])
        for text in ("first", "second"):
            token.write_text(text)
            await collector.send([encode_span(span())])
    assert [request.headers["Authorization"] for request in served.requests] == ["first", "second"]


async def test_an_outbox_delivers_in_batches_and_nothing_twice() -> None:
    clock = VirtualClock()
    busy = web.Response(status=503, headers={"Retry-After": "30"})
    async with serving(busy) as served:
        collector = OtlpCollector(Address(url=served.url), clock)
        outbox = Outbox(collector, clock, limits=Limits(request_spans=40))
        async with leading(outbox):
            for number in range(100):
                outbox.put(span(number))
            await clock.advance(2)
            await seen(_count(served), lambda count: count == 1, "the first request")
            await clock.advance(29)
            assert len(served.requests) == 1, "it asked to be left alone for 30 s"
            await _delivered(outbox, clock)
        await collector.close()
    assert [len(request) for request in served.taken] == [40, 40, 20]
    assert len({(item.trace, item.id) for item in served.spans}) == 100


def _count(served: Served):
    async def look() -> int:
        return len(served.requests)

    return look


async def _delivered(outbox: Outbox, clock: VirtualClock) -> None:
    async def look() -> int:
        await clock.advance(1)
        return len(outbox)

    await seen(look, lambda left: not left, "an empty outbox")
