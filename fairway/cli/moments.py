"""Times and durations for people, in their own time zone."""

from __future__ import annotations

from datetime import datetime

from fairway.cli import ages
from fairway.clock import parse_timestamp


def clock(moment: float, now: float) -> str:
    """`14:05`, with the date if it is another day."""
    at, today = _local(moment), _local(now)
    return at.strftime("%H:%M" if at.date() == today.date() else "%Y-%m-%d %H:%M")


def stamp(moment: float | str | None) -> str:
    """`2026-05-01 14:05:09`; empty if there is none."""
    if moment is None or moment == "":
        return ""
    seconds = parse_timestamp(moment) if isinstance(moment, str) else float(moment)
    return _local(seconds).strftime("%Y-%m-%d %H:%M:%S")


def margin(seconds: float) -> str:
    return f" ± {ages.span(seconds)}" if seconds >= 1 else ""


def between(start: str | None, end: str | None) -> str:
    """The duration between two timestamps."""
    if not start or not end:
        return ""
    return ages.span(parse_timestamp(end) - parse_timestamp(start))


def _local(moment: float) -> datetime:
    return datetime.fromtimestamp(moment).astimezone()
