"""A talk that is carried on: what is said on one goes over another, and back.

Each side of it has its own room, so whoever reads slowly slows down the whole way and fills nothing
on it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fairway.loops import end
from fairway.streams.line import Talk
from fairway.streams.requests import WELL, Outcome, TalkEnded


async def relay(asked: Talk, answering: Talk) -> Outcome:
    """Carries a talk on until whoever answers is done; how that ended.

    Cancelled, as it is once whoever asked has gone, it ends what was done for them.
    """
    upward = asyncio.ensure_future(_carry(asked, answering))
    try:
        await _carry(answering, asked)
    finally:
        await answering.close()
        await end([upward])
    return answering.outcome or WELL


async def _carry(source: Talk, target: Talk) -> None:
    with suppress(TalkEnded):
        while (received := await source.receive()) is not None:
            channel, content = received
            await (target.send(channel, content) if content else target.end(channel))
