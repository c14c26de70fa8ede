"""What a workload holds, as meters take it: GPUs by cluster and flavor, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fairway.api.amounts import NANO, Quantity
from fairway.clock import parse_timestamp
from fairway.controllers.holdings import Placement, Somebody
from fairway.core.costs.accounts import Holding, Key

# Hourly prices of a unit of each resource, by cluster and flavor; in billionths.
PricesOf = Callable[[str, str], Mapping[str, int]]


class _Claim(msgspec.Struct, frozen=True, rename="camel"):
    decided_at: str = ""
    queue: str = ""
    placements: tuple[Placement, ...] = ()


class _Attempt(msgspec.Struct, frozen=True, rename="camel"):
    attempt: int = 0
    lost_seconds: int = 0
    preempted_by: Somebody | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    queue: str = ""
    claim: _Claim | None = None
    releasing: tuple[Placement, ...] = ()
    history: tuple[_Attempt, ...] = ()


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}


class Held(msgspec.Struct, frozen=True):
    """As much of a workload as an account needs; workloads are many and change all the time."""

    metadata: _Metadata
    status: _Status = _Status()

    @property
    def decided_at(self) -> float | None:
        claim = self.status.claim
        return parse_timestamp(claim.decided_at) if claim and claim.decided_at else None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Everything that is charged: what it holds, and what is not confirmed gone."""
        held = self.status.claim.placements if self.status.claim else ()
        return (*held, *self.status.releasing)

    @property
    def last_attempt(self) -> int:
        return max((attempt.attempt for attempt in self.status.history), default=0)


read_held = msgspec.json.Decoder(Held).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who is charged, apart from where."""

    namespace: str
    name: str
    team: str
    queue: str


def owner_of(held: Held, *, team_label: str, queue: str) -> Owner:
    claim = held.status.claim
    return Owner(
        namespace=held.metadata.namespace,
        name=held.metadata.name,
        team=held.metadata.labels.get(team_label, ""),
        queue=(claim.queue if claim else "") or held.status.queue or queue,
    )


def holdings_of(
    placements: Sequence[Placement], owner: Owner, prices_of: PricesOf
) -> tuple[Holding, ...]:
    """Everything held, one holding per cluster and flavor."""
    gpus: dict[Key, int] = {}
    rates: dict[Key, int] = {}
    for placement in placements:
        for flavor, amount, rate in _parts(placement, prices_of):
            key = Key(
                use="Used",
                namespace=owner.namespace,
                team=owner.team,
                queue=owner.queue,
                workload=owner.name,
                cluster=placement.cluster,
                flavor=flavor,
            )
            gpus[key] = gpus.get(key, 0) + amount
            rates[key] = rates.get(key, 0) + rate
    return tuple(
        Holding(key=key, gpus=gpus[key], rate=rates[key])
        for key in sorted(gpus)
        if gpus[key] or rates[key]
    )


def _parts(placement: Placement, prices_of: PricesOf) -> Iterator[tuple[str, int, int]]:
    """Flavor, thousandths of GPUs and billionths per hour of each pod set."""
    for pods in placement.pod_sets:
        rate = 0
        for resource, amount in pods.requests.items():
            nanos = Quantity.of(amount).nanos * pods.count
            price = prices_of(placement.cluster, pods.flavors.get(resource, "")).get(resource, 0)
            rate += nanos * price // NANO
        yield pods.flavor, pods.gpus, rate
