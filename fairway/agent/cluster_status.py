"""What an agent writes to its cluster's status: a coarse summary, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairway import __version__
from fairway.agent.drivers.interface import Observation
from fairway.api.amounts import NANO, Amounts, Quantity, family_of
from fairway.api.codec import to_plain
from fairway.api.meta import JsonObject
from fairway.api.pools import ElasticPool, ProviderQuota
from fairway.clock import timestamp

_LEFT_OUT_IF_EMPTY = ("offeredPools", "offeredQuotas", "uncountedRules")
_NOT_FREE = ("Bound", "Ready", "Terminating")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What an agent reports about itself."""

    epoch: int
    connected_at: float
    report_sequence: int


def totals(
    observation: Observation, requests: Mapping[tuple[str, str], Mapping[str, Quantity]]
) -> tuple[Amounts, Amounts]:
    """What is allocatable on all nodes, and what is free on ready nodes."""
    has = _sum(node.allocatable for node in observation.nodes)
    ready = {node.name for node in observation.nodes if node.is_ready}
    free = _sum(node.allocatable for node in observation.nodes if node.is_ready)
    free = free.minus(_sum(node.others for node in observation.nodes if node.is_ready))
    used: dict[str, int] = {}
    for name, seen in observation.works.items():
        for pod in seen.pods:
            if pod.phase not in _NOT_FREE or pod.node not in ready:
                continue
            for resource, quantity in requests.get((name, pod.pod_set), {}).items():
                used[resource] = used.get(resource, 0) + quantity.nanos
            used["pods"] = used.get("pods", 0) + NANO
    left = free.minus(Amounts({name: nanos for name, nanos in used.items() if name in free}))
    return has, left


def agent_part(observation: Observation, *, has: Amounts, free: Amounts) -> JsonObject:
    """The status fields that the agent owns, except those about the agent itself."""
    return {
        "driverVersion": observation.version,
        "kinds": list(observation.kinds),
        "claims": dict(observation.claims),
        "nodes": len(observation.nodes),
        "readyNodes": sum(node.is_ready for node in observation.nodes),
        "allocatable": {name: str(has.quantity(name)) for name in has},
        "free": {name: str(Quantity(max(0, free[name]), family_of(name))) for name in has},
        "elasticPools": [
            {
                "name": pool.name,
                "nodes": pool.nodes,
                "provisioning": pool.provisioning,
                **({} if pool.stock is None else {"stock": pool.stock}),
                **({"awaitsStock": True} if pool.awaits_stock else {}),
                **({} if pool.price_nanos is None else {"pricePerHour": _price(pool.price_nanos)}),
                **(
                    {"failures": pool.failures, "fault": pool.fault[:1024]} if pool.failures else {}
                ),
            }
            for pool in observation.pools
        ],
        **_offer("offeredPools", observation.offered),
        **_offer("offeredQuotas", observation.quotas),
        **_offer("uncountedRules", observation.uncounted_rules),
    }


def _offer(key: str, several: Sequence[ElasticPool | ProviderQuota | str]) -> JsonObject:
    """Left out when empty: a hub of an earlier version does not know the field."""
    if not several:
        return {}
    return {key: [item if isinstance(item, str) else to_plain(item) for item in several]}


def _price(nanos: int) -> str:
    return str(Quantity(nanos))


def agent_facts(facts: AgentFacts, *, now: float) -> JsonObject:
    return {
        "epoch": facts.epoch,
        "version": __version__,
        "connectedAt": timestamp(facts.connected_at),
        "lastSeenAt": timestamp(now),
        "reportSequence": facts.report_sequence,
    }


def patch_from(before: Mapping[str, Any], after: JsonObject) -> JsonObject:
    """A merge patch that removes map entries that no longer exist."""
    patch = dict(after)
    for key in ("allocatable", "free", "claims"):
        gone = {name: None for name in before.get(key, {}) if name not in after[key]}
        patch[key] = {**after[key], **gone}
    patch.update({key: [] for key in _LEFT_OUT_IF_EMPTY if key in before and key not in after})
    return patch


def _sum(several: Iterable[Mapping[str, int]]) -> Amounts:
    """The sum. Nodes of one shape share one mapping, so each shape is read once."""
    shapes: dict[int, tuple[Mapping[str, int], int]] = {}
    for entry in several:
        _, count = shapes.get(id(entry), (entry, 0))
        shapes[id(entry)] = (entry, count + 1)
    total: dict[str, int] = {}
    for shape, count in shapes.values():
        for resource, nanos in shape.items():
            total[resource] = total.get(resource, 0) + nanos * count
    return Amounts(total)
