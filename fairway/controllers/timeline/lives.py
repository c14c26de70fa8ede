"""Lives: the stages that a workload goes through, with their moments, as trace spans.

    waiting    submitted, or the last attempt ended  →  decided
    starting   decided  →  made (its pods exist in the cluster)  →  ready
    running    ready  →  the attempt ended

A stage follows another without a gap, and all are within the whole life. A life is read from
successive statuses of a workload, and made from what agents report of its works. A watch may skip
statuses: what was missed is taken from the history in the status. While a claim lasts, a stage
lasts too: a service that loses a cluster or gets another one has an event, not another attempt.

Reading is a pure function of what was known, what is seen, and the time. An ended stage is a trace
span, and is told once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import Final, Literal

from fairway.api.names import OVER
from fairway.api.reasons import Code
from fairway.api.report import WorkState
from fairway.controllers.glance import Attempt, Claim, Glance, Mention, WaitsFor
from fairway.controllers.workload_events import COPIES_DONE, TASKS_DONE
from fairway.tracing.spans import LIFE, Attributes, Event, Link, Outcome, TraceSpan, Value

Stage = Literal["waiting", "starting", "running", "over"]

_EVENTS_MOST: Final = 64  # of a stage: the first and the last half of them
_LINKS_MOST: Final = 64
_CLUSTERS_MOST: Final = 64  # that a span names
_GOOD_ENDS: Final = ("Succeeded", TASKS_DONE, COPIES_DONE)
_ASKED_ENDS: Final = (Code.CANCELLED.value, Code.DELETED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What is known of a workload's life, and the stage that it is in."""

    uid: str
    namespace: str
    name: str
    queue: str = ""
    mode: str = ""
    submitted_at: float
    stage: Stage = "waiting"
    began_at: float  # the stage
    attempt: int = 1  # while it waits: the next
    ready_at: float | None = None  # of the claim
    decided_at: float | None = None  # of the claim, as last decided
    clusters: tuple[str, ...] = ()
    flavors: tuple[str, ...] = ()
    gpus: int = 0  # thousandths
    rung: str = ""
    alternative: str = ""
    expected: tuple[tuple[str, int], ...] = ()  # clusters whose pods do not exist yet: attempts
    events: tuple[Event, ...] = ()  # of the stage
    left_out: int = 0
    links: tuple[Link, ...] = ()
    code: str = ""  # the last reason for waiting
    is_leaving: bool = False  # pods of the last attempt are not confirmed gone
    heard: tuple[int, float] = (0, 0.0)  # the last attempt of the history, and when it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A life, and the stages of it that have ended."""

    life: Life
    spans: Sequence[TraceSpan]


def born(seen: Glance, now: float) -> Life:
    """The life of a workload that has just been submitted."""
    submitted = seen.submitted_at if seen.submitted_at is not None else now
    metadata = seen.metadata
    return Life(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        submitted_at=submitted,
        began_at=submitted,
    )


def follow(life: Life, seen: Glance, now: float) -> Followed:
    """The life after its workload has been seen."""
    if life.stage == "over":
        return Followed(life=life, spans=())
    course = _Course(life, now)
    course.see(seen)
    return Followed(life=course.life, spans=course.spans)


def deleted(life: Life, now: float) -> Followed:
    """The life of a workload whose object is gone."""
    if life.stage == "over":
        return Followed(life=life, spans=())
    course = _Course(life, now)
    course.finish(now, "Failed", Code.DELETED.value)
    return Followed(life=course.life, spans=course.spans)


def made(life: Life, cluster: str, state: WorkState, now: float) -> Life:
    """The life after an agent reported what exists of its work in a cluster."""
    attempt = dict(life.expected).get(cluster)
    if life.stage != "starting" or attempt is None or attempt != state.attempt:
        return life
    if not _has_pods(state):
        return life
    times = [at.timestamp() for at in (state.started_at, state.ready_at) if at is not None]
    event = Event(at=min([now, *times]), name="made", attributes={"fairway.cluster": cluster})
    expected = tuple(pair for pair in life.expected if pair[0] != cluster)
    return replace(_noted(life, event), expected=expected)


