"""Fairness among callers: what one of them may use of a hub.

As in the API Priority and Fairness of Kubernetes, callers have levels, so that agents and
controllers do not wait for users, nor users for strangers. In each level a caller has a rate with a
burst, some requests at once, and some streams, which are counted separately since they last. A
request costs one token, and more after a large answer. When a level is full, a caller keeps its
fair share of it: one that uses little is never refused because of others.

A request over its caller's rate waits for its token, and one without a seat for a moment, while its
connection can send nothing else. What would wait longer is refused after that time, with 429 and
when to come again. So the requests of a flood come evenly, and cost the hub little.

Probes and `system:masters` are exempt, as in Kubernetes: the first are cheap, and an administrator
must get in when something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from fairway.api.errors import TooManyRequests
from fairway.api.names import WORK_NAMESPACE_PREFIX
from fairway.clock import Clock
from fairway.server.access.identity import ANONYMOUS_USER, MASTERS, Identity, split_service_account
from fairway.server.access.rate_limit import TokenBuckets
from fairway.server.wire.addresses import neighbourhood

_PROBES = frozenset({"/healthz", "/livez", "/readyz"})
_SYSTEM_NAMESPACES = frozenset({"kube-system", "fairway-system"})
_TOKEN_BYTES = 64 << 10  # of an answer, for one more token


class Level(StrEnum):
    """The levels of callers."""

    EXEMPT = "exempt"
    SYSTEM = "system"
    AGENTS = "agents"
    USERS = "users"
    STRANGERS = "strangers"  # by address


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one caller of a level may use; and all of them together, at least."""

    at_once: int
    streams: int
    per_second: float
    burst: int
    all_at_once: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What callers of each level may use."""

    system: Share = Share(
        at_once=256, streams=1_024, per_second=1_000, burst=5_000, all_at_once=512
    )
    agents: Share = Share(at_once=64, streams=256, per_second=300, burst=3_000, all_at_once=512)
    users: Share = Share(at_once=16, streams=256, per_second=100, burst=1_000, all_at_once=256)
    strangers: Share = Share(at_once=16, streams=16, per_second=50, burst=500, all_at_once=64)
    patience_seconds: float = 0.5  # before a refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is counted as one."""

    level: Level
    name: str


def caller_of(identity: Identity | None, source: str) -> Caller:
    """The caller that an identity is counted as; None: no identity that holds was shown."""
    if identity is None or identity.user == ANONYMOUS_USER:
        return Caller(level=Level.STRANGERS, name=neighbourhood(source))
    if MASTERS in identity.groups:
        return EXEMPT
    return Caller(level=_level_of(identity.user), name=identity.user)


EXEMPT = Caller(level=Level.EXEMPT, name="")
WEBHOOKS = Caller(level=Level.SYSTEM, name="webhooks")


def is_probe(path: str) -> bool:
    return path in _PROBES


def _level_of(user: str) -> Level:
    account = split_service_account(user)
    if account is None:
        return Level.SYSTEM if user.startswith("system:") else Level.USERS
    if account[0].startswith(WORK_NAMESPACE_PREFIX):
        return Level.AGENTS
    return Level.SYSTEM if account[0] in _SYSTEM_NAMESPACES else Level.USERS


@dataclass(slots=True)
class _Room:
    """The requests and streams of one level."""

    share: Share
    buckets: TokenBuckets
    requests: dict[str, int] = field(default_factory=dict)  # by caller; none is zero
    streams: dict[str, int] = field(default_factory=dict)
    total: int = 0  # of the requests

    def has_seat(self, name: str) -> bool:
        own = self.requests.get(name, 0)
        if own >= self.share.at_once:
            return False
        callers = len(self.requests) + (0 if own else 1)
        return self.total < self.share.all_at_once or own < self.share.all_at_once // callers

    def sit(self, name: str) -> None:
        self.total += 1
        _count(self.requests, name, 1)

    def rise(self, name: str) -> None:
        self.total -= 1
        _count(self.requests, name, -1)


def _count(numbers: dict[str, int], name: str, change: int) -> None:
    number = numbers.get(name, 0) + change
    if number:
        numbers[name] = number
    else:
        numbers.pop(name, None)


class CallerSeat:
    """The place of one request or stream, until its answer is sent."""

    def __init__(self, room: _Room, name: str) -> None:
        self._room = room
        self._name = name
        self._leave: Callable[[str], None] | None = room.rise
        room.sit(name)

    def become_stream(self) -> None:
        """Counts among the caller's streams from now on; raises TooManyRequests."""
        self.leave()
        streams, most = self._room.streams, self._room.share.streams
        if streams.get(self._name, 0) >= most:
            raise TooManyRequests(
                f"you have {most} watches and other streams open, which is the limit",
                details={"retryAfterSeconds": 1},
            )
        _count(streams, self._name, 1)
        self._leave = lambda name: _count(streams, name, -1)

    def charge(self, size: int) -> None:
        """Takes tokens for the bytes of an answer."""
        if size >= _TOKEN_BYTES:
            self._room.buckets.charge(self._name, size / _TOKEN_BYTES)

    def leave(self) -> None:
        if self._leave is not None:
            self._leave(self._name)
            self._leave = None


class Fairness:
    """Gives requests their seats."""

    def __init__(self, clock: Clock, shares: Shares, *, refused: Callable[[str], None]) -> None:
        """`refused` is called with the level of each caller that is refused."""
        self._clock = clock
        self._patience_seconds = shares.patience_seconds
        self._refused = refused
        self._rooms = {level: _room(clock, share) for level, share in _by_level(shares)}

    async def enter(self, caller: Caller) -> CallerSeat | None:
        """A seat for a request; None: the caller is exempt. Raises TooManyRequests."""
        room = self._rooms.get(caller.level)
        if room is None:
            return None
        wait = room.buckets.take(caller.name, self._patience_seconds)
        await self._wait(self._patience_seconds if wait is None else wait)
        if wait is None:
            raise self._refusal(caller, room.buckets.wait_seconds(caller.name))
        if not room.has_seat(caller.name):
            await self._wait(self._patience_seconds)
            if not room.has_seat(caller.name):
                raise self._refusal(caller, 1.0)
        return CallerSeat(room, caller.name)

    async def _wait(self, seconds: float) -> None:
        if seconds:
            await self._clock.sleep(seconds)

    def _refusal(self, caller: Caller, seconds: float) -> TooManyRequests:
        self._refused(caller.level)
        return TooManyRequests(
            f"too many requests of {_shown(caller)}, try again later",
            details={"retryAfterSeconds": max(1, math.ceil(seconds))},
        )


def _by_level(shares: Shares) -> list[tuple[Level, Share]]:
    return [
        (Level.SYSTEM, shares.system),
        (Level.AGENTS, shares.agents),
        (Level.USERS, shares.users),
        (Level.STRANGERS, shares.strangers),
    ]


def _room(clock: Clock, share: Share) -> _Room:
    buckets = TokenBuckets(clock, burst=share.burst, per_second=share.per_second)
    return _Room(share=share, buckets=buckets)


def _shown(caller: Caller) -> str:
    return "your address" if caller.level is Level.STRANGERS else caller.name
