"""Stock-outs: for how long a pool that could not bring nodes is left alone.

A provision that failed says that a pool is out of stock, and nothing of for how long. How long its
stock-outs took before says more. With S(t) the share of stock-outs that last longer than t, one
that has lasted for a is asked about again after the shortest w for which

    S(a + w) <= (1 - CHANCE) x S(a)

that is, once there is a fair chance that it is over; by who has nowhere else to go already at a
slight one (LAST_RESORT), since a failure costs nothing but itself then. S is the mean of what this
pool showed, each stock-out fading as others follow, and of a prior with the weight of half a
stock-out: S(t) = m / t, which knows no scale. By the prior alone waits grow by a constant factor,
as those of any back-off do; each stock-out that ended bends them towards the pool's own. Durations
are kept in a histogram whose steps grow by a factor, so what is remembered is bounded.
(Conditional survival: D. R. Cox and D. Oakes, Analysis of Survival Data, chapter 1.)
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

CHANCE = 0.3  # that a stock-out is over before its pool is asked again
LAST_RESORT = 0.045  # before it is asked by those who have nowhere else to go
WAIT_LEAST = 60.0
WAIT_MOST = 4 * 3600.0
STEPS = 24
# From a minute to about three days, each step longer than the last by the square root of two.
EDGES = tuple(WAIT_LEAST * 2 ** (step / 2) for step in range(STEPS + 1))
WEIGHT = 1000  # of a stock-out that has just ended; whole numbers, so that what is stored is exact
_FADES = 900  # of a thousand: what is left of a weight when another stock-out has ended
_PRIOR = WEIGHT // 2
_HALVINGS = 40
_SLOW = 3.0  # a provision that takes so many times as long as usual has failed
_SLOW_LEAST = 120.0
_LATEST = 0.3  # what the latest provision counts for in how long they take


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed of the stock of one pool."""

    out_since: float | None = None  # when the first provision of this stock-out failed
    failed_at: float | None = None  # when the last one did
    try_at: float | None = None  # until when the pool is not asked at all
    out_until: float | None = None  # until when it is asked where nobody else has nodes
    tries: int = 0  # provisions that failed in this stock-out
    ended: tuple[int, ...] = ()  # weights of stock-outs that ended, by their duration
    provision_seconds: float | None = None  # how long nodes take to come, of late

    def is_out(self, now: float) -> bool:
        """Whether nobody asks."""
        return self.try_at is not None and now < self.try_at

    def is_doubtful(self, now: float) -> bool:
        """Whether only those ask who have nowhere else to go."""
        return self.out_until is not None and now < self.out_until


def after_failure(belief: Belief, at: float) -> Belief:
    """After a provision that failed."""
    if _is_another(belief, at):
        belief = replace(belief, out_since=None, tries=0)
    since = at if belief.out_since is None else belief.out_since
    wait = wait_after(belief.ended, at - since, chance=CHANCE)
    return replace(
        belief,
        out_since=since,
        failed_at=at,
        try_at=at + min(wait, wait_after(belief.ended, at - since, chance=LAST_RESORT)),
        out_until=at + wait,
        tries=belief.tries + 1,
    )


def after_ask(belief: Belief, at: float, *, within: float) -> Belief:
    """After nodes were asked for, of which it will be known within some time whether they come.

    Of a pool that was out of stock nobody else asks meanwhile: one who tries in vain is enough.
    """
    if belief.out_since is None or belief.is_out(at):
        return belief
    until = at + within
    return replace(belief, try_at=until, out_until=max(until, belief.out_until or until))


def came(belief: Belief, at: float, *, took: float | None = None) -> Belief:
    """After nodes came, so many seconds after they were asked for."""
    ended = belief.ended
    if belief.out_since is not None and belief.failed_at is not None:
        # It ended somewhere between the last failure and now, and nobody saw when.
        before, after = belief.failed_at - belief.out_since, at - belief.out_since
        ended = _with(ended, (max(before, WAIT_LEAST) * max(after, WAIT_LEAST)) ** 0.5)
    usual = belief.provision_seconds
    if took is not None:
        usual = took if usual is None else (1 - _LATEST) * usual + _LATEST * took
    return Belief(ended=ended, provision_seconds=usual)


def wait_after(ended: tuple[int, ...], age: float, *, chance: float) -> float:
    """How long to wait until a pool is asked again whose stock-out has lasted so long."""
    age = max(age, WAIT_LEAST / 2)
    goal = (1 - chance) * survival(ended, age)
    low, high = age + WAIT_LEAST, age + WAIT_MOST
    if survival(ended, low) <= goal:
        return WAIT_LEAST
    if survival(ended, high) > goal:
        return WAIT_MOST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if survival(ended, middle) <= goal else (middle, high)
    return float(round(high - age))


def survival(ended: tuple[int, ...], seconds: float) -> float:
    """The share of stock-outs that last longer."""
    prior = _PRIOR * min(1.0, WAIT_LEAST / 2 / seconds)
    total = sum(ended)
    if not total:
        return prior / _PRIOR
    return (prior + _longer(ended, seconds)) / (_PRIOR + total)


def slow_after(belief: Belief, promised: float) -> float:
    """How long after it was asked for a provision has failed, though nobody said so."""
    usual = promised if belief.provision_seconds is None else belief.provision_seconds
    return max(_SLOW_LEAST, _SLOW * max(usual, promised))


def _longer(ended: tuple[int, ...], seconds: float) -> float:
    """The weight of stock-outs that took longer; within a step they are taken to be even."""
    step = bisect_right(EDGES, seconds) - 1
    if step < 0:
        return float(sum(ended))
    if step >= STEPS:
        return 0.0
    first, last = EDGES[step], EDGES[step + 1]
    return sum(ended[step + 1 :]) + ended[step] * (last - seconds) / (last - first)


def _with(ended: tuple[int, ...], seconds: float) -> tuple[int, ...]:
    step = min(max(bisect_right(EDGES, seconds) - 1, 0), STEPS - 1)
    faded = [number * _FADES // 1000 for number in ended or (0,) * STEPS]
    faded[step] += WEIGHT
    return tuple(faded)


def _is_another(belief: Belief, at: float) -> bool:
    """Whether a failure begins a stock-out of its own: nobody asked for longer than the last one
    was known to have lasted, so that it may have ended unseen."""
    if belief.out_since is None or belief.out_until is None:
        return False
    known = belief.out_until - belief.out_since
    return at - belief.out_until > max(known, 3600.0)
