"""Traces of a hub that runs, as a collector gets them: what was decided, and how it went."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fairway.api.names import report_name
from fairway.clock import VirtualClock, timestamp
from fairway.controllers.plane import ControlPlane, PlaneOptions
from fairway.controllers.terms import Settings
from fairway.controllers.timeline.outbox import Outbox
from fairway.hub.line_log import LineFile
from fairway.kinds.registry import LiveKinds, built_in
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Stored, Write
from fairway.store.keys import REPORTS, WORKLOADS
from fairway.tracing.interface import Later
from fairway.tracing.spans import root_id, trace_id
from tests.controllers.fleets import SECRET, Fleet, running
from tests.controllers.test_running import FLEET, job
from tests.tracing.collectors import Recorder, leading
from tests.tracing.decoding import Decoded, decode_span

_USER = Write(user="ada", manager="test")


@dataclass(frozen=True, kw_only=True)
class Traced:
    """A hub, and what a collector got from it."""

    fleet: Fleet
    recorder: Recorder

    async def trace(self, name: str) -> list[Decoded]:
        """The spans of a workload, in the order in which they were sent."""
        await self.fleet.clock.advance(5)
        read = [decode_span(Span.FromString(encoded)) for encoded in self.recorder.spans]
        return [span for span in read if span.attributes["fairway.workload"] == name]


@asynccontextmanager
async def tracing(
    store: EmbeddedStore, clock: VirtualClock, folder: Path, recorder: Recorder | None = None
) -> AsyncIterator[Traced]:
    recorder = recorder or Recorder()
    file = LineFile(folder / "traces")
    outbox = Outbox(recorder, clock, keeper=file)
    async with running(store, clock, folder / "clusters", outbox=outbox) as fleet:
        await fleet.apply(FLEET)
        await clock.advance(1)
        yield Traced(fleet=fleet, recorder=recorder)
    file.close()


@pytest.fixture
async def traced(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> AsyncIterator[Traced]:
    async with tracing(store, clock, tmp_path) as found:
        yield found


def stages(spans: Sequence[Decoded]) -> list[tuple[str, int]]:
    return [(span.name, span.attributes.get("fairway.attempt", 0)) for span in spans]


def check(spans: Sequence[Decoded], uid: str) -> None:
    """What holds for every whole trace."""
    *parts, root = spans
    assert {span.trace for span in spans} == {trace_id(uid)}
    assert (root.name, root.id, root.parent) == ("workload", root_id(uid), b"")
    assert {span.parent for span in parts} == {root.id}
    assert len({span.id for span in spans}) == len(spans)
    assert (parts[0].start, parts[-1].end) == (root.start, root.end)
    for span, after in pairwise(parts):
        assert span.start <= span.end == after.start


async def test_a_job_that_succeeds_has_a_trace_of_its_stages(traced: Traced) -> None:
    fleet = traced.fleet
    await fleet.apply(job("train"))
    started = await fleet.until("train", "Running", 30)
    claim = started.status.claim
    assert claim is not None
    assert claim.ready_at is not None
    assert stages(await traced.trace("train")) == [("waiting", 1), ("starting", 1)]
    ended = await fleet.until("train", "Succeeded", 120)
    spans = await traced.trace("train")
    check(spans, ended.metadata.uid)
    waiting, starting, ran, root = spans
    assert waiting.end == starting.start == pytest.approx(claim.decided_at.timestamp(), abs=1e-3)
    assert starting.end == ran.start == pytest.approx(claim.ready_at.timestamp(), abs=1e-3)
    assert [name for _, name, _ in starting.events] == ["made"]
    assert starting.start <= starting.events[0][0] < starting.end
    assert starting.attributes["fairway.clusters"] == ["hangzhou"]
    assert (ran.attributes["fairway.flavors"], ran.attributes["fairway.gpus"]) == (["h100"], 8.0)
    assert (ran.outcome, root.outcome) == ("Ok", "Ok")
    assert root.attributes["fairway.queue"] == "research"


async def test_a_preempted_workload_has_two_attempts_and_names_who_came_first(
    traced: Traced,
) -> None:
    fleet = traced.fleet
    await fleet.apply(job("victim", pods=2, seconds=100))
    await fleet.until("victim", "Running", 30)
    await fleet.apply(job("urgent", pods=2, priority=10, seconds=60))
    urgent = await fleet.until("urgent", "Running", 90)
    victim = await fleet.until("victim", "Succeeded", 600)
    spans = await traced.trace("victim")
    check(spans, victim.metadata.uid)
    assert stages(spans) == [
        ("waiting", 1),
        ("starting", 1),
        ("running", 1),
        ("waiting", 2),
        ("starting", 2),
        ("running", 2),
        ("workload", 0),
    ]
    first, again = spans[2], spans[3]
    ((at, name, receipt),) = first.events
    assert (at, name) == (pytest.approx(first.end), "preempted")
    assert receipt["fairway.other.workload"] == "urgent"
    assert receipt["fairway.other.priority"] == 10
    assert receipt["fairway.reason"].startswith("Preempted")
    assert first.links == [(trace_id(urgent.metadata.uid), root_id(urgent.metadata.uid))]
    assert first.outcome == ""
    reasons = [name for _, name, _ in again.events]
    assert reasons[0] == "gone"
    assert len(reasons) > 1, "why it waited"
    (starting,) = [span for span in await traced.trace("urgent") if span.name == "starting"]
    assert [name for _, name, _ in starting.events] == ["awaits victim", "made"]
    assert starting.links == [(trace_id(victim.metadata.uid), root_id(victim.metadata.uid))]
    assert starting.attributes["fairway.rung"] == "Preempt"


async def test_a_workload_that_is_retried_says_why_each_attempt_ended(traced: Traced) -> None:
    fleet = traced.fleet
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.change("train", {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", "Held", 120)
    await fleet.change("train", {"spec": {"hold": "None"}})
    await fleet.until("train", "Running", 60)
    await fleet.change("train", {"spec": {"cancelled": True}})
    ended = await fleet.until("train", "Cancelled", 120)
    spans = await traced.trace("train")
    check(spans, ended.metadata.uid)
    reasons = [
        (span.name, span.attributes.get("fairway.attempt"), span.attributes["fairway.reason"])
        for span in spans
        if "fairway.reason" in span.attributes
    ]
    assert reasons == [
        ("running", 1, "Drained"),
        ("running", 2, "Cancelled"),
        ("workload", None, "Cancelled"),
    ]
    assert [name for _, name, _ in spans[3].events] == ["gone", "Held"]


async def test_a_workload_that_is_deleted_while_it_waits_has_a_whole_trace(
    traced: Traced, store: EmbeddedStore
) -> None:
    fleet = traced.fleet
    await fleet.apply(job("huge", pods=9))
    await fleet.until("huge", lambda item: bool(item.status.reason), 30)
    uid = (await fleet.workload("huge")).metadata.uid
    await store.delete(WORKLOADS, "huge", namespace="default", write=_USER)
    spans = await traced.trace("huge")
    check(spans, uid)
    waiting, root = spans
    assert len(waiting.events) == 1
    assert (root.attributes["fairway.reason"], root.outcome) == ("Deleted", "")


async def test_a_collector_that_is_away_delays_nothing(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    recorder = Recorder(faults=[Later("away") for _ in range(1000)])
    async with tracing(store, clock, tmp_path, recorder) as traced:
        await traced.fleet.apply(job("train"))
        await traced.fleet.until("train", "Succeeded", 120)
        assert recorder.spans == []
        recorder.faults.clear()
        await clock.advance(120)
        assert len(await traced.trace("train")) == 4


async def test_a_hub_that_starts_again_goes_on_with_the_same_trace(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    before, after = Recorder(faults=[None, Later("away", after_seconds=1e4)]), Recorder()
    async with tracing(store, clock, tmp_path, before) as traced:
        await traced.fleet.apply(job("long", seconds=300))
        await traced.fleet.until("long", lambda item: item.status.claim is not None, 30)
        await clock.advance(2)
        assert stages(await traced.trace("long")) == [("waiting", 1)]
        await traced.fleet.until("long", "Running", 30)
        assert stages(await traced.trace("long")) == [("waiting", 1)], "the collector is away"
    async with tracing(store, clock, tmp_path, after) as traced:
        assert stages(await traced.trace("long")) == [("starting", 1)]
        ended = await traced.fleet.until("long", "Succeeded", 600)
        await traced.trace("long")
    spans = [decode_span(Span.FromString(span)) for span in (*before.spans, *after.spans)]
    check(spans, ended.metadata.uid)
    assert stages(spans) == [("waiting", 1), ("starting", 1), ("running", 1), ("workload", 0)]


async def test_a_report_that_comes_before_the_decision_counts(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    """Workloads and reports are watched apart, so the later may be seen first."""
    recorder = Recorder()
    outbox = Outbox(recorder, clock)
    plane = ControlPlane(
        store=store,
        clock=clock,
        kinds=LiveKinds(built_in()),
        options=PlaneOptions(terms=Settings(identity="hub"), secret=SECRET, outbox=outbox),
    )

    def see(kind: ResourceKey, name: str, body: dict[str, Any]) -> None:
        namespace = "default" if kind == WORKLOADS else ""
        metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
        stored = Stored(json.dumps({"metadata": metadata, **body}).encode())
        plane.cache.mirror(kind)._put((namespace, name), str(clock.now()), stored)

    plane.cache.mirror(WORKLOADS).is_complete.set()
    now = timestamp(clock.now())
    state = {"work": "default.train", "attempt": 1, "phase": "Running", "readyAt": now}
    report = {"cluster": "east", "agentEpoch": 1, "sequence": 1, "seenAt": now, "states": [state]}
    claim = {"attempt": 1, "decidedAt": now, "placements": [{"cluster": "east", "attempt": 1}]}
    see(REPORTS, report_name("east", 0), {"spec": report})
    see(WORKLOADS, "train", {"spec": {}, "status": {"phase": "Claimed", "claim": claim}})
    await clock.advance(1)
    ready = {**claim, "readyAt": timestamp(clock.now())}
    see(WORKLOADS, "train", {"spec": {}, "status": {"phase": "Running", "claim": ready}})
    async with leading(outbox):
        await clock.advance(5)
    (_, starting) = [decode_span(Span.FromString(encoded)) for encoded in recorder.spans]
    assert [name for _, name, _ in starting.events] == ["made"]
    await plane.close()