def _has_pods(state: WorkState) -> bool:
    if state.phase in ("Running", "Succeeded", "Failed"):
        return True
    return state.phase == "Pending" and any(
        pods.pending or pods.bound or pods.ready or pods.succeeded or pods.failed
        for pods in state.pods
    )


def _noted(life: Life, event: Event) -> Life:
    events, left_out = (*life.events, event), life.left_out
    if len(events) > _EVENTS_MOST:
        half = _EVENTS_MOST // 2
        events, left_out = (*events[:half], *events[half + 1 :]), left_out + 1
    return replace(life, events=events, left_out=left_out)


class _Course:
    """The steps of a life from one sight of its workload to the next."""

    def __init__(self, life: Life, now: float) -> None:
        self.life = life
        self.spans: list[TraceSpan] = []
        self._now = now

    def see(self, seen: Glance) -> None:
        status, claim = seen.status, seen.status.claim
        queue, mode = seen.charged_queue or seen.spec.queue, seen.spec.mode or "Gang"
        if (queue, mode) != (self.life.queue, self.life.mode):
            self.life = replace(self.life, queue=intern(queue), mode=intern(mode))
        history = tuple(past for past in status.history if _key(past) > self.life.heard)
        lasts = self.life.stage != "waiting" and claim is not None and _lasts(self.life, seen)
        if claim is not None and lasts:
            self._take_changes(history, claim)
        else:
            self._take_ends([past for past in history if not _is_of(past, claim)])
        if history:
            self.life = replace(self.life, heard=max(map(_key, history)))
        if claim is not None:
            self._take_claim(claim, seen)
        elif status.phase in OVER:
            end = seen.finished_at
            self.finish(self._now if end is None else end, status.phase, status.reason)
        else:
            self._wait(seen)

    # What ended.

    def _take_ends(self, history: Sequence[Attempt]) -> None:
        for past in _last_of_each_claim(history):
            self._end_attempt(past)
        if self.life.stage != "waiting":
            self._end_attempt(Attempt(attempt=self.life.attempt))  # nothing says why

    def _end_attempt(self, past: Attempt) -> None:
        end = past.end if past.end is not None else self._now
        if self.life.stage == "waiting":
            # Its claim was never seen, so when it was decided is not known.
            at = past.start if past.start is not None else end
            self._begin("running" if past.start is not None else "starting", at, past.attempt)
            self.life = replace(self.life, clusters=past.clusters)
        elif self.life.stage == "starting" and past.start is not None:
            self._begin("running", past.start, past.attempt)
        self.life = replace(self.life, attempt=past.attempt)
        if past.preempted_by is not None:
            self._take_receipt(past, past.preempted_by, end)
        attributes: dict[str, Value] = {"fairway.reason": past.reason, "fairway.blame": past.blame}
        if past.exit_code is not None:
            attributes["fairway.exit_code"] = past.exit_code
        if past.lost_seconds:
            attributes["fairway.lost_seconds"] = past.lost_seconds
        outcome = _outcome(past)
        self._close(end, attributes, outcome, past.reason)
        self.life = _waiting(self.life, past.attempt + 1)

    def _take_receipt(self, past: Attempt, other: Mention, at: float) -> None:
        """What a preempted workload got: for which workload it had to go."""
        attributes = _mentioned(other)
        attributes["fairway.reason"] = past.reason
        attributes["fairway.lost_seconds"] = past.lost_seconds
        self._note(Event(at=at, name="preempted", attributes=attributes))
        self._link(other, "preempted by")

    def finish(self, at: float, phase: str, reason: str) -> None:
        """The whole life ends; a stage that goes on until then ends too."""
        if self.life.stage != "waiting" or at > self.life.began_at:
            self._close(at, {"fairway.reason": reason}, "", "")
        life = self.life
        is_fault = phase == "Failed" and reason not in _ASKED_ENDS
        self.spans.append(
            TraceSpan(
                uid=life.uid,
                stage=LIFE,
                start=life.submitted_at,
                end=max(at, life.began_at),
                attributes={
                    **_identity(life),
                    "fairway.phase": phase,
                    "fairway.reason": reason,
                    "fairway.attempts": life.attempt - (life.stage == "waiting"),
                },
                outcome="Ok" if phase == "Succeeded" else "Error" if is_fault else "",
                reason=reason if is_fault else "",
            )
        )
        # The rest is remembered no longer: a finished workload may stay for days.
        self.life = Life(
            uid=life.uid,
            namespace=life.namespace,
            name=life.name,
            submitted_at=life.submitted_at,
            stage="over",
            began_at=life.began_at,
        )

    # What is decided.

    def _take_claim(self, claim: Claim, seen: Glance) -> None:
        if self.life.stage == "waiting":
            times = [at for at in (seen.decided_at, seen.ready_at) if at is not None]
            self._begin("starting", min(times, default=self._now), claim.attempt)
            self.life = replace(
                self.life,
                expected=tuple(
                    (placement.cluster, placement.attempt or claim.attempt)
                    for placement in claim.placements
                    if placement.cluster
                ),
            )
            for awaited in claim.waits_for:
                self._take_wait(awaited)
        self.life = replace(
            self.life,
            attempt=claim.attempt,
            decided_at=seen.decided_at,
            clusters=_clusters(claim),
            flavors=_flavors(claim),
            gpus=sum(pods.gpus for placed in claim.placements for pods in placed.pod_sets),
            rung=claim.rung,
            alternative=claim.alternative,
        )
        if self.life.stage == "starting" and seen.ready_at is not None:
            self._begin("running", seen.ready_at, claim.attempt)
            self.life = replace(self.life, ready_at=seen.ready_at)

    def _take_wait(self, awaited: WaitsFor) -> None:
        """What must happen before the pods can run."""
        attributes: dict[str, Value] = {}
        if awaited.workload is not None:
            attributes.update(_mentioned(awaited.workload))
            self._link(awaited.workload, "preempts")
        if awaited.cluster:
            attributes["fairway.cluster"] = awaited.cluster
        if awaited.pool:
            attributes |= {"fairway.pool": awaited.pool, "fairway.nodes": awaited.count}
        name = "awaits nodes" if awaited.type == "Provision" else "awaits victim"
        self._note(Event(at=self.life.began_at, name=name, attributes=attributes))

    def _take_changes(self, history: Sequence[Attempt], claim: Claim) -> None:
        """What a claim in force lost, and where it is now."""
        for past in history:
            attributes: Attributes = {
                "fairway.reason": past.reason,
                "fairway.cluster": past.clusters,
            }
            at = past.end if past.end is not None else self._now
            self._note(Event(at=at, name="lost", attributes=attributes))
        clusters = _clusters(claim)
        if set(clusters) != set(self.life.clusters):
            self._note(
                Event(at=self._now, name="placed", attributes={"fairway.clusters": clusters})
            )

    # What it waits for.

    def _wait(self, seen: Glance) -> None:
        status = seen.status
        is_leaving = bool(status.releasing)
        if self.life.is_leaving and not is_leaving:
            self._note(Event(at=self._now, name="gone"))
        if self.life.is_leaving != is_leaving:
            self.life = replace(self.life, is_leaving=is_leaving)
        if status.phase == "Stopping" or status.reason == self.life.code:
            return  # why it stops is said of the attempt that ended
        self.life = replace(self.life, code=intern(status.reason))
        if status.reason:
            self._note(Event(at=self._now, name=status.reason))

    # Steps.

    def _begin(self, stage: Stage, at: float, attempt: int) -> None:
        """Ends the stage that lasts, without a fault, and begins another."""
        self.life = replace(self.life, attempt=attempt)
        self._close(at, {}, "", "")
        self.life = replace(self.life, stage=stage)

    def _close(self, at: float, attributes: Attributes, outcome: Outcome, reason: str) -> None:
        """The stage as a span; the next one begins where it ends."""
        life = self.life
        end = max(at, life.began_at)
        self.spans.append(
            TraceSpan(
                uid=life.uid,
                stage=life.stage,
                attempt=life.attempt,
                start=life.began_at,
                end=end,
                attributes={**_identity(life), **_placement(life), **attributes},
                events=tuple(
                    replace(event, at=min(max(event.at, life.began_at), end))
                    for event in life.events
                ),
                events_left_out=life.left_out,
                links=life.links,
                outcome=outcome,
                reason=reason if outcome == "Error" else "",
            )
        )
        self.life = replace(life, began_at=end, events=(), left_out=0, links=())

    def _note(self, event: Event) -> None:
        self.life = _noted(self.life, event)

    def _link(self, other: Mention, why: str) -> None:
        if other.uid and len(self.life.links) < _LINKS_MOST:
            link = Link(uid=other.uid, attributes={"fairway.relation": why})
            self.life = replace(self.life, links=(*self.life.links, link))


