"""Devices that drivers publish in resource slices, and their use (dynamic resource allocation).

A node has devices of a class if its slices list devices that the class selects. They are counted as
`deviceclass.resource.kubernetes.io/CLASS`, and by the extended resource of the class, if it has
one. Devices that are allocated to claims of pods of no work are used by others.

Not counted, because their number says too little: devices of no single node, devices that share
counters (partitions) or may be allocated several times, tainted devices, and pools of which slices
are missing. `faults` says how many there are of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from fairway.agent.drivers.kubernetes.device_classes import Device, DeviceClass, DeviceClasses
from fairway.api.amounts import NANO, QuantityError
from fairway.kinds.device_claims import GROUP, class_resource
from fairway.schema.cel.library_versions import quantity_value, version_value
from fairway.store.interface import ResourceKey

_MODELS = ("productName", "model", "type")  # attributes that name the model
_NO_EFFECT = "None"  # of a taint that only informs

Pool = tuple[str, str]  # driver and name
ObjectName = tuple[str, str]  # namespace and name
Allocated = tuple[str, str, str]  # driver, pool and device


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Devices of one driver, of one node or of several."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    generation: int = 0
    slices: int = 1  # of the pool, at this generation
    devices: tuple[Device, ...] = ()

    def nodes(self) -> set[str]:
        return {self.node or device.node for device in self.devices} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Devices that are allocated to a claim, and the pods that it is reserved for."""

    devices: tuple[Allocated, ...] = ()
    pods: tuple[ObjectName, ...] = ()


class _Value(msgspec.Struct):
    string: str | None = None
    number: int | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None
    value: str | None = None  # of a capacity


class _Taint(msgspec.Struct):
    effect: str = ""


class _Device(msgspec.Struct, rename="camel"):
    name: str = ""
    attributes: dict[str, _Value] = {}
    capacity: dict[str, _Value] = {}
    consumes_counters: list[msgspec.Raw] = []
    allow_multiple_allocations: bool = False
    taints: list[_Taint] = []
    node_name: str = ""


class _PoolName(msgspec.Struct, rename="camel"):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class _SliceSpec(msgspec.Struct, rename="camel"):
    driver: str = ""
    node_name: str = ""
    pool: _PoolName = msgspec.field(default_factory=_PoolName)
    devices: list[_Device] = []


class _Slice(msgspec.Struct):
    spec: _SliceSpec


class _Result(msgspec.Struct, rename="camel"):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class _Devices(msgspec.Struct):
    results: list[_Result] = []


