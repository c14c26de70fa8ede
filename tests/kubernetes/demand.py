"""What a test does when a real program is missing: a skip by name, or a failure if required."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.kubernetes import binaries

Got = TypeVar("Got")


def demand(get: Callable[[binaries.Say], Got], config: pytest.Config) -> Got:
    """What `get` obtains; it may build for minutes, so progress is shown on the terminal."""

    def say(sentence: str) -> None:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"kubernetes: {sentence}")

    try:
        return get(say)
    except binaries.Missing as error:
        if binaries.is_required():
            pytest.fail(f"required here, but missing: {error}", pytrace=False)
        pytest.skip(f"missing: {error}")
