"""One hub for the tests of a module, and the kinds that they try."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.driver import Driver


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    opened = Driver(tmp_path_factory.mktemp("hub"))
    yield opened
    opened.close()
