"""Structured logs: a line of text for terminals, or a line of JSON on request.

A record is a short sentence and named fields:

    log.info("listening", extra=fields(address="127.0.0.1", port=8001))

Both forms are redacted at the very end, tracebacks included, so that no module and no library can
log a token by mistake.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

from fairway.clock import micro_timestamp
from fairway.disks import is_full
from fairway.server.access.redaction import redact

_FULL_DISK_SECONDS = 60.0

# A line break could look like another record; an escape sequence could control the terminal.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127)}


def fields(**named: Any) -> dict[str, Any]:
    """Named values of a record, for `extra`."""
    return {"fields": named}


class TextFormatter(logging.Formatter):
    """One line of text: `time LEVEL logger: sentence key=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        named = "".join(f" {key}={_show(value)}" for key, value in _fields(record).items())
        time = micro_timestamp(record.created)
        sentence = record.getMessage().translate(_CONTROLS)
        line = f"{time} {record.levelname:<7} {record.name}: {sentence}{named}"
        trace = _trace(self, record)
        return _writable(redact(f"{line}\n{trace}" if trace else line))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": micro_timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **{key: _plain(value) for key, value in _fields(record).items()},
        }
        trace = _trace(self, record)
        if trace:
            entry["trace"] = redact(trace)
        # A lone surrogate is not valid JSON, not even as an escape.
        return json.dumps(entry, ensure_ascii=False).encode(errors="replace").decode()


class Sparing(logging.Filter):
    """Lets each logger report a full disk at most once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._told_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        said = [*record.args] if isinstance(record.args, tuple) else [record.args]
        fault = record.exc_info[1] if record.exc_info else None
        if not any(is_full(item) for item in (*said, fault)):
            return True
        if record.created - self._told_at.get(record.name, -math.inf) < _FULL_DISK_SECONDS:
            return False
        self._told_at[record.name] = record.created
        return True


def configure(
    form: Literal["text", "json"] = "text",
    *,
    level: str = "INFO",
    stream: TextIO | None = None,
) -> logging.Handler:
    """Makes this the process's only log; returns the handler, for tests to remove."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(Sparing())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # The access log of the HTTP library repeats ours, with less detail.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    return handler


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    result = getattr(record, "fields", None)
    return result if isinstance(result, Mapping) else {}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | bool | None) else redact(str(value))


def _show(value: Any) -> str:
    text = str(value)
    if text.isprintable() and text and not any(name in ' "=' for name in text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _writable(text: str) -> str:
    """The text with invalid text (bytes of a client's header) written as escapes."""
    return text.encode(errors="backslashreplace").decode()
