"""The fleet of real control planes, each started once in a worker by the first test that needs it.

Tests that use several members carry `pytestmark = IN_THE_FLEET`, those that use one `AT_THE_EDGE`:
two chains, each of which one worker runs alone, with control planes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes import binaries
from tests.kubernetes import fleet as fleets
from tests.kubernetes.demand import demand

IN_THE_FLEET = [pytest.mark.real, pytest.mark.xdist_group("fleet")]
AT_THE_EDGE = [pytest.mark.real, pytest.mark.xdist_group("edge")]


@pytest.fixture(scope="session")
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[fleets.Fleet]:
    """A hub and three members."""
    for name in (*binaries.WHOLE_PROGRAMS, "kubectl"):
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with fleets.running(tmp_path_factory.mktemp("fleet")) as running:
        yield running
