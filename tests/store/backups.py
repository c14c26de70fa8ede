"""Backups of embedded stores, as the hub and the command make them, without either."""

from __future__ import annotations

from pathlib import Path

import fairway
from fairway.app.restore import restore_folder
from fairway.hub.backing import embedded_moment
from fairway.sealing import Keyring
from fairway.store.backup_lines import Header, Moment, write_lines
from fairway.store.embedded.store import EmbeddedStore


async def back_up(store: EmbeddedStore | Moment, keys: Keyring | None = None) -> list[bytes]:
    """The lines of a backup of a store that goes on."""
    moment = store if isinstance(store, Moment) else await embedded_moment(store)
    header = Header(
        store=moment.store,
        version=moment.version,
        taken_at="2026-11-18T09:00:00Z",
        written_by=fairway.__version__,
        key=keys.current if keys else "",
    )
    chunks = [chunk async for chunk in write_lines(header, moment.items, keys)]
    return b"".join(chunks).splitlines(keepends=True)


async def restore(lines: list[bytes], folder: Path, keys: Keyring | None = None) -> Path:
    """The store of a folder that is restored."""
    await restore_folder(lambda: iter(lines), folder, keys, aside="aside")
    return folder / "fairway.db"
