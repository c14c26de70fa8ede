"""Ages in two figures at most: 42s, 5m12s, 3h, 12d."""

from __future__ import annotations

import time

from fairway.clock import parse_timestamp


def since(stamp: str | None, now: float | None = None) -> str:
    """The age of a timestamp."""
    if not stamp:
        return "<unknown>"
    try:
        then = parse_timestamp(stamp)
    except ValueError:
        return "<invalid>"
    return span((time.time() if now is None else now) - then)


def span(seconds: float) -> str:
    """A duration, rounded more the longer it is."""
    whole = max(int(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days % 365 else f"{days // 365}y"
