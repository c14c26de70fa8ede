"""What an agent keeps on its own disk.

It keeps each accepted work, how it ended, the highest term seen, and the number of its starts. So
an agent that starts without its hub keeps to the last desired state, refuses works of an earlier
leader, and never reruns what has ended. Memory is one append-only log, rewritten once more than
half of it is obsolete. A line that was not written completely is ignored. Works carry Secrets, so
with keys every line is sealed.

Callers wait until their lines are on disk. Many lines share one write.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from fairway.api.codec import decode, encode
from fairway.api.errors import ApiError
from fairway.api.meta import Part
from fairway.api.report import WorkState
from fairway.api.work import Work, WorkStatus
from fairway.sealing import HEAD_BYTES, MARK, KeyFault, Keyring, key_id

_log = logging.getLogger(__name__)

FILE = "works.log"
_SEALED = base64.b64encode(MARK)  # how a sealed line begins
_SPARE_BYTES = 1 << 20  # how much obsolete content never causes a rewrite


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A work as the agent accepted it."""

    work: Work
    ended: WorkState | None = None  # how its attempt ended; the attempt is not run again


class _Line(Part, frozen=True, kw_only=True):
    """One entry of the log."""

    epoch: int | None = None
    term: int | None = None
    mode: str | None = None
    heard: float | None = None
    work: Any = None  # JSON text when written, plain values when read
    ended: WorkState | None = None
    resumed: str | None = None  # a work that had ended and runs again
    forgotten: str | None = None


