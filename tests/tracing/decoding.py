"""What a collector makes of a request: decoded by OpenTelemetry's own package, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

OUTCOMES = {0: "", 1: "Ok", 2: "Error"}


@dataclass(kw_only=True)
class Decoded:
    """A span as it arrived."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    start: float
    end: float
    attributes: dict[str, Any]
    events: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    links: list[tuple[bytes, bytes]] = field(default_factory=list)
    outcome: str = ""
    reason: str = ""


def decode_request(body: bytes) -> list[Decoded]:
    """The spans of a request; fails on anything that the package does not know."""
    request = ExportTraceServiceRequest.FromString(body)
    assert request.SerializeToString(deterministic=True) == body, "something is not understood"
    return [
        decode_span(span)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def decode_span(span: Span) -> Decoded:
    return Decoded(
        trace=span.trace_id,
        id=span.span_id,
        parent=span.parent_span_id,
        name=span.name,
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        attributes=plain(span.attributes),
        events=[
            (event.time_unix_nano / 1e9, event.name, plain(event.attributes))
            for event in span.events
        ],
        links=[(link.trace_id, link.span_id) for link in span.links],
        outcome=OUTCOMES[span.status.code],
        reason=span.status.message,
    )


def plain(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: value_of(pair.value) for pair in attributes}


def value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    assert kind is not None, "an attribute has no value"
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind)
