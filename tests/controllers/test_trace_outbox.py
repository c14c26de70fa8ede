"""The outbox of trace spans: bounded, in order, patient, and kept for the next process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fairway.clock import VirtualClock
from fairway.controllers.timeline.outbox import OVERLAP_SECONDS, Limits, Outbox
from fairway.hub.line_log import LineFile
from fairway.tracing.interface import Later, Refused
from fairway.tracing.spans import TraceSpan
from tests.tracing.collectors import Recorder, leading

NOW = 1_800_000_000.0


def span(number: int, text: str = "") -> TraceSpan:
    return TraceSpan(
        uid=f"u{number}",
        stage="running",
        attempt=number,
        start=NOW,
        end=NOW + number,
        attributes={"text": text} if text else {},
    )


def numbers(recorder: Recorder) -> list[int]:
    """Which spans arrived."""
    read = (Span.FromString(encoded) for encoded in recorder.spans)
    return [(item.end_time_unix_nano - item.start_time_unix_nano) // 10**9 for item in read]


def put(outbox: Outbox, *which: int) -> None:
    for number in which:
        outbox.put(span(number))


async def test_spans_gather_before_they_are_sent(clock: VirtualClock) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock)
    async with leading(outbox):
        put(outbox, 1)
        await clock.advance(1)
        put(outbox, 2)
        assert recorder.sizes == []
        await clock.advance(1)
        put(outbox, 3)
        await clock.advance(2)
    assert (recorder.sizes, numbers(recorder), len(outbox)) == ([2, 1], [1, 2, 3], 0)


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (Limits(request_spans=4), [4, 4, 2]),
        (Limits(request_bytes=2_500), [2, 2, 2, 2, 2]),
        (Limits(request_bytes=10), [1] * 10),
        (Limits(), [10]),
    ],
    ids=["by number", "by size", "a large span goes alone", "all at once"],
)
async def test_a_request_is_bounded(clock: VirtualClock, limits: Limits, sizes: list[int]) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock, limits=limits)
    async with leading(outbox):
        for number in range(10):
            outbox.put(span(number, "x" * 1_000))
        await clock.advance(3)
    assert recorder.sizes == sizes
    assert numbers(recorder) == list(range(10))


@pytest.mark.parametrize("limits", [Limits(spans=5), Limits(bytes=5_500)], ids=["spans", "bytes"])
async def test_a_full_outbox_drops_the_oldest_and_says_so_once(
    clock: VirtualClock, limits: Limits, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock, limits=limits)
    async with leading(outbox):
        for number in range(20):
            outbox.put(span(number, "x" * 1_000))
        await clock.advance(3)
    assert (numbers(recorder), outbox.dropped) == ([15, 16, 17, 18, 19], 15)
    assert caplog.text.count("the oldest go") == 1


async def test_what_is_dropped_while_it_is_sent_harms_nothing(clock: VirtualClock) -> None:
    class Slow(Recorder):
        async def send(self, spans) -> None:
            await clock.sleep(10)
            await super().send(spans)

    recorder = Slow()
    outbox = Outbox(recorder, clock, limits=Limits(spans=3))
    async with leading(outbox):
        put(outbox, 1, 2)
        await clock.advance(5)
        put(outbox, 3, 4, 5)
        await clock.advance(60)
    assert numbers(recorder) == [1, 2, 3, 4, 5]


async def test_a_busy_collector_is_asked_less_and_less(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    class Timed(Recorder):
        async def send(self, spans) -> None:
            asked.append(clock.now() - NOW)
            await super().send(spans)

    recorder = Timed(faults=[Later("busy") for _ in range(8)])
    outbox = Outbox(recorder, clock)
    async with leading(outbox):
        put(outbox, 1)
        await clock.advance(600)
        assert asked == [2, 3, 5, 9, 17, 33, 65, 125, 185]
        assert numbers(recorder) == [1]
        assert caplog.text.count("takes no trace spans now: busy") == 1
        asked.clear()
        recorder.faults = [Later("busy", after_seconds=300), Later("busy", after_seconds=1e9)]
        put(outbox, 2)
        await clock.advance(4000)
    assert [later - asked[0] for later in asked] == [0, 300, 3900], "an hour at most"
    assert numbers(recorder) == [1, 2]


async def test_what_is_refused_is_not_sent_again(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(faults=[Refused("bad"), Refused("bad"), None])
    outbox = Outbox(recorder, clock, limits=Limits(request_spans=1))
    async with leading(outbox):
        put(outbox, 1, 2, 3)
        await clock.advance(3)
    assert (numbers(recorder), outbox.refused) == ([3], 2)
    assert caplog.text.count("refuses trace spans, which are dropped: bad") == 1


async def test_a_replica_that_does_not_lead_sends_nothing_and_keeps_the_last_minutes(
    clock: VirtualClock,
) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock)
    for number in range(10):
        put(outbox, number)
        await clock.advance(30)
    assert (recorder.sizes, outbox.dropped) == ([], 0)
    async with leading(outbox):
        await clock.advance(5)
    assert numbers(recorder) == [6, 7, 8, 9], f"those of {OVERLAP_SECONDS:.0f} s"


async def test_a_leader_that_is_replaced_sends_nothing_more(clock: VirtualClock) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock)
    async with leading(outbox):
        put(outbox, 1)
        await clock.advance(3)
        put(outbox, 2)
    await clock.advance(10)
    assert numbers(recorder) == [1]
    async with leading(outbox):
        await clock.advance(3)
    assert numbers(recorder) == [1, 2]


async def test_a_hub_that_ends_tries_once_and_for_a_limited_time(clock: VirtualClock) -> None:
    class Silent(Recorder):
        async def send(self, spans) -> None:
            await super().send(spans)
            await clock.sleep(1e6)

    for recorder, left in (
        (Recorder(), 0),
        (Recorder(faults=[None, Later("busy")]), 2),
        (Silent(), 3),
    ):
        outbox = Outbox(recorder, clock, limits=Limits(request_spans=1))
        async with leading(outbox):
            put(outbox, 1, 2, 3)
        began = clock.now()
        flushing = asyncio.ensure_future(outbox.flush(2))
        await clock.advance(5)
        assert flushing.done()
        assert (len(outbox), clock.now() - began) == (left, 5)


async def test_a_replica_that_did_not_lead_sends_nothing_when_it_ends(clock: VirtualClock) -> None:
    recorder = Recorder()
    outbox = Outbox(recorder, clock)
    put(outbox, 1)
    await outbox.flush(2)
    async with leading(outbox):
        pass
    await clock.advance(60)
    await outbox.flush(2)
    assert recorder.sizes == []


async def test_the_next_process_sends_what_is_left_and_nothing_else(
    clock: VirtualClock, tmp_path: Path
) -> None:
    recorder = Recorder(faults=[None, Later("busy", after_seconds=1000)])
    for which in ((1, 2, 3), (4, 5)):
        file = LineFile(tmp_path / "traces")
        outbox = Outbox(recorder, clock, keeper=file, limits=Limits(request_spans=2))
        async with leading(outbox):
            put(outbox, *which)
            await clock.advance(10)
        file.close()
    assert numbers(recorder) == [1, 2, 3, 4, 5]
    file = LineFile(tmp_path / "traces")
    assert len(Outbox(recorder, clock, keeper=file)) == 0


async def test_a_broken_line_costs_no_other(clock: VirtualClock, tmp_path: Path) -> None:
    file = LineFile(tmp_path / "traces")
    async with leading(outbox := Outbox(Recorder(), clock, keeper=file)):
        put(outbox, 1, 2)
    file.close()
    with (tmp_path / "traces").open("ab") as broken:
        broken.write(b'{"sequence": 3, "span": "ha')
    for _ in range(2):  # what it took up, it does not keep again
        file = LineFile(tmp_path / "traces")
        async with leading(outbox := Outbox(Recorder(), clock, keeper=file)):
            assert len(outbox) == 2
        file.close()
