"""Prices: of elastic nodes, and of what is used on a flavor, per hour.

A flavor sets the price of a unit of a resource, a cluster the factor on it there, and an elastic
pool the price of one of its nodes. Where a flavor has no price for an accelerator, that of the
cheapest pool with such nodes is used. Amounts are nanos of the fleet's currency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairway.api.amounts import is_accelerator
from fairway.api.cluster import Cluster, pools_of
from fairway.api.flavor import Flavor
from fairway.api.pools import ElasticPool

_NANO = 1_000_000_000


def node_price(cluster: Cluster, pool: ElasticPool, flavors: Iterable[Flavor]) -> int | None:
    """The price of one node of a pool: as last reported by a source, as listed, or by flavor."""
    status = next(
        (
            pool_status
            for pool_status in cluster.status.elastic_pools
            if pool_status.name == pool.name
        ),
        None,
    )
    if status is not None and status.price_per_hour is not None:
        return status.price_per_hour.nanos
    if pool.price_per_hour is not None:
        return pool.price_per_hour.nanos
    prices = [
        sum(
            amount.nanos * flavor.spec.prices[resource].nanos // _NANO
            for resource, amount in pool.shape.items()
            if resource in flavor.spec.prices
        )
        for flavor in flavors
        if flavor.spec.prices and _brings(cluster, pool, flavor)
    ]
    return min(prices) * cluster.spec.price_factor.nanos // _NANO if prices else None


def unit_prices(cluster: Cluster, flavor: Flavor) -> Mapping[str, int]:
    """The price of a unit of each resource on a flavor in a cluster."""
    factor = cluster.spec.price_factor.nanos
    result = {key: price.nanos * factor // _NANO for key, price in flavor.spec.prices.items()}
    if any(is_accelerator(name) for name in result):
        return result
    for pool in pools_of(cluster):
        if not _brings(cluster, pool, flavor):
            continue
        price = node_price(cluster, pool, ())
        for resource, amount in pool.shape.items():
            if price is not None and is_accelerator(resource) and amount.nanos:
                each = price * _NANO // amount.nanos
                result[resource] = min(each, result.get(resource, each))
    return result


def _brings(cluster: Cluster, pool: ElasticPool, flavor: Flavor) -> bool:
    return (
        flavor.spec.node_labels.items() <= pool.labels.items()
        and flavor.spec.cluster_labels.items() <= cluster.metadata.labels.items()
    )
