"""What a test does when a real program is missing: a skip by name, or a failure if required."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from tests.kubernetes import binaries

Got = TypeVar("Got")


def demand(get: Callable[[binaries.Say], Got], config: pytest.Config) -> Got:
    """What `get` obtains; it may build for minutes, so progress is shown on the terminal."""

    if os.environ.get("FAIRWAY_PURE"):
        pytest.fail("a test that asks for a program is marked `real`", pytrace=False)

    def say(sentence: str) -> None:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"kubernetes: {sentence}")

    try:
        with unlimited():
            return get(say)
    except binaries.Missing as error:
        if binaries.is_required():
            pytest.fail(f"required here, but missing: {error}", pytrace=False)
        pytest.skip(f"missing: {error}")


@contextmanager
def unlimited() -> Iterator[None]:
    """Stops the clock of a test's limit (pytest-timeout) while what it needs is built."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
