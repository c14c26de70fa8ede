"""A seed is a run: the same events every time, in every process, with nothing broken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fairway.sim.run import FAULT_KINDS_LEAST, STEPS_LEAST, simulate

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", [1, 3, 108])
def test_everything_holds_and_comes_to_rest_in_a_seed_that_is_hard_enough(seed: int) -> None:
    result = simulate(seed)
    assert result.violations == ()
    assert result.steps >= STEPS_LEAST
    assert len(result.faults) >= FAULT_KINDS_LEAST
    assert result.crashes_after_claim >= 1
    assert result.is_counted


def test_a_seed_is_the_same_in_every_process() -> None:
    command = [sys.executable, "-m", "fairway.sim", "--seed", "3"]
    told = [
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=False,
        ).stdout.splitlines()
        for hashing in ("1", "2")
    ]
    assert told[0][:-1] == told[1][:-1]  # the last line tells how long it took
    assert len(told[0]) > STEPS_LEAST