class Memory:
    """The memory of an agent, in its own folder."""

    def __init__(
        self,
        folder: Path,
        *,
        is_inline: bool = False,
        is_synced: bool = True,
        keys: Keyring | None = None,
    ) -> None:
        """`is_inline` writes in the caller's thread, for tests and simulation.

        `is_synced` calls fsync, which is of no use where everything that runs ends with the
        machine.
        """
        self._keys = keys
        self.epoch = 0
        self.term = 0
        self.mode = ""  # of the cluster, as last read from the hub
        self.heard_at: float | None = None  # when the hub last answered, if a work depends on it
        self.works: dict[str, Kept] = {}
        self._path = folder / FILE
        self._is_inline = is_inline
        self._is_synced = is_synced
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._is_open = False
        self._is_torn = False  # a line may be written only in part
        self._lines: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Reads the log and begins a new epoch."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._path.exists():
            for raw in self._path.read_bytes().splitlines():
                self._recall(raw)
        self.epoch += 1
        self._rewrite()
        self._is_open = True

    def check_key(self) -> None:
        """Raises KeyFault if the log is sealed and cannot be opened."""
        if self._path.exists():
            with self._path.open("rb") as file:
                self._plain(file.readline())

    async def reseal(self) -> None:
        """Writes everything again, with the key that is now the current one.

        What was not read yet is written again when it is.
        """
        if not self._is_open:
            return
        self._is_torn = True
        await self._remember(_Line(term=self.term))

    async def close(self) -> None:
        while self._writing is not None:
            await self._writing

    async def begin_mode(self, mode: str) -> None:
        if mode != self.mode:
            self.mode = mode
            await self._remember(_Line(mode=mode))

    async def hear(self, moment: float) -> None:
        """Records when the hub answered, if a work is to stop when the hub is silent.

        A restart must not reset that count.
        """
        if any(work.work.spec.stop_when_silent_seconds is not None for work in self.works.values()):
            self.heard_at = moment
            await self._remember(_Line(heard=moment))

    async def keep(self, work: Work, *, goes_on: bool = False) -> None:
        """Accepts a work; an ended work stays ended unless it goes on or has a new attempt."""
        name = work.metadata.name
        work = replace(work, status=WorkStatus())
        before = self.works.get(name)
        is_same = before is not None and before.work.spec.attempt == work.spec.attempt
        ended = before.ended if before is not None and is_same and not goes_on else None
        self.works[name] = Kept(work=work, ended=ended)
        self.term = max(self.term, work.spec.term)
        raw = encode(work)
        self._sizes[name] = len(raw)
        lines = [_Line(work=msgspec.Raw(raw), term=self.term)]
        if before is not None and before.ended is not None and ended is None:
            lines.append(_Line(resumed=name))
        try:
            await self._remember(*lines)
        except OSError:
            # A work that is not on disk is not accepted, and is offered again.
            if before is None:
                self.works.pop(name, None)
            else:
                self.works[name] = before
            raise

    async def end(self, name: str, state: WorkState) -> None:
        """Records that a work has ended; its attempt is over for good."""
        self.works[name] = replace(self.works[name], ended=state)
        await self._remember(_Line(ended=state))

    async def forget(self, name: str) -> None:
        """Forgets a work of which nothing is left in the cluster or on the hub."""
        if self.works.pop(name, None) is not None:
            self._sizes.pop(name, None)
            await self._remember(_Line(forgotten=name))

    # The log.

    async def _remember(self, *lines: _Line) -> None:
        self._lines.extend(self._text(line) for line in lines)
        if self._is_inline:
            self._write(self._take())
            return
        while self._lines:
            if self._writing is None:
                self._writing = asyncio.ensure_future(self._write_out())
            await asyncio.shield(self._writing)
        if self._writing is not None:
            await asyncio.shield(self._writing)

    async def _write_out(self) -> None:
        try:
            await asyncio.to_thread(self._write, self._take())
        finally:
            self._writing = None

    def _take(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        return lines

    def _write(self, lines: list[bytes]) -> None:
        live = sum(self._sizes.values())
        if self._is_torn or self._size > 2 * live + _SPARE_BYTES:
            self._rewrite()
            return
        data = b"".join(line + b"\n" for line in lines)
        self._is_torn = True  # until it is whole: half a line would corrupt the next one
        with self._path.open("ab") as file:
            file.write(data)
            self._sync(file.fileno())
        self._is_torn = False
        self._size += len(data)

    def _rewrite(self) -> None:
        """Rewrites the log with live entries only; the old log stays until the new one is whole."""
        data = b"".join(self._text(line) + b"\n" for line in self._everything())
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)  # works may hold secrets
        with fresh.open("wb") as file:
            file.write(data)
            self._sync(file.fileno())
        fresh.replace(self._path)
        if self._is_synced:
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._size = len(data)
        self._is_torn = False

    def _everything(self) -> Iterable[_Line]:
        yield _Line(epoch=self.epoch, term=self.term, mode=self.mode, heard=self.heard_at)
        for kept in list(self.works.values()):
            yield _Line(work=msgspec.Raw(encode(kept.work)), ended=kept.ended)

    def _sync(self, file: int) -> None:
        if self._is_synced:
            os.fsync(file)

    def _text(self, line: _Line) -> bytes:
        """A line as it is on disk."""
        text = encode(line)
        if self._keys is None:
            return text
        return base64.b64encode(self._keys.seal(text, FILE, self._path.parent.name))

    def _plain(self, raw: bytes) -> bytes:
        """The JSON text of a line, whether or not it is sealed; empty if it is torn.

        A missing key is an error: what the agent knows must not be forgotten for it.
        """
        if not raw.startswith(_SEALED):
            return raw
        if self._keys is None:
            raise KeyFault(f"{self._path} is encrypted, and no key was given")
        try:
            sealed = base64.b64decode(raw, validate=True)
        except binascii.Error:
            return b""
        if len(sealed) > HEAD_BYTES:
            self._keys.check([key_id(sealed)])
        with suppress(KeyFault):
            return self._keys.open(sealed, FILE, self._path.parent.name)
        return b""

    def _recall(self, raw: bytes) -> None:
        try:
            line = _decode(self._plain(raw))
            work = decode(line.work, Work) if line.work is not None else None
        except KeyFault:
            raise
        except (msgspec.MsgspecError, ApiError) as fault:
            _log.warning("a line of %s cannot be read: %s", self._path, fault)
            return
        self.epoch = max(self.epoch, line.epoch or 0)
        self.term = max(self.term, line.term or 0)
        self.mode = line.mode if line.mode is not None else self.mode
        self.heard_at = line.heard if line.heard is not None else self.heard_at
        if work is not None:
            name, before = work.metadata.name, self.works.get(work.metadata.name)
            is_same = before is not None and before.work.spec.attempt == work.spec.attempt
            ended = before.ended if before is not None and is_same else None
            self.works[name] = Kept(work=work, ended=ended)
            self._sizes[name] = len(raw)
        if line.ended is not None and line.ended.work in self.works:
            name = line.ended.work
            self.works[name] = replace(self.works[name], ended=line.ended)
        if line.resumed in self.works:
            self.works[line.resumed] = replace(self.works[line.resumed], ended=None)
        if line.forgotten is not None:
            self.works.pop(line.forgotten, None)
            self._sizes.pop(line.forgotten, None)


_decode = msgspec.json.Decoder(_Line).decode
