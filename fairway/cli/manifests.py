"""Reads objects from files, folders and the standard input.

The text is parsed by `fairway.api.documents`; here are only its sources.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairway.api.documents import Document, ManifestError, read_documents, read_value
from fairway.api.errors import ApiError
from fairway.cli.session import Failure
from fairway.client.wire import Object

SUFFIXES = {".yaml", ".yml", ".json"}
# The annotation of a list that gives the time of a snapshot, in JSON and in YAML.
_NOW = re.compile(rb"""fairway\.dev/now["']?:\s*["']?(\d+(?:\.\d+)?)\b""")


def read_files(names: Sequence[str], *, recursive: bool = False) -> list[Object]:
    """All objects of files and folders, in order."""
    return [document.value for document in read_snapshot(names, recursive=recursive)[0]]


def read_snapshot(
    names: Sequence[str], *, recursive: bool = False
) -> tuple[list[Document], float | None]:
    """All objects of files and folders, and the time of the snapshot, if one gives it."""
    documents: list[Document] = []
    moment: float | None = None
    for content, source in _contents(names, recursive):
        documents += _read(content, source)
        said = _NOW.search(content)
        moment = float(said[1]) if said else moment
    if not documents:
        raise Failure("no objects in the files given")
    return documents, moment


def apply_edits(objects: Sequence[Object], name: str, moment: float) -> list[Object]:
    """Objects with the change that a file describes, applied as a hub's what-if would."""
    # The hub's rooms are much larger than the client; they are loaded only for a change.
    from fairway.controllers.whatif.edits import apply_change, put_in, read_change  # noqa: PLC0415 - as above

    for content, source in _contents([name], recursive=False):
        try:
            change = read_change(read_value(content))
            refuse_faulty([Document(value=entry, source=source) for entry in put_in(change)])
            return apply_change(objects, change, moment)
        except ApiError as error:
            raise Failure(f"{source}: {error.message}") from error
    raise Failure(f"{name}: there is no change in it")


def refuse_faulty(documents: Sequence[Document]) -> None:
    """Fails with a line for each fault for which a hub would refuse one of the objects."""
    from fairway.store.embedded.object_checks import object_faults  # noqa: PLC0415 - as above

    faults = object_faults((document.place, document.value) for document in documents)
    if faults:
        raise Failure("\n  ".join(["a hub would not accept these objects:", *faults]))


def _contents(names: Sequence[str], recursive: bool) -> Iterator[tuple[bytes, str]]:
    """The content of the files, and their names."""
    for name in names:
        if name == "-":
            yield sys.stdin.buffer.read(), "standard input"
            continue
        if "://" in name:
            raise Failure(f"{name} is not a file: fetch it first, and look at what it says")
        for file in _files(Path(name), recursive):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise Failure(f"cannot read {file}: {error.strerror}") from error
            yield content, str(file)


def parse(text: str | bytes, source: str) -> list[Object]:
    """Parses all objects of a text."""
    return [document.value for document in _read(text, source)]


def _read(text: str | bytes, source: str) -> list[Document]:
    try:
        return read_documents(text, source)
    except ManifestError as error:
        raise Failure(error.message) from error


def _files(path: Path, recursive: bool) -> list[Path]:
    if not path.exists():
        raise Failure(f'the path "{path}" does not exist')
    if not path.is_dir():
        return [path]
    inside = path.rglob("*") if recursive else path.iterdir()
    return sorted(file for file in inside if file.suffix in SUFFIXES and file.is_file())
