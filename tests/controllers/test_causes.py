"""Pod statuses, and the verdict on each.

The statuses under causes/ are composed in the form that Kubernetes writes, one for each cause, and
a real API server takes them all (tests/kubernetes/test_causes.py). Only a file that says by what it
was `recorded` holds what a real scheduler or controller wrote; the others are no recordings.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.claim import PastAttempt
from fairway.api.fleet import Retry
from fairway.controllers.lifecycle.recovery import (
    Before,
    Failure,
    back_off,
    cause_of,
    causes,
    judge,
)
from fairway.kinds.failures import failure_of

FOLDER = Path(__file__).parent / "causes"
SAMPLES = sorted(FOLDER.glob("*.yaml"))
START = datetime(2026, 11, 15, 8, tzinfo=UTC)


def sample(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


def failure(name: str, *clusters: str) -> Failure:
    told = sample(name)
    found = failure_of(told["pod"], told.get("events", ()))
    assert found is not None
    return Failure(
        clusters=clusters or ("one",),
        reason=found.reason,
        message=found.message,
        exit_code=found.exit_code,
    )


def past(reason: str, cluster: str, *, blame: str = "Place", ran: int = 0) -> PastAttempt:
    return PastAttempt(
        attempt=1,
        clusters=(cluster,),
        started_at=START,
        ended_at=START + timedelta(seconds=ran),
        reason=reason,
        blame=blame,  # type: ignore[arg-type] - the tables below use the four words
    )


@pytest.mark.parametrize("name", [other.stem for other in SAMPLES])
def test_a_pod_status_gets_its_verdict(name: str) -> None:
    told = sample(name)
    verdict = judge(failure(name))
    assert {
        "cause": verdict.cause,
        "verdict": {
            "blame": verdict.blame,
            "isRetried": verdict.is_retried,
            "isCounted": verdict.is_counted,
            "avoidsCluster": verdict.avoids_cluster,
            "nodeAsideSeconds": verdict.node_aside_seconds,
        },
    } == {"cause": told["cause"], "verdict": told["verdict"]}


def test_the_node_of_a_failed_pod_is_told() -> None:
    found = failure_of(sample("gpu-fell-off-bus")["pod"])
    assert found is not None
    assert (found.node, found.exit_code) == ("gpu-node-17", 1)


def test_a_pod_that_is_well_has_no_failure() -> None:
    status = {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}}]}
    assert failure_of({"status": status}) is None


def test_every_cause_but_those_of_jobs_and_agents_has_a_pod_status() -> None:
    shown = {sample(other.stem)["cause"] for other in SAMPLES}
    # These are told by a server, an agent or the controller of a kind, not by a pod.
    elsewhere = {
        "AdmissionDenied",
        "Evicted",
        "FailurePolicy",
        "Forbidden",
        "HubSilent",
        "KindMissing",
        "ManifestInvalid",
        "QuotaRefused",
        "SpotReclaimed",
        "TemplateRefused",
        "Unknown",
        "Vanished",
    }
    assert {cause.cause for cause in causes()} == shown | elsewhere


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("Forbidden", 'pods "train-0" is forbidden: exceeded quota: team', "QuotaRefused"),
        (
            "Forbidden",
            'admission webhook "policy.example.com" denied the request: no latest tag',
            "AdmissionDenied",
        ),
        (
            "Forbidden",
            'pods "a" is forbidden: violates PodSecurity "restricted"',
            "AdmissionDenied",
        ),
        ("TemplateRefused", 'Job.batch "a" is invalid: spec.template', "TemplateRefused"),
        ("TemplateRefused", 'admission webhook "w" denied the request: no', "TemplateRefused"),
        ("TemplateRefused", 'pods "a" is forbidden: exceeded quota: team', "QuotaRefused"),
        ("ManifestRefused", "Kueue in the cluster holds it back", "TemplateRefused"),
        ("NotFound", 'no matches for kind "JobSet" in version "jobset.x-k8s.io/v1"', "KindMissing"),
        ("Forbidden", 'User "agent" cannot create resource "jobs"', "Forbidden"),
        ("Invalid", "spec.template.spec.containers: Required value", "ManifestInvalid"),
        ("PodFailurePolicy", "Container trainer failed with exit code 42", "FailurePolicy"),
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit", "ProgramFailed"),
        ("HubSilent", "", "HubSilent"),
        ("SpotInterruption", "", "SpotReclaimed"),
        ("Evicted", "The node had condition: [PIDPressure]. ", "Evicted"),
        ("SomethingNew", "", "Unknown"),
    ],
)
def test_what_servers_and_agents_say_has_a_cause(reason: str, message: str, expected: str) -> None:
    assert cause_of(Failure(clusters=("one",), reason=reason, message=message)).cause == expected


class TestWhatHappenedBefore:
    def test_an_image_that_one_cluster_cannot_pull_is_that_clusters_fault(self) -> None:
        verdict = judge(failure("image-error", "one"))
        assert (verdict.blame, verdict.is_retried, verdict.avoids_cluster) == ("Place", True, True)

    def test_an_image_that_no_cluster_tried_can_pull_is_the_workloads_fault(self) -> None:
        before = Before(history=(past("ImageError", "one"),))
        verdict = judge(failure("image-error", "two"), before)
        assert (verdict.blame, verdict.is_retried) == ("Program", False)

    def test_twice_in_one_cluster_is_not_everywhere(self) -> None:
        before = Before(history=(past("ImageError", "one"),))
        assert judge(failure("image-error", "one"), before).blame == "Place"

    def test_a_cluster_where_it_ran_speaks_for_the_image(self) -> None:
        before = Before(history=(past("NodeLost", "one"), past("ImageError", "two")))
        assert judge(failure("image-error", "three"), before).blame == "Place"

    def test_a_preemption_between_says_nothing_of_the_image(self) -> None:
        stopped = past("PreemptedToReclaim", "three", blame="Decision")
        before = Before(history=(past("ImageError", "one"), stopped))
        assert judge(failure("image-error", "two"), before).blame == "Program"

    def test_workers_that_wait_for_each_other_again_in_one_place_leave_it(self) -> None:
        before = Before(history=(past("CollectiveTimeout", "one", blame="Unknown"),))
        verdict = judge(failure("collective-timeout", "one"), before)
        assert (verdict.blame, verdict.avoids_cluster) == ("Place", True)

    def test_a_program_that_failed_is_tried_again_only_if_its_workload_asks(self) -> None:
        assert not judge(failure("program-failed")).is_retried
        assert judge(failure("program-failed"), Before(has_own_retry=True)).is_retried
        assert not judge(failure("deadline-exceeded"), Before(has_own_retry=True)).is_retried


class TestBackOff:
    RETRY = Retry(limit=9, backoff_seconds=60, backoff_seconds_max=600)

    @pytest.mark.parametrize(
        ("failures", "seconds"), [(1, 60), (2, 120), (3, 240), (4, 480), (5, 600), (10, 600)]
    )
    def test_each_failure_in_a_row_doubles_the_wait_up_to_a_limit(
        self, failures: int, seconds: int
    ) -> None:
        assert back_off(self.RETRY, [past("NodeLost", "one")] * failures) == seconds

    def test_an_attempt_that_ran_for_long_ends_the_row(self) -> None:
        history = [past("NodeLost", "a"), past("NodeLost", "a", ran=600), past("NodeLost", "a")]
        assert back_off(self.RETRY, history) == 60

    def test_a_decision_of_ours_ends_the_row(self) -> None:
        stopped = past("Drained", "a", blame="Decision")
        assert back_off(self.RETRY, [past("NodeLost", "a"), stopped, past("NodeLost", "a")]) == 60
