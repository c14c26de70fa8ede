"""Trace spans as protobuf, in the messages of OTLP 1.

The messages are few and their field numbers never change, so they are written here by hand: a tag,
then a varint, eight bytes, or a length and bytes. Fields at their default are left out, except the
value of an AnyValue, which says by its presence which type it has. `tests/tracing` decodes all of
it with the official package.

Source: opentelemetry/proto/trace/v1/trace.proto and collector/trace/v1/trace_service.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from fairway.tracing.spans import (
    Attributes,
    Event,
    Link,
    Outcome,
    TraceSpan,
    Value,
    root_id,
    span_id,
    trace_id,
)

_VARINT, _EIGHT_BYTES, _BYTES = 0, 1, 2  # wire types
_INTERNAL = 1  # SPAN_KIND_INTERNAL
_OUTCOMES: dict[Outcome, int] = {"": 0, "Ok": 1, "Error": 2}
_UINT64 = (1 << 64) - 1
_VARINT_BYTES_MAX = 10


def encode_request(resource: Attributes, scope: tuple[str, str], spans: Sequence[bytes]) -> bytes:
    """An ExportTraceServiceRequest with encoded spans; a scope is a name and a version."""
    name, version = scope
    scope_spans = _message(1, _text(1, name) + _text(2, version)) + b"".join(
        _message(2, span) for span in spans
    )
    resource_spans = _message(1, _attributes(1, resource)) + _message(2, scope_spans)
    return _message(1, resource_spans)


def encode_span(span: TraceSpan) -> bytes:
    """A Span message."""
    uid = span.uid
    own = root_id(uid) if span.is_root else span_id(uid, span.attempt, span.stage)
    parts = [
        _message(1, trace_id(uid)),
        _message(2, own),
        b"" if span.is_root else _message(4, root_id(uid)),
        _text(5, span.stage),
        _number(6, _INTERNAL),
        _moment(7, span.start),
        _moment(8, span.end),
        _attributes(9, span.attributes),
        *(_message(11, _event(event)) for event in span.events),
        _number(12, span.events_left_out),
        *(_message(13, _link(link)) for link in span.links),
    ]
    status = _text(2, span.reason) + _number(3, _OUTCOMES[span.outcome])
    if status:
        parts.append(_message(15, status))
    return b"".join(parts)


def read_rejection(answer: bytes) -> tuple[int, str]:
    """How many spans a collector rejected of a request that it accepted, and why.

    That is the partial success of an ExportTraceServiceResponse; what cannot be read says nothing.
    """
    try:
        answered = dict(_fields(answer))
        partial = answered.get(1, b"")
        fields = dict(_fields(partial)) if isinstance(partial, bytes) else {}
    except (IndexError, ValueError):
        return 0, ""
    count, why = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(count, int) or not isinstance(why, bytes):
        return 0, ""
    return count, why.decode(errors="replace")


def _event(event: Event) -> bytes:
    return _moment(1, event.at) + _text(2, event.name) + _attributes(3, event.attributes)


def _link(link: Link) -> bytes:
    ids = _message(1, trace_id(link.uid)) + _message(2, root_id(link.uid))
    return ids + _attributes(4, link.attributes)


def _attributes(number: int, attributes: Attributes) -> bytes:
    """KeyValues, in the order of their keys."""
    return b"".join(
        _message(number, _text(1, key) + _message(2, _value(value)))
        for key, value in sorted(attributes.items())
    )


def _value(value: Value) -> bytes:
    match value:
        case str():
            return _message(1, _utf8(value))
        case bool():
            return _tag(2, _VARINT) + _varint(value)
        case int():
            return _tag(3, _VARINT) + _varint(value & _UINT64)
        case float():
            return _tag(4, _EIGHT_BYTES) + struct.pack("<d", value)
        case _:
            return _message(5, b"".join(_message(1, _value(item)) for item in value))


def _moment(number: int, seconds: float) -> bytes:
    """A time in nanoseconds; what a clock says is exact to the microsecond."""
    nanos = min(max(0, round(seconds * 1e6) * 1000), _UINT64)
    return _tag(number, _EIGHT_BYTES) + struct.pack("<Q", nanos)


def _number(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value) if value else b""


def _text(number: int, text: str) -> bytes:
    return _message(number, _utf8(text)) if text else b""


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")


def _message(number: int, content: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(content)) + content


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last have their highest bit set."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message; IndexError or ValueError if it is none."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        match tag & 7:
            case 0:  # a varint
                value, at = _read_varint(message, at)
                yield tag >> 3, value
                continue
            case 2:  # bytes
                length, at = _read_varint(message, at)
            case 1 | 5 as wire_type:
                length = 8 if wire_type == _EIGHT_BYTES else 4
            case other:
                raise ValueError(f"there is no wire type {other}")
        if length > len(message) - at:
            raise ValueError("a field is cut short")
        yield tag >> 3, message[at : at + length]
        at += length


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(_VARINT_BYTES_MAX):
        byte = message[at + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value, at + position + 1
    raise ValueError("a number is too long")
