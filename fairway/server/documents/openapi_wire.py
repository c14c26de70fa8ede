"""Swagger 2.0 documents in protocol buffers, as `kubectl` before 1.27 reads them.

An encoder for just these messages: each is a table from JSON key to field number and writer. Vendor
extensions (`x-…`) are repeated pairs of a name and YAML text; JSON is YAML. The numbers are those
of the `openapi.v2` messages of the gnostic project.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fairway.schema.node import JsonObject

# Writes one field: its number and its JSON value.
Writer = Callable[[int, Any], bytes]
_LENGTH_DELIMITED = 2


def encode_document(document: JsonObject) -> bytes:
    """A whole Swagger 2.0 document."""
    return _message("Document", document)


def varint(value: int) -> bytes:
    """An integer in groups of seven bits, least significant first."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(payload)) + payload


def _string(number: int, value: Any) -> bytes:
    return _field(number, str(value).encode())


def _integer(number: int, value: Any) -> bytes:
    return varint(number << 3) + varint(int(value))


def _strings(number: int, value: Any) -> bytes:
    return b"".join(_string(number, item) for item in value)


def _double(number: int, value: Any) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    return _field(number, _string(2, msgspec.json.encode(value).decode() + "\n"))


def _anys(number: int, value: Any) -> bytes:
    return b"".join(_any(number, item) for item in value)


def _of(name: str) -> Writer:
    """One message of this name."""
    return lambda number, value: _field(number, _message(name, value))


def _each(name: str) -> Writer:
    """Repeated messages of this name."""
    return lambda number, value: b"".join(_field(number, _message(name, item)) for item in value)


def _name(name: str) -> Writer:
    """A message that holds pairs of a key and a message of this name, as field 1."""

    def write(number: int, value: Any) -> bytes:
        pairs = (_pair(key, _message(name, other)) for key, other in value.items())
        return _field(number, b"".join(_field(1, pair) for pair in pairs))

    return write


def _pair(key: str, payload: bytes) -> bytes:
    return _string(1, key) + _field(2, payload)


def _paths(number: int, value: Any) -> bytes:
    pairs = (_pair(path, _message("PathItem", item)) for path, item in value.items())
    return _field(number, b"".join(_field(2, pair) for pair in pairs))


def _responses(number: int, value: Any) -> bytes:
    # A response is one alternative (1) of a message whose other is a reference.
    pairs = (_pair(code, _field(1, _message("Response", other))) for code, other in value.items())
    return _field(number, b"".join(_field(1, pair) for pair in pairs))


def _parameters(number: int, value: Any) -> bytes:
    return b"".join(_field(number, _field(1, _parameter(item))) for item in value)


def _parameter(parameter: JsonObject) -> bytes:
    if parameter["in"] == "body":
        return _field(1, _message("BodyParameter", parameter))
    name, choice = ("Query", 3) if parameter["in"] == "query" else ("Path", 4)
    return _field(2, _field(choice, _message(f"{name}Parameter", parameter)))


def _types(number: int, value: Any) -> bytes:
    return _field(number, _strings(1, [value] if isinstance(value, str) else value))


def _additional(number: int, value: Any) -> bytes:
    if isinstance(value, bool):
        return _field(number, _integer(2, value))
    return _field(number, _of("Schema")(1, value))


def _wrapped_schema(number: int, value: Any) -> bytes:
    """A schema as field 1 of a message that could hold something else."""
    return _field(number, _of("Schema")(1, value))


_MESSAGES: dict[str, dict[str, tuple[int, Writer]]] = {
    "Document": {
        "swagger": (1, _string),
        "info": (2, _of("Info")),
        "paths": (8, _paths),
        "definitions": (9, _name("Schema")),
    },
    "Info": {"title": (1, _string), "version": (2, _string), "description": (3, _string)},
    "PathItem": {
        "get": (2, _of("Operation")),
        "put": (3, _of("Operation")),
        "post": (4, _of("Operation")),
        "delete": (5, _of("Operation")),
        "patch": (8, _of("Operation")),
        "parameters": (9, _parameters),
    },
    "Operation": {
        "tags": (1, _strings),
        "description": (3, _string),
        "operationId": (5, _string),
        "produces": (6, _strings),
        "consumes": (7, _strings),
        "parameters": (8, _parameters),
        "responses": (9, _responses),
    },
    "BodyParameter": {
        "description": (1, _string),
        "name": (2, _string),
        "in": (3, _string),
        "required": (4, _integer),
        "schema": (5, _of("Schema")),
    },
    "QueryParameter": {
        "required": (1, _integer),
        "in": (2, _string),
        "description": (3, _string),
        "name": (4, _string),
        "type": (6, _string),
    },
    "PathParameter": {
        "required": (1, _integer),
        "in": (2, _string),
        "description": (3, _string),
        "name": (4, _string),
        "type": (5, _string),
    },
    "Response": {"description": (1, _string), "schema": (2, _wrapped_schema)},
    "Schema": {
        "$ref": (1, _string),
        "format": (2, _string),
        "title": (3, _string),
        "description": (4, _string),
        "default": (5, _any),
        "multipleOf": (6, _double),
        "maximum": (7, _double),
        "exclusiveMaximum": (8, _integer),
        "minimum": (9, _double),
        "exclusiveMinimum": (10, _integer),
        "maxLength": (11, _integer),
        "minLength": (12, _integer),
        "pattern": (13, _string),
        "maxItems": (14, _integer),
        "minItems": (15, _integer),
        "uniqueItems": (16, _integer),
        "maxProperties": (17, _integer),
        "minProperties": (18, _integer),
        "required": (19, _strings),
        "enum": (20, _anys),
        "additionalProperties": (21, _additional),
        "type": (22, _types),
        "items": (23, _wrapped_schema),
        "properties": (25, _name("Schema")),
    },
}

# The field number of each message's vendor extensions.
_EXTENSIONS = {"Schema": 31, "Operation": 13, "PathItem": 10}


def _message(name: str, value: JsonObject) -> bytes:
    fields = _MESSAGES[name]
    known = (fields[key][1](fields[key][0], part) for key, part in value.items() if key in fields)
    return b"".join((*known, *_vendor(name, value)))


def _vendor(name: str, value: JsonObject) -> Iterable[bytes]:
    number = _EXTENSIONS.get(name)
    if number is None:
        return
    for key, part in value.items():
        if key.startswith("x-"):
            yield _field(number, _string(1, key) + _any(2, part))
