"""Talks over one connection: whole, bounded, apart from each other, and ended when they should."""

from __future__ import annotations

import asyncio

import pytest

from fairway.clock import VirtualClock
from fairway.streams import frames, memory
from fairway.streams.frames import BadFrame, Frame, Kind
from fairway.streams.line import Limits, Line, Talk
from fairway.streams.requests import WELL, Ask, Channel, Outcome, TalkEnded
from tests.streams.lines import connected

ASK = Ask(kind="log", work="team.train")
SMALL = Limits(talks=2, window_bytes=4 << 10, idle_seconds=100, look_seconds=10)


async def settled() -> None:
    """Lets everybody do what they can."""
    for _ in range(200):
        await asyncio.sleep(0)


async def taken(talk: Talk) -> bytes:
    found = b""
    while (received := await talk.receive()) is not None:
        found += received[1]
    return found


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.OPEN, 1, b"{}"),
        frames.data(7, Channel.OUTPUT, b"\x00\xff" * 100),
        frames.end((1 << 32) - 1, Channel.INPUT),
        frames.credit(3, 1 << 20),
        Frame(Kind.BEGUN, 2),
    ],
)
def test_a_frame_is_read_as_it_was_written(frame: Frame) -> None:
    assert frames.decode(frames.encode(frame)) == frame


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x03\x00\x00", id="less than a head"),
        pytest.param(b"\x63\x00\x00\x00\x01", id="of no known kind"),
        pytest.param(bytes(frames.FRAME_BYTES_MOST + 1), id="too long"),
    ],
)
def test_what_is_no_frame_is_refused(message: bytes) -> None:
    with pytest.raises(BadFrame):
        frames.decode(message)


async def test_what_is_sent_arrives_whole_and_then_how_it_ended() -> None:
    content = bytes(range(256)) * 4_000

    async def serve(ask: Ask, talk: Talk) -> Outcome:
        await talk.begin()
        await talk.send(Channel.OUTPUT, content)
        return Outcome(exit_code=3)

    async with connected(serve) as (asking, _):
        talk = await asking.open(ASK)
        await talk.wait_until_begun()
        assert await taken(talk) == content
        assert talk.outcome == Outcome(exit_code=3)
        assert asking.count == 0


async def test_both_sides_talk_at_once_and_either_can_end_its_part() -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        while (received := await talk.receive()) is not None:
            if not received[1]:
                return WELL
            await talk.send(Channel.OUTPUT, received[1].upper())
        raise AssertionError("the input ends before the talk")

    async with connected(serve) as (asking, _):
        talk = await asking.open(ASK)
        await talk.send(Channel.INPUT, b"abc")
        assert await talk.receive() == (Channel.OUTPUT, b"ABC")
        await talk.end(Channel.INPUT)
        assert await talk.receive() is None
        assert talk.outcome == WELL


async def test_who_reads_slowly_holds_up_their_own_talk_and_no_other() -> None:
    sent = {"slow": 0, "quick": 0}

    async def serve(ask: Ask, talk: Talk) -> Outcome:
        for _ in range(100):
            await talk.send(Channel.OUTPUT, bytes(1_000))
            sent[ask.work] += 1_000
        return WELL

    async with connected(serve, limits=SMALL) as (asking, _):
        slow = await asking.open(Ask(kind="log", work="slow"))
        quick = await asking.open(Ask(kind="log", work="quick"))
        assert len(await taken(quick)) == 100_000
        await settled()
        assert 0 < sent["slow"] <= SMALL.window_bytes
        assert len(await taken(slow)) == 100_000


async def test_small_frames_are_bounded_as_well() -> None:
    sent = 0

    async def serve(ask: Ask, talk: Talk) -> Outcome:
        nonlocal sent
        while True:
            await talk.send(Channel.OUTPUT, b"x")
            sent += 1

    async with connected(serve, limits=SMALL) as (asking, _):
        await asking.open(ASK)
        await settled()
        assert 0 < sent <= SMALL.window_bytes // frames.COST


async def test_who_goes_ends_what_was_done_for_them() -> None:
    ended = asyncio.Event()

    async def serve(ask: Ask, talk: Talk) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return WELL

    async with connected(serve) as (asking, serving):
        talk = await asking.open(ASK)
        await settled()
        await talk.close()
        await ended.wait()
        await settled()
        assert (asking.count, serving.count) == (0, 0)


