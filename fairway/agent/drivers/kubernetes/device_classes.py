"""Device classes of a cluster, and which devices each selects.

The selectors of a class are CEL expressions over a device: its driver, attributes and capacities.
Many devices are alike in what selectors read, so each sort of device is evaluated once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from fairway.schema.cel.environment import CompileError, EvaluationError, compile

_WALKS = re.compile(r"\.(all|exists|exists_one|map|filter|transformList|transformMap)\(")
_KNOWN_MOST = 65_536
_LABEL = "device"

Values = Mapping[str, Mapping[str, object]]  # domain -> {name: value}
Sort = tuple[object, ...]  # what selectors can read of a device


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of a node."""

    name: str
    driver: str = ""
    attributes: Values = field(default_factory=dict)
    capacity: Values = field(default_factory=dict)
    node: str = ""  # where its slice leaves the node to the device
    fault: str = ""  # why it cannot be counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A class, by its selectors; all must hold."""

    selectors: tuple[str, ...] = ()
    extended_resource: str = ""


class _Cel(msgspec.Struct):
    expression: str = ""


class _Selector(msgspec.Struct):
    cel: _Cel = msgspec.field(default_factory=_Cel)


class _ClassSpec(msgspec.Struct, rename="camel"):
    selectors: list[_Selector] = []
    extended_resource_name: str = ""


class _Class(msgspec.Struct):
    spec: _ClassSpec = msgspec.field(default_factory=_ClassSpec)


_decode = msgspec.json.Decoder(_Class).decode


def read_class(raw: bytes) -> DeviceClass:
    spec = _decode(raw).spec
    return DeviceClass(
        selectors=tuple(selector.cel.expression for selector in spec.selectors),
        extended_resource=spec.extended_resource_name,
    )


class DeviceClasses:
    """All classes of a cluster."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._faults: dict[str, str] = {}  # by class
        self._known: dict[Sort, tuple[str, ...]] = {}
        self._text = ""

    def take(self, name: str, device_class: DeviceClass | None) -> bool:
        """Takes a class, or its deletion; returns whether anything changed."""
        if self._classes.get(name) == device_class:
            return False
        self._classes.pop(name, None)
        if device_class is not None:
            self._classes[name] = device_class
        self._text = " ".join(text for each in self._classes.values() for text in each.selectors)
        self._known.clear()
        self._faults.clear()
        return True

    def extended_resource(self, name: str) -> str:
        known = self._classes.get(name)
        return known.extended_resource if known is not None else ""

    def faults(self) -> list[str]:
        """Why classes do not select all devices that they might."""
        return [f"class {name}: {fault}" for name, fault in sorted(self._faults.items())]

    def of(self, device: Device) -> tuple[str, ...]:
        """The classes that select a device, in order of their names."""
        attributes, capacity = self._read(device.attributes), self._read(device.capacity)
        sort: Sort = (device.driver, _frozen(attributes), _frozen(capacity))
        known = self._known.get(sort)
        if known is None:
            if len(self._known) >= _KNOWN_MOST:
                self._known.clear()
            value = {"driver": device.driver, "attributes": attributes, "capacity": capacity}
            known = tuple(name for name in sorted(self._classes) if self._selects(name, value))
            self._known[sort] = known
        return known

    def _read(self, values: Values) -> dict[str, dict[str, object]]:
        """The values that an expression can read: those that it names, or all if it walks them."""
        walks = _WALKS.search(self._text) is not None
        return {
            domain: {name: value for name, value in some.items() if walks or name in self._text}
            for domain, some in values.items()
        }

    def _selects(self, name: str, device: Mapping[str, object]) -> bool:
        try:
            return all(
                compile(text, {_LABEL: "dyn"}).evaluate({_LABEL: device}) is True
                for text in self._classes[name].selectors
            )
        except CompileError as fault:
            self._faults[name] = str(fault)
        except EvaluationError as fault:
            # Devices of other drivers lack the attributes that an expression reads.
            if "no such key" not in str(fault):
                self._faults[name] = str(fault)
        return False


def _frozen(values: Values) -> tuple[object, ...]:
    return tuple(
        (domain, tuple(sorted((name, repr(value)) for name, value in some.items())))
        for domain, some in sorted(values.items())
    )
