"""A store in a temporary folder on virtual time, prepared like that of a hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[EmbeddedStore]:
    journal = SqliteJournal(tmp_path / "fairway.db", is_inline=True)
    found = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    found.start()
    await prepare_store(found)
    yield found
    await found.close()
