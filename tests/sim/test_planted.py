"""Each bug that is planted is found by one of the first seeds."""

from __future__ import annotations

import pytest

from tests.sim.planted import BUGS, Bug, found_by

pytestmark = pytest.mark.long


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.sentence)
def test_the_simulation_finds_it(bug: Bug) -> None:
    assert found_by(bug, range(1, 21)) is not None
