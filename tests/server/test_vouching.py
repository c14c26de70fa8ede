"""Another server vouches for tokens: seldom asked, soon forgotten, and never about nonsense."""

from __future__ import annotations

import asyncio

import pytest

from fairway.clock import VirtualClock
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.token_review import Vouching


class Server:
    """Knows some tokens."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = set(tokens)
        self.asked: list[str] = []
        self.at_a_time = self.most_at_a_time = 0

    async def vouch(self, token: str) -> Identity | None:
        self.asked.append(token)
        self.at_a_time += 1
        self.most_at_a_time = max(self.most_at_a_time, self.at_a_time)
        await asyncio.sleep(0)
        self.at_a_time -= 1
        return authenticated_identity("agent") if token in self.tokens else None


async def test_an_answer_holds_for_a_minute_and_no_longer() -> None:
    server, clock = Server("a.b.c"), VirtualClock()
    vouching = Vouching(server.vouch, clock)
    assert await vouching.identity("a.b.c") == authenticated_identity("agent")
    assert await vouching.identity("x.y.z") is None
    server.tokens.clear()
    await clock.advance(59)
    assert await vouching.identity("a.b.c") is not None
    assert await vouching.identity("x.y.z") is None
    assert server.asked == ["a.b.c", "x.y.z"]
    await clock.advance(2)
    assert await vouching.identity("a.b.c") is None


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("secret", id="not signed"),
        pytest.param("a.b.c.d", id="of too many parts"),
        pytest.param("a.b." + "c" * 20_000, id="too long"),
    ],
)
async def test_nobody_is_asked_about_what_cannot_be_a_token(token: str) -> None:
    server = Server(token)
    assert await Vouching(server.vouch, VirtualClock()).identity(token) is None
    assert server.asked == []


async def test_few_questions_are_asked_at_a_time() -> None:
    server = Server()
    vouching = Vouching(server.vouch, VirtualClock())
    await asyncio.gather(*(vouching.identity(f"a.b.{at}", f"10.0.0.{at}") for at in range(100)))
    assert (len(server.asked), server.most_at_a_time) == (100, 8)
