"""When a schedule was last due: cron's five fields, on a calendar without time zones.

    minute hour day-of-month month day-of-week          30 8 * * 1-5

Fields are `*`, numbers, names of months and days, ranges, lists and steps, as cron and Kubernetes'
CronJob read them; `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are the usual
shorthands. Where both days are restricted one of them suffices, as in cron.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
# A 29th of February on one day of the week returns after 40 years at the latest.
_DAYS_MOST = 366 * 41


class CronFault(ValueError):
    """Text that is not a schedule, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A schedule, as the numbers that its fields allow."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    is_either_day: bool  # whether both days are restricted, so that one suffices

    def last(self, now: datetime) -> datetime | None:
        """The latest moment at or before `now`; None if it is never due, as on 30 February."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_DAYS_MOST):
            if self._is_on(day):
                for hour in reversed(self.hours):
                    for minute in reversed(self.minutes):
                        due = day.replace(hour=hour, minute=minute)
                        if due <= now:
                            return due
            day -= timedelta(days=1)
        return None

    def next(self, now: datetime) -> datetime | None:
        """The earliest moment after `now`."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_DAYS_MOST):
            if self._is_on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        due = day.replace(hour=hour, minute=minute)
                        if due > now:
                            return due
            day += timedelta(days=1)
        return None

    def _is_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_date = day.day in self.days
        by_week = day.isoweekday() % 7 in self.weekdays
        return by_date or by_week if self.is_either_day else by_date and by_week


def parse(text: str) -> Cron:
    """A schedule; CronFault if the text is not one."""
    words = _MACROS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise CronFault(f"{text!r} has {len(words)} fields, and cron has {len(_FIELDS)}")
    result = [
        frozenset(_numbers(word, name, least, most, names))
        for word, (name, least, most, names) in zip(words, _FIELDS, strict=True)
    ]
    minutes, hours, days, months, weekdays = result
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(weekday % 7 for weekday in weekdays),
        is_either_day=not (words[2].startswith(("*", "?")) or words[4].startswith(("*", "?"))),
    )


def _numbers(word: str, name: str, least: int, most: int, names: tuple[str, ...]) -> Iterator[int]:
    """What one field allows."""
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            low, high = least, most
        else:
            low = _number(first, name, least, most, names)
            high = _number(last, name, least, most, names) if dash else low
            if slash and not dash:
                high = most
        if slash and not (step.isdigit() and int(step) > 0):
            raise CronFault(f"the step {step!r} of the {name} is no positive number")
        if low > high:
            raise CronFault(f"the range {span!r} of the {name} goes backwards")
        yield from range(low, high + 1, int(step) if slash else 1)


def _number(text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> int:
    lowered = text.lower()
    if lowered in names:
        return names.index(lowered) + least
    if not (text.isascii() and text.isdigit()):
        raise CronFault(f"{text!r} is no {name}")
    if not least <= int(text) <= most:
        raise CronFault(f"the {name} {text} is not between {least} and {most}")
    return int(text)
