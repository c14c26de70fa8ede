"""Programs of other projects, built one at a time from their Go modules and kept in the cache.

Their lock, their folder and their build cache are their own: a build here neither waits for nor
slows the programs that every run of the tests needs. The build cache of Go, some gigabytes, is
deleted once all that was asked for is built.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.differential import published
from tests.differential.published import Module
from tests.kubernetes import binaries

BUILD_SECONDS_MAX = 3600


def is_asked_for() -> bool:
    """Whether this run is of the tier that has real peers, as `make peers` says."""
    return os.environ.get("FAIRWAY_PEERS", "") not in ("", "0")


def folder() -> Path:
    return binaries.cache() / "peers"


def program(name: str, module: Module, package: str, edits: Sequence[str] = ()) -> Path:
    """A program of a module, built if need be.

    `edits` are options of `go mod edit`, for a module whose go.mod names folders that its
    published form does not hold.
    """
    kept = folder() / f"{name}-{module.version}"
    if not kept.exists():
        with binaries.locked(folder()):
            if not kept.exists():
                print(f"building {kept.name}; this is done once and takes some minutes", flush=True)
                _build(module, package, edits, kept)
    return kept


@contextlib.contextmanager
def build_cache_deleted() -> Iterator[None]:
    """What is built within shares one build cache, which is gone afterwards."""
    try:
        yield
    finally:
        shutil.rmtree(_build_cache(), ignore_errors=True)


def _build_cache() -> Path:
    return folder() / "go-build"


def _build(module: Module, package: str, edits: Sequence[str], kept: Path) -> None:
    toolchain = binaries.go(print)
    environment = {**binaries.go_environment(toolchain), "GOCACHE": str(_build_cache())}
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        source = Path(temporary) / "source"
        shutil.copytree(published.source(module), source, copy_function=shutil.copyfile)
        if edits:
            command = [str(toolchain), "mod", "edit", *edits]
            subprocess.run(command, check=True, cwd=source, env=environment)
        made = Path(temporary) / "made"
        subprocess.run(
            ["nice", "-n", "15", str(toolchain), "build", "-mod=mod", "-ldflags=-s -w",
             "-buildvcs=false", "-o", str(made), package],
            check=True, cwd=source, env=environment, timeout=BUILD_SECONDS_MAX,
        )  # fmt: skip
        made.replace(kept)
