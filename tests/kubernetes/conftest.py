"""A real control plane, started once for all tests of this folder that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes import binaries, control_plane
from tests.kubernetes.demand import demand


@pytest.fixture(scope="session")
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[control_plane.ControlPlane]:
    """A running control plane."""
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with control_plane.running(tmp_path_factory.mktemp("plane")) as plane:
        yield plane
