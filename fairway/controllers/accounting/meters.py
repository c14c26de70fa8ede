"""What a workload holds, as meters take it: GPUs by cluster and flavor, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairway.api.amounts import NANO, Quantity
from fairway.controllers.glance import Glance, Placement
from fairway.core.costs.accounts import Holding, Key

# Hourly prices of a unit of each resource, by cluster and flavor; in billionths.
PricesOf = Callable[[str, str], Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who is charged, apart from where."""

    namespace: str
    name: str
    team: str
    queue: str


def owner_of(held: Glance, *, team_label: str, queue: str) -> Owner:
    return Owner(
        namespace=held.metadata.namespace,
        name=held.metadata.name,
        team=held.metadata.labels.get(team_label, ""),
        queue=held.charged_queue or queue,
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
