"""Statuses in objects as they are stored."""

from __future__ import annotations

from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from fairway.api import codec
from fairway.api.meta import JsonObject


def with_status(body: JsonObject, status: Struct) -> JsonObject:
    """An object with another status; fields that a newer version of the hub keeps there stay."""
    known = _known(type(status))
    unknown = {key: value for key, value in (body.get("status") or {}).items() if key not in known}
    return {**body, "status": {**unknown, **codec.to_plain(status)}}


@cache
def _known(status: type[Struct]) -> frozenset[str]:
    """The fields of a status, by their names on the wire."""
    return frozenset(field.encode_name for field in fields(status))
