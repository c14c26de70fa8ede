"""A stranger with many invented tokens does not keep others from having theirs verified."""

from __future__ import annotations

import asyncio

from fairway.clock import VirtualClock
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.token_review import Vouching


async def test_tokens_of_one_address_wait_for_each_other_and_others_do_not() -> None:
    asked: list[str] = []
    answers = asyncio.Event()

    async def vouch(token: str) -> Identity | None:
        asked.append(token)
        if token == "u.s.er":
            return authenticated_identity("ada")
        await answers.wait()
        return None

    vouching = Vouching(vouch, VirtualClock())
    flood = [
        asyncio.ensure_future(vouching.identity(f"a.b.{number}", "10.0.0.1"))
        for number in range(100)
    ]
    await asyncio.sleep(0)
    assert len(asked) == 4
    assert await vouching.identity("u.s.er", "10.0.0.2") == authenticated_identity("ada")
    answers.set()
    assert await asyncio.gather(*flood) == [None] * 100
