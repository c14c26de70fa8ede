"""Devices that drivers publish in resource slices, and their use (dynamic resource allocation).

A node's devices are counted under the name of their driver, such as `gpu.nvidia.com`, beside the
resources of its kubelet. Devices that are allocated to claims are in use, even if pods of works
claim them: claimed devices are not among the amounts charged to a work. Devices that belong to no
single node are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from fairway.api.amounts import NANO
from fairway.store.interface import ResourceKey

GROUP = "resource.k8s.io"
_MODELS = ("productName", "model", "type")  # attributes that name the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Devices of one node and driver."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    count: int = 0
    models: frozenset[str] = frozenset()


Pool = tuple[str, str]  # driver and name
ObjectName = tuple[str, str]  # namespace and name
Allocation = Mapping[Pool, int]  # devices allocated to a claim


class _Value(msgspec.Struct):
    string: str = ""


class _Device(msgspec.Struct):
    name: str = ""
    attributes: dict[str, _Value] = {}


class _PoolName(msgspec.Struct):
    name: str = ""


class _SliceSpec(msgspec.Struct, rename="camel"):
    driver: str = ""
    node_name: str = ""
    pool: _PoolName = msgspec.field(default_factory=_PoolName)
    devices: list[_Device] = []


class _Slice(msgspec.Struct):
    spec: _SliceSpec


class _Result(msgspec.Struct):
    driver: str = ""
    pool: str = ""


class _Devices(msgspec.Struct):
    results: list[_Result] = []


class _Allocation(msgspec.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class _ClaimStatus(msgspec.Struct):
    allocation: _Allocation | None = None


class _Claim(msgspec.Struct):
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


_decode_slice = msgspec.json.Decoder(_Slice).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode


def read_slice(raw: bytes) -> Slice:
    spec = _decode_slice(raw).spec
    models = {
        device.attributes[name].string
        for device in spec.devices
        for name in _MODELS
        if name in device.attributes
    }
    return Slice(
        node=spec.node_name,
        driver=spec.driver,
        pool=spec.pool.name,
        count=len(spec.devices),
        models=frozenset(models - {""}),
    )


def read_allocation(raw: bytes) -> Allocation:
    status = _decode_claim(raw).status
    results = status.allocation.devices.results if status.allocation is not None else ()
    return dict(Counter((result.driver, result.pool) for result in results))


def kinds_of(version: str) -> tuple[ResourceKey, ResourceKey]:
    """The kinds of slices and claims, in a version that the cluster serves."""
    return ResourceKey(GROUP, version, "resourceslices"), ResourceKey(
        GROUP, version, "resourceclaims"
    )


class Devices:
    """All devices of a cluster."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._of_node: dict[str, dict[str, Slice]] = {}
        self._node_of: dict[Pool, str] = {}
        self._claims: dict[ObjectName, Allocation] = {}
        self._taken: Counter[Pool] = Counter()

    def take_slice(self, name: str, said: Slice | None) -> set[str]:
        """Takes a slice, or its deletion; returns the affected nodes."""
        before = self._slices.pop(name, None)
        if before is not None:
            self._of_node[before.node].pop(name)
            if not self._of_node[before.node]:
                del self._of_node[before.node]
            pool = (before.driver, before.pool)
            if all((slice_.driver, slice_.pool) != pool for slice_ in self._slices.values()):
                self._node_of.pop(pool, None)
        if said is not None:
            self._slices[name] = said
            self._of_node.setdefault(said.node, {})[name] = said
            self._node_of[said.driver, said.pool] = said.node
        return {slice_.node for slice_ in (before, said) if slice_ is not None and slice_.node}

    def take_claim(self, place: ObjectName, claim: Allocation | None) -> set[str]:
        """Takes a claim, or its deletion; returns the affected nodes."""
        before = self._claims.pop(place, {})
        if claim:
            self._claims[place] = claim
        self._taken.subtract(before)
        self._taken.update(claim or {})
        for pool in [pair for pair in before if not self._taken[pair]]:
            del self._taken[pool]
        pools = {*before, *(claim or {})}
        return {self._node_of[pool] for pool in pools if self._node_of.get(pool)}

    def models(self) -> set[str]:
        return {model for slice_ in self._slices.values() for model in slice_.models}

    def on(self, node: str) -> tuple[dict[str, int], dict[str, int]]:
        """How many devices of each driver a node has, and how many are claimed; in nanos."""
        has: dict[str, int] = {}
        used: dict[str, int] = {}
        for pool in {
            (slice_.driver, slice_.pool) for slice_ in self._of_node.get(node, {}).values()
        }:
            if self._taken[pool]:
                used[pool[0]] = used.get(pool[0], 0) + NANO * self._taken[pool]
        for slice_ in self._of_node.get(node, {}).values():
            has[slice_.driver] = has.get(slice_.driver, 0) + NANO * slice_.count
        return has, used
