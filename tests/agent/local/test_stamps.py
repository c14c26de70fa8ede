"""The checker of stamps finds what it is for."""

from __future__ import annotations

import json

import pytest

from tests.agent.local.stamps import faults, runs_of


def lines(*stamps: tuple[str, str, str, float]) -> list[str]:
    return [
        json.dumps({"task": task, "run": run, "event": event, "at": at})
        for task, run, event, at in stamps
    ]


WHOLE = [("a", "1", "start", 0.0), ("a", "1", "beat", 0.1), ("a", "1", "end", 0.2)]
AGAIN = [("a", "2", "start", 5.0), ("a", "2", "end", 5.1)]


@pytest.mark.parametrize(
    ("stamps", "cut_runs", "expected"),
    [
        pytest.param(WHOLE, 0, [], id="one whole run is right"),
        pytest.param(
            WHOLE[:2] + AGAIN, 1, [], id="a run that was cut and then made again is right"
        ),
        pytest.param(WHOLE + AGAIN, 0, ["a: ended 2 times"], id="two whole runs are one too many"),
        pytest.param(
            WHOLE[:2],
            0,
            ["a: ended 0 times", "1 runs were cut short, 0 on purpose"],
            id="a run without an end was lost",
        ),
        pytest.param([], 0, ["a: ended 0 times"], id="a task that never ran was lost"),
        pytest.param(
            [("a", "1", "start", 0.0), ("a", "1", "end", 3.0)],
            0,
            ["a: silent for 3.00 s in run 1"],
            id="a run that was silent for long has a gap",
        ),
        pytest.param(
            [
                ("a", "1", "start", 0.0),
                ("a", "2", "start", 0.05),
                *WHOLE[1:],
                ("a", "2", "beat", 1),
            ],
            1,
            ["a: run 2 began while 1 was alive"],
            id="two runs at a time overlap",
        ),
        pytest.param(
            [*WHOLE, ("b", "9", "start", 1.0), ("b", "9", "end", 1.1)],
            0,
            ["b: nobody asked for it"],
            id="a task that is not expected is told",
        ),
    ],
)
def test_stamps_are_checked(
    stamps: list[tuple[str, str, str, float]], cut_runs: int, expected: list[str]
) -> None:
    found = faults(runs_of(lines(*stamps)), tasks=["a"], gap_seconds_max=1.0, cut_runs=cut_runs)
    assert found == expected
