"""What a day costs: standing room by what is used of it, elastic nodes while they are paid for.

Replicas on nodes of a cluster's own cost what their flavor does, times the cluster's factor; nodes
of a pool cost their price from the moment in which they are ordered until they are given back.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairway.demo.days.day import Day, Reading
from fairway.demo.days.objects import GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A cluster at some hour, as far as money goes."""

    flavor: str
    standing: int  # replicas that its own nodes hold
    price: float  # of a replica on them, an hour
    nodes_max: int = 0
    node_price: float = 0.0
    per_node: int = 0  # replicas
    provision_hours: float = 0.0
    has_stock: bool = True


def grounds(day: Day, hour: float) -> dict[str, Ground]:
    """Every cluster at an hour, after all that has happened to it."""
    prices = {
        object_["metadata"]["name"]: float(object_["spec"]["prices"][GPU])
        for object_ in day.objects
        if object_["kind"] == "Flavor"
    }
    found = {}
    for body in day.clusters():
        name = body["metadata"]["name"]
        spec = copy.deepcopy(body["spec"])
        for event in sorted(day.events, key=lambda event: event.at):
            if event.cluster == name and event.at <= hour:
                _merge(spec, event.patch["spec"])
        found[name] = _ground(spec, prices)
    return found


def _ground(spec: Mapping[str, Any], prices: Mapping[str, float]) -> Ground:
    (own,) = spec["simulated"]["nodePools"]
    flavor = own["labels"]["gpu"]
    is_down = spec["simulated"].get("faults", {}).get("outage", False)
    price = prices[flavor] * float(spec.get("priceFactor", "1"))
    standing = 0 if is_down else own["count"] * int(own["shape"][GPU])
    for pool in spec["elasticPools"]:
        return Ground(
            flavor=flavor,
            standing=standing,
            price=price,
            nodes_max=0 if is_down else pool["countMax"],
            node_price=float(pool["pricePerHour"]),
            per_node=int(pool["shape"][GPU]),
            provision_hours=pool["provisionSeconds"] / 3600,
            has_stock=pool.get("stock", 1) > 0,
        )
    return Ground(flavor=flavor, standing=standing, price=price)


def _merge(into: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def cost(day: Day, readings: Sequence[Reading]) -> float:
    """What the day has cost."""
    total = 0.0
    known: dict[float, dict[str, Ground]] = {}
    for reading in readings:
        since = max((event.at for event in day.events if event.at <= reading.hour), default=-1.0)
        if since not in known:
            known[since] = grounds(day, reading.hour)
        for name, ground in known[since].items():
            nodes = sum(reading.nodes[name].values())
            own = max(0, reading.held[name] - nodes * ground.per_node)
            total += min(own, ground.standing) * ground.price + nodes * ground.node_price
    return total * (readings[1].hour - readings[0].hour)
