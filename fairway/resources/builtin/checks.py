"""Faults of the simpler built-in kinds: content, addresses, claims, priorities, leases, events."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from fairway.api.errors import FieldError, duplicate, forbidden, invalid, required_field, too_long
from fairway.resources.builtin.names import key_fault, label_fault
from fairway.resources.builtin.parts import members, number, read, text, with_paths
from fairway.resources.builtin.pod_checks import choices
from fairway.resources.builtin.quantities import billionths
from fairway.resources.builtin.workload_checks import IMMUTABLE
from fairway.schema.node import JsonObject

_MOST_BYTES = 1024 * 1024
_HIGHEST_PRIORITY = 1_000_000_000
_WHEN_IMMUTABLE = "field is immutable when `immutable` is set"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIM_UPDATE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)
# The keys that a Secret of a known type must have.
_SECRET_KEYS: dict[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def secret(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    data = read(obj, "data")
    faults = list(_key_faults(data, "data"))
    size = 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except (binascii.Error, TypeError, ValueError):
            faults.append(invalid(f"data[{key}]", "<hidden>", "must be base64"))
    if size > _MOST_BYTES:
        faults.append(too_long("data", _MOST_BYTES))
    for key in _SECRET_KEYS.get(text(obj, "type"), ()):
        if key not in data:
            faults.append(required_field(f"data[{key}]"))
    if old is not None:
        if obj.get("type") != old.get("type"):
            faults.append(invalid("type", obj.get("type"), IMMUTABLE))
        faults.extend(_frozen_faults(obj, old, ("data",)))
    return faults


def config_map(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    data, binary = read(obj, "data"), read(obj, "binaryData")
    faults = [*_key_faults(data, "data"), *_key_faults(binary, "binaryData")]
    for key in sorted(data.keys() & binary.keys()):
        message = "duplicate of key present in binaryData"
        faults.append(invalid(f"data[{key}]", key, message))
    size = sum(len(str(value).encode()) for value in data.values())
    size += sum(len(str(value)) * 3 // 4 for value in binary.values())
    if size > _MOST_BYTES:
        faults.append(too_long("[]", _MOST_BYTES))
    if old is not None:
        faults.extend(_frozen_faults(obj, old, ("data", "binaryData")))
    return faults


def _key_faults(data: JsonObject, path: str) -> Iterator[FieldError]:
    for key in data:
        fault = key_fault(key)
        if fault:
            yield invalid(f"{path}[{key}]", key, fault)


def _frozen_faults(
    obj: JsonObject, old: JsonObject, names: tuple[str, ...]
) -> Iterator[FieldError]:
    if old.get("immutable") is not True:
        return
    if obj.get("immutable") is not True:
        yield forbidden("immutable", _WHEN_IMMUTABLE)
    for name in names:
        if read(obj, name) != read(old, name):
            yield forbidden(name, _WHEN_IMMUTABLE)


def service(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults: list[FieldError] = []
    kinds = {"type": ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")}
    faults.extend(choices(spec, kinds, "spec"))
    faults.extend(choices(spec, {"sessionAffinity": ("ClientIP", "None")}, "spec"))
    is_name = spec.get("type") == "ExternalName"
    if is_name and not text(spec, "externalName"):
        faults.append(required_field("spec.externalName"))
    ports = members(spec, "ports")
    if not ports and not is_name and spec.get("clusterIP") != "None":
        faults.append(required_field("spec.ports"))
    names: set[str] = set()
    seen: list[Any] = []
    for at, port in with_paths(spec, "ports", "spec"):
        faults.extend(_port_faults(port, at, names, needs_name=len(ports) > 1))
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            faults.append(duplicate(at, {"port": key[1], "protocol": key[0]}))
        seen.append(key)
    return faults


def _port_faults(
    port: JsonObject, path: str, names: set[str], *, needs_name: bool
) -> Iterator[FieldError]:
    name = text(port, "name")
    if not name:
        if needs_name:
            yield required_field(f"{path}.name")
    elif fault := label_fault(name):
        yield invalid(f"{path}.name", name, fault)
    elif name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)
    for field in ("port", "targetPort"):
        value = port.get(field)
        if isinstance(value, int) and not 1 <= value <= 65535:
            yield invalid(f"{path}.{field}", value, "must be between 1 and 65535, inclusive")
    yield from choices(port, {"protocol": ("SCTP", "TCP", "UDP")}, path)


def claim(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults: list[FieldError] = []
    if not members(spec, "accessModes"):
        faults.append(required_field("spec.accessModes", "at least 1 access mode is required"))
    for mode in members(spec, "accessModes"):
        faults.extend(choices({"accessModes": mode}, {"accessModes": _ACCESS_MODES}, "spec"))
    requests = read(spec, "resources", "requests")
    if "storage" not in requests:
        faults.append(required_field("spec.resources[storage]"))
    elif billionths(requests["storage"]) <= 0:
        message = "must be greater than zero"
        faults.append(invalid("spec.resources[storage]", requests["storage"], message))
    if old is not None and _fixed_claim(spec, old) != _fixed_claim(read(old, "spec"), old):
        faults.append(forbidden("spec", _CLAIM_UPDATE))
    return faults


def _fixed_claim(spec: JsonObject, old: JsonObject) -> JsonObject:
    """The parts of a claim's spec that may not change.

    A volume and a class can be set once, and a bound claim may request more.
    """
    fixed = {key: value for key, value in spec.items() if key != "volumeAttributesClassName"}
    for name in ("volumeName", "storageClassName"):
        if not text(old, "spec", name):
            fixed.pop(name, None)
    if text(old, "status", "phase") == "Bound":
        fixed.pop("resources", None)
    return fixed


def lease(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults: list[FieldError] = []
    duration = spec.get("leaseDurationSeconds")
    if isinstance(duration, int) and duration <= 0:
        message = "must be greater than 0"
        faults.append(invalid("spec.leaseDurationSeconds", duration, message))
    if number(spec, "leaseTransitions") < 0:
        message = "must be greater than or equal to 0"
        faults.append(invalid("spec.leaseTransitions", spec["leaseTransitions"], message))
    return faults


def priority_class(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    faults: list[FieldError] = []
    name, value = text(obj, "metadata", "name"), number(obj, "value")
    if name.startswith("system-"):
        message = "priority class names with 'system-' prefix are reserved for system use only"
        faults.append(forbidden("metadata.name", message))
    elif value > _HIGHEST_PRIORITY:
        message = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        faults.append(forbidden("value", message))
    policies = {"preemptionPolicy": ("PreemptLowerPriority", "Never")}
    faults.extend(choices(obj, policies, ""))
    if old is not None:
        if value != number(old, "value"):
            faults.append(forbidden("value", "may not be changed in an update."))
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            faults.append(invalid("preemptionPolicy", obj.get("preemptionPolicy"), IMMUTABLE))
    return faults


def event(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    namespace = text(obj, "metadata", "namespace")
    about = text(obj, "involvedObject", "namespace")
    # Events about cluster-scoped objects are in the default namespace.
    if about != namespace and not (not about and namespace == "default"):
        message = "does not match event.namespace"
        return [invalid("involvedObject.namespace", about, message)]
    return []
