"""A journal in memory: rows in a list, written at once in the caller's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from fairway.store.embedded.journal import Row
from fairway.store.embedded.version_note import Noted


class MemoryJournal:
    """Keeps every row; a store opened on a copy of its rows has everything that was written."""

    def __init__(self, rows: Iterable[Row] = (), noted: Noted = Noted()) -> None:  # noqa: B008 - frozen
        self.rows = list(rows)
        self._noted = noted

    def load(self) -> Iterator[Row]:
        return iter(list(self.rows))

    def append(self, rows: Sequence[Row], dropped: Sequence[int]) -> asyncio.Future[None]:
        del dropped
        self.rows.extend(rows)
        if rows:
            self._noted = self._noted._replace(kept=rows[-1].version)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    async def reseal(self) -> int:
        return 0

    def noted(self) -> Noted:
        return self._noted

    def give(self, version: int) -> None:
        self._noted = self._noted._replace(given=version)

    def has_room(self) -> bool:
        return True

    async def close(self) -> None:
        return
