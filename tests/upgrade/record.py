"""What a version stores, records and sends, written down once for each version.

    python -m tests.upgrade.record VERSION      writes tests/upgrade/VERSION/

`data.tar.xz` is the data folder of a hub that stopped in the middle of a story, with its record of
decisions; `hub.backup` is an encrypted backup of its store; `story.json` says what must be found in
both; `wire.json` is what an agent and its hub said to each other. Nothing in them is secret, and
nothing names the machine that they were made on.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from fairway import __version__
from fairway.clock import VirtualClock
from fairway.sealing import Keyring
from tests.store.backups import back_up
from tests.upgrade.story import HERE, Plain, hub, play, told
from tests.wire.record import conversation

DATA, BACKUP, STORY, WIRE = "data.tar.xz", "hub.backup", "story.json", "wire.json"
KEY = b"the key of recorded backups only"


def main() -> None:
    if sys.argv[1:] != [__version__]:
        raise SystemExit(f"usage: python -m tests.upgrade.record {__version__} (the version here)")
    folder = HERE / __version__
    if folder.exists():
        raise SystemExit(f"{folder.name} is recorded; what a released version wrote never changes")
    asyncio.run(record(folder))


async def record(folder: Path) -> None:
    """Plays the story, and keeps what it left."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir()
        async with hub(data, VirtualClock()) as fleet:
            await play(fleet)
            found = await told(fleet)
            lines = await back_up(fleet.store, Keyring([KEY]))
        packed = pack(data)
    said = await conversation()
    folder.mkdir()
    (folder / DATA).write_bytes(packed)
    (folder / BACKUP).write_bytes(b"".join(lines))
    write(folder / STORY, found)
    write(folder / WIRE, said)


def pack(data: Path) -> bytes:
    """A folder as an archive that depends on nothing but what its files hold."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(data.rglob("*")):
            entry = tarfile.TarInfo(str(path.relative_to(data)))
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o700
                archive.addfile(entry)
            else:
                entry.size, entry.mode = path.stat().st_size, 0o600
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return packed.getvalue()


def unpack(version: Path, data: Path) -> Path:
    """A copy of the data folder of a version."""
    with tarfile.open(version / DATA) as archive:
        for entry in archive:
            path, file = data / entry.name, archive.extractfile(entry)
            if file is None:
                path.mkdir(mode=0o700, exist_ok=True)
            else:
                path.write_bytes(file.read())
    return data


def write(path: Path, value: Plain) -> None:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n")


if __name__ == "__main__":
    main()
