"""Objects from files, folders and the standard input.

The text is read by `fairway.api.documents`; here are only the places it comes from.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fairway.api.documents import ManifestError, read_documents
from fairway.cli.session import Failure
from fairway.client.wire import Object

SUFFIXES = {".yaml", ".yml", ".json"}


def read_files(names: Sequence[str], *, recursive: bool = False) -> list[Object]:
    """All objects of files and folders, in order."""
    objects: list[Object] = []
    for name in names:
        if name == "-":
            objects += parse(sys.stdin.buffer.read(), "standard input")
            continue
        if "://" in name:
            raise Failure(f"{name} is not a file: fetch it first, and look at what it says")
        for file in _files(Path(name), recursive):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise Failure(f"cannot read {file}: {error.strerror}") from error
            objects += parse(content, str(file))
    if not objects:
        raise Failure("no objects in the files given")
    return objects


def parse(text: str | bytes, source: str) -> list[Object]:
    """All objects of a text."""
    try:
        return [document.value for document in read_documents(text, source)]
    except ManifestError as error:
        raise Failure(error.message) from error


def _files(path: Path, recursive: bool) -> list[Path]:
    if not path.exists():
        raise Failure(f'the path "{path}" does not exist')
    if not path.is_dir():
        return [path]
    inside = path.rglob("*") if recursive else path.iterdir()
    return sorted(file for file in inside if file.suffix in SUFFIXES and file.is_file())
