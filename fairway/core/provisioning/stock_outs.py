"""Stock-outs: for how long a pool that failed to provide nodes is not asked again.

A failed provision shows that a pool is out of stock, but not for how long. The durations of its
earlier stock-outs tell more. Let S(t) be the share of stock-outs that last longer than t. A pool
whose stock-out has lasted for a is asked again after the shortest wait w for which

    S(a + w) <= (1 - CHANCE) x S(a)

that is, once there is a fair chance that the stock-out is over. As a last resort a pool is asked
at a smaller chance (LAST_RESORT), since there is no alternative that a failure would delay.

S is the weighted mean of the pool's own stock-outs, whose weights decay as others follow, and of a
prior with the weight of half a stock-out: S(t) = m / t, which is scale-free. By the prior alone
waits grow by a constant factor, as in any exponential back-off; each stock-out that ends moves them
towards the pool's own durations. Durations are kept in a histogram with geometric steps, so what is
stored is bounded.
(Conditional survival: D. R. Cox and D. Oakes, Analysis of Survival Data, chapter 1.)
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

CHANCE = 0.3  # that a stock-out is over, before its pool is asked again
LAST_RESORT = 0.045  # the same, before its pool is asked as a last resort
WAIT_LEAST = 60.0
WAIT_MOST = 4 * 3600.0
STEPS = 24
# From a minute to about three days; each step is longer than the last by the square root of two.
EDGES = tuple(WAIT_LEAST * 2 ** (step / 2) for step in range(STEPS + 1))
WEIGHT = 1000  # of a stock-out that has just ended; a whole number, so that storing it is exact
_FADES = 900  # thousandths of a weight that remain when another stock-out has ended
_PRIOR = WEIGHT // 2
_HALVINGS = 40
_SLOW = 3.0  # a provision that takes this many times as long as usual has failed
_SLOW_LEAST = 120.0
_LATEST = 0.3  # weight of the latest provision in the moving average of their duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is known and assumed about the stock of one pool."""

    out_since: float | None = None  # when the first provision of this stock-out failed
    failed_at: float | None = None  # when the last provision failed
    try_at: float | None = None  # until then the pool is not asked at all
    out_until: float | None = None  # until then the pool is asked only as a last resort
    tries: int = 0  # provisions that failed in this stock-out
    ended: tuple[int, ...] = ()  # weights of stock-outs that ended, by duration
    provision_seconds: float | None = None  # moving average of how long nodes take to come

    def is_out(self, now: float) -> bool:
        """Whether the pool is not asked at all."""
        return self.try_at is not None and now < self.try_at

    def is_doubtful(self, now: float) -> bool:
        """Whether the pool is asked only as a last resort."""
        return self.out_until is not None and now < self.out_until


def after_failure(belief: Belief, at: float) -> Belief:
    """The belief after a provision failed."""
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
    """The belief after nodes were asked for; `within` seconds it is known whether they come.

    A pool that was out of stock is not asked by others until then: one failed attempt is enough.
    """
    if belief.out_since is None or belief.is_out(at):
        return belief
    until = at + within
    return replace(belief, try_at=until, out_until=max(until, belief.out_until or until))


def came(belief: Belief, at: float, *, took: float | None = None) -> Belief:
    """The belief after nodes came, `took` seconds after they were asked for."""
    ended = belief.ended
    if belief.out_since is not None and belief.failed_at is not None:
        # The stock-out ended between the last failure and now; when exactly was not observed.
        before, after = belief.failed_at - belief.out_since, at - belief.out_since
        ended = _with(ended, (max(before, WAIT_LEAST) * max(after, WAIT_LEAST)) ** 0.5)
    usual = belief.provision_seconds
    if took is not None:
        usual = took if usual is None else (1 - _LATEST) * usual + _LATEST * took
    return Belief(ended=ended, provision_seconds=usual)


def wait_after(ended: tuple[int, ...], age: float, *, chance: float) -> float:
    """How long to wait before a pool is asked again whose stock-out has lasted for `age`."""
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
    """S(t): the share of stock-outs that last longer than `seconds`."""
    prior = _PRIOR * min(1.0, WAIT_LEAST / 2 / seconds)
    total = sum(ended)
    if not total:
        return prior / _PRIOR
    return (prior + _longer(ended, seconds)) / (_PRIOR + total)


def slow_after(belief: Belief, promised: float) -> float:
    """After how many seconds a provision counts as failed, though no failure was reported."""
    usual = promised if belief.provision_seconds is None else belief.provision_seconds
    return max(_SLOW_LEAST, _SLOW * max(usual, promised))


def _longer(ended: tuple[int, ...], seconds: float) -> float:
    """The weight of stock-outs that lasted longer; within a step they are spread evenly."""
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
    """Whether a failure begins a new stock-out.

    It does if the pool was not asked for longer than the last stock-out is known to have lasted
    (at least an hour): that one may have ended unobserved.
    """
    if belief.out_since is None or belief.out_until is None:
        return False
    known = belief.out_until - belief.out_since
    return at - belief.out_until > max(known, 3600.0)
