"""The life of a workload, told by its statuses: which stages it had, from when to when, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairway.api.report import WorkState
from fairway.api.work import PodSetStatus
from fairway.clock import micro_timestamp
from fairway.controllers.glance import Glance, glance
from fairway.controllers.timeline.lives import born, deleted, follow, made
from fairway.store.interface import Stored
from fairway.tracing.spans import TraceSpan, root_id, span_id

T = 1_800_000_000.0
POD = {"count": 2, "requests": {"nvidia.com/gpu": 8}, "flavors": {"nvidia.com/gpu": "h100"}}


def at(seconds: float) -> str:
    return micro_timestamp(T + seconds)


def seen(phase: str = "Waiting", **status: Any) -> Glance:
    """A workload that was submitted at 0."""
    body = {
        "metadata": {
            "uid": "u1",
            "namespace": "vision",
            "name": "train",
            "creationTimestamp": at(0),
        },
        "spec": {"queue": "research"},
        "status": {"phase": phase, **status},
    }
    result = glance(Stored(json.dumps(body).encode()))
    assert result is not None
    return result


def claim(
    attempt: int = 1,
    decided: float = 10,
    ready: float | None = None,
    clusters: Sequence[str] = ("east",),
    **more: Any,
) -> dict[str, Any]:
    placements = [{"cluster": cluster, "podSets": [POD]} for cluster in clusters]
    readiness = {"readyAt": at(ready)} if ready is not None else {}
    return {
        "attempt": attempt,
        "decidedAt": at(decided),
        "placements": placements,
        **readiness,
        **more,
    }


def past(
    attempt: int, end: float, reason: str, *, ready: float | None = None, **more: Any
) -> dict[str, Any]:
    started = {"startedAt": at(ready)} if ready is not None else {}
    return {"attempt": attempt, "endedAt": at(end), "reason": reason, **started, **more}


def told(*sights: tuple[float, Glance | None]) -> list[TraceSpan]:
    """The spans of a life that is seen so at these moments; None: it is gone."""
    life, spans = None, []
    for moment, glimpse in sights:
        if glimpse is None:
            assert life is not None
            followed = deleted(life, T + moment)
        else:
            followed = follow(life or born(glimpse, T + moment), glimpse, T + moment)
        life = followed.life
        spans.extend(followed.spans)
    return spans


def short(spans: Sequence[TraceSpan]) -> list[tuple[str, int, float, float]]:
    return [
        (span.stage, span.attempt, round(span.start - T, 3), round(span.end - T, 3))
        for span in spans
    ]


def events(span: TraceSpan) -> list[tuple[float, str]]:
    return [(round(event.at - T, 3), event.name) for event in span.events]


RUNS = (
    (1, seen()),
    (3, seen(reason="QuotaExceeded")),
    (7, seen(reason="DoesNotFit")),
    (8, seen(reason="DoesNotFit")),
    (10, seen("Claimed", claim=claim())),
    (30, seen("Running", claim=claim(ready=29.5))),
)


def test_a_workload_that_succeeds_waits_starts_runs_and_is_whole() -> None:
    end = past(1, 90, "Succeeded", ready=29.5, blame="Program")
    spans = told(*RUNS, (91, seen("Succeeded", finishedAt=at(90), history=[end])))
    assert short(spans) == [
        ("waiting", 1, 0, 10),
        ("starting", 1, 10, 29.5),
        ("running", 1, 29.5, 90),
        ("workload", 0, 0, 90),
    ]
    waiting, starting, running, root = spans
    assert events(waiting) == [(3, "QuotaExceeded"), (7, "DoesNotFit")]
    assert [span.outcome for span in spans] == ["", "", "Ok", "Ok"]
    assert starting.attributes == {
        "fairway.namespace": "vision",
        "fairway.workload": "train",
        "fairway.uid": "u1",
        "fairway.queue": "research",
        "fairway.mode": "Gang",
        "fairway.attempt": 1,
        "fairway.clusters": ("east",),
        "fairway.flavors": ("h100",),
        "fairway.gpus": 16.0,
        "fairway.rung": "Idle",
    }
    assert running.attributes["fairway.reason"] == "Succeeded"
    assert "fairway.clusters" not in waiting.attributes
    assert (root.attributes["fairway.phase"], root.attributes["fairway.attempts"]) == (
        "Succeeded",
        1,
    )


def test_a_preempted_workload_has_two_attempts_and_a_receipt() -> None:
    receipt = past(
        1,
        50,
        "PreemptedToReclaim",
        ready=29.5,
        blame="Decision",
        lostSeconds=20,
        preemptedBy={"uid": "u2", "queue": "vip", "priority": 9},
    )
    stopping = seen("Stopping", reason="PreemptedToReclaim", history=[receipt], releasing=[{}])
    end = past(2, 200, "Succeeded", ready=110, blame="Program")
    spans = told(
        *RUNS,
        (50, stopping),
        (60, seen(history=[receipt])),
        (70, seen(history=[receipt], reason="QuotaExceeded")),
        (100, seen("Claimed", claim=claim(2, 100, clusters=["west"]), history=[receipt])),
        (110, seen("Running", claim=claim(2, 100, 110, ["west"]), history=[receipt])),
        (201, seen("Succeeded", finishedAt=at(200), history=[receipt, end])),
    )
    assert short(spans) == [
        ("waiting", 1, 0, 10),
        ("starting", 1, 10, 29.5),
        ("running", 1, 29.5, 50),
        ("waiting", 2, 50, 100),
        ("starting", 2, 100, 110),
        ("running", 2, 110, 200),
        ("workload", 0, 0, 200),
    ]
    first, again, last = spans[2], spans[3], spans[5]
    assert events(first) == [(50, "preempted")]
    assert first.events[0].attributes == {
        "fairway.other.uid": "u2",
        "fairway.other.queue": "vip",
        "fairway.other.priority": 9,
        "fairway.reason": "PreemptedToReclaim",
        "fairway.lost_seconds": 20,
    }
    assert [link.uid for link in first.links] == ["u2"]
    assert first.outcome == "", "a decision is no fault"
    assert events(again) == [(60, "gone"), (70, "QuotaExceeded")]
    assert last.attributes["fairway.clusters"] == ("west",)


def test_a_retried_workload_says_what_failed() -> None:
    failed = past(1, 40, "OutOfMemory", ready=29.5, blame="Program", exitCode=137)
    final = past(2, 70, "OutOfMemory", ready=60, blame="Program", exitCode=137)
    spans = told(
        *RUNS,
        (40, seen("Waiting", history=[failed], reason="BackOff")),
        (55, seen("Claimed", claim=claim(2, 55), history=[failed])),
        (60, seen("Running", claim=claim(2, 55, 60), history=[failed])),
        (70, seen("Stopping", finishedAt=at(70), history=[failed, final], releasing=[{}])),
        (80, seen("Failed", reason="OutOfMemory", finishedAt=at(70), history=[failed, final])),
    )
    assert [(name, attempt) for name, attempt, *_ in short(spans)] == [
        ("waiting", 1),
        ("starting", 1),
        ("running", 1),
        ("waiting", 2),
        ("starting", 2),
        ("running", 2),
        ("workload", 0),
    ]
    ended = [span for span in spans if span.outcome == "Error"]
    assert [(span.stage, span.reason) for span in ended] == [
        ("running", "OutOfMemory"),
        ("running", "OutOfMemory"),
        ("workload", "OutOfMemory"),
    ]
    assert ended[0].attributes["fairway.exit_code"] == 137
    assert events(spans[3]) == [(40, "BackOff")]
    assert spans[-1].attributes["fairway.attempts"] == 2


def test_an_attempt_that_never_became_ready_ends_while_it_starts() -> None:
    late = past(1, 310, "NotReadyInTime", blame="Place")
    spans = told(*RUNS[:5], (310, seen(history=[late])), (400, None))
    assert short(spans) == [
        ("waiting", 1, 0, 10),
        ("starting", 1, 10, 310),
        ("waiting", 2, 310, 400),
        ("workload", 0, 0, 400),
    ]
    assert (spans[1].outcome, spans[1].reason) == ("Error", "NotReadyInTime")
    assert spans[-1].attributes["fairway.reason"] == "Deleted"
    assert spans[-1].outcome == ""


def test_a_workload_that_is_cancelled_while_it_waits_only_waited() -> None:
    spans = told(*RUNS[:3], (9, seen("Cancelled", reason="Cancelled", finishedAt=at(9))))
    assert short(spans) == [("waiting", 1, 0, 9), ("workload", 0, 0, 9)]
    assert spans[0].attributes["fairway.reason"] == "Cancelled"


def test_what_a_claim_waits_for_is_told_when_it_starts() -> None:
    waits = [
        {"type": "Preemption", "workload": {"uid": "u3", "name": "low", "namespace": "vision"}},
        {"type": "Provision", "cluster": "east", "pool": "spot", "count": 2},
    ]
    spans = told(
        *RUNS[:4],
        (10, seen("Claimed", claim=claim(waitsFor=waits, rung="Preempt"))),
        (30, seen("Running", claim=claim(ready=29.5, waitsFor=waits, rung="Preempt"))),
    )
    starting = spans[1]
    assert events(starting) == [(10, "awaits victim"), (10, "awaits nodes")]
    assert starting.events[0].attributes["fairway.other.workload"] == "low"
    assert starting.events[1].attributes == {
        "fairway.cluster": "east",
        "fairway.pool": "spot",
        "fairway.nodes": 2,
    }
    assert [link.uid for link in starting.links] == ["u3"]


def test_a_service_that_loses_a_cluster_runs_on() -> None:
    lost = past(1, 60, "ClusterLost", ready=29.5, blame="Place", clusters=["west"])
    both = claim(clusters=["east", "west"])
    spans = told(
        (10, seen("Claimed", claim=both)),
        (30, seen("Running", claim={**both, "readyAt": at(29.5)})),
        (60, seen("Running", claim=claim(2, 10, 29.5), history=[lost])),
        (70, seen("Running", claim=claim(2, 70, 29.5, ["east", "north"]), history=[lost])),
        (99, None),
    )
    assert short(spans) == [
        ("waiting", 1, 0, 10),
        ("starting", 1, 10, 29.5),
        ("running", 2, 29.5, 99),
        ("workload", 0, 0, 99),
    ]
    assert events(spans[2]) == [(60, "lost"), (60, "placed"), (70, "placed")]
    assert spans[2].attributes["fairway.clusters"] == ("east", "north")


def test_what_a_watch_skipped_is_told_by_the_history() -> None:
    first = past(1, 50, "Preempted", ready=29.5, blame="Decision", clusters=["east"])
    second = past(2, 90, "NodeLost", ready=70, blame="Place", clusters=["west"])
    spans = told(
        (1, seen()),
        (120, seen("Running", claim=claim(3, 100, 110), history=[first, second])),
    )
    assert short(spans) == [
        ("waiting", 1, 0, 29.5),
        ("running", 1, 29.5, 50),
        ("waiting", 2, 50, 70),
        ("running", 2, 70, 90),
        ("waiting", 3, 90, 100),
        ("starting", 3, 100, 110),
    ]
    assert spans[3].attributes["fairway.clusters"] == ("west",)


def test_a_claim_that_was_resized_since_began_no_later_than_it_was_ready() -> None:
    lost = past(1, 60, "ClusterLost", ready=29.5, blame="Place", clusters=["west"])
    running = seen("Running", claim=claim(2, 5000, 29.5), history=[lost])
    followed = follow(born(running, T + 9000), running, T + 9000)
    assert (followed.life.stage, followed.life.began_at) == ("running", T + 29.5)


def pods_of(attempt: int, *, pending: int = 0, **more: Any) -> WorkState:
    pods = (PodSetStatus(name="main", pending=pending),)
    return WorkState(work="vision.train", attempt=attempt, phase="Pending", pods=pods, **more)


def test_pods_that_exist_are_an_event_once_for_each_cluster() -> None:
    starting = seen("Claimed", claim=claim(clusters=["east", "west"]))
    life = follow(born(starting, T + 10), starting, T + 10).life
    for moment, cluster, state in (
        (11, "east", pods_of(1)),
        (12, "east", pods_of(0, pending=2)),
        (13, "east", pods_of(1, pending=2)),
        (14, "east", pods_of(1, pending=1)),
        (15, "west", WorkState(work="vision.train", attempt=1, phase="Running")),
        (16, "north", pods_of(1, pending=2)),
    ):
        life = made(life, cluster, state, T + moment)
    ready = seen("Running", claim=claim(clusters=["east", "west"], ready=14.5))
    (_, span) = follow(born(ready, T + 10), ready, T + 20).spans
    assert span.events == ()
    (span,) = follow(life, ready, T + 20).spans
    assert events(span) == [(13, "made"), (14.5, "made")], "no later than they were ready"
    assert [event.attributes["fairway.cluster"] for event in span.events] == ["east", "west"]


def test_a_workload_that_waits_long_keeps_its_first_and_last_reasons() -> None:
    reasons = ["QuotaExceeded", "DoesNotFit"]
    sights = [(number, seen(reason=reasons[number % 2])) for number in range(1, 101)]
    (span, *_) = told(*sights, (200, seen("Claimed", claim=claim(decided=200))))
    assert len(span.events) == 64
    assert (span.events[0].at, span.events[-1].at) == (T + 1, T + 100)
    assert span.events_left_out == 36


def test_what_is_over_is_told_once_and_remembered_small() -> None:
    over = seen("Cancelled", reason="Cancelled", finishedAt=at(9))
    life = follow(born(over, T + 9), over, T + 9).life
    assert follow(life, over, T + 10).spans == ()
    assert deleted(life, T + 10).spans == ()
    assert (life.queue, life.events) == ("", ())


@dataclass(kw_only=True)
class Course:
    """What a hub writes of a workload, one status after another."""

    now: float = 0.0
    attempt: int = 0
    claim: dict[str, Any] | None = None
    ready: float | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[tuple[float, Glance | None]] = field(default_factory=list)
    truth: list[tuple[str, int, float, float]] = field(default_factory=list)
    began: float = 0.0

    def step(self, what: str, seconds: float) -> None:
        self.now = round(self.now + seconds, 3)
        match what:
            case "next" if self.claim is None:
                self._stage("waiting", self.attempt + 1)
                self.attempt += 1
                self.claim, self.ready = claim(self.attempt, self.now), None
            case "next" if self.ready is None:
                self._stage("starting", self.attempt)
                self.ready = self.now
                self.claim = claim(self.attempt, self.now - seconds, self.now)
            case "fail" if self.claim is not None:
                self._end("OutOfMemory")
            case "resize" if self.ready is not None:
                self.claim = claim(self.attempt, self.now, self.ready, ["east", "west"])
            case "shrink" if self.ready is not None:
                entry = past(self.attempt, self.now, "ClusterLost", ready=self.ready)
                self.history.append(entry)
                self.attempt += 1
                self.claim = claim(self.attempt, self.now, self.ready)
        phase = "Waiting" if self.claim is None else "Running" if self.ready else "Claimed"
        held = {"claim": self.claim} if self.claim is not None else {}
        self.statuses.append((self.now, seen(phase, history=self.history[-10:], **held)))

    def finish(self) -> None:
        self.now += 1
        if self.claim is not None:
            self._end("Succeeded")
        else:
            self._stage("waiting", self.attempt + 1)
        over = seen("Succeeded", finishedAt=at(self.now), history=self.history[-10:])
        self.statuses.append((self.now, over))
        self.truth.append(("workload", 0, 0.0, self.now))

    def _end(self, reason: str) -> None:
        self._stage("running" if self.ready is not None else "starting", self.attempt)
        self.history.append(past(self.attempt, self.now, reason, ready=self.ready))
        self.claim = self.ready = None

    def _stage(self, stage: str, attempt: int) -> None:
        self.truth.append((stage, attempt, round(self.began, 3), round(self.now, 3)))
        self.began = self.now


STEPS = some.lists(
    some.tuples(
        some.sampled_from(["next", "next", "fail", "resize", "shrink", "nothing"]),
        some.floats(0.01, 1000),
    ),
    max_size=30,
)


def course_of(steps: list[tuple[str, float]]) -> Course:
    course = Course()
    for what, seconds in steps:
        course.step(what, seconds)
    course.finish()
    return course


@given(STEPS)
def test_a_life_that_is_seen_whole_is_told_as_it_was(steps: list[tuple[str, float]]) -> None:
    course = course_of(steps)
    spans = told(*course.statuses)
    assert short(spans) == [pytest.approx(stage, abs=0.002) for stage in course.truth]


@given(STEPS, some.data())
def test_spans_nest_and_follow_one_another_whatever_is_missed(
    steps: list[tuple[str, float]], data: some.DataObject
) -> None:
    course = course_of(steps)
    *most, last = course.statuses
    kept = [sight for sight in most if data.draw(some.booleans())]
    late = [(moment + data.draw(some.floats(0, 5)), sight) for moment, sight in (*kept, last)]
    *stages, root = told(*late)
    assert root.stage == "workload"
    assert all(root.start <= span.start <= span.end <= root.end for span in stages)
    assert [span.end for span in stages[:-1]] == [span.start for span in stages[1:]], "no gap"
    assert all(span.start <= event.at <= span.end for span in stages for event in span.events)
    attempts = [span.attempt for span in stages]
    assert attempts == sorted(attempts)
    ids = [span_id("u1", span.attempt, span.stage) for span in stages]
    assert len({*ids, root_id("u1")}) == len(stages) + 1


@given(STEPS, some.integers(1, 30))
def test_a_hub_that_starts_again_tells_the_rest_as_if_it_had_never_stopped(
    steps: list[tuple[str, float]], number: int
) -> None:
    course = course_of(steps)
    number = min(number, len(course.statuses) - 1)
    before, after = course.statuses[:number], course.statuses[max(0, number - 1) :]
    rest = told(*course.statuses)[len(told(*before)) :]
    since = T + before[-1][0] if before else 0.0
    again = [span for span in told(*after) if span.end > since]
    assert short(again) == [pytest.approx(stage, abs=0.002) for stage in short(rest)]
