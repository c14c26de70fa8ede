"""A backup of a hub: all its objects at one moment, and the files that it keeps beside them.

A backup is lines of JSON. The first line says what it is of, the last one how many objects of each
kind it has and the digest of all lines before, so that a truncated backup is noticed. With keys,
every value is sealed for its place (`fairway/sealing.py`), and so is the last line.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from fairway.sealing import KeyFault, Keyring

_FORMAT = 1
_CHUNK_BYTES = 256 << 10
_ITEMS_IN_A_TURN = 200

Kept = Literal["embedded", "kubernetes"]


class BackupFault(Exception):
    """A file that is not a whole backup, or not one for this; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One object, or one file beside the store, which has a path and no kind."""

    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""  # the path of a file
    value: bytes  # JSON text, or what a file holds

    @property
    def is_file(self) -> bool:
        return not self.plural

    @property
    def kind(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def place(self) -> tuple[str, ...]:
        return ("backup", self.group, self.plural, self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Everything in a store at one moment."""

    store: Kept
    version: str  # of the newest write in it
    items: AsyncIterable[Item]


async def in_turns(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Items one by one; now and then everything else has its turn."""
    for number, item in enumerate(items):
        if number % _ITEMS_IN_A_TURN == 0:
            await asyncio.sleep(0)
        yield item


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a backup is of."""

    store: Kept
    version: str  # of the newest write in it
    taken_at: str
    written_by: str  # the version of Fairway
    format: int = _FORMAT
    key: str = ""  # the id of the key that it is sealed with; empty: it is plain


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a whole backup has."""

    objects: dict[str, int]  # by kind
    files: int
    digest: str  # of all lines before

    @property
    def count(self) -> int:
        return sum(self.objects.values())


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    backup: Header | None = None
    place: tuple[str, str, str, str] | None = None
    object: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data: str | None = None  # what is sealed, or a file; base64
    end: Summary | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode
_END = ("backup", "end")


class _Tally:
    """Counts and digests lines."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._objects: dict[str, int] = {}
        self._files = 0

    def add(self, line: bytes, item: Item | None = None) -> None:
        self._digest.update(line)
        if item is None:
            return
        if item.is_file:
            self._files += 1
        else:
            self._objects[item.kind] = self._objects.get(item.kind, 0) + 1

    def summary(self) -> Summary:
        objects = dict(sorted(self._objects.items()))
        return Summary(objects=objects, files=self._files, digest=self._digest.hexdigest())


async def write_lines(
    header: Header, items: AsyncIterable[Item], keys: Keyring | None
) -> AsyncGenerator[bytes, None]:
    """The lines of a backup, in chunks."""
    tally, chunk = _Tally(), bytearray()
    line = _encode(_Line(backup=header)) + b"\n"
    tally.add(line)
    chunk += line
    async for item in items:
        line = _encode(_line(item, keys)) + b"\n"
        tally.add(line, item)
        chunk += line
        if len(chunk) > _CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    summary = tally.summary()
    sealed = keys.seal(_encode(summary), *_END) if keys is not None else b""
    end = _Line(end=summary, data=_base64(sealed) if sealed else None)
    yield bytes(chunk) + _encode(end) + b"\n"


def _line(item: Item, keys: Keyring | None) -> _Line:
    place = (item.group, item.plural, item.namespace, item.name)
    if keys is not None:
        return _Line(place=place, data=_base64(keys.seal(item.value, *item.place)))
    if item.is_file:
        return _Line(place=place, data=_base64(item.value))
    return _Line(place=place, object=msgspec.Raw(item.value))


def check(lines: Iterable[bytes]) -> tuple[Header, Summary]:
    """What a backup is of, and what it has; raises BackupFault unless it is whole.

    It needs no key.
    """
    header: Header | None = None
    tally = _Tally()
    for raw in lines:
        line = _parse(raw)
        if header is None:
            header = _header(line)
            tally.add(raw)
        elif line.end is not None:
            if line.end != tally.summary():
                raise BackupFault("its content is not what its last line says: it was changed")
            return header, line.end
        else:
            tally.add(raw, _placed(line))
    if header is None:
        raise BackupFault("it is empty")
    raise BackupFault("its end is missing")


def read_items(lines: Iterable[bytes], keys: Keyring | None) -> Iterator[Item]:
    """The items of a backup whose lines were checked; opens what is sealed."""
    is_sealed = False
    for raw in lines:
        line = _parse(raw)
        if line.backup is not None:
            is_sealed = bool(line.backup.key)
            if is_sealed and keys is None:
                raise KeyFault(f"it is encrypted with the key {line.backup.key}: give that key")
        elif line.end is not None:
            if is_sealed and _value(line, keys, _END) != _encode(line.end):
                raise BackupFault("its content is not what was sealed: it was changed")
        else:
            item = _placed(line)
            value = _value(line, keys if is_sealed else None, item.place)
            yield replace(item, value=value)


def _placed(line: _Line) -> Item:
    if line.place is None:
        raise BackupFault("it has a line that is not of a backup")
    group, plural, namespace, name = line.place
    return Item(group=group, plural=plural, namespace=namespace, name=name, value=b"")


def _value(line: _Line, keys: Keyring | None, place: tuple[str, ...]) -> bytes:
    if line.data is None:
        if keys is not None or isinstance(line.object, msgspec.UnsetType):
            raise BackupFault("it has a value that is not encrypted, as everything else is")
        return bytes(line.object)
    data = base64.b64decode(line.data)
    return data if keys is None else keys.open(data, *place)


def _header(line: _Line) -> Header:
    header = line.backup
    if header is None:
        raise BackupFault("it is not a backup of Fairway")
    if header.format != _FORMAT:
        raise BackupFault(f"it is of a later version of Fairway ({header.written_by})")
    return header


def _parse(raw: bytes) -> _Line:
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BackupFault("it is not a backup of Fairway") from fault


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
