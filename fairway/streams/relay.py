"""Forwards a talk over another: bytes go from one to the other, and back.

Each of the two talks has its own window, so a slow reader slows down the whole path and fills no
buffer on it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fairway.loops import end
from fairway.streams.line import Talk
from fairway.streams.requests import WELL, Outcome, TalkEnded


async def relay(asked: Talk, answering: Talk) -> Outcome:
    """Forwards a talk until the answering side is done; returns the outcome of that side.

    It is cancelled once the asking side has gone, and then ends the answering talk.
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
