"""The fleet of real control planes, started once in a test run by the first test that asks for it.

Tests that use it carry `pytestmark = IN_THE_FLEET`, so that they share one worker, and hence one
fleet, where tests run in several.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes import binaries
from tests.kubernetes import fleet as fleets
from tests.kubernetes.demand import demand

IN_THE_FLEET = [pytest.mark.real, pytest.mark.xdist_group("fleet")]


@pytest.fixture(scope="session")
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[fleets.Fleet]:
    """A hub and three members."""
    for name in (*binaries.WHOLE_PROGRAMS, "kubectl"):
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with fleets.running(tmp_path_factory.mktemp("fleet")) as running:
        yield running
