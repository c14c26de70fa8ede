"""Human-readable ages: two or three figures, as `kubectl` shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_age(seconds: float) -> str:
    """`45s`, `5m3s`, `12m`, `3h20m`, `20h`, `2d4h`, `30d`, `2y12d`.

    An age down to minus two seconds is clock skew; below that it is a mistake.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def epoch(timestamp: Any) -> float | None:
    """A Kubernetes timestamp in seconds since 1970; None if there is none."""
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def age_of(timestamp: Any, now: float) -> str:
    """How long ago a timestamp was."""
    then = epoch(timestamp)
    return "<unknown>" if then is None else human_age(now - then)
