"""The status of a Job over several attempts, as a server lets it be written."""

from __future__ import annotations

import pytest

from fairway.kinds.interface import Announcement
from fairway.kinds.job_status import announce, follow_status

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
            {"failed": 1},
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


def test_a_job_that_leaves_its_queue_says_since_when_it_is_not_suspended() -> None:
    said = Announcement(phase="Suspended", reason="Queued", message="it waits", at=1_800_000_000)
    queued = follow_status(announce(said), {}, has_failed=False)
    assert [(item["type"], item["status"], item["reason"]) for item in queued["conditions"]] == [
        ("Suspended", "True", "Queued")
    ]
    runs = follow_status({"active": 1}, queued, has_failed=False, since=1_800_000_060)
    (resumed,) = runs["conditions"]
    assert (resumed["status"], resumed["reason"]) == ("False", "JobResumed")
    assert resumed["lastTransitionTime"] == "2027-01-15T08:01:00Z"
    later = follow_status({"active": 1}, runs, has_failed=False, since=1_800_000_999)
    assert later["conditions"] == runs["conditions"]
