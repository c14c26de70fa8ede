"""Accounts: what is held, for how long, and that parts add up to the whole."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.costs.accounts import (
    DAY,
    HOUR,
    Accounts,
    Holding,
    Key,
    Sum,
    Supply,
    days_of,
    fold,
)
from fairway.core.costs.reports import (
    BY,
    hours,
    key_of,
    money,
    name_of,
    report,
    row_of,
    sum_of,
)

ZERO = Sum()
WHO = Key(use="Used", namespace="a", queue="q", workload="w", cluster="c", flavor="h100")


def total(sums: object) -> Sum:
    found = ZERO
    for total in sums:  # type: ignore[attr-defined] - any iterable of sums
        found = found.plus(total)
    return found


def test_eight_gpus_for_an_hour_and_a_half_are_twelve_gpu_hours_at_their_price() -> None:
    accounts = Accounts()
    accounts.hold("w", (Holding(key=WHO, gpus=8000, rate=20_000_000_000),), 0)
    accounts.hold("w", (), 3 * HOUR // 2)
    (one,) = accounts.sums.values()
    assert (hours(one), money(one)) == ("12.00", "30.00")


def test_what_is_held_over_midnight_belongs_to_both_days() -> None:
    accounts = Accounts()
    accounts.hold("w", (Holding(key=WHO, gpus=1000),), DAY - HOUR)
    accounts.hold("w", (), DAY + 2 * HOUR)
    assert {day: hours(total) for (day, _), total in accounts.sums.items()} == {
        0: "1.00",
        1: "2.00",
    }


def test_what_nobody_holds_is_idle_and_a_claim_makes_it_less() -> None:
    accounts = Accounts()
    accounts.supply({("c", "h100"): Supply(gpus=16_000, rate=1_000_000_000)}, 0)
    accounts.hold("w", (Holding(key=WHO, gpus=12_000, rate=12_000_000_000),), HOUR)
    accounts.read(2 * HOUR)
    idle = {key.use: total for (_, key), total in accounts.sums.items()}
    assert (hours(idle["Idle"]), money(idle["Idle"])) == ("20.00", "20.00")
    assert (hours(idle["Used"]), money(idle["Used"])) == ("12.00", "12.00")


def test_lost_work_is_counted_apart_and_does_not_change_what_was_used() -> None:
    accounts = Accounts()
    held = (Holding(key=WHO, gpus=8000, rate=8_000_000_000),)
    accounts.hold("w", held, 0)
    accounts.lose(held, HOUR // 2, HOUR)
    accounts.hold("w", (), HOUR)
    found = {key.use: hours(total) for (_, key), total in accounts.sums.items()}
    assert found == {"Used": "8.00", "Lost": "4.00"}


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    accounts = Accounts()
    accounts.hold("w", (Holding(key=WHO, gpus=1000),), HOUR)
    accounts.hold("w", (), 0)
    accounts.read(0)
    assert accounts.sums == {}


names = st.sampled_from(["", "a", "b", "c"])
keys = st.builds(
    Key,
    use=st.sampled_from(["Used", "Idle", "Lent", "Lost"]),
    namespace=names,
    team=names,
    queue=names,
    workload=names,
    cluster=names,
    flavor=names,
)
sums = st.builds(Sum, gpu_time=st.integers(0, 10**15), money=st.integers(0, 10**24))
used = st.builds(
    lambda workload, cluster, gpus, rate: Holding(
        key=replace(WHO, workload=workload, cluster=cluster), gpus=gpus, rate=rate
    ),
    st.sampled_from(["v", "w"]),
    st.sampled_from(["c", "d"]),
    st.integers(0, 4000),
    st.integers(0, 10**12),
)
events = st.lists(
    st.tuples(
        st.integers(0, DAY // 3), st.sampled_from(["one", "two"]), st.lists(used, max_size=2)
    ),
    max_size=12,
)


@given(events=events, reads=st.lists(st.integers(0, 4 * DAY), max_size=8))
def test_how_often_meters_are_read_changes_nothing(
    events: list[tuple[int, str, list[Holding]]], reads: list[int]
) -> None:
    def played(moments: list[int]) -> dict[tuple[int, Key], Sum]:
        accounts, now = Accounts(), 0
        due = sorted(moments)
        for passed, owner, holdings in events:
            now += passed
            while due and due[0] <= now:
                accounts.read(due.pop(0))
            accounts.hold(owner, tuple(holdings), now)
        accounts.read(now + DAY)
        return accounts.sums

    assert played(reads) == played([])


@given(events=events)
def test_used_and_idle_together_are_what_there_is(
    events: list[tuple[int, str, list[Holding]]],
) -> None:
    """Four owners' worth of the most that may be held is always enough."""
    accounts, now = Accounts(), 0
    supply = {(item, "h100"): Supply(gpus=16_000) for item in ("c", "d")}
    accounts.supply(supply, 0)
    for passed, owner, holdings in events:
        now += passed
        accounts.hold(owner, tuple(holdings), now)
    accounts.read(now)
    found = total(accounts.sums.values())
    assert found.gpu_time == 2 * 16_000 * now


@given(st.dictionaries(keys, sums, max_size=30))
def test_lines_of_a_report_add_up_to_the_total_whatever_it_is_grouped_by(
    given_sums: dict[Key, Sum],
) -> None:
    rows = [row_of(key, given_sum) for key, given_sum in given_sums.items()]
    whole = total(given_sums.values())
    for by in BY:
        found = report(rows, by)
        for use in ("Used", "Idle", "Lent", "Lost"):
            assert total(line.of(use) for line in found.lines) == found.total.of(use)
        assert total(found.total.sums.values()) == whole
        assert {line.name for line in found.lines} == {name_of(row, by) for row in rows}


@given(st.dictionaries(keys, sums, max_size=40), st.integers(4, 40))
def test_folding_keeps_the_sum_and_the_limit(given_sums: dict[Key, Sum], most: int) -> None:
    found = fold(given_sums, most)
    assert len(found) <= max(most, 4 + most // 2)
    assert total(found.values()) == total(given_sums.values())
    for use in ("Used", "Idle", "Lent", "Lost"):
        assert total(value for key, value in found.items() if key.use == use) == total(
            given_sum for key, given_sum in given_sums.items() if key.use == use
        )


@given(keys, sums)
def test_what_is_stored_is_read_as_it_was(key: Key, one: Sum) -> None:
    row = row_of(key, one)
    assert (key_of(row), sum_of(row)) == (key, one)


@given(st.integers(0, 10 * DAY), st.integers(0, 10 * DAY))
def test_days_of_a_stretch_add_up_to_it(since: int, passed: int) -> None:
    found = list(days_of(since, since + passed))
    assert sum(part for _, part in found) == passed
    assert all(0 < part <= DAY for _, part in found)
