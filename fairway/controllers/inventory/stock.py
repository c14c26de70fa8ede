"""What a look at an elastic pool says about its stock.

An agent reports how many nodes a pool has, how many are on their way, and how often a provision
failed. Two such looks, and the claims that asked for nodes meanwhile, show whether there is stock.
A reported failure, or nodes that take much longer than usual, say no. Nodes that came or are on
their way for a claim made after the last failure say yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fairway.api.pools import PoolBelief
from fairway.core.provisioning import stock_outs
from fairway.core.provisioning.stock_outs import Belief


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A pool as reported by its agent."""

    epoch: int  # of the agent; its counts restart with each epoch
    nodes: int = 0
    provisioning: int = 0
    failures: int = 0
    came_at: float = 0.0  # when the number of nodes last grew

    @property
    def ordered(self) -> int:
        return self.nodes + self.provisioning


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A claim that waits for nodes of a pool."""

    workload: str
    decided_at: float
    answered_at: float | None = None  # when its nodes were there; agents report them a bit later


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One look, and what was known before it."""

    belief: Belief
    before: Look | None  # None: this is the hub's first look
    look: Look
    asks: Sequence[Ask]  # not answered yet, or just answered
    promised: float  # seconds that nodes are said to take
    now: float


def learn(question: Question) -> Belief:
    """What is believed after a look."""
    belief = question.belief
    if _has_failed(question):
        return stock_outs.after_failure(belief, question.now)
    if _has_come(question):
        return stock_outs.came(belief, question.now, took=_took(question))
    slow = stock_outs.slow_after(belief, question.promised)
    asks = [ask for ask in question.asks if ask.answered_at is None]
    late = [ask for ask in asks if ask.decided_at + slow <= question.now]
    if any(belief.failed_at is None or ask.decided_at > belief.failed_at for ask in late):
        return stock_outs.after_failure(belief, question.now)
    for ask in asks:
        if belief.failed_at is not None and ask.decided_at > belief.failed_at:
            belief = stock_outs.after_ask(belief, ask.decided_at, within=slow)
    return belief


def _has_failed(question: Question) -> bool:
    before, look = question.before, question.look
    if before is None or before.epoch != look.epoch:
        return False
    return look.failures > before.failures


def _has_come(question: Question) -> bool:
    """Whether nodes came or are on their way, for a claim made after the last failure.

    Without a failure only nodes that came count.
    """
    before, failed_at = question.before, question.belief.failed_at
    if before is None or question.look.nodes <= before.nodes:
        is_more = before is not None and question.look.ordered > before.ordered
        if not is_more or failed_at is None:
            return False  # before nodes come, only stock is to be learned
    return failed_at is None or any(ask.decided_at > failed_at for ask in question.asks)


def _took(question: Question) -> float | None:
    """How long the new nodes took."""
    before = question.before
    if before is None or question.look.nodes <= before.nodes:
        return None
    # Claims made before nodes last came have got theirs.
    asks = [ask for ask in question.asks if ask.decided_at > before.came_at]
    if not asks:
        return None
    first = min(asks, key=lambda ask: ask.decided_at)
    return (first.answered_at or question.now) - first.decided_at


def belief_of(stored: PoolBelief | None) -> Belief:
    """A stored belief."""
    if stored is None:
        return Belief()
    seconds = stored.provision_seconds
    return Belief(
        out_since=_seconds(stored.out_since),
        failed_at=_seconds(stored.failed_at),
        try_at=_seconds(stored.try_at),
        out_until=_seconds(stored.out_until),
        tries=stored.tries,
        ended=stored.ended if len(stored.ended) == stock_outs.STEPS else (),
        provision_seconds=None if seconds is None else float(seconds),
    )


def stored_as(name: str, belief: Belief, fault: str) -> PoolBelief | None:
    """A belief to be stored; None if there is nothing to store."""
    if belief == Belief():
        return None
    usual = belief.provision_seconds
    return PoolBelief(
        name=name,
        out_since=_moment(belief.out_since),
        failed_at=_moment(belief.failed_at),
        try_at=_moment(belief.try_at),
        out_until=_moment(belief.out_until),
        tries=belief.tries,
        ended=belief.ended,
        provision_seconds=None if usual is None else round(usual),
        fault=fault if belief.out_since is not None else "",
    )


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
