"""What these tests need of the machine."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

# A browser that calls nobody but the hub.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


def skip_or_fail(reason: str) -> NoReturn:
    """What is missing is a failure where everything is required, as in CI."""
    if os.environ.get("FAIRWAY_REQUIRE_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)