async def test_more_talks_than_there_may_be_are_refused_and_the_others_go_on() -> None:
    go_on = asyncio.Event()

    async def serve(ask: Ask, talk: Talk) -> Outcome:
        await go_on.wait()
        return WELL

    async with connected(serve, limits=SMALL) as (asking, _):
        talks = [await asking.open(ASK) for _ in range(2)]
        with pytest.raises(TalkEnded) as refused:
            await asking.open(ASK)
        assert refused.value.outcome.reason == "TooManyRequests"
        go_on.set()
        assert [await talk.receive() for talk in talks] == [None, None]
        assert (await (await asking.open(ASK)).receive()) is None


async def test_a_hub_that_asks_for_more_than_the_agent_takes_is_told_so() -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        await asyncio.Event().wait()
        return WELL

    clock = VirtualClock()
    ours, theirs = memory.pair()
    asking = Line(ours, clock)
    serving = Line(theirs, clock, serve=serve, limits=SMALL)
    running = [asyncio.ensure_future(item.run()) for item in (asking, serving)]
    talks = [await asking.open(ASK) for _ in range(3)]
    assert await talks[2].receive() is None
    assert talks[2].outcome is not None
    assert talks[2].outcome.reason == "TooManyRequests"
    assert [talk.outcome for talk in talks[:2]] == [None, None]
    await asking.close()
    await asyncio.wait(running)


async def test_a_connection_that_is_cut_ends_all_talks_and_says_so() -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        await talk.send(Channel.OUTPUT, b"so far")
        await asyncio.Event().wait()
        return WELL

    async with connected(serve) as (asking, serving):
        talk = await asking.open(ASK)
        await settled()
        await serving.close()
        assert await taken(talk) == b"so far"
        assert talk.outcome is not None
        assert talk.outcome.reason == "ServiceUnavailable"
        with pytest.raises(TalkEnded, match="was cut"):
            await asking.open(ASK)


async def test_a_talk_on_which_nothing_is_said_for_long_is_ended() -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        while (await talk.receive()) is not None:
            pass
        return WELL

    clock = VirtualClock()
    async with connected(serve, limits=SMALL, clock=clock) as (asking, _):
        quiet, busy = [await asking.open(ASK) for _ in range(2)]
        await settled()
        for _ in range(12):
            await clock.advance(10)
            await busy.send(Channel.INPUT, b"still here")
            await settled()
        assert quiet.outcome is not None
        assert quiet.outcome.reason == "Timeout"
        assert busy.outcome is None


async def test_an_answer_that_fails_is_an_outcome_and_harms_no_other() -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        if ask.work == "broken":
            raise RuntimeError("a bug")
        return WELL

    async with connected(serve) as (asking, _):
        broken = await asking.open(Ask(kind="log", work="broken"))
        assert await broken.receive() is None
        assert broken.outcome is not None
        assert broken.outcome.reason == "InternalError"
        other = await asking.open(ASK)
        assert await other.receive() is None
        assert other.outcome == WELL


_OPENED = Frame(Kind.OPEN, 1, b'{"kind":"log","work":"w"}')
_MUCH = [frames.data(1, 0, bytes(1_500)) for _ in range(3)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([_OPENED, *_MUCH], id="more than there is room for"),
        pytest.param([_OPENED, frames.credit(1, 1)], id="room that was not taken"),
        pytest.param([_OPENED, _OPENED], id="a talk twice"),
        pytest.param([Frame(Kind.OPEN, 1, b"{}")], id="a question without what is asked"),
        pytest.param([_OPENED, Frame(Kind.DATA, 1)], id="bytes of no channel"),
        pytest.param([_OPENED, Frame(Kind.CLOSE, 1, b"x")], id="an end without an outcome"),
    ],
)
async def test_a_side_that_keeps_no_limit_loses_its_line(said: list[Frame]) -> None:
    async def serve(ask: Ask, talk: Talk) -> Outcome:
        await asyncio.Event().wait()
        return WELL

    ours, theirs = memory.pair()
    serving = Line(theirs, VirtualClock(), serve=serve, limits=SMALL)
    running = asyncio.ensure_future(serving.run())
    for frame in said:
        await ours.send(frames.encode(frame))
    while await ours.receive() is not None:
        pass
    await asyncio.wait((running,))
    assert serving.count == 0


async def test_only_who_asks_may_open_talks() -> None:
    ours, theirs = memory.pair()
    asking = Line(ours, VirtualClock())
    running = asyncio.ensure_future(asking.run())
    await theirs.send(frames.encode(_OPENED))
    assert await theirs.receive() is None
    await running
