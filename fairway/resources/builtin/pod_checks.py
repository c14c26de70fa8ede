"""Faults of pods and pod templates that a schema cannot express.

Covers common mistakes in manifests: containers, names, images, volumes and their mounts, ports,
amounts, restart policies. What only a node can judge is left to the clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fairway.api.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required_field,
)
from fairway.resources.builtin.names import label_fault
from fairway.resources.builtin.parts import members, number, objects, read, text, with_paths
from fairway.resources.builtin.quantities import billionths, parse
from fairway.schema.node import JsonObject

_WHOLE = 10**9
_ENVIRONMENT_NAME = re.compile(r"[ -<>-~]+")
_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

# The resources of containers whose names need no domain.
_STANDARD = ("cpu", "memory", "ephemeral-storage", "hugepages-")
_NOT_STANDARD = (
    "must be a standard resource type or fully qualified",
    "must be a standard resource for containers",
)

# Enum fields of pods, containers and ports; checked where they are set.
_SPEC_CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_CONTAINER_CHOICES = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
}

# Fields of an existing pod that may still change; image changes are checked separately.
_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
_PLACEMENT = ("nodeSelector", "affinity")
_POD_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults = spec_faults(spec, "spec")
    if old is not None and not faults:
        faults.extend(_update_faults(spec, read(old, "spec")))
    return faults


def spec_faults(spec: JsonObject, path: str) -> list[FieldError]:
    """The faults of a pod spec, wherever it is."""
    faults = list(choices(spec, _SPEC_CHOICES, path))
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= 2**31 - 1:
        faults.append(invalid(f"{path}.activeDeadlineSeconds", deadline, _between(1, 2**31 - 1)))
    volumes: set[str] = set()
    for at, volume in with_paths(spec, "volumes", path):
        faults.extend(_name_faults(volume, at, volumes))
    if not members(spec, "containers"):
        faults.append(required_field(f"{path}.containers"))
    names: set[str] = set()
    volume_names = volumes | {text(object_, "name") for object_ in objects(spec, "volumes")}
    for group in ("containers", "initContainers"):
        for at, container in with_paths(spec, group, path):
            faults.extend(_container_faults(container, at, names, volume_names))
    return faults


def choices(
    parent: JsonObject, allowed: Mapping[str, tuple[str, ...]], path: str
) -> Iterator[FieldError]:
    """Faults of enum fields with a value that is not allowed; unset ones are fine."""
    for name, values in allowed.items():
        value = parent.get(name)
        if value not in (None, "") and value not in values:
            at = ".".join(part for part in (path, name) if part)
            yield not_supported(at, value, values)


def _name_faults(part: JsonObject, path: str, seen: set[str]) -> Iterator[FieldError]:
    name = text(part, "name")
    fault = label_fault(name)
    if not name:
        yield required_field(f"{path}.name")
    elif fault:
        yield invalid(f"{path}.name", name, fault)
    elif name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)


def _container_faults(
    container: JsonObject, path: str, names: set[str], volumes: set[str]
) -> Iterator[FieldError]:
    yield from _name_faults(container, path, names)
    image = text(container, "image")
    if not image:
        yield required_field(f"{path}.image")
    elif image != image.strip():
        message = "must not have leading or trailing whitespace"
        yield invalid(f"{path}.image", image, message)
    yield from choices(container, _CONTAINER_CHOICES, path)
    for at, port in with_paths(container, "ports", path):
        yield from port_faults(port, at)
    for at, variable in with_paths(container, "env", path):
        yield from _environment_faults(variable, at)
    yield from _mount_faults(container, path, volumes)
    yield from resource_faults(read(container, "resources"), f"{path}.resources")


def port_faults(port: JsonObject, path: str) -> Iterator[FieldError]:
    number_given = port.get("containerPort", 0)
    if number_given == 0:
        yield required_field(f"{path}.containerPort")
    elif not _is_port(number_given):
        yield invalid(f"{path}.containerPort", number_given, _between(1, 65535))
    host = port.get("hostPort", 0)
    if host != 0 and not _is_port(host):
        yield invalid(f"{path}.hostPort", host, _between(1, 65535))
    yield from choices(port, {"protocol": ("SCTP", "TCP", "UDP")}, path)


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and 1 <= value <= 65535


def _between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def _environment_faults(variable: JsonObject, path: str) -> Iterator[FieldError]:
    name = text(variable, "name")
    if not name:
        yield required_field(f"{path}.name")
    elif not _ENVIRONMENT_NAME.fullmatch(name):
        message = (
            "a valid environment variable name must consist only of printable ASCII "
            "characters other than '='"
        )
        yield invalid(f"{path}.name", name, message)
    source = variable.get("valueFrom")
    if isinstance(source, dict):
        if text(variable, "value"):
            message = "may not be specified when `value` is not empty"
            yield invalid(f"{path}.valueFrom", "", message)
        elif len(source) != 1:
            message = (
                "may not have more than one field specified at a time"
                if source
                else "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                "`secretKeyRef` or `fileKeyRef`"
            )
            yield invalid(f"{path}.valueFrom", "", message)


def _mount_faults(container: JsonObject, path: str, volumes: set[str]) -> Iterator[FieldError]:
    places: set[str] = set()
    for at, mount in with_paths(container, "volumeMounts", path):
        name, place = text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield required_field(f"{at}.name")
        elif name not in volumes:
            yield FieldError(f"{at}.name", "FieldValueNotFound", "", name, has_value=True)
        if not place:
            yield required_field(f"{at}.mountPath")
        elif place in places:
            yield invalid(f"{at}.mountPath", place, "must be unique")
        places.add(place)


def resource_faults(resources: JsonObject, path: str) -> Iterator[FieldError]:
    """Requests and limits: amounts must parse, not be negative, and not exceed their limit."""
    limits, requests = read(resources, "limits"), read(resources, "requests")
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            if "/" not in name and not name.startswith(_STANDARD):
                for message in _NOT_STANDARD:
                    yield invalid(f"{path}.{part}[{name}]", name, message)
        yield from amount_faults(amounts, f"{path}.{part}")
    for name, value in requests.items():
        is_extended = _is_extended(name)
        if name in limits:
            asked, most = billionths(value), billionths(limits[name])
            if asked > most:
                message = f"must be less than or equal to {name} limit of {limits[name]}"
                yield invalid(f"{path}.requests", value, message)
            elif is_extended and asked != most:
                message = f"must be equal to {name} limit of {limits[name]}"
                yield invalid(f"{path}.requests", value, message)
        elif is_extended:
            yield required_field(
                f"{path}.limits", "Limit must be set for non overcommitable resources"
            )


def amount_faults(amounts: JsonObject, path: str) -> Iterator[FieldError]:
    for name, value in amounts.items():
        at = f"{path}[{name}]"
        parsed = parse(value) if isinstance(value, str) else None
        if parsed is None:
            message = f"quantities must match the regular expression '{_QUANTITY_FORM}'"
            yield invalid(at, value, message)
        elif parsed[0] < 0:
            yield _negative(at, value)
        elif _is_extended(name) and parsed[0] % _WHOLE:
            yield invalid(at, value, "must be an integer")


def _is_extended(name: str) -> bool:
    """Resources outside Kubernetes' own: whole numbers, never overcommitted."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def _negative(path: str, value: Any) -> FieldError:
    return invalid(path, value, "must be greater than or equal to 0")


