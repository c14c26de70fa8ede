"""Conditions and timestamps of statuses, as the Kubernetes controllers write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from fairway.api.meta import JsonObject
from fairway.kinds.plain import maps_at, text


def moment(seconds: float) -> str:
    """A timestamp in the Kubernetes format, to the second."""
    return _write(int(seconds))


@lru_cache(maxsize=256)
def _write(seconds: int) -> str:
    """Cached, because many timestamps fall within one second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, *, holds: bool, since: float, reason: str, message: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastTransitionTime": moment(since),
        "reason": reason,
        "message": message,
    }


def find_condition(status: JsonObject, kind: str) -> JsonObject:
    """The condition of this type; empty if there is none."""
    matching = (
        condition for condition in maps_at(status, "conditions") if condition.get("type") == kind
    )
    return next(matching, {})


def first_true(status: JsonObject, *kinds: str) -> JsonObject:
    """The first of these condition types, in this order, that is true; else empty."""
    if not status.get("conditions"):
        return {}
    candidates = (find_condition(status, kind) for kind in kinds)
    return next((candidate for candidate in candidates if candidate.get("status") == "True"), {})


def earliest(moments: Iterable[str]) -> str:
    """The earliest timestamp; timestamps sort as strings, and empty ones are ignored."""
    return min((moment for moment in moments if moment), default="")


def latest(moments: Iterable[str]) -> str:
    return max((moment for moment in moments if moment), default="")


def first_of(statuses: Sequence[JsonObject], kind: str) -> JsonObject:
    """The earliest true condition of this type in any of these statuses."""
    candidates = [entry for entry in (first_true(status, kind) for status in statuses) if entry]
    return min(candidates, key=lambda candidate: text(candidate, "lastTransitionTime"), default={})


def last_of(statuses: Sequence[JsonObject], kind: str) -> JsonObject:
    """The latest condition of this type, if it is true in all of these statuses."""
    candidates = [first_true(status, kind) for status in statuses]
    if not candidates or not all(candidates):
        return {}
    return max(candidates, key=lambda candidate: text(candidate, "lastTransitionTime"))
