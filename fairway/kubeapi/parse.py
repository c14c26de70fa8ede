"""Parses JSON text into what a caller keeps of it.

A list is split into its items without decoding them, and the caller's function reads each item; so
a page costs one pass, and what is not kept is freed with it. Lines of a watch are split from chunks
of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from fairway.api.errors import from_status
from fairway.kubeapi.errors import Unreachable
from fairway.store.interface import EventType

T = TypeVar("T")
# Turns an object's JSON text into what the caller keeps.
Read = Callable[[bytes], T]

LINE_BYTES_MOST = 32 << 20


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata that identifies an object and its version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """One object: its identity, and what was read of it."""

    head: Head
    value: T


@dataclass(frozen=True, slots=True)
class SeenEvent(Generic[T]):
    """One change. A BOOKMARK has no value, only the version in its head and its text."""

    type: EventType
    head: Head
    value: T | None
    bookmark: bytes = b""
    ends_initial: bool = False


class _Top(msgspec.Struct):
    metadata: Head


class _ListHead(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, rename="camel"):
    metadata: _ListHead
    items: list[msgspec.Raw] | None = None
    api_version: str = ""
    kind: str = ""


class _Kind(msgspec.Struct):
    kind: str = ""


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkHead(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkHead


_decode_top = msgspec.json.Decoder(_Top).decode
_decode_list = msgspec.json.Decoder(_List).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


def head_of(raw: bytes) -> Head:
    return _decode_top(raw).metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Generic[T]):
    """Some objects of a list, and where the list continues."""

    items: list[Parsed[T]]
    version: str
    continue_from: str = ""
    remaining: int | None = None


def read_page(body: bytes, read: Read[T]) -> ListPage[T]:
    """Parses a page of a list."""
    try:
        listing = _decode_list(body)
        raws = listing.items or []
        beginning = _beginning(listing, raws)
        items = [_seen(beginning + bytes(raw)[1:] if beginning else raw, read) for raw in raws]
    except msgspec.MsgspecError as error:
        raise Unreachable(f"the server sent a list that makes no sense: {error}") from error
    return ListPage(
        items=items,
        version=listing.metadata.resource_version,
        continue_from=listing.metadata.continue_,
        remaining=listing.metadata.remaining_item_count,
    )


def _beginning(listing: _List, raws: list[msgspec.Raw]) -> bytes:
    """The kind and apiVersion that items of built-in kinds lack; only their list has them."""
    if not raws or _decode_kind(raws[0]).kind:
        return b""
    kind = listing.kind.removesuffix("List")
    return f'{{"kind":"{kind}","apiVersion":"{listing.api_version}",'.encode()


def _seen(raw: Any, read: Read[T]) -> Parsed[T]:
    return Parsed(_decode_top(raw).metadata, read(raw))


def read_line(line: bytes, read: Read[T]) -> SeenEvent[T]:
    """Parses one line of a watch; raises an ERROR event."""
    try:
        event = _decode_line(line)
        if event.type == "ERROR":
            raise from_status(msgspec.json.decode(event.object))
        head = _decode_top(event.object).metadata
        if event.type == "BOOKMARK":
            annotations = _decode_bookmark(event.object).metadata.annotations
            is_end = annotations.get("k8s.io/initial-events-end") == "true"
            text = bytes(event.object)
            return SeenEvent("BOOKMARK", head, None, bookmark=text, ends_initial=is_end)
        return SeenEvent(_TYPES[event.type], head, read(bytes(event.object)))
    except (msgspec.MsgspecError, KeyError) as error:
        raise Unreachable(f"the server sent an event that makes no sense: {error}") from error


_TYPES: dict[str, EventType] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}


class Lines:
    """Splits chunks of any size into whole lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._waiting = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        *ended, rest = chunk.split(b"\n")
        whole: list[bytes] = []
        for end in ended:
            self._parts.append(end)
            line = b"".join(self._parts)
            self._parts.clear()
            self._waiting = 0
            if line.strip():
                whole.append(line)
        if rest:
            self._parts.append(rest)
            self._waiting += len(rest)
            if self._waiting > LINE_BYTES_MOST:
                raise Unreachable(f"the server sent an event of over {LINE_BYTES_MOST} bytes")
        return whole
