"""Breakers: what was done in the past hour, and whether more may be."""

from __future__ import annotations

from dataclasses import replace

from fairway.api.amounts import Quantity
from fairway.api.fleet import Breakers as Limits
from fairway.controllers.breakers import Breakers, restore
from tests.controllers.lives import NOW, moment

LIMITS = Limits(moves_per_hour=3, price_per_hour=Quantity.of("2.5"))


def moved(times: int, now: float = NOW) -> Breakers:
    return Breakers().count("Moves", now, count=times)


def test_a_breaker_opens_with_the_last_that_is_allowed() -> None:
    assert not moved(2).is_open("Moves", LIMITS, NOW)
    assert moved(3).is_open("Moves", LIMITS, NOW)
    assert [moved(count).allowance("Moves", LIMITS, NOW) for count in (0, 2, 9)] == [3, 1, 0]


def test_it_closes_as_the_hour_moves_on() -> None:
    found = moved(3)
    closes = found.closes_at(LIMITS, NOW)
    assert closes is not None
    assert found.is_open("Moves", LIMITS, NOW + 3599)
    assert not found.is_open("Moves", LIMITS, closes)


def test_it_closes_when_the_limit_is_raised() -> None:
    assert not moved(3).is_open("Moves", Limits(moves_per_hour=4), NOW)


def test_without_a_limit_nothing_is_open() -> None:
    found = moved(10_000)
    assert not found.is_open("Moves", Limits(), NOW)
    assert found.allowance("Moves", Limits(), NOW) is None
    assert found.status(Limits(), NOW) == ()


def test_a_limit_of_none_at_all_is_open_from_the_start() -> None:
    assert Breakers().is_open("Moves", Limits(moves_per_hour=0), NOW)


def test_prices_add_up_exactly() -> None:
    found = Breakers()
    for _ in range(24):
        found = found.count("Price", NOW, price=Quantity.of("0.1"))
    assert not found.is_open("Price", LIMITS, NOW)
    assert found.count("Price", NOW, price=Quantity.of("0.1")).is_open("Price", LIMITS, NOW)


def test_the_status_says_since_when_it_is_open() -> None:
    found = moved(3).looked_at(LIMITS, NOW).looked_at(LIMITS, NOW + 60)
    shown = {
        item.name: (str(item.past_hour), item.open_since) for item in found.status(LIMITS, NOW)
    }
    assert shown == {"Moves": ("3", moment(NOW)), "Price": ("0", None)}


def test_a_hub_that_starts_takes_over_what_was_counted() -> None:
    before = moved(3).looked_at(LIMITS, NOW)
    after = restore(before.status(LIMITS, NOW), NOW + 60)
    assert after.is_open("Moves", LIMITS, NOW + 60)
    assert after.moves.open_since == NOW


def test_memory_is_an_hour_of_minutes() -> None:
    found = Breakers()
    for minute in range(500):
        found = found.count("Moves", NOW + 60 * minute)
    assert len(found.moves.minutes) <= 61


def test_money_counts_nodes_that_came_long_ago_and_closes_when_they_go() -> None:
    costly = replace(Breakers(), standing=Quantity.of("2.5").nanos)
    assert costly.is_open("Price", LIMITS, NOW)
    assert costly.is_open("Price", LIMITS, NOW + 100_000)
    assert not replace(costly, standing=Quantity.of("2.4").nanos).is_open("Price", LIMITS, NOW)


def test_nodes_that_were_asked_for_count_until_an_agent_has_told_of_them() -> None:
    asked = replace(Breakers(), standing=Quantity.of("1").nanos)
    asked = asked.count("Price", NOW, price=Quantity.of("1"))
    asked = asked.count("Price", NOW + 5, price=Quantity.of("1"))
    assert asked.is_open("Price", LIMITS, NOW + 5)
    told = replace(asked, standing=Quantity.of("2").nanos)
    assert Quantity(told.amount("Price", NOW + 10)) == Quantity.of("3"), "not counted twice"
    assert Quantity(told.amount("Price", NOW + 60)) == Quantity.of("2"), "one failed"
