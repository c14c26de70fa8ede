"""A stage for each test; tests that need another cluster or settings say so by a marker value."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairway.agent.settings import AgentSettings
from tests.agent.stage import Stage, cluster


@pytest.fixture
def described() -> dict:
    """The cluster of a test; overridden where another one is needed."""
    return cluster()


@pytest.fixture
def settings() -> AgentSettings:
    return AgentSettings()


@pytest.fixture
async def stage(tmp_path: Path, described: dict, settings: AgentSettings) -> AsyncIterator[Stage]:
    opened = Stage(tmp_path, described, settings)
    await opened.open()
    yield opened
    await opened.close()
