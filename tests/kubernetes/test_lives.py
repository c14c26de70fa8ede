"""Whoever looks for workloads that ran twice finds them."""

from __future__ import annotations

from math import inf

import pytest

from tests.kubernetes.lives import Run, done_more_than_once, twice


def run(
    attempt: int, start: float, end: float = inf, *, member: str = "here", code: int | None = None
) -> Run:
    return Run(
        work="team.train",
        attempt=attempt,
        member=member,
        pod="one",
        start=start,
        end=end,
        code=code,
    )


TWICE = {
    "one after another": ([run(1, 0, 5), run(2, 6, 9)], False),
    "pods of one gang": ([run(1, 0, 5), run(1, 1, 9)], False),
    "before the other has ended": ([run(1, 0, 5), run(2, 4, 9)], True),
    "one that never ended": ([run(1, 0), run(2, 4, 9)], True),
    "one attempt in two members": ([run(1, 0, 5), run(1, 4, 9, member="there")], True),
    "the last pod of a gang": ([run(1, 0, 2), run(1, 0, 5), run(2, 4, 9)], True),
    "a third within the first": ([run(1, 0, 50), run(2, 60, 70), run(3, 10, 20)], True),
}


@pytest.mark.parametrize(("runs", "is_found"), TWICE.values(), ids=TWICE)
def test_two_copies_at_the_same_time_are_found(runs: list[Run], is_found: bool) -> None:
    assert bool(twice(runs)) == is_found


def test_a_workload_that_succeeded_twice_is_found() -> None:
    failed, done = run(1, 0, 5, code=1), run(2, 6, 9, code=0)
    assert done_more_than_once([failed, done]) == []
    assert done_more_than_once([failed, done, run(3, 10, 12, code=0)]) == ["team.train"]
