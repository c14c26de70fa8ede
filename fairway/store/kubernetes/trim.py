"""Texts of objects as the hub keeps them: without managedFields.

They are often the larger half of an object, and no controller reads them. An update that leaves
them out changes nothing about them: the server then goes on with its own.
"""

from __future__ import annotations

import msgspec

from fairway.store.interface import Stored

_MARK = b'"managedFields":'

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def small(raw: bytes) -> bytes:
    """An object's text without managedFields; what has none is left as it is."""
    raw = bytes(raw)
    if _MARK not in raw:
        return raw
    body = _decode(raw)
    metadata = body.get("metadata")
    if metadata is None:
        return raw
    fields = _decode(metadata)
    if fields.pop("managedFields", None) is None:
        return raw  # the words stand in some other field
    return _encode({**body, "metadata": fields})


def read_stored(raw: bytes) -> Stored:
    return Stored(small(raw))
