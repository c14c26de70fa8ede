"""Who leads, and what fences off whoever led before."""

from __future__ import annotations

import asyncio

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.terms import NotLeader, Settings, Terms
from fairway.store.embedded.store import EmbeddedStore


def _terms(store: EmbeddedStore, clock: VirtualClock, identity: str, **settings: object) -> Terms:
    return Terms(store, clock, Settings(identity=identity, **settings))  # type: ignore[arg-type]


async def test_the_first_to_ask_leads(store: EmbeddedStore, clock: VirtualClock) -> None:
    one = _terms(store, clock, "one")
    await one.campaign()
    assert one.is_leader
    assert one.term == 1


async def test_every_batch_has_a_higher_term(store: EmbeddedStore, clock: VirtualClock) -> None:
    one = _terms(store, clock, "one")
    await one.campaign()
    assert [await one.advance() for _ in range(3)] == [2, 3, 4]


async def test_another_takes_over_only_when_the_lease_has_not_changed_for_its_duration(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two")
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    waiting = asyncio.ensure_future(two.campaign())
    await clock.advance(120)
    assert one.is_leader
    assert not waiting.done()
    keeping.cancel()
    await clock.advance(25)
    assert waiting.done()
    assert two.is_leader
    assert not one.is_leader


async def test_a_leader_that_was_paused_decides_nothing_more(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two", takes_over_at_once=True)
    await one.campaign()
    await two.campaign()
    assert one.is_leader  # it cannot know yet
    with pytest.raises(NotLeader):
        await one.advance()
    assert not one.is_leader
    assert await two.advance() > one.term


async def test_leadership_ends_by_itself_when_it_is_not_renewed(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one = _terms(store, clock, "one", duration_seconds=15)
    await one.campaign()
    await clock.advance(9)
    assert one.is_leader
    await clock.advance(1)
    assert not one.is_leader
    with pytest.raises(NotLeader):
        await one.advance()


async def test_renewing_and_advancing_at_the_same_time_is_no_conflict(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one = _terms(store, clock, "one", duration_seconds=15)
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    for _ in range(50):
        batches = asyncio.gather(one.advance(), one.advance())
        await clock.advance(1)
        await batches
    assert one.is_leader
    assert one.term == 101
    keeping.cancel()


async def test_who_finds_another_leading_ends_at_once(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two", takes_over_at_once=True)
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    await two.campaign()
    with pytest.raises(NotLeader):
        await one.advance()
    await clock.advance(0)
    assert keeping.done()


async def test_a_renewal_that_is_never_answered_does_not_prolong_the_leadership(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    class Silent:
        is_silent = False

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def update(self, *arguments: object, **options: object) -> object:
            if self.is_silent:
                await asyncio.get_running_loop().create_future()
            return await store.update(*arguments, **options)  # type: ignore[arg-type]  # passed on

    silent = Silent()
    one = _terms(silent, clock, "one", duration_seconds=15)  # type: ignore[arg-type]  # in its place
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    await clock.advance(30)
    assert not keeping.done()
    silent.is_silent = True
    await clock.advance(20)
    assert keeping.done()
