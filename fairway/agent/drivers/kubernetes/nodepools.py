"""Node pools of a cluster's own autoscaler, as elastic pools.

A Karpenter NodePool names the instance types, zones and capacity types that it may provision, and
limits for all of them together. Each combination becomes an elastic pool, and the limits become a
quota that these pools share. The capacity of an instance type is not in the NodePool: the Cluster
lists it, or a node of that type shows it.

Cluster autoscaler finds its groups with the provider. With Cluster API they are MachineDeployments,
whose annotations say how many nodes there may be and what each has, even before the first node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import msgspec

from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.api.amounts import Quantity, QuantityError
from fairway.api.meta import JsonObject, ResourceList, Taint
from fairway.api.names import POOL_LABEL
from fairway.api.pools import ElasticPool, InstanceType, ProviderQuota
from fairway.kinds.plain import annotation, child, maps_at, name_of, text
from fairway.store.interface import ResourceKey

KARPENTER_GROUP = "karpenter.sh"
CLUSTER_API_GROUP = "cluster.x-k8s.io"
KINDS = ((KARPENTER_GROUP, "nodepools"), (CLUSTER_API_GROUP, "machinedeployments"))

NODE_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
_CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
_AMOUNTS = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-disk": "ephemeral-storage",
    "maxPods": "pods",
}
_GPU = "nvidia.com/gpu"
_POOLS_MOST = 64
_NODES_MOST = 1000  # of a pool without a limit
_NAME_MOST = 63
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Found pools, and the quotas that they share."""

    pools: tuple[ElasticPool, ...] = ()
    quotas: tuple[ProviderQuota, ...] = ()

    def labels_of(self, node: Node) -> Mapping[str, str]:
        """The label that names a node's pool, if the node can be released: a Karpenter node can."""
        if NODE_POOL not in node.labels:
            return {}
        for pool in self.pools:
            if NODE_POOL in pool.labels and pool.labels.items() <= node.labels.items():
                return {POOL_LABEL: pool.name}
        return {}


def find_pools(
    objects: Mapping[tuple[ResourceKey, tuple[str, str]], JsonObject],
    types: Iterable[InstanceType],
    nodes: Iterable[Node],
) -> Found:
    """All pools of a cluster's autoscalers; beyond the limit, the last by name are left out."""
    known = {type_.name: type_ for type_ in types}
    for node in nodes:
        name = node.labels.get(INSTANCE_TYPE, "")
        if name and name not in known:
            shape = {key: Quantity(nanos) for key, nanos in node.allocatable.items() if nanos}
            known[name] = InstanceType(name=name, shape=shape)
    pools: dict[str, ElasticPool] = {}
    quotas: dict[str, ProviderQuota] = {}
    for (kind, _), body in sorted(objects.items(), key=lambda object_: object_[0][1]):
        try:
            if kind.group == KARPENTER_GROUP:
                quota = _quota(body)
                if quota is not None:
                    quotas[quota.name] = quota
                several = _karpenter(body, known, quota)
            else:
                several = _cluster_api(body)
            pools.update((pool.name, pool) for pool in several)
        except (QuantityError, msgspec.ValidationError):
            continue  # a pool that cannot be parsed is not offered
    kept = tuple(islice((pools[name] for name in sorted(pools)), _POOLS_MOST))
    used = {pool.quota for pool in kept}
    return Found(pools=kept, quotas=tuple(quotas[name] for name in sorted(used & quotas.keys())))


# Karpenter.


def _quota(pool: JsonObject) -> ProviderQuota | None:
    limits = child(pool, "spec", "limits")
    if not limits:
        return None
    amounts = {str(key): Quantity.of(value) for key, value in limits.items()}
    return ProviderQuota(name=_name(name_of(pool)), limits=amounts)


