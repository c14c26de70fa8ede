"""Structural OpenAPI v3 schemas of our types.

Generated from the types: names, descriptions, limits, rules and defaults are written once, beside
the field. Only informative defaults (words, numbers that are not zero, true) are stored with
objects; an absent part means the same as its struct's default. Items of lists and status have no
stored defaults.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

from fairway.api.amounts import PATTERN, Quantity
from fairway.api.doc import AS_BEFORE, RULES, rules_of
from fairway.api.meta import Object

Schema = dict[str, Any]

_QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": PATTERN,
    "minimum": 0,
    "maxLength": 64,
}


@lru_cache(maxsize=64)
def _schema_text(kind: type[Object]) -> bytes:
    return msgspec.json.encode(_whole(kind))


def schema_of(kind: type[Object]) -> Schema:
    """The structural schema of a whole object of a kind; the caller may change it."""
    schema: Schema = msgspec.json.decode(_schema_text(kind))
    return schema


def _whole(kind: type[Object]) -> Schema:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    properties: Schema = {
        "apiVersion": {
            "type": "string",
            "description": "Version of the API that the object is written in.",
        },
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": {"type": "object"},
    }
    required = []
    for field in info.fields:
        if field.name in ("spec", "status"):
            properties[field.name] = _describe(field.type, has_defaults=field.name == "spec")
            if field.required:
                required.append(field.name)
    schema: Schema = {"type": "object", "description": _sentence(kind), "properties": properties}
    if required:
        schema["required"] = required
    _add_rules(schema, kind)
    return schema


def _struct(info: inspect.StructType, has_defaults: bool) -> Schema:
    properties: Schema = {}
    for field in info.fields:
        part = _describe(field.type, has_defaults)
        is_leaving = any(rule["rule"] == AS_BEFORE for rule in part.get(RULES, ()))
        assert not (is_leaving and field.required), f"{field.name} is deprecated and required"
        default = _shown_default(field) if has_defaults and not is_leaving else None
        if default is not None:
            part["default"] = default
        properties[field.encode_name] = part
    schema: Schema = {"type": "object", "properties": properties}
    required = [field.encode_name for field in info.fields if field.required]
    if required:
        schema["required"] = required
    _add_rules(schema, info.cls)
    return schema


def _add_rules(schema: Schema, kind: type) -> None:
    declared = rules_of(kind)
    if declared:
        schema[RULES] = [rule.as_json() for rule in declared]


def _describe(kind: inspect.Type, has_defaults: bool) -> Schema:
    """The schema of a value, with the limits that annotations add to it."""
    match kind:
        case inspect.Metadata():
            result, more = _describe(kind.type, has_defaults), kind.extra_json_schema or {}
            rules = [*result.get(RULES, ()), *more.get(RULES, ())]
            return result | more | ({RULES: rules} if rules else {})
        case inspect.UnionType():
            given = [type_ for type_ in kind.types if not isinstance(type_, inspect.NoneType)]
            assert len(given) == 1, "a field is of one type, or absent"
            return _describe(given[0], has_defaults)
        case inspect.StructType():
            return _struct(kind, has_defaults)
        case inspect.VarTupleType():
            # Defaults inside lists would look like drift to tools that compare lists whole.
            return {"type": "array", "items": _describe(kind.item_type, has_defaults=False)}
        case inspect.DictType():
            return _mapping(kind, has_defaults)
        case _:
            return _scalar(kind)


def _mapping(kind: inspect.DictType, has_defaults: bool) -> Schema:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    # Structural schemas cannot limit keys, so the limits of key types are omitted.
    return {
        "type": "object",
        "additionalProperties": _describe(kind.value_type, has_defaults),
    }


def _scalar(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.LiteralType():
            return {"type": "string", "enum": list(kind.values)}
        case inspect.CustomType() if kind.cls is Quantity:
            return dict(_QUANTITY)
    raise TypeError(f"no schema for {kind!r}")


def _shown_default(field: inspect.Field) -> str | int | bool | None:
    """The default to store with objects, or None if an absent field means the same."""
    match field.default:
        case Quantity():
            text = str(field.default)
            return None if not field.default else int(text) if text.isdecimal() else text
        case str() | int() if field.default:
            return field.default
        case _:
            return None


def _sentence(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())
