"""When a schedule was last due, and when it will be next."""

from __future__ import annotations

from datetime import datetime

import pytest

from fairway.serving.scaling.cron import CronFault, parse

SUNDAY = datetime.fromisoformat("2026-11-15T15:20:30")


@pytest.mark.parametrize(
    ("text", "last", "following"),
    [
        ("* * * * *", "2026-11-15 15:20", "2026-11-15 15:21"),
        ("30 8 * * 1-5", "2026-11-13 08:30", "2026-11-16 08:30"),
        ("30 8 * * MON-FRI", "2026-11-13 08:30", "2026-11-16 08:30"),
        ("*/15 9-17/4 * * *", "2026-11-15 13:45", "2026-11-15 17:00"),
        ("5/20 * * * *", "2026-11-15 15:05", "2026-11-15 15:25"),
        ("0 0 1,15 * *", "2026-11-15 00:00", "2026-12-01 00:00"),
        ("0 0 29 2 *", "2024-02-29 00:00", "2028-02-29 00:00"),
        ("0 0 13 * 5", "2026-11-13 00:00", "2026-11-20 00:00"),
        ("0 12 * * 7", "2026-11-15 12:00", "2026-11-22 12:00"),
        ("0 12 * jan *", "2026-01-31 12:00", "2027-01-01 12:00"),
        ("@daily", "2026-11-15 00:00", "2026-11-16 00:00"),
        ("@yearly", "2026-01-01 00:00", "2027-01-01 00:00"),
    ],
)
def test_a_schedule_is_due(text: str, last: str, following: str) -> None:
    cron = parse(text)
    assert f"{cron.last(SUNDAY):%Y-%m-%d %H:%M}" == last
    assert f"{cron.next(SUNDAY):%Y-%m-%d %H:%M}" == following


def test_a_schedule_is_due_at_its_very_moment() -> None:
    at = datetime.fromisoformat("2026-11-15T08:30")
    assert parse("30 8 * * *").last(at) == at


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse("0 0 30 2 *").last(SUNDAY) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * *", "has 4 fields, and cron has 5"),
        ("60 * * * *", "the minute 60 is not between 0 and 59"),
        ("* * * * mondays", "'mondays' is no day of week"),
        ("*/0 * * * *", "the step '0' of the minute is no positive number"),
        ("30-10 * * * *", "the range '30-10' of the minute goes backwards"),
        ("@often", "has 1 fields"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(CronFault, match=why):
        parse(text)
