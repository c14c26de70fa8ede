"""What a scorer measures, as plain data, and what may carry it out.

A `Measurement` is a query to a Prometheus, an HTTP scorer or a file of values. It is plain data, so
that a hub can hand it to the agent of a cluster, which carries it out where the servers are
reached. What it yields are samples: finite numbers with labels. `measuring.py` carries it out.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import Protocol

import msgspec

from fairway.metrics.interface import Address, Refused, Sample

SAMPLES_MAX = 10_000


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A range query that ends now."""

    query: str
    range_seconds: float
    step_seconds: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of: a query to `server`; a `scorer`, or its `config`; a `file`."""

    seconds: float  # after which it fails
    query: str = ""
    server: Address | None = None  # a Prometheus
    scorer: Address | None = None
    config: Address | None = None
    series: tuple[Asked, ...] = ()
    file: Address | None = None


class Measurer(Protocol):
    """Carries out measurements."""

    async def measure(self, measurement: Measurement, cluster: str = "") -> tuple[Sample, ...]:
        """What the hub measured, or the agent of a cluster; MetricsFault if it could not."""
        ...


class NoMeasurer:
    """For a hub that reaches neither servers nor agents."""

    async def measure(self, measurement: Measurement, cluster: str = "") -> tuple[Sample, ...]:
        raise Refused("this hub measures nothing for scorers")


def read_values(content: bytes, now: float) -> Iterator[Sample]:
    """The rows of a CSV file with a header; columns but `value` are labels."""
    try:
        rows = csv.DictReader(io.StringIO(content.decode()), strict=True, skipinitialspace=True)
        if "value" not in (rows.fieldnames or ()):
            raise Refused("the file has no column named value")
        for count, row in enumerate(rows, start=1):
            confirm_number(count, "the file")
            yield _row(row, rows.line_num, now)
    except (UnicodeDecodeError, csv.Error) as fault:
        raise Refused(f"the file is not CSV: {fault}") from fault


def _row(row: dict[str, str | None], line: int, now: float) -> Sample:
    text = row.get("value") or ""
    try:
        value = float(text)
    except ValueError as fault:
        raise Refused(f"line {line} of the file: {text!r} is not a number") from fault
    if not math.isfinite(value):
        raise Refused(f"line {line} of the file: {text!r} is not a finite number")
    labels = {key: given for key, given in row.items() if key and key != "value" and given}
    return Sample(value=value, at=now, labels=labels)


def confirm_number(count: int, whose: str) -> None:
    if count > SAMPLES_MAX:
        raise Refused(f"{whose} has more than {SAMPLES_MAX} values")
