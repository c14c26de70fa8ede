"""Who leads, to the second: leases that are renewed, lost, deleted or left unanswered.

What holds on every store is told by the contract, in `tests/contracts/test_leaders.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.terms import NAME, NotLeader, Settings, Terms
from fairway.loops import end
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import LEASES


def _terms(store: EmbeddedStore, clock: VirtualClock, identity: str, **settings: object) -> Terms:
    return Terms(store, clock, Settings(identity=identity, **settings))  # type: ignore[arg-type]


async def test_who_led_once_takes_nothing_from_whoever_leads_now(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two", takes_over_at_once=True)
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    await clock.advance(0)
    await end([keeping])
    await two.campaign()
    await one.release()
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


async def test_a_deleted_lease_goes_on_above_the_highest_term_that_was_seen(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one = _terms(store, clock, "one")
    await one.campaign()
    for _ in range(5):
        await one.advance()
    await _delete(store)
    with pytest.raises(NotLeader):
        await one.advance()
    campaign = asyncio.ensure_future(one.campaign())
    await clock.advance(25)
    assert campaign.done()
    assert one.term == 7


async def test_who_never_saw_a_deleted_lease_goes_on_above_what_was_decided_under_it(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    two = Terms(store, clock, Settings(identity="two"), decided_under=lambda: 41)
    await two.campaign()
    assert two.term == 42


async def test_a_deleted_lease_is_made_anew_only_when_its_holder_must_have_ended(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two")
    await one.campaign()
    waiting = asyncio.ensure_future(two.campaign())
    await clock.advance(1)
    await _delete(store)
    await clock.advance(8)
    assert one.is_leader
    assert not waiting.done()
    await clock.advance(17)
    assert not one.is_leader
    assert two.is_leader
    assert two.term == 2


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["set forward", "set back"])
async def test_a_leadership_lasts_as_long_when_the_time_of_the_machine_is_set(
    store: EmbeddedStore, clock: VirtualClock, seconds: float
) -> None:
    one = _terms(store, clock, "one", duration_seconds=15)
    await one.campaign()
    await clock.advance(1)
    clock.step(seconds)
    await clock.advance(8)
    assert one.is_leader
    await clock.advance(2)
    assert not one.is_leader


async def test_a_follower_whose_time_is_set_forward_takes_nothing_over(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    one, two = _terms(store, clock, "one"), _terms(store, clock, "two")
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    waiting = asyncio.ensure_future(two.campaign())
    await clock.advance(4)
    clock.step(3600)
    await clock.advance(60)
    assert one.is_leader
    assert not waiting.done()
    keeping.cancel()
    waiting.cancel()


async def _delete(store: EmbeddedStore) -> None:
    await store.delete(LEASES, NAME, namespace="fairway-system", write=Write(user="somebody"))
