"""Tasks of Independent workloads as Jobs, and numbers as ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kinds import ranges, tasks
from fairway.kinds.job import Job
from tests.kinds.recorded import samples

JOB = next(sample.manifest for sample in samples() if sample.name == "job-train")
numbers = st.frozensets(st.integers(0, 60))


@given(numbers)
def test_ranges_read_back_what_was_written(given_numbers: frozenset[int]) -> None:
    written = ranges.text(ranges.of(given_numbers))
    assert set(ranges.numbers(ranges.parse(written))) == given_numbers
    assert ranges.size(ranges.parse(written)) == len(given_numbers)


@given(numbers, numbers)
def test_ranges_are_sets(one: frozenset[int], other: frozenset[int]) -> None:
    first, second = ranges.of(one), ranges.of(other)
    assert set(ranges.numbers(ranges.minus(first, second))) == one - other
    assert set(ranges.numbers(ranges.union([first, second]))) == one | other
    assert ranges.overlap(first, second) == bool(one & other)


@given(numbers, st.integers(1, 9), st.integers(0, 5))
def test_cuts_lose_nothing_and_cross_no_multiple(
    given_numbers: frozenset[int], length: int, start: int
) -> None:
    cut = list(ranges.cut(ranges.of(given_numbers), length, start=start))
    assert {index for pair in cut for index in range(pair[0], pair[1] + 1)} == given_numbers
    assert all((low - start) // length == (high - start) // length for low, high in cut)


@pytest.mark.parametrize("text", ["a", "3-", "-3", "5-2", "1--2", "99999999"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="range"):
        ranges.parse(text)


def test_two_neighbours_are_a_list_as_kubernetes_writes_them() -> None:
    assert ranges.text(ranges.of([0, 1, 3, 5, 6, 7])) == "0,1,3,5-7"


def names(made: list[dict]) -> list[str]:
    return [item["metadata"]["name"] for item in made]


def test_each_run_of_tasks_is_an_indexed_job() -> None:
    made = tasks.jobs(JOB, "0-5,9", range_size=4, retries=2)
    assert names(made) == ["train-0", "train-4", "train-9"]
    first = made[0]
    assert (first["spec"]["completions"], first["spec"]["parallelism"]) == (4, 4)
    assert first["spec"]["completionMode"] == "Indexed"
    assert first["spec"]["backoffLimitPerIndex"] == 2
    second = Job().pods(made[1])[1]
    variables = {
        variable["name"]: variable.get("value") for variable in second.spec["containers"][0]["env"]
    }
    assert (variables["FAIRWAY_TASK_OFFSET"], variables["JOB_COMPLETION_INDEX"]) == ("4", "1")
    assert variables["FAIRWAY_TASKS"] == "4,5"


def test_runs_are_counted_from_the_first_task() -> None:
    assert names(tasks.jobs(JOB, "1-8", range_size=4, first=1)) == ["train-1", "train-5"]


def test_jobs_stay_as_they_are_while_tasks_come_and_go() -> None:
    before = tasks.jobs(JOB, "0-7", range_size=4)
    after = tasks.jobs(JOB, "2-3,5,8", range_size=4, existing=before)
    assert after[:2] == before
    assert names(after) == ["train-0", "train-4", "train-8"]
    assert names(tasks.jobs(JOB, "5,8", range_size=4, existing=after)) == ["train-4", "train-8"]


def test_outcomes_are_told_by_the_numbers_of_tasks() -> None:
    running, failed, other = tasks.jobs(JOB, "0-7,20-23", range_size=4)
    running["status"] = {"completedIndexes": "0,2", "failedIndexes": "1"}
    failed["status"] = {
        "completedIndexes": "3",
        "conditions": [{"type": "Failed", "status": "True", "reason": "FailedIndexes"}],
    }
    other["status"] = {"completedIndexes": "0-3"}
    assert tasks.outcomes([running, failed, other, JOB]) == ("0,2,7,20-23", "1,4-6")
