"""Request bodies in Kubernetes' protobuf form, decoded to JSON objects.

kubectl and Go clients send built-in kinds in this form. A body is four magic bytes, then an
envelope with API version and kind, then the object's own message. `messages.json` (made by
tools/builtin_messages.py) has the fields of each message by number: the JSON name, the type, and
one word for how the field is encoded:

    list, map   many values; map keys are strings
    inline      the message's fields are in the JSON object itself
    omit        absent from JSON when zero, though Go writes it on the wire

Types with a dot are messages; the others are scalars and the forms in `_FORMS`. The result is what
Go would write as JSON, without nulls for unset times. Input is untrusted: every fault in it is
refused with a message.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from fairway.api.errors import BadRequest, UnsupportedMediaType
from fairway.schema.node import JsonObject

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_SCHEMA = "apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
# Deep enough for any schema in use, and shallow enough for the interpreter's stack.
_DEPTH_MAX = 100
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - times on the wire are UTC, and are written so
_YEAR_ONE_SECONDS = -62135596800


class Field(NamedTuple):
    """One field of a message, as in the table."""

    name: str
    type: str
    how: str


class Table(NamedTuple):
    message_by_kind: dict[str, str]
    fields_by_message: dict[str, dict[int, Field]]


@cache
def _table() -> Table:
    content = files("fairway.resources.builtin").joinpath("messages.json").read_bytes()
    loaded: dict[str, dict[str, Any]] = msgspec.json.decode(content)
    kinds = loaded.pop("kinds")
    return Table(
        message_by_kind=kinds,
        fields_by_message={
            name: {int(number): Field(*entry) for number, entry in entries.items()}
            for name, entries in loaded.items()
        },
    )


def decode(body: bytes) -> JsonObject:
    """The object in a body."""
    if not body.startswith(_MAGIC):
        raise _malformed("it does not begin as one")
    api_version, kind, raw = _envelope(memoryview(body)[len(_MAGIC) :])
    if not kind or not api_version:
        raise _malformed("it names no API version or no kind")
    known = _table().message_by_kind
    # DeleteOptions are the same in every API group.
    message = known.get("DeleteOptions" if kind == "DeleteOptions" else f"{api_version}/{kind}")
    if message is None:
        raise UnsupportedMediaType(
            f"{kind} of {api_version} is not served as protobuf - accepted media types include: "
            "application/json, application/yaml"
        )
    return {"apiVersion": api_version, "kind": kind, **_message(message, raw, 0)}


def _malformed(why: str) -> BadRequest:
    return BadRequest(f"the body of the request is not a Kubernetes protobuf message: {why}")


def _envelope(data: memoryview) -> tuple[str, str, memoryview]:
    """API version, kind, and the object's own bytes."""
    type_names = {1: "", 2: ""}
    raw = memoryview(b"")
    for number, wire, value in _fields(data):
        if number == 1:
            for part, part_wire, text in _fields(_chunk(wire, value)):
                if part in type_names:
                    type_names[part] = _string(part_wire, text)
        elif number == 2:
            raw = _chunk(wire, value)
        elif number == 3 and _string(wire, value):
            raise _malformed("its content is encoded in a way that is not known")
    return type_names[1], type_names[2], raw


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and raw value (a number, or bytes) of each field in turn."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise _malformed("a field has number 0")
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise _malformed(f"field {number} has wire type {wire}")
        if size > end - position:
            raise _malformed("it is cut short")
        yield number, wire, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """A number with seven bits in each byte, and the position after it."""
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1  # nearly all are this short
    result = 0
    for shift in range(0, 70, 7):
        if position == len(data):
            raise _malformed("it is cut short")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    if byte >= 0x80 or result >> 64:
        raise _malformed("a number has more than 64 bits")
    return result, position


def _message(name: str, data: memoryview, depth: int, into: JsonObject | None = None) -> JsonObject:
    """A message as a JSON object, merged into a given one if it is repeated or inlined."""
    if depth > _DEPTH_MAX:
        raise _malformed(f"it is nested more than {_DEPTH_MAX} messages deep")
    result: JsonObject = {} if into is None else into
    known = _table().fields_by_message[name]
    for number, wire, value in _fields(data):
        field = known.get(number)
        if field is None:
            continue  # a newer client's field
        match field.how:
            case "list":
                result.setdefault(field.name, []).extend(_elements(field.type, wire, value, depth))
            case "map":
                key, element = _entry(field.type, _chunk(wire, value), depth)
                result.setdefault(field.name, {})[key] = element
            case "inline":
                _message(field.type, _chunk(wire, value), depth + 1, result)
            case _:
                _set(result, field, _single(result, field, wire, value, depth))
    return result


def _single(result: JsonObject, field: Field, wire: int, value: Any, depth: int) -> Any:
    if "." in field.type:
        return _message(field.type, _chunk(wire, value), depth + 1, result.get(field.name))
    return _value(field.type, wire, value, depth)


def _set(result: JsonObject, field: Field, value: Any) -> None:
    is_unset_time = value is None and field.type in ("time", "micro-time")
    if is_unset_time or (field.how == "omit" and not value):
        result.pop(field.name, None)
    else:
        result[field.name] = value


def _elements(type_: str, wire: int, value: Any, depth: int) -> list[Any]:
    """The elements in one occurrence of a list's field: one, or several packed numbers."""
    if wire != _BYTES or type_ not in ("int32", "int64", "bool"):
        return [_value(type_, wire, value, depth)]
    elements, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        elements.append(_value(type_, _VARINT, number, depth))
    return elements


