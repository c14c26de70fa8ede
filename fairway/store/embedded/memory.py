"""A journal in memory: rows in a list, written at once in the caller's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from fairway.store.embedded.journal import Row


class MemoryJournal:
    """Keeps every row; a store opened on a copy of its rows has everything that was written."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = list(rows)

    def load(self) -> Iterator[Row]:
        return iter(list(self.rows))

    def append(self, rows: Sequence[Row], dropped: Sequence[int]) -> asyncio.Future[None]:
        del dropped
        self.rows.extend(rows)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    async def close(self) -> None:
        return
