"""A caller that floods a hub is refused with 429 and told when to come again; others are not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairway.api.errors import TooManyRequests
from fairway.clock import VirtualClock
from fairway.server.access.fairness import (
    EXEMPT,
    WEBHOOKS,
    Caller,
    CallerSeat,
    Fairness,
    Level,
    Shares,
    caller_of,
)
from fairway.server.access.identity import ANONYMOUS, MASTERS, Identity
from tests.attack.hubs import PATH, Answer, attacked, few
from tests.waiting import seen

SMALL = Shares(users=few(), strangers=few(), patience_seconds=0)
ADA = Caller(level=Level.USERS, name="ada")
EVE = Caller(level=Level.USERS, name="eve")


def fairness(clock: VirtualClock, shares: Shares) -> Fairness:
    return Fairness(clock, shares, refused=lambda _: None)


async def seat(gate: Fairness, caller: Caller) -> CallerSeat:
    taken = await gate.enter(caller)
    assert taken is not None
    return taken


async def test_the_fourth_request_of_three_is_refused_and_another_user_passes(
    tmp_path: Path,
) -> None:
    async with attacked(tmp_path, shares=SMALL) as target:
        for _ in range(3):  # each has a seat until its body comes, which it never does
            slow = await target.caller()
            slow.send("eve", "POST", PATH, "Content-Type: application/json", "Content-Length: 9")
        caller = await target.caller()

        async def read_as_eve() -> Answer:
            return await caller.call("eve", "GET", PATH)

        refused = await seen(read_as_eve, lambda answer: answer.status != 200, "no seat is left")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert b"too many requests of eve" in refused.body
        assert (await caller.call("ada", "GET", PATH)).status == 200
        assert (await caller.call("root", "GET", PATH)).status == 200
        for slow in target.callers[:3]:
            slow.leave()
        await seen(read_as_eve, lambda answer: answer.status == 200, "a seat that was left")


async def test_watches_are_counted_separately(tmp_path: Path) -> None:
    async with attacked(tmp_path, shares=SMALL) as target:
        watchers = [await target.caller() for _ in range(4)]
        for watcher in watchers:
            watcher.send("eve", "GET", f"{PATH}?watch=true")
        statuses = sorted([(await watcher.head()).status for watcher in watchers])
        assert statuses == [200, 200, 200, 429]
        caller = await target.caller()
        assert (await caller.call("eve", "GET", PATH)).status == 200
        for watcher in watchers:
            watcher.leave()

        async def watch() -> Answer:
            again = await target.caller()
            again.send("eve", "GET", f"{PATH}?watch=true")
            return await again.head()

        await seen(watch, lambda answer: answer.status == 200, "a watch after others ended")


async def test_a_flood_of_strangers_refuses_neither_users_nor_probes(tmp_path: Path) -> None:
    shares = Shares(strangers=few(burst=2, per_second=0.001), patience_seconds=0)
    async with attacked(tmp_path, shares=shares) as target:
        caller = await target.caller()
        statuses = [(await caller.call("", "GET", PATH)).status for _ in range(4)]
        assert statuses == [403, 403, 429, 429]
        # A token that does not hold makes no caller of its own.
        assert (await caller.call("invented", "GET", PATH)).status == 429
        assert (await caller.call("ada", "GET", PATH)).status == 200
        assert (await caller.call("", "GET", "/livez")).status == 200
        elsewhere = await target.caller(source="127.0.0.2")
        assert (await elsewhere.call("", "GET", PATH)).status == 403


async def test_a_body_is_read_only_of_callers_with_rights(tmp_path: Path) -> None:
    async with attacked(tmp_path) as target:
        caller = await target.caller()
        caller.send("", "POST", PATH, "Content-Type: application/json", "Content-Length: 1000000")
        assert (await caller.head()).status == 403


async def test_after_a_burst_there_is_a_rate() -> None:
    clock = VirtualClock()
    gate = fairness(clock, Shares(users=few(burst=5, per_second=2), patience_seconds=0))
    for _ in range(5):
        (await seat(gate, EVE)).leave()
    with pytest.raises(TooManyRequests) as refused:
        await gate.enter(EVE)
    assert refused.value.details["retryAfterSeconds"] == 1
    (await seat(gate, ADA)).leave()
    await clock.advance(1.0)
    for _ in range(2):
        (await seat(gate, EVE)).leave()
    with pytest.raises(TooManyRequests):
        await gate.enter(EVE)


async def test_large_answers_cost_more_and_the_debt_has_an_end() -> None:
    clock = VirtualClock()
    gate = fairness(clock, Shares(users=few(burst=10, per_second=2), patience_seconds=0))
    taken = await seat(gate, EVE)
    taken.charge(1 << 30)
    taken.leave()
    with pytest.raises(TooManyRequests) as refused:
        await gate.enter(EVE)
    assert refused.value.details["retryAfterSeconds"] == 10
    await clock.advance(10.0)
    (await seat(gate, EVE)).leave()


async def test_requests_over_the_rate_come_evenly_and_no_later_than_a_moment() -> None:
    clock = VirtualClock()
    gate = fairness(clock, Shares(users=few(at_once=9, burst=1, per_second=4)))
    first, *waiting = [asyncio.ensure_future(gate.enter(EVE)) for _ in range(4)]
    await clock.advance(0.0)
    assert first.done()
    for number in range(2):
        assert [task.done() for task in waiting] == [place < number for place in range(3)]
        await clock.advance(0.25)
    assert [task.done() for task in waiting] == [True, True, True]
    with pytest.raises(TooManyRequests):
        waiting[2].result()


async def test_a_refusal_comes_after_a_moment_and_a_seat_in_it_is_taken() -> None:
    clock = VirtualClock()
    gate = fairness(clock, Shares(users=few(at_once=1), patience_seconds=0.5))
    taken = await seat(gate, EVE)
    patient, refused = (asyncio.ensure_future(gate.enter(EVE)) for _ in range(2))
    await clock.advance(0.4)
    assert not patient.done()
    taken.leave()
    await clock.advance(0.2)
    assert patient.result() is not None
    with pytest.raises(TooManyRequests):
        refused.result()


async def test_a_full_level_is_shared_evenly() -> None:
    gate = fairness(VirtualClock(), Shares(users=few(at_once=8, all_at_once=8), patience_seconds=0))
    floods = [await seat(gate, EVE) for _ in range(8)]
    fair = [await seat(gate, ADA) for _ in range(4)]
    with pytest.raises(TooManyRequests):
        await gate.enter(ADA)
    for one in floods[:5]:
        one.leave()
    fair.append(await seat(gate, ADA))
    for one in [*floods, *fair]:
        one.leave()
    for _ in range(8):
        await seat(gate, EVE)


@pytest.mark.parametrize(
    ("identity", "level"),
    [
        (None, Level.STRANGERS),
        (ANONYMOUS, Level.STRANGERS),
        (Identity(user="ada"), Level.USERS),
        (Identity(user="system:serviceaccount:vision:bot"), Level.USERS),
        (Identity(user="system:serviceaccount:fairway-cluster-a:fairway-agent"), Level.AGENTS),
        (Identity(user="system:serviceaccount:kube-system:generic"), Level.SYSTEM),
        (Identity(user="system:kube-controller-manager"), Level.SYSTEM),
        (Identity(user="admin", groups=(MASTERS,)), Level.EXEMPT),
    ],
)
def test_levels(identity: Identity | None, level: Level) -> None:
    assert caller_of(identity, "10.0.0.1").level is level


def test_a_network_of_ipv6_counts_as_one_stranger() -> None:
    names = [caller_of(None, address).name for address in ("2001:db8::1", "2001:db8::2:3")]
    assert names == ["2001:db8::/64"] * 2
    assert caller_of(None, "::ffff:10.0.0.1").name == "10.0.0.1"
    assert caller_of(None, "2001:db8:0:1::1").name != names[0]


async def test_agents_and_webhooks_do_not_wait_for_users() -> None:
    gate = fairness(VirtualClock(), Shares(users=few(burst=1), patience_seconds=0))
    await seat(gate, EVE)
    with pytest.raises(TooManyRequests):
        await gate.enter(EVE)
    assert await gate.enter(EXEMPT) is None
    for caller in (WEBHOOKS, Caller(level=Level.AGENTS, name="a")):
        await seat(gate, caller)