def _entry(type_: str, data: memoryview, depth: int) -> tuple[str, Any]:
    """One key of a map and its value; a missing one is empty."""
    key, wire, value = "", _BYTES, memoryview(b"")
    for number, part_wire, part in _fields(data):
        if number == 1:
            key = _string(part_wire, part)
        elif number == 2:
            wire, value = part_wire, part
    return key, _value(type_, wire, value, depth)


def _value(type_: str, wire: int, value: Any, depth: int) -> Any:
    if "." in type_:
        return _message(type_, _chunk(wire, value), depth + 1)
    scalar = _SCALARS.get(type_)
    if scalar is not None:
        return scalar(wire, value)
    return _FORMS[type_](_chunk(wire, value), depth + 1)


def _chunk(wire: int, value: Any) -> memoryview:
    if wire != _BYTES:
        raise _malformed(f"a field has wire type {wire} where {_BYTES} belongs")
    chunk: memoryview = value
    return chunk


def _string(wire: int, value: Any) -> str:
    try:
        return str(_chunk(wire, value), "utf-8")
    except UnicodeDecodeError as fault:
        raise _malformed("a text is not UTF-8") from fault


def _base64(wire: int, value: Any) -> str:
    return b64encode(_chunk(wire, value)).decode()


def _integer(wire: int, value: Any, bits: int = 64) -> int:
    if wire != _VARINT:
        raise _malformed(f"a field has wire type {wire} where {_VARINT} belongs")
    number: int = value & ((1 << bits) - 1)
    return number - (1 << bits) if number >> (bits - 1) else number


def _int32(wire: int, value: Any) -> int:
    return _integer(wire, value, 32)


def _bool(wire: int, value: Any) -> bool:
    return _integer(wire, value) != 0


def _double(wire: int, value: Any) -> int | float:
    if wire != _FIXED64:
        raise _malformed(f"a field has wire type {wire} where {_FIXED64} belongs")
    number: float = struct.unpack("<d", value)[0]
    if not isfinite(number):
        raise _malformed("a number is not finite")
    # Go writes whole numbers without a fraction.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _seconds_and_nanos(data: memoryview) -> tuple[int, int]:
    seconds_and_nanos = {1: 0, 2: 0}
    for number, wire, value in _fields(data):
        if number in seconds_and_nanos:
            seconds_and_nanos[number] = _integer(wire, value)
    return seconds_and_nanos[1], seconds_and_nanos[2]


def _moment(seconds: int, nanos: int, precision: str) -> str | None:
    if seconds == _YEAR_ONE_SECONDS and nanos == 0:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as fault:
        raise _malformed("a time is outside the years 1 to 9999") from fault
    return moment.isoformat(timespec=precision) + "Z"


def _time(data: memoryview, _: int) -> str | None:
    # Times have whole seconds in JSON, so a fraction on the wire is dropped.
    return _moment(_seconds_and_nanos(data)[0], 0, "seconds") if data else None


def _micro_time(data: memoryview, _: int) -> str | None:
    return _moment(*_seconds_and_nanos(data), "microseconds") if data else None


def _quantity(data: memoryview, _: int) -> str:
    text = ""
    for number, wire, value in _fields(data):
        if number == 1:
            text = _string(wire, value)
    return text or "0"


def _int_or_string(data: memoryview, _: int) -> int | str:
    is_string, number, text = False, 0, ""
    for part, wire, value in _fields(data):
        match part:
            case 1:
                is_string = _integer(wire, value) == 1
            case 2:
                number = _int32(wire, value)
            case 3:
                text = _string(wire, value)
    return text if is_string else number


def _strings(data: memoryview, _: int) -> list[str]:
    return [_string(wire, value) for number, wire, value in _fields(data) if number == 1]


def _json(data: memoryview, _: int) -> Any:
    raw = memoryview(b"")
    for number, wire, value in _fields(data):
        if number == 1:
            raw = _chunk(wire, value)
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as fault:
        raise _malformed(f"the JSON in it cannot be read: {fault}") from fault


def _schema_or_array(data: memoryview, depth: int) -> Any:
    single: JsonObject | None = None
    many: list[JsonObject] = []
    for number, wire, value in _fields(data):
        if number == 1:
            single = _message(_SCHEMA, _chunk(wire, value), depth, single)
        elif number == 2:
            many.append(_message(_SCHEMA, _chunk(wire, value), depth))
    return many or single


def _schema_or_bool(data: memoryview, depth: int) -> Any:
    allows, schema = False, None
    for number, wire, value in _fields(data):
        if number == 1:
            allows = _bool(wire, value)
        elif number == 2:
            schema = _message(_SCHEMA, _chunk(wire, value), depth, schema)
    return allows if schema is None else schema


def _schema_or_strings(data: memoryview, depth: int) -> Any:
    schema: JsonObject | None = None
    names: list[str] = []
    for number, wire, value in _fields(data):
        if number == 1:
            schema = _message(_SCHEMA, _chunk(wire, value), depth, schema)
        elif number == 2:
            names.append(_string(wire, value))
    return names or schema


_SCALARS: dict[str, Callable[[int, Any], Any]] = {
    "string": _string,
    "bytes": _base64,
    "bool": _bool,
    "int32": _int32,
    "int64": _integer,
    "double": _double,
}
_FORMS: dict[str, Callable[[memoryview, int], Any]] = {
    "time": _time,
    "micro-time": _micro_time,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "strings": _strings,
    "json": _json,
    "schema-or-array": _schema_or_array,
    "schema-or-bool": _schema_or_bool,
    "schema-or-strings": _schema_or_strings,
}
