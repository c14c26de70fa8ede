"""`fairway backup` and `fairway restore`: a hub at one moment, in a file and back."""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from fairway.api.errors import ApiError, NotFound
from fairway.cli.commands import Command
from fairway.cli.encryption import Keys, key_options
from fairway.cli.encryption import read as read_keys
from fairway.cli.session import Failure, current, say

if TYPE_CHECKING:
    from fairway.sealing import Keyring
    from fairway.store.backup_lines import Header, Summary

BACKUP_EXAMPLES = """
    fairway backup -o hub.backup                    the hub at one moment, while it goes on
    fairway backup -o /backups/hub-$(date +%F)      once a day
"""
RESTORE_EXAMPLES = """
    fairway restore hub.backup --data ./hub           into a new folder
    fairway restore hub.backup --data ./hub --force   into that of a hub, which is stopped
    fairway restore hub.backup --store kubernetes --context hub    what is missing on a server
"""
_TOLD_SECONDS = 2.0


@click.command(cls=Command, examples=BACKUP_EXAMPLES)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="File to write, readable by its owner only.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def backup(*, output: Path, force: bool) -> int:
    """Back up a hub while it runs.

    The backup has everything in the hub's store as it was at one moment, and the tokens,
    certificates and history that the hub keeps beside it. It holds secrets. A hub that encrypts its
    data encrypts the backup with the same key.
    """
    if output.exists() and not force:
        raise Failure(f"{output} exists; --force replaces it")
    partial = output.with_name(f".{output.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        with gzip.GzipFile(partial, "wb", compresslevel=1, mtime=0) as file:
            for chunk in _told(current().client.back_up()):
                file.write(chunk)
        header, summary = _check(partial)
        partial.replace(output)
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror}") from error
    except NotFound as error:
        raise Failure("this server makes no backups: name a hub's own kubeconfig") from error
    finally:
        partial.unlink(missing_ok=True)
    sealed = f", encrypted with the key {header.key}" if header.key else ""
    say(f"{_amounts(summary)} as of {header.taken_at} are in {output}{sealed}")
    if not header.key:
        say("It holds secrets in clear: keep it safe.")
    return 0


@click.command(cls=Command, examples=RESTORE_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Data folder.")
@click.option(
    "--store",
    "store",
    type=click.Choice(["embedded", "kubernetes"]),
    default="embedded",
    show_default=True,
    help="Where the hub keeps its objects, as for `fairway up`.",
)
@click.option("--force", is_flag=True, help="Restore into a folder that is not empty.")
@key_options
def restore(
    *, file: Path, data: Path | None, store: str, force: bool, **given: Unpack[Keys]
) -> int:
    """Restore a hub from a backup. The hub must be stopped.

    In a folder that is not empty, --force replaces the store and keeps the old one aside. All other
    files stay, since they are newer than the backup: tokens, certificates, and what agents know. On
    a Kubernetes server, objects that are there stay, and those that are missing are created.

    Nothing that runs is stopped. Agents bring back what has started or ended since the backup.
    """
    from fairway.client.errors import ClientError  # noqa: PLC0415 - see cli.up
    from fairway.client.kubeconfig import data_home  # noqa: PLC0415 - as above
    from fairway.store.backup_lines import BackupFault  # noqa: PLC0415 - as above

    folder = (data or data_home()).absolute()
    if not file.exists():
        raise Failure(f'the path "{file}" does not exist')
    is_used = folder.is_dir() and any(folder.iterdir())
    if is_used and not force and store == "embedded":
        raise Failure(f"{folder} is not empty; --force replaces its store, and keeps it aside")
    try:
        keys = read_keys(given).keyring(outside=folder)
        if store == "kubernetes":
            return _restore_kubernetes(file, folder, keys)
        return _restore_folder(file, folder, keys)
    except BackupFault as error:
        raise Failure(f"{file} cannot be restored: {error}") from error
    except (ApiError, ClientError) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot use {error.filename or folder}: {error.strerror}") from error


def _restore_folder(file: Path, folder: Path, keys: Keyring | None) -> int:
    from fairway.app.restore import restore_folder  # noqa: PLC0415 - see cli.up

    aside = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    done = asyncio.run(restore_folder(lambda: _lines(file), folder, keys, aside=aside))
    say(f"{_amounts(done.summary)} as of {done.header.taken_at} are restored in {folder}")
    say(f"The restored store was opened and compared: sha256 {done.contents.digest}")
    if done.files < done.summary.files:
        say(f"{done.summary.files - done.files} files that were there stay, as they are newer.")
    if done.aside is not None:
        say(f"The store that was there is in {done.aside}; delete it once you do not need it.")
    return 0


def _restore_kubernetes(file: Path, folder: Path, keys: Keyring | None) -> int:
    from fairway import app  # noqa: PLC0415 - see cli.up
    from fairway.app.restore import restore_kubernetes  # noqa: PLC0415 - as above

    session = current()
    where = app.OnKubernetes(kubeconfig=session.kubeconfig, context=session.context)
    outcome, files = asyncio.run(restore_kubernetes(lambda: _lines(file), where, folder, keys))
    say(
        f"{len(outcome.created)} objects were created, {len(outcome.there)} are there and stay;"
        f" {files} files were missing in {folder}"
    )
    for item in outcome.left_out:
        say(f"left out, since its owner is gone: {item.kind} {item.namespace}/{item.name}")
    return 0


def _lines(file: Path) -> Iterator[bytes]:
    """The lines of a backup."""
    from fairway.store.backup_lines import BackupFault  # noqa: PLC0415 - see cli.up

    try:
        with gzip.open(file, "rb") as content:
            yield from content
    except EOFError as error:
        raise BackupFault("its end is missing") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BackupFault("it is not a backup of Fairway") from error


def _check(file: Path) -> tuple[Header, Summary]:
    from fairway.store.backup_lines import BackupFault, check  # noqa: PLC0415 - see cli.up

    try:
        return check(_lines(file))
    except BackupFault as error:
        raise Failure(f"the backup is not whole: {error}") from error


def _told(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks as they are; a person at a terminal sees how many bytes have come."""
    is_shown, at, size = sys.stderr.isatty(), time.monotonic(), 0
    for chunk in chunks:
        size += len(chunk)
        if is_shown and time.monotonic() - at >= _TOLD_SECONDS:
            at = time.monotonic()
            click.echo(f"\r{size >> 20} MiB", nl=False, err=True)
        yield chunk
    if is_shown and size:
        click.echo("\r", nl=False, err=True)


def _amounts(summary: Summary) -> str:
    kinds = len(summary.objects)
    return f"{summary.count} objects of {kinds} kinds and {summary.files} files"
