"""What we write is what OpenTelemetry's own package reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fairway.tracing.encoding import encode_request, encode_span, read_rejection
from fairway.tracing.spans import Event, Link, TraceSpan, root_id, span_id, trace_id
from tests.tracing.decoding import Decoded, decode_request, decode_span, plain

NOW = 1_800_000_000.123457
UID = "0b7c1d6e-1f0a-4d5e-9a53-3f4b0e6f8a11"


def test_every_field_arrives() -> None:
    span = TraceSpan(
        uid=UID,
        stage="running",
        attempt=3,
        start=NOW,
        end=NOW + 60,
        attributes={"text": "h100", "count": 3, "gpus": 0.5, "is": True, "all": ("a", "b")},
        events=(Event(at=NOW + 1, name="preempted", attributes={"by": "vision/urgent"}),),
        events_left_out=300,
        links=(Link(uid="other", attributes={"why": "preempted"}),),
        outcome="Error",
        reason="OutOfMemory",
    )
    read = Span.FromString(encode_span(span))
    assert decode_span(read) == Decoded(
        trace=trace_id(UID),
        id=span_id(UID, 3, "running"),
        parent=root_id(UID),
        name="running",
        start=pytest.approx(NOW, abs=1e-6),
        end=pytest.approx(NOW + 60, abs=1e-6),
        attributes={"text": "h100", "count": 3, "gpus": 0.5, "is": True, "all": ["a", "b"]},
        events=[(pytest.approx(NOW + 1, abs=1e-6), "preempted", {"by": "vision/urgent"})],
        links=[(trace_id("other"), root_id("other"))],
        outcome="Error",
        reason="OutOfMemory",
    )
    assert read.dropped_events_count == 300
    assert read.kind == Span.SPAN_KIND_INTERNAL
    assert plain(read.links[0].attributes) == {"why": "preempted"}
    assert read.start_time_unix_nano == 1_800_000_000_123_457_000


def test_a_root_has_no_parent_and_an_id_without_an_attempt() -> None:
    root = TraceSpan(uid=UID, stage="workload", attempt=7, start=NOW, end=NOW)
    read = decode_span(Span.FromString(encode_span(root)))
    assert (read.parent, read.id) == (b"", root_id(UID))


def test_ids_have_the_lengths_of_the_standard_and_are_always_the_same() -> None:
    assert trace_id(UID).hex() == "5b4a218af66d58bf4467e1f87a9fb121"
    assert span_id(UID, 1, "waiting").hex() == "2a5cab25648c3d49"
    ids = {span_id(UID, attempt, stage) for attempt in (1, 12) for stage in ("waiting", "running")}
    assert len(ids) == 4
    assert {len(name) for name in ids} == {8}


def test_a_request_has_a_resource_a_scope_and_all_spans() -> None:
    spans = [TraceSpan(uid=UID, stage="waiting", attempt=n, start=NOW, end=NOW) for n in range(300)]
    body = encode_request(
        {"service.name": "fairway"}, ("fairway", "1.2.3"), [encode_span(span) for span in spans]
    )
    assert len(decode_request(body)) == 300
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert plain(resource.resource.attributes) == {"service.name": "fairway"}
    assert (resource.scope_spans[0].scope.name, resource.scope_spans[0].scope.version) == (
        "fairway",
        "1.2.3",
    )


_VALUES = some.one_of(
    some.text(),
    some.booleans(),
    some.integers(-(1 << 63), (1 << 63) - 1),
    some.floats(allow_nan=False),
    some.lists(some.text()).map(tuple),
)


@given(some.dictionaries(some.text(min_size=1), _VALUES))
def test_any_attribute_arrives_as_it_is(attributes: dict[str, object]) -> None:
    span = TraceSpan(uid=UID, stage="waiting", start=NOW, end=NOW, attributes=attributes)
    read = decode_span(Span.FromString(encode_span(span)))
    expected = {
        key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()
    }
    assert read.attributes == expected


@pytest.mark.parametrize("seconds", [-62_135_596_800.0, 253_402_300_799.0])
def test_a_time_that_cannot_be_written_is_the_nearest(seconds: float) -> None:
    span = TraceSpan(uid=UID, stage="waiting", start=seconds, end=seconds)
    written = Span.FromString(encode_span(span)).start_time_unix_nano
    assert written == (0 if seconds < 0 else (1 << 64) - 1)


def test_text_that_is_no_unicode_harms_no_other_span() -> None:
    span = TraceSpan(uid=UID, stage="waiting", start=NOW, end=NOW, attributes={"text": "a\ud800b"})
    assert decode_span(Span.FromString(encode_span(span))).attributes == {"text": "a?b"}


@pytest.mark.parametrize("count", [1, 70_000])
def test_what_a_collector_rejects_of_a_request_is_read(count: int) -> None:
    partial = ExportTracePartialSuccess(rejected_spans=count, error_message="too old")
    answer = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    assert read_rejection(answer) == (count, "too old")


@pytest.mark.parametrize("answer", [b"", b"\x0a", b"\x0a\x05ab", b"\xff" * 20, b"\x0b\x0c", b"{}"])
def test_an_answer_that_is_no_protobuf_rejects_nothing(answer: bytes) -> None:
    assert read_rejection(answer) == (0, "")


@given(some.binary(max_size=64))
def test_any_answer_can_be_read(answer: bytes) -> None:
    assert read_rejection(answer)[0] >= 0
