"""The parameters of questions, parsed and bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairway.api.errors import BadRequest
from fairway.server.objects import Call
from fairway.server.wire.exchange import Request

_DECISIONS = 100
_DECISIONS_MOST = 5_000
_PODS = 500
_PODS_MOST = 2_000
_SPANS = 100
_SPANS_MOST = 1_000
_HOUR = 3600.0
_FROM_NOW_BELOW = 1e8  # smaller times are seconds from now
_SECONDS_MOST = 1e12
_DIGITS_MOST = 16
_SHOWN = 40  # characters of an invalid value


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """Which pod of a workload, and for which user."""

    namespace: str
    name: str
    cluster: str = ""  # empty: where it runs, or ran last
    pod: str = ""
    container: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest(PodRequest):
    """Which part of a pod's log."""

    follow: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    is_previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """Which part of the timeline; times below a hundred million are seconds from now."""

    by: Literal["cluster", "queue"] = "cluster"
    start: float = -_HOUR
    end: float = _HOUR / 4
    most: int = _SPANS  # spans of a group that are listed one by one

    def between(self, now: float) -> tuple[float, float]:
        """The start and end times."""
        start, end = (
            now + number if abs(number) < _FROM_NOW_BELOW else number
            for number in (self.start, self.end)
        )
        if not start < end:
            raise BadRequest("from: expected a moment before to")
        return start, end


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsRequest(PodRequest):
    """Which page of a workload's pods."""

    most: int
    after: str = ""  # the continue token of an earlier page


def pods_of(call: Call) -> PodsRequest:
    most = min(whole_number(call.request, "limit") or _PODS, _PODS_MOST)
    return PodsRequest(**pod_of(call), most=most, after=call.request.parameter("continue"))


def log_of(call: Call) -> LogRequest:
    request = call.request
    return LogRequest(
        **pod_of(call),
        follow=bool(request.flag("follow")),
        tail_lines=whole_number(request, "tailLines"),
        since_seconds=whole_number(request, "sinceSeconds"),
        is_previous=bool(request.flag("previous")),
    )


def decisions_of(request: Request) -> tuple[str, int]:
    """The workload, empty for all; and the limit."""
    most = min(whole_number(request, "limit") or _DECISIONS, _DECISIONS_MOST)
    return request.parameter("workload"), most


def pod_of(call: Call) -> dict[str, Any]:
    """Which pod a request names, and its user."""
    request = call.request
    return {
        "namespace": call.namespace,
        "name": call.target.name,
        "cluster": request.parameter("cluster"),
        "pod": request.parameter("pod"),
        "container": request.parameter("container"),
        "user": call.identity.user,
        "groups": tuple(call.identity.groups),
    }


def timeline_of(request: Request) -> TimelineRequest:
    plain = TimelineRequest()
    by = request.parameter("by") or plain.by
    if by not in ("cluster", "queue"):
        raise BadRequest(f"by: expected cluster or queue, got {by!r}")
    most = whole_number(request, "most")
    return TimelineRequest(
        by="queue" if by == "queue" else "cluster",
        start=_seconds(request, "from", plain.start),
        end=_seconds(request, "to", plain.end),
        most=plain.most if most is None else min(most, _SPANS_MOST),
    )


def _seconds(request: Request, name: str, default: float) -> float:
    text = request.parameter(name)
    try:
        result = float(text) if text else default
    except ValueError:
        result = float("nan")
    if not abs(result) < _SECONDS_MOST:
        raise BadRequest(f"{name}: expected seconds, got {text[:_SHOWN]!r}")
    return result


def whole_number(
    request: Request, name: str, *, least: int = 0, most: int | None = None
) -> int | None:
    """A numeric parameter; None: not given."""
    text = request.parameter(name)
    if not text:
        return None
    number = int(text) if text.isdecimal() and len(text) <= _DIGITS_MOST else -1
    if number < least or (most is not None and number > most):
        within = "" if most is None else f" from {least} to {most}"
        raise BadRequest(f"{name}: expected a whole number{within}, got {text[:_SHOWN]!r}")
    return number