def _waiting(life: Life, attempt: int) -> Life:
    """A life without a claim."""
    return replace(
        life,
        stage="waiting",
        attempt=attempt,
        ready_at=None,
        decided_at=None,
        clusters=(),
        flavors=(),
        gpus=0,
        rung="",
        alternative="",
        expected=(),
        code="",
        is_leaving=False,
    )


def _key(past: Attempt) -> tuple[int, float]:
    return past.attempt, past.end or 0.0


def _is_of(past: Attempt, claim: Claim | None) -> bool:
    """Whether it is a part that a claim in force lost."""
    return claim is not None and (
        past.attempt == claim.attempt
        or (past.started_at != "" and past.started_at == claim.ready_at)
    )


def _lasts(life: Life, seen: Glance) -> bool:
    """Whether a claim is the one that is known; its attempt and its time of decision may rise."""
    claim = seen.status.claim
    assert claim is not None, "only what is claimed lasts"
    return (
        claim.attempt == life.attempt
        or (seen.ready_at is not None and seen.ready_at == life.ready_at)
        or (seen.decided_at is not None and seen.decided_at == life.decided_at)
    )


def _last_of_each_claim(history: Sequence[Attempt]) -> list[Attempt]:
    """A claim that lost parts before it ended has several entries; the last is its end."""
    result: list[Attempt] = []
    for past in history:
        last = result[-1] if result else None
        if last is not None and (
            past.attempt == last.attempt or (past.started_at and past.started_at == last.started_at)
        ):
            result.pop()
        result.append(past)
    return result


