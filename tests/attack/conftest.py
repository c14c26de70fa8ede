"""A store on virtual time, and what attacks need of the machine.

`FAIRWAY_REQUIRE_ISOLATION=1` makes the absence of isolation a failure.
"""

from __future__ import annotations

import pytest

from tests.agent.local.machines import isolation
from tests.controllers.conftest import clock, store

__all__ = ["clock", "isolated", "store"]


@pytest.fixture
def isolated() -> None:
    if isolation() is None:
        pytest.skip("this machine cannot isolate pods: `tools/package bwrap bubblewrap` may help")
