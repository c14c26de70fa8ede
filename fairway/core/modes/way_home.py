"""Replicas that move back to an earlier group once it has had room for long enough.

This is slow on purpose: the room must have lasted, and the number of moves per minute is limited. A
replica starts in the new cluster before it stops in the old one, within the surge and within quota.
Without surge or without quota for both, it stops first. Replicas only move to earlier groups, so
this terminates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.core.model import Policy
from fairway.core.modes.division import DivisionTally, DivisionTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Replicas that move to another cluster."""

    source: str
    target: str
    count: int
    starts_first: bool  # in the target, before they stop in the source


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The state that limits the next moves."""

    room_since: Mapping[str, float]  # since when a group has had room for a replica
    moved_in_last_minute: int = 0
    moving: int = 0  # replicas of earlier moves that are still in the old cluster
    quota_left: int = 0  # replicas that quota allows in addition to all that run now
    waiting: int = 0  # replicas that are not placed: they come first
    may_stop: bool = True  # whether a replica may stop before it starts elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Homeward:
    """What is remembered from plan to plan about services that are away from home."""

    room_since: Mapping[tuple[str, str], float] = field(default_factory=dict)  # workload and group
    moves: Mapping[str, tuple[tuple[float, int], ...]] = field(default_factory=dict)
    # workload -> (when, how many) within the last minute
    look_at: float | None = None  # when time alone may make a move due


def return_home(
    places: Sequence[DivisionTarget], policy: Policy, pace: Pace, now: float
) -> tuple[Move, ...]:
    """The moves that are due now; empty if nothing is to return, or not yet."""
    count, starts_first = _allowance(policy, pace)
    if count <= 0:
        return ()
    board = DivisionTally(places, policy)
    for group in board.groups:
        since = pace.room_since.get(group)
        if since is None or now - since < policy.return_home.after_seconds:
            continue
        moves = _moves_to(group, places, policy, count)
        if moves:
            return tuple(
                Move(source=source, target=target, count=moved, starts_first=starts_first)
                for source, target, moved in moves
            )
    return ()


def _allowance(policy: Policy, pace: Pace) -> tuple[int, bool]:
    """How many replicas may move now, and whether they start before they stop."""
    rule = policy.return_home
    if not rule.enabled or pace.waiting > 0:
        return 0, False
    count = rule.per_minute - pace.moved_in_last_minute
    if rule.surge == 0 or pace.quota_left <= 0:
        # Without surge or quota for both, one replica fewer for a while is better than never to
        # return; but only one at a time, and only after earlier moves have finished.
        return (min(count, 1) if pace.moving == 0 and pace.may_stop else 0), False
    return min(count, rule.surge - pace.moving, pace.quota_left), True


def _moves_to(
    group: str, places: Sequence[DivisionTarget], policy: Policy, count: int
) -> list[tuple[str, str, int]]:
    """Up to `count` moves to a group from later groups, the last group first."""
    homes = _homes(places, policy)
    while count > 0 and any(home.group == group for home in homes):
        board = DivisionTally(homes, policy)
        for place in board.places:
            board.counts[place.cluster] = place.assigned
        before = dict(board.counts)
        later = board.groups[board.groups.index(group) + 1 :]
        left = count
        for name in reversed(later):
            held = sum(before[member.cluster] for member in board.members(name))
            # In between, a cluster may have fewer than its minimum; otherwise a slow pace would
            # never empty it.
            board.shrink(name, max(held - left, 0), least=0)
            left -= min(left, held)
        freed = count - left
        between = dict(board.counts)
        board.grow(freed, only=group, least=0)
        grown = sum(board.counts.values()) - sum(between.values())
        if grown == freed:
            return list(pair(differences(before, between), differences(board.counts, between)))
        count = grown
    return []


def _homes(places: Sequence[DivisionTarget], policy: Policy) -> list[DivisionTarget]:
    """The targets without empty ones that have no room for the minimum of a cluster."""
    least = policy.division.cluster_min
    return [place for place in places if place.assigned or place.available >= least]


def differences(more: Mapping[str, int], fewer: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, more[name] - fewer[name]) for name in sorted(more) if more[name] > fewer[name]]


def pair(
    sources: Iterable[tuple[str, int]], targets: Iterable[tuple[str, int]]
) -> Iterator[tuple[str, str, int]]:
    """Pairs leaving with arriving replicas; both add up to the same."""
    arriving = iter(targets)
    target, open_count = "", 0
    for source, leaving in sources:
        left = leaving
        while left:
            if not open_count:
                target, open_count = next(arriving)
            moved = min(left, open_count)
            yield source, target, moved
            left -= moved
            open_count -= moved
