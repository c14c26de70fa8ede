"""The collector that traces are sent to, if the hub was given one.

Headers are read from a file for each request, since a token in it may be replaced at any time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from fairway.clock import Clock
from fairway.server.access.private_files import RefusedFile, read_private
from fairway.tracing.collector import Address, Headers, OtlpCollector

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # of a header, by RFC 9110
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_BYTES_MOST = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Where traces are sent; nowhere without a URL."""

    url: str = ""
    headers: Headers = field(default=(), repr=False)
    headers_file: Path | None = None
    authority_file: Path | None = None  # PEM certificates to trust instead of the system's

    def read_headers(self) -> Headers:
        """All headers, as they are now; ValueError or OSError if they cannot be read."""
        return (*self.headers, *(headers_in(self.headers_file) if self.headers_file else ()))


def open_collector(options: TraceOptions, clock: Clock) -> OtlpCollector | None:
    """The collector; a faulty file is a fault now, and not when the first trace is sent."""
    if not options.url:
        return None
    options.read_headers()
    authority = options.authority_file.read_bytes() if options.authority_file else b""
    address = Address(url=options.url, headers=options.read_headers, authority=authority)
    return OtlpCollector(address, clock)


def headers_in(path: Path) -> Headers:
    """The headers in a file that only its owner can read: `Name: value`, one on each line."""
    try:
        text = read_private(path)[:_BYTES_MOST].decode("latin-1")
    except RefusedFile as fault:
        raise ValueError(str(fault)) from fault
    lines = (line.strip() for line in text.splitlines())
    return tuple(header(*_split(line, path)) for line in lines if line and not line.startswith("#"))


def header(name: str, value: str) -> tuple[str, str]:
    """A header; ValueError if it is none. Its value is a secret and is not shown."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise ValueError(f"{name!r} is not a header, or its value has other signs than text")
    return name, value


def _split(line: str, path: Path) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError(f"a line of {path} has no colon; expected Name: value")
    return name.strip(), value.strip()
