"""Texts of objects as the hub keeps them: without managedFields.

Managed fields are often the larger half of an object, and no controller reads them. An update
without them does not change them: the server keeps its own.
"""

from __future__ import annotations

import msgspec

_MARK = b'"managedFields":'

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def small(raw: bytes) -> bytes:
    """An object's text without managedFields; unchanged if it has none."""
    raw = bytes(raw)
    if _MARK not in raw:
        return raw
    body = _decode(raw)
    metadata = body.get("metadata")
    if metadata is None:
        return raw
    fields = _decode(metadata)
    if fields.pop("managedFields", None) is None:
        return raw  # the mark is in some other field
    return _encode({**body, "metadata": fields})
