"""Statuses in objects as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import fields, replace

from fairway.api import codec
from fairway.api.meta import Condition, JsonObject


def with_condition(conditions: Sequence[Condition], condition: Condition) -> tuple[Condition, ...]:
    """Conditions with another one of its type; its time changes only with its status."""
    others = tuple(other for other in conditions if other.type != condition.type)
    for old in conditions:
        if old.type == condition.type and old.status == condition.status:
            condition = replace(condition, last_transition_time=old.last_transition_time)
    return (condition, *others)


def with_status(body: JsonObject, status: Struct) -> JsonObject:
    """An object with another status; fields that a newer version of the hub keeps there stay."""
    known = _known(type(status))
    unknown = {key: value for key, value in (body.get("status") or {}).items() if key not in known}
    return {**body, "status": {**unknown, **codec.to_plain(status)}}


@cache
def _known(status: type[Struct]) -> frozenset[str]:
    """The fields of a status, by their names on the wire."""
    return frozenset(field.encode_name for field in fields(status))
