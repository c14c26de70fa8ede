"""Maps whose values become timestamps or durations.

Rules see a field of format `date-time` as a timestamp. `conversion` writes that into the expression
itself; for a map of such values it needs a function that CEL lacks.
"""

from __future__ import annotations

import datetime
import re

from fairway.schema.cel.declared import Declared, function

TIMESTAMPS, DATES, DURATIONS = "fairway.timestamps", "fairway.dates", "fairway.durations"

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _timestamp(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _midnight(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def _duration(text: str) -> datetime.timedelta:
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    parts = _PART.findall(body)
    if "".join(number + unit for number, unit in parts) != body or not body:
        raise ValueError(f"{text!r} is not a duration such as 1h30m")
    return datetime.timedelta(
        seconds=sign * sum(float(number) * _SECONDS[unit] for number, unit in parts)
    )


FUNCTIONS: tuple[Declared, ...] = (
    function(
        TIMESTAMPS, ("map",), "map<string,timestamp>",
        lambda texts: {key: _timestamp(text) for key, text in texts.items()},
    ),
    function(
        DATES, ("map",), "map<string,timestamp>",
        lambda texts: {key: _midnight(text) for key, text in texts.items()},
    ),
    function(
        DURATIONS, ("map",), "map<string,duration>",
        lambda texts: {key: _duration(text) for key, text in texts.items()},
    ),
)  # fmt: skip
