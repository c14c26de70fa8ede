"""Trace spans as values, and the ids that they always have.

An id is computed from the UID of a workload, an attempt and a stage, so nothing is random: whoever
exports a span again, such as a hub that restarted, gives it the same ids. A trace is one workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

Value = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Value]
Outcome = Literal["", "Ok", "Error"]  # empty: neither, such as what a decision ended

LIFE = "workload"  # the root of a trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at one moment of a span."""

    at: float
    name: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to the trace of another workload."""

    uid: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """The whole life of a workload, or one stage of an attempt."""

    uid: str  # of the workload
    stage: str
    attempt: int = 0
    start: float
    end: float
    attributes: Attributes = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    events_left_out: int = 0
    links: tuple[Link, ...] = ()
    outcome: Outcome = ""
    reason: str = ""  # of an outcome that is an error

    @property
    def is_root(self) -> bool:
        return self.stage == LIFE


def trace_id(uid: str) -> bytes:
    """The id of a workload's trace."""
    return sha256(f"fairway.dev/trace/{uid}".encode()).digest()[:16]


def span_id(uid: str, attempt: int, stage: str) -> bytes:
    """The id of one span of a workload's trace."""
    return sha256(f"fairway.dev/span/{uid}/{attempt}/{stage}".encode()).digest()[:8]


def root_id(uid: str) -> bytes:
    """The id of the span of a workload's whole life."""
    return span_id(uid, 0, LIFE)
