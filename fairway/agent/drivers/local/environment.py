"""The environment and the command of a container, resolved as a kubelet would.

Values come from the manifest, from ConfigMaps and Secrets that travel with the work, and from the
pod itself. `$(NAME)` expands to a variable set earlier, `$$` to a dollar sign, and a reference to a
variable that does not exist is left unchanged.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.amounts import Amounts, Quantity, QuantityError
from fairway.api.meta import JsonObject
from fairway.kinds.interface import Pod
from fairway.kinds.plain import child, maps_at, name_of, text

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_MAP_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class PodFault(Exception):
    """Why a pod cannot run here, beginning with the path of the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The sources that values of a pod may come from."""

    pod: Pod
    namespace: str
    node: str
    allocatable: Amounts
    uid: str = ""
    settings: Mapping[str, JsonObject] = field(default_factory=dict)  # ConfigMaps by name
    secrets: Mapping[str, JsonObject] = field(default_factory=dict)


def expand(value: str, variables: Mapping[str, str]) -> str:
    """Replaces references to variables in a text."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replacement, value)


def environment(container: JsonObject, around: Surroundings, path: str) -> dict[str, str]:
    """The variables of a container; each may refer to earlier ones."""
    variables: dict[str, str] = {}
    for index, source in enumerate(maps_at(container, "envFrom")):
        prefix = text(source, "prefix")
        place = f"{path}.envFrom[{index}]"
        for key, value in _whole(source, around, place).items():
            variables[prefix + key] = value
    for index, variable in enumerate(maps_at(container, "env")):
        place = f"{path}.env[{index}]"
        result = _value(variable, container, around, variables, place)
        if result is not None:
            variables[text(variable, "name")] = result
    return variables


def _value(
    entry: JsonObject,
    container: JsonObject,
    around: Surroundings,
    variables: Mapping[str, str],
    path: str,
) -> str | None:
    source = child(entry, "valueFrom")
    if not source:
        return expand(str(entry.get("value") or ""), variables)
    place = f"{path}.valueFrom"
    if "fieldRef" in source:
        return pod_field(text(source, "fieldRef", "fieldPath"), around, f"{place}.fieldRef")
    if "resourceFieldRef" in source:
        return amount(child(source, "resourceFieldRef"), container, around, place)
    for name, kept in (("configMapKeyRef", around.settings), ("secretKeyRef", around.secrets)):
        if name in source:
            return _key(child(source, name), kept, f"{place}.{name}")
    raise PodFault(f"{place}: a local cluster does not know this source")


def contents(body: JsonObject) -> dict[str, bytes]:
    """What a ConfigMap or a Secret holds, by key."""
    plain = {**child(body, "data"), **child(body, "stringData")}
    made = {key: str(value).encode() for key, value in plain.items()}
    encoded = child(body, "binaryData")
    if body.get("kind") == "Secret":
        encoded = child(body, "data")
    for key, value in encoded.items():
        if key in child(body, "stringData"):
            continue
        try:
            made[key] = base64.b64decode(str(value))
        except binascii.Error as fault:
            raise PodFault(f"{body.get('kind')} {name_of(body)}: data[{key}]: {fault}") from fault
    return made


def _key(reference: JsonObject, kept: Mapping[str, JsonObject], path: str) -> str | None:
    name, key = text(reference, "name"), text(reference, "key")
    held = contents(kept[name]) if name in kept else {}
    if key in held:
        return held[key].decode(errors="surrogateescape")
    if reference.get("optional") is True:
        return None
    raise PodFault(f"{path}: there is no key {key!r} in {name!r} among what travels with the work")


def _whole(source: JsonObject, around: Surroundings, path: str) -> dict[str, str]:
    for name, kept in (("configMapRef", around.settings), ("secretRef", around.secrets)):
        reference = child(source, name)
        if text(reference, "name") in kept:
            held = contents(kept[text(reference, "name")])
            return {key: value.decode(errors="surrogateescape") for key, value in held.items()}
        if reference and reference.get("optional") is not True:
            raise PodFault(
                f"{path}.{name}: {text(reference, 'name')!r} is not among what travels with the "
                "work"
            )
    return {}


def pod_field(field_path: str, around: Surroundings, path: str) -> str:
    """A field of the pod itself."""
    pod = around.pod
    known = {
        "metadata.name": pod.name,
        "metadata.namespace": around.namespace,
        "metadata.uid": around.uid,
        "spec.nodeName": around.node,
        "spec.serviceAccountName": text(pod.spec, "serviceAccountName", default="default"),
        "status.hostIP": "127.0.0.1",
        "status.hostIPs": "127.0.0.1",
        "status.podIP": "127.0.0.1",
        "status.podIPs": "127.0.0.1",
    }
    if field_path in known:
        return known[field_path]
    match = _MAP_FIELD.fullmatch(field_path)
    if match is None:
        raise PodFault(f"{path}.fieldPath: {field_path!r} is not a field that a pod can ask for")
    held = pod.labels if match[1] == "labels" else pod.annotations
    return held.get(match[2], "")


def amount(reference: JsonObject, container: JsonObject, around: Surroundings, path: str) -> str:
    """A request or limit in units of its divisor, rounded up; the machine's amount if no limit."""
    name = text(reference, "containerName")
    for entry in (
        *maps_at(around.pod.spec, "initContainers"),
        *maps_at(around.pod.spec, "containers"),
    ):
        if name and name_of({"metadata": entry}) == name:
            container = entry
    which, _, resource = text(reference, "resource").partition(".")
    if which not in ("limits", "requests"):
        raise PodFault(f"{path}.resourceFieldRef.resource: neither a limit nor a request")
    resources = child(container, "resources")
    given = child(resources, which).get(resource)
    if given is None and which == "requests":
        given = child(resources, "limits").get(resource)
    try:
        nanos = Quantity.of(given).nanos if given is not None else 0
        divisor = Quantity.of(reference.get("divisor") or 1).nanos or Quantity.of(1).nanos
    except QuantityError as fault:
        raise PodFault(f"{path}.resourceFieldRef: {fault}") from fault
    if given is None and which == "limits":
        nanos = around.allocatable[resource]
    return str(-(-nanos // divisor))