def _update_faults(spec: JsonObject, old: JsonObject) -> list[FieldError]:
    faults: list[FieldError] = []
    gated = bool(members(old, "schedulingGates"))
    if _frozen(spec, gated=gated) != _frozen(old, gated=gated) or _rebound(spec, old):
        faults.append(forbidden("spec", _POD_UPDATE))
    kept = members(old, "tolerations")
    if any(item not in members(spec, "tolerations") for item in kept):
        message = "existing toleration can not be modified except its tolerationSeconds"
        faults.append(forbidden("spec.tolerations", message))
    before, after = number(old, "activeDeadlineSeconds"), number(spec, "activeDeadlineSeconds")
    if before and (not after or after > before):
        message = f"must be less than or equal to previous value {before}"
        faults.append(invalid("spec.activeDeadlineSeconds", after, message))
    name = "terminationGracePeriodSeconds"
    shortened = spec.get(name) == 1 and number(old, name) < 0
    if spec.get(name) != old.get(name) and not shortened:
        faults.append(forbidden("spec", _POD_UPDATE))
    return faults[:1]


def _rebound(spec: JsonObject, old: JsonObject) -> bool:
    """Whether a pod would move to another node, or get new gates.

    A node may be set once: the hub has no binding subresource.
    """
    node, gates = text(old, "nodeName"), members(old, "schedulingGates")
    moved = bool(node) and text(spec, "nodeName") != node
    return moved or any(gate not in gates for gate in members(spec, "schedulingGates"))


def _frozen(spec: JsonObject, *, gated: bool) -> JsonObject:
    """The immutable parts of a pod spec; the placement of a gated pod may still change."""
    frozen = {key: value for key, value in spec.items() if key not in _CHANGEABLE}
    for name in ("nodeName", "schedulingGates", *(_PLACEMENT if gated else ())):
        frozen.pop(name, None)
    for name in ("containers", "initContainers"):
        if name in frozen:
            frozen[name] = [
                {key: value for key, value in object_.items() if key != "image"}
                for object_ in objects(frozen, name)
            ]
    return frozen
