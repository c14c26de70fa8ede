"""Which steps of a plan the breakers allow.

The core plans no steps that an open breaker forbids. It learns of an open breaker with a delay, so
the breakers are checked here as well, also within one plan. The steps that serve one workload are
allowed together while the breaker is closed, so its limit is exceeded by at most the steps of one
workload. If a victim is not preempted, the claims that wait for it are refused too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fairway.api.amounts import Quantity
from fairway.api.fleet import Breakers as Limits
from fairway.controllers.breakers import Breakers, Name
from fairway.core.plan import Admit, Move, Preempt, Provision, Step

# The hourly price of one node of a pool, by cluster and pool; in nanos.
PriceOf = Callable[[str, str], int]


@dataclass(slots=True, kw_only=True)
class Restrained:
    """Steps that are allowed, and workloads whose steps are refused, with the open breaker."""

    steps: tuple[Step, ...] = ()
    refused: dict[str, Name] = field(default_factory=dict)


def restrain(
    deals: Sequence[Sequence[Step]],
    breakers: Breakers,
    limits: Limits,
    *,
    now: float,
    price_of: PriceOf,
) -> Restrained:
    """The steps that are allowed; each deal has the steps that serve one workload."""
    result = Restrained()
    kept: list[Step] = []
    staying: dict[str, Name] = {}  # victims that are not preempted
    for deal in deals:
        costs = list(_costs(deal, price_of))
        stopped = next((name for name, _ in costs if breakers.is_open(name, limits, now)), None)
        stopped = stopped or next((staying[key] for key in _awaited(deal) if key in staying), None)
        if stopped is not None:
            result.refused.update({step.workload: stopped for step in deal})
            staying.update({item.workload: stopped for item in deal if isinstance(item, Preempt)})
            continue
        kept.extend(deal)
        for name, nanos in costs:
            breakers = breakers.count(name, now, price=Quantity(nanos))
    result.steps = tuple(kept)
    return result


def _awaited(deal: Sequence[Step]) -> Iterator[str]:
    for step in deal:
        if isinstance(step, Admit):
            yield from step.waits_for


def count_steps(
    steps: Sequence[Step], written: Sequence[Step], price_of: PriceOf
) -> Iterator[tuple[Name, int]]:
    """What written steps add to the breakers; nodes count with the claim that asks for them."""
    claimed = {step.workload for step in written if isinstance(step, Admit)}
    provisions = [
        step for step in steps if isinstance(step, Provision) and step.workload in claimed
    ]
    yield from _costs([*written, *provisions], price_of)


def _costs(steps: Sequence[Step], price_of: PriceOf) -> Iterator[tuple[Name, int]]:
    for step in steps:
        match step:
            case Preempt():
                yield "Preemptions", _ONE
            case Move():
                yield "Moves", _ONE
            case Admit() if step.leaving:
                yield "Moves", _ONE
            case Provision():
                yield "Price", price_of(step.cluster, step.pool) * step.count
            case _:
                continue


_ONE = 1_000_000_000
