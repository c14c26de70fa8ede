"""The fleet of real control planes, each started once in a worker by the first test that needs it.

Tests that use several members carry `pytestmark = IN_THE_FLEET`, those that use one `AT_THE_EDGE`:
two chains, each of which one worker runs alone, with control planes of its own. They end with the
chain, since idle servers cost what other tests need.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.kubernetes import binaries
from tests.kubernetes import fleet as fleets
from tests.kubernetes.demand import demand
from tests.order import chain_of

IN_THE_FLEET = [pytest.mark.real, pytest.mark.xdist_group("fleet")]
AT_THE_EDGE = [pytest.mark.real, pytest.mark.xdist_group("edge")]


_RUNNING: list[fleets.Fleet] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    yield
    if chain_of(item) and (nextitem is None or chain_of(nextitem) != chain_of(item)):
        for running in _RUNNING:
            running.stop()


@pytest.fixture(scope="session")
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[fleets.Fleet]:
    """A hub and three members."""
    for name in (*binaries.WHOLE_PROGRAMS, "kubectl"):
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with fleets.running(tmp_path_factory.mktemp("fleet")) as running:
        _RUNNING.append(running)
        yield running
        _RUNNING.remove(running)