def _karpenter(
    pool: JsonObject, types: Mapping[str, InstanceType], quota: ProviderQuota | None
) -> Iterator[ElasticPool]:
    template = child(pool, "spec", "template")
    wanted = maps_at(template, "spec", "requirements")
    chosen = [types[name] for name in sorted(types) if _allows(wanted, INSTANCE_TYPE, name)]
    zones = _values(wanted, ZONE) or [""]
    capacities = _values(wanted, CAPACITY_TYPE) or ["on-demand"]
    for kind, zone, capacity in product(chosen, zones, capacities):
        is_spot = capacity == "spot"
        labels = {
            **child(template, "metadata", "labels"),
            **_fixed(wanted),
            NODE_POOL: name_of(pool),
            INSTANCE_TYPE: kind.name,
            CAPACITY_TYPE: capacity,
            **({ZONE: zone} if zone else {}),
        }
        yield ElasticPool(
            name=_name(name_of(pool), kind.name, zone, "spot" if is_spot else ""),
            shape=kind.shape,
            labels={str(key): str(value) for key, value in labels.items()},
            taints=tuple(_taints(maps_at(template, "spec", "taints"))),
            count_max=_most(kind.shape, quota),
            interruptible=is_spot,
            quota=quota.name if quota is not None else "",
            price_per_hour=kind.spot_price_per_hour if is_spot else kind.price_per_hour,
            provision_seconds=kind.provision_seconds,
        )


def _allows(requirements: list[JsonObject], key: str, value: str) -> bool:
    for requirement in requirements:
        values = [str(each) for each in requirement.get("values") or ()]
        if requirement.get("key") == key:
            if requirement.get("operator") == "In" and value not in values:
                return False
            if requirement.get("operator") == "NotIn" and value in values:
                return False
    return True


def _values(requirements: list[JsonObject], key: str) -> list[str]:
    """The values that are listed for a key, and allowed by all requirements on it."""
    result = {
        str(value)
        for requirement in requirements
        if requirement.get("key") == key and requirement.get("operator") == "In"
        for value in requirement.get("values") or ()
    }
    return sorted(name for name in result if _allows(requirements, key, name))


def _fixed(requirements: list[JsonObject]) -> dict[str, str]:
    """Labels that every node has, since only one value is allowed."""
    keys = {text(requirement, "key") for requirement in requirements}
    chosen = {key: _values(requirements, key) for key in keys if key}
    return {key: values[0] for key, values in chosen.items() if len(values) == 1}


def _most(shape: ResourceList, quota: ProviderQuota | None) -> int:
    limits = quota.limits if quota is not None else {}
    fits = (most.nanos // shape[key].nanos for key, most in limits.items() if key in shape)
    return max(0, min((_NODES_MOST, *fits)))


# Cluster autoscaler, by Cluster API.


def _cluster_api(deployment: JsonObject) -> Iterator[ElasticPool]:
    most, least = (annotation(deployment, f"{_SIZE}{item}-size") for item in ("max", "min"))
    shape = {
        resource: Quantity.of(value)
        for suffix, resource in _AMOUNTS.items()
        if (value := annotation(deployment, _CAPACITY + suffix))
    }
    gpus = annotation(deployment, f"{_CAPACITY}gpu-count")
    if gpus and gpus != "0":
        shape[annotation(deployment, f"{_CAPACITY}gpu-type") or _GPU] = Quantity.of(gpus)
    if not most.isdecimal() or not shape:
        return
    yield ElasticPool(
        name=_name(text(deployment, "metadata", "namespace"), name_of(deployment)),
        shape=shape,
        labels=_pairs(annotation(deployment, f"{_CAPACITY}labels")),
        taints=tuple(_written_taints(annotation(deployment, f"{_CAPACITY}taints"))),
        count_max=int(most),
        count_min=int(least) if least.isdecimal() else 0,
    )


def _pairs(text: str) -> dict[str, str]:
    """Parses labels of an annotation: key=value,key=value."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _written_taints(text: str) -> Iterator[Taint]:
    """Parses taints of an annotation: key=value:Effect,key=value:Effect."""
    plain: list[dict[str, Any]] = []
    for part in text.split(","):
        what, _, effect = part.strip().rpartition(":")
        key, _, value = what.partition("=")
        plain.append({"key": key, "value": value, "effect": effect})
    return _taints(plain)


def _taints(several: Iterable[Mapping[str, Any]]) -> Iterator[Taint]:
    for entry in several:
        if entry.get("key") and entry.get("effect") in _EFFECTS:
            value = str(entry.get("value") or "")
            yield Taint(key=str(entry["key"]), value=value, effect=entry["effect"])


def _name(*parts: str) -> str:
    plain = "-".join(part for part in parts if part).lower()
    return _NOT_IN_NAMES.sub("-", plain)[:_NAME_MOST].strip("-") or "pool"