class _Allocation(msgspec.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class _Consumer(msgspec.Struct):
    name: str = ""
    resource: str = ""


class _ClaimStatus(msgspec.Struct, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] = []


class _Metadata(msgspec.Struct):
    namespace: str = ""


class _Claim(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


_decode_slice = msgspec.json.Decoder(_Slice).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode


def read_slice(raw: bytes) -> Slice:
    spec = _decode_slice(raw).spec
    return Slice(
        node=spec.node_name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slices=spec.pool.resource_slice_count,
        devices=tuple(_device(device, spec) for device in spec.devices),
    )


def _device(device: _Device, spec: _SliceSpec) -> Device:
    fault = ""
    if not (spec.node_name or device.node_name):
        fault = "of no single node"
    elif device.consumes_counters:
        fault = "with shared counters"
    elif device.allow_multiple_allocations:
        fault = "that may be allocated several times"
    elif any(taint.effect != _NO_EFFECT for taint in device.taints):
        fault = "with a taint"
    return Device(
        name=device.name,
        driver=spec.driver,
        attributes=_by_domain(device.attributes, spec.driver),
        capacity=_by_domain(device.capacity, spec.driver),
        node=device.node_name,
        fault=fault,
    )


def _by_domain(values: Mapping[str, _Value], driver: str) -> dict[str, dict[str, object]]:
    """Values by domain; a name without one belongs to the driver."""
    result: dict[str, dict[str, object]] = {driver: {}}
    for key, value in values.items():
        domain, _, name = key.rpartition("/")
        plain = _plain(value)
        if plain is not None:
            result.setdefault(domain or driver, {})[name] = plain
    return result


def _plain(value: _Value) -> object:
    """A value as CEL sees it; None if it cannot be read."""
    try:
        if value.value is not None:
            return quantity_value(value.value)
        if value.version is not None:
            return version_value(value.version)
    except (ValueError, QuantityError):
        return None
    return next(
        (item for item in (value.string, value.number, value.flag) if item is not None), None
    )


def read_allocation(raw: bytes) -> Allocation:
    claim = _decode_claim(raw)
    status = claim.status
    results = status.allocation.devices.results if status.allocation is not None else ()
    return Allocation(
        devices=tuple(
            (result.driver, result.pool, result.device)
            for result in results
            if not result.admin_access
        ),
        pods=tuple(
            (claim.metadata.namespace, consumer.name)
            for consumer in status.reserved_for
            if consumer.resource == "pods"
        ),
    )


def kinds_of(version: str) -> tuple[ResourceKey, ResourceKey, ResourceKey]:
    """The kinds of slices, claims and classes, in a version that the cluster serves."""
    slices, claims, classes = "resourceslices", "resourceclaims", "deviceclasses"
    return (
        ResourceKey(GROUP, version, slices),
        ResourceKey(GROUP, version, claims),
        ResourceKey(GROUP, version, classes),
    )


class Devices:
    """All devices of a cluster."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._of_pool: dict[Pool, dict[str, Slice]] = {}
        self._pools_on: dict[str, set[Pool]] = {}  # by node
        self._claims: dict[ObjectName, Allocation] = {}
        self._claims_of: dict[ObjectName, set[ObjectName]] = {}  # by pod
        self._holder: dict[Allocated, ObjectName] = {}  # claim of a device
        self._classes = DeviceClasses()

    def take_class(self, name: str, device_class: DeviceClass | None) -> set[str]:
        """Takes a class, or its deletion; returns the affected nodes."""
        return set(self._pools_on) if self._classes.take(name, device_class) else set()

    def take_slice(self, name: str, said: Slice | None) -> set[str]:
        """Takes a slice, or its deletion; returns the affected nodes."""
        affected: set[str] = set()
        for part in (self._slices.pop(name, None), said):
            if part is None:
                continue
            pool = (part.driver, part.pool)
            several = self._of_pool.setdefault(pool, {})
            affected |= self._nodes_of(several.values()) | part.nodes()
            several.pop(name, None)
            if part is said:
                self._slices[name] = several[name] = part
            if not several:
                del self._of_pool[pool]
        for node in affected:
            here = {
                (part.driver, part.pool) for part in self._slices.values() if node in part.nodes()
            }
            self._pools_on.pop(node, None)
            if here:
                self._pools_on[node] = here
        return affected

    def take_claim(self, place: ObjectName, claim: Allocation | None) -> set[str]:
        """Takes a claim, or its deletion; returns the affected nodes."""
        before = self._claims.pop(place, Allocation())
        after = claim or Allocation()
        for pod in before.pods:
            self._claims_of[pod].discard(place)
            if not self._claims_of[pod]:
                del self._claims_of[pod]
        for device in before.devices:
            self._holder.pop(device, None)
        if after.devices:
            self._claims[place] = after
            self._holder.update(dict.fromkeys(after.devices, place))
            for pod in after.pods:
                self._claims_of.setdefault(pod, set()).add(place)
        return self._nodes_with((*before.devices, *after.devices))

    def nodes_of_pod(self, pod: ObjectName) -> set[str]:
        """The nodes with devices that are allocated to a pod."""
        return self._nodes_with(
            device
            for place in self._claims_of.get(pod, ())
            for device in self._claims[place].devices
        )

    def models(self) -> set[str]:
        """What the devices call their models."""
        return {
            value
            for part in self._slices.values()
            for device in part.devices
            for some in device.attributes.values()
            for name, value in some.items()
            if name in _MODELS and isinstance(value, str) and value
        }

    def faults(self) -> list[str]:
        """How many devices are not counted, and why; and classes that could not be evaluated."""
        why: Counter[str] = Counter()
        for pool, parts in self._of_pool.items():
            current = self._current(pool)
            for part in parts.values():
                for device in part.devices:
                    if part not in current:
                        why["of a pool that is not complete"] += 1
                    elif device.fault:
                        why[device.fault] += 1
        counted = [
            f"{count} {'device' if count == 1 else 'devices'} {fault}"
            for fault, count in sorted(why.items())
        ]
        return [*counted, *self._classes.faults()]

    def on(
        self, node: str, own_pods: Mapping[ObjectName, object]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """How many devices of each class a node has, and how many others use; in nanos.

        `own_pods` are those of works, whose devices are not used by others.
        """
        has: dict[str, int] = {}
        used: dict[str, int] = {}
        for pool, device in self._devices_on(node):
            is_used = self._is_used((*pool, device.name), own_pods)
            names = self._classes.of(device)
            resources = {self._classes.extended_resource(name) for name in names} - {""}
            for resource in (*map(class_resource, names), *sorted(resources)):
                has[resource] = has.get(resource, 0) + NANO
                used[resource] = used.get(resource, 0) + (NANO if is_used else 0)
        return has, used

    def _is_used(self, device: Allocated, own_pods: Mapping[ObjectName, object]) -> bool:
        place = self._holder.get(device)
        if place is None:
            return False
        return not any(pod in own_pods for pod in self._claims[place].pods)

    def _devices_on(self, node: str) -> Iterator[tuple[Pool, Device]]:
        """The devices of a node that can be counted."""
        for pool in sorted(self._pools_on.get(node, ())):
            for part in self._current(pool):
                for device in part.devices:
                    if node == (part.node or device.node) and not device.fault:
                        yield pool, device

    def _current(self, pool: Pool) -> list[Slice]:
        """The slices of a pool's newest generation; none unless all are there."""
        parts = self._of_pool.get(pool, {}).values()
        newest = max((part.generation for part in parts), default=0)
        current = [part for part in parts if part.generation == newest]
        return current if current and len(current) >= current[0].slices else []

    def _nodes_of(self, parts: Iterable[Slice]) -> set[str]:
        return {node for part in parts for node in part.nodes()}

    def _nodes_with(self, devices: Iterable[Allocated]) -> set[str]:
        pools = {(driver, pool) for driver, pool, _ in devices}
        return {
            node for pool in pools for node in self._nodes_of(self._of_pool.get(pool, {}).values())
        }
