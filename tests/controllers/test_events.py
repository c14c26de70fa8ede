"""What a written status means for a workload, as an event: a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fairway.api.claim import Claim, PastAttempt, Placement, WaitsFor, WorkloadMention
from fairway.api.meta import ObjectMeta
from fairway.api.workload import Workload, WorkloadSpec, WorkloadStatus
from fairway.controllers.workload_events import Happening, happening

AT = datetime(2026, 11, 15, tzinfo=UTC)


def workload(
    name: str = "train", namespace: str = "team", *, mode: str = "Gang", **parts: Any
) -> Workload:
    return Workload(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"),
        spec=WorkloadSpec(queue="research", mode=mode),
        status=status(**parts) if parts else WorkloadStatus(),
    )


def status(phase: Any = None, **parts: Any) -> WorkloadStatus:
    return WorkloadStatus(phase=phase, **parts)


def claim(*clusters: str, attempt: int = 1, **parts: Any) -> Claim:
    placements = tuple(Placement(cluster=name, attempt=attempt) for name in clusters)
    return Claim(
        attempt=attempt,
        term=1,
        decided_at=AT,
        placements=placements,
        summary=", ".join(clusters),
        **parts,
    )


def past(reason: str, *clusters: str, **parts: Any) -> PastAttempt:
    return PastAttempt(attempt=1, clusters=clusters or ("east",), reason=reason, **parts)


RUNS = {"phase": "Running", "claim": claim("east")}
CASES: dict[str, tuple[Workload, WorkloadStatus, str]] = {
    "a code for why it waits": (
        workload(),
        status("Waiting", reason="QuotaExceeded"),
        "Queued: Pending in queue research: QuotaExceeded",
    ),
    "new nodes have to come first": (
        workload(),
        status("Claimed", claim=claim("east", waits_for=(WaitsFor(type="Provision"),))),
        "Admitted: Attempt 1 starts in east as soon as new nodes have come",
    ),
    "no cluster, by quota alone": (
        workload(),
        status("Claimed", claim=claim()),
        "Admitted: Attempt 1 starts",
    ),
    "a lost cluster": (
        workload(**RUNS),
        status("Waiting", queue="research", history=(past("ClusterLost", blame="Place"),)),
        "! Requeued: Pending again in queue research after attempt 1 in east: east was lost",
    ),
    "a failure that is tried again": (
        workload(**RUNS),
        status("Stopping", history=(past("Error", blame="Program", exit_code=3),), reason="Error"),
        "! Stopping: Attempt 1 in east ends: Error (exit code 3)",
    ),
    "what the cluster said of a failure": (
        workload(**RUNS),
        status("Failed", history=(past("OutOfMemory", blame="Program", message="no memory"),)),
        "! Failed: Attempt 1 in east failed: no memory",
    ),
    "a limit that was exceeded": (
        workload(**RUNS),
        status("Failed", history=(past("RunLimitExceeded", blame="Program"),)),
        "! Failed: Attempt 1 in east failed: it ran longer than its limit",
    ),
    "preempted where there is nothing to stop": (
        workload(phase="Claimed", claim=claim("")),
        status(
            "Waiting",
            reason="PreemptedToReclaim",
            history=(
                PastAttempt(
                    attempt=1,
                    reason="PreemptedToReclaim",
                    preempted_by=WorkloadMention(uid="u", queue="owner"),
                ),
            ),
        ),
        (
            "Preempted: Attempt 1 was preempted for a workload of another team: queue owner"
            " reclaims its quota"
        ),
    ),
    "a service that loses a cluster and keeps another": (
        workload(mode="Divided", phase="Running", claim=claim("east", "west")),
        status(
            "Running",
            reason="ClusterLost",
            claim=claim("west", attempt=2),
            history=(past("ClusterLost", blame="Place"),),
        ),
        "! Evicted: Attempt 1 in east ends: east was lost; now in west",
    ),
    "a service that spreads to another cluster": (
        workload(mode="Divided", **RUNS),
        status("Running", claim=claim("east", "west")),
        "Moved: Now in east, west",
    ),
    "a copy that succeeded while others run": (
        workload(mode="Divided", phase="Running", claim=claim("east", "west")),
        status("Running", claim=claim("west"), succeeded_clusters=("east",)),
        "CopySucceeded: Its copy in east succeeded",
    ),
    "copies that succeeded while others wait": (
        workload(mode="Divided", phase="Running", claim=claim("east", "west")),
        status("Waiting", succeeded_clusters=("east", "west"), history=(past("CopiesDone"),)),
        "CopySucceeded: Its copy in east, west succeeded",
    ),
    "an adopted claim": (
        workload(phase="Waiting"),
        status("Claimed", claim=claim("east", attempt=4)),
        "Admitted: Attempt 4 starts in east",
    ),
    "another code within a phase": (workload(phase="Waiting"), status("Waiting", reason="X"), ""),
    "other counts within a phase": (workload(**RUNS), status(**RUNS, ran_seconds=5), ""),
    "tasks that go to another cluster": (
        workload(mode="Independent", **RUNS),
        status("Running", claim=claim("west")),
        "",
    ),
    "the next batch of a sweep": (
        workload(mode="Independent", phase="Waiting", history=(past("TasksDone"),)),
        status("Claimed", claim=claim("east"), history=(past("TasksDone"),)),
        "",
    ),
}


@pytest.mark.parametrize(("before", "after", "line"), CASES.values(), ids=CASES)
def test_a_written_status_is_an_event(before: Workload, after: WorkloadStatus, line: str) -> None:
    assert _line(happening(before, after)) == line


def _line(event: Happening | None) -> str:
    if event is None:
        return ""
    return f"{'! ' if event.type == 'Warning' else ''}{event.reason}: {event.message}"
