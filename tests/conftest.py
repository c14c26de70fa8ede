"""What holds for all tests.

Generated cases are the same in every run and have no time limit, so that a commit is judged by what
it changes. `HYPOTHESIS_PROFILE=long` looks for new ones instead, in the folders that offer it;
`few` is for runs that ask something else, such as `make shifted`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.kubernetes import binaries, control_plane
from tests.kubernetes.demand import demand

settings.register_profile("commit", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None)
settings.register_profile("few", derandomize=True, deadline=None, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "commit")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background is started so, and tests that interrupt a child would wait in vain.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.costs",
    "tests.order",
    "tests.reruns",
    "tests.retries",
    "tests.kubernetes.fixtures",
]


@pytest.fixture(scope="session")
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[control_plane.ControlPlane]:
    """A real control plane, started once for all tests of a run that ask for it."""
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with control_plane.running(tmp_path_factory.mktemp("plane")) as plane:
        yield plane