def _outcome(past: Attempt) -> Outcome:
    """What a decision ended is no fault."""
    if past.reason in _GOOD_ENDS:
        return "Ok"
    return "" if past.blame == "Decision" or not past.reason else "Error"


def _clusters(claim: Claim) -> tuple[str, ...]:
    return tuple(sorted({placement.cluster for placement in claim.placements} - {""}))


def _flavors(claim: Claim) -> tuple[str, ...]:
    placed = (pods for placement in claim.placements for pods in placement.pod_sets)
    return tuple(sorted({pods.flavor for pods in placed} - {""}))


def _identity(life: Life) -> dict[str, Value]:
    return {
        "fairway.namespace": life.namespace,
        "fairway.workload": life.name,
        "fairway.uid": life.uid,
        "fairway.queue": life.queue,
        "fairway.mode": life.mode,
    }


def _placement(life: Life) -> dict[str, Value]:
    """The attempt, and where it is; nothing of a stage that only waits."""
    result: dict[str, Value] = {"fairway.attempt": life.attempt}
    if life.stage == "waiting":
        return result
    result["fairway.clusters"] = life.clusters[:_CLUSTERS_MOST]
    result["fairway.flavors"] = life.flavors
    result["fairway.gpus"] = life.gpus / 1000
    result["fairway.rung"] = life.rung
    if life.alternative:
        result["fairway.alternative"] = life.alternative
    return result


def _mentioned(other: Mention) -> dict[str, Value]:
    """Another workload, as far as the status names it."""
    result: dict[str, Value] = {"fairway.other.uid": other.uid}
    if other.name:
        result |= {"fairway.other.namespace": other.namespace, "fairway.other.workload": other.name}
    if other.queue:
        result["fairway.other.queue"] = other.queue
    if other.priority is not None:
        result["fairway.other.priority"] = other.priority
    return result
