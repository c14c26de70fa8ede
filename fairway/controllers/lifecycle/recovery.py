"""Why a work failed, what is to blame, and what to do about it: causes.yaml, read once.

A failure is judged by what the cluster reported and by earlier attempts: an image that one cluster
cannot pull is that cluster's fault, one that no cluster can pull is the workload's. A retry waits
for a backoff that doubles with each consecutive failure, up to a limit; an attempt that ran for as
long as the longest backoff resets it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import msgspec
import yaml

from fairway.api.claim import PastAttempt
from fairway.api.fleet import Retry
from fairway.api.meta import Part

Blame = Literal["Place", "Program", "Decision", "Unknown"]
Retried = Literal["Always", "IfAsked", "Never"]
# Clusters in which a failure must occur before the workload is blamed instead of the place.
_CLUSTERS_AGREE = 2


class _Match(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reasons: tuple[str, ...] = ()
    message: str = ""
    exits: tuple[int, ...] = ()


class _Otherwise(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs if it happened before; unset: no difference."""

    blame: Blame | None = None
    retry: Retried | None = None
    avoid: bool | None = None


class Cause(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the table."""

    cause: str
    says: str
    when: tuple[_Match, ...]
    blame: Blame
    retry: Retried
    counted: bool = True
    avoid: bool = False
    node_aside: int = 0
    at_once: bool = False
    again: _Otherwise = _Otherwise()
    everywhere: _Otherwise = _Otherwise()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a cluster reported about a failed placement."""

    clusters: tuple[str, ...]
    reason: str = ""
    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureVerdict:
    """What to do about a failure."""

    cause: str
    blame: Blame
    is_retried: bool
    is_counted: bool = True
    avoids_cluster: bool = False
    node_aside_seconds: int = 0
    waits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the verdict depends on besides the failure itself."""

    history: Sequence[PastAttempt] = field(default=())
    has_own_retry: bool = False  # whether the workload has its own retry settings


@lru_cache(maxsize=1)
def causes() -> tuple[Cause, ...]:
    """The table, in the order in which it is searched."""
    text = (resources.files(__package__) / "causes.yaml").read_text()
    plain: Any = yaml.safe_load(text)
    return msgspec.convert(plain, tuple[Cause, ...])


def sentences() -> Mapping[str, str]:
    """Each cause in English."""
    return {cause.cause: cause.says for cause in causes()}


def cause_of(failure: Failure) -> Cause:
    """The first cause of the table that matches; the last matches everything."""
    return next(cause for cause in causes() if any(_matches(each, failure) for each in cause.when))


def _matches(match: _Match, failure: Failure) -> bool:
    if match.reasons and _plain(failure.reason) not in map(_plain, match.reasons):
        return False
    if match.exits and failure.exit_code not in match.exits:
        return False
    return not match.message or _pattern(match.message).search(failure.message) is not None


@lru_cache(maxsize=1024)
def _plain(reason: str) -> str:
    """A reason as reports have it: letters and digits only."""
    return "".join(name for name in reason if name.isalnum())


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def judge(failure: Failure, before: Before = Before()) -> FailureVerdict:  # noqa: B008 - frozen
    """The verdict on a failure, given the earlier attempts."""
    cause = cause_of(failure)
    blame, retry, avoid = cause.blame, cause.retry, cause.avoid
    for holds, other in (
        (_happened_here(cause, failure, before.history), cause.again),
        (_happens_everywhere(cause, failure, before.history), cause.everywhere),
    ):
        if holds:
            blame = other.blame or blame
            retry = other.retry or retry
            avoid = avoid if other.avoid is None else other.avoid
    return FailureVerdict(
        cause=cause.cause,
        blame=blame,
        is_retried=retry == "Always" or (retry == "IfAsked" and before.has_own_retry),
        is_counted=cause.counted,
        avoids_cluster=avoid,
        node_aside_seconds=cause.node_aside,
        waits=not cause.at_once,
    )


def _happened_here(cause: Cause, failure: Failure, history: Sequence[PastAttempt]) -> bool:
    last = history[-1] if history else None
    return (
        last is not None
        and last.reason == cause.cause
        and bool(set(last.clusters) & set(failure.clusters))
    )


def _happens_everywhere(cause: Cause, failure: Failure, history: Sequence[PastAttempt]) -> bool:
    """Whether all attempts, except stopped ones, failed likewise, in two or more clusters."""
    where = set(failure.clusters)
    for past in reversed(history):
        if past.blame == "Decision":
            continue  # stopped before it could fail
        if past.reason != cause.cause:
            return False
        where |= set(past.clusters)
    return len(where) >= _CLUSTERS_AGREE


def back_off(retry: Retry, history: Sequence[PastAttempt]) -> int:
    """Seconds to wait before the next attempt; the last of `history` is the one that failed."""
    in_a_row = 0
    for past in reversed(history):
        if past.blame == "Decision" or (in_a_row and _ran_seconds(past) >= _longest(retry)):
            break
        in_a_row += 1
    doubled: int = retry.backoff_seconds << max(0, in_a_row - 1)
    return min(doubled, retry.backoff_seconds_max)


def _longest(retry: Retry) -> int:
    return max(1, retry.backoff_seconds_max)


def _ran_seconds(past: PastAttempt) -> float:
    if past.started_at is None or past.ended_at is None:
        return 0.0
    return (past.ended_at - past.started_at).total_seconds()
