"""The status of a Job over several attempts, as a server lets it be written."""

from __future__ import annotations

import pytest

from fairway.kinds.job_status import follow_status

FAILED = [{"type": kind, "status": "True"} for kind in ("FailureTarget", "Failed")]
COMPLETE = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]


@pytest.mark.parametrize(
    ("before", "status", "has_failed", "expected"),
    [
        pytest.param({}, {"active": 1}, False, {"active": 1}, id="the first is as it is told"),
        pytest.param(
            {"startTime": "a", "failed": 2},
            {"startTime": "b", "active": 1},
            False,
            {"startTime": "a", "active": 1, "failed": 2},
            id="another attempt began when the first did, and failures stay counted",
        ),
        pytest.param(
            {"succeeded": 1},
            {"succeeded": 3},
            False,
            {"succeeded": 3},
            id="counts grow",
        ),
        pytest.param(
            {},
            {"failed": 1, "conditions": FAILED},
            False,
            {"failed": 1, "conditions": []},
            id="an attempt that failed is not the end of the job",
        ),
        pytest.param(
            {},
            {"conditions": FAILED},
            True,
            {"conditions": FAILED},
            id="the last attempt that failed is",
        ),
        pytest.param(
            {}, {"conditions": COMPLETE}, False, {"conditions": COMPLETE}, id="success is told"
        ),
    ],
)
def test_what_was_said_for_good_is_not_taken_back(
    before: dict, status: dict, has_failed: bool, expected: dict
) -> None:
    assert follow_status(status, before, has_failed=has_failed) == expected
