"""Defaults that Kubernetes sets on pods and pod templates when they are written.

`pod_spec` serves every pod template; `pod` adds what only a Pod itself gets: requests taken from
limits, service links, its first phase and its quality-of-service class. What a cluster's admission
adds (default tolerations, service-account volumes, the value of a priority class) is left to the
clusters where pods run.
"""

from __future__ import annotations

from typing import Any

from fairway.resources.builtin.parts import (
    fill,
    fill_empty,
    make_object,
    members,
    objects,
    read,
    text,
)
from fairway.resources.builtin.quantities import billionths, canonical, normalise
from fairway.schema.node import JsonObject

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_READABLE_BY_ALL = 0o644

_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}

# Volume sources with defaults of their own, as Kubernetes documents them.
_VOLUMES: dict[str, dict[str, Any]] = {
    "secret": {"defaultMode": _READABLE_BY_ALL},
    "configMap": {"defaultMode": _READABLE_BY_ALL},
    "downwardAPI": {"defaultMode": _READABLE_BY_ALL},
    "projected": {"defaultMode": _READABLE_BY_ALL},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def pod(obj: JsonObject, old: JsonObject | None) -> None:
    """A Pod, created or updated."""
    spec = make_object(obj, "spec")
    pod_spec(spec)
    fill(spec, {"enableServiceLinks": True})
    for name in ("initContainers", "containers"):
        for container in objects(spec, name):
            _request_limits(container)
            if spec.get("hostNetwork") is True:
                for port in objects(container, "ports"):
                    fill_empty(port, {"hostPort": port.get("containerPort")})
    if old is None:
        obj["status"] = {"phase": "Pending", "qosClass": quality_class(spec)}
        gated = objects(spec, "schedulingGates")
        if gated:
            obj["status"]["conditions"] = [_gated(obj)]


def pod_spec(spec: JsonObject) -> None:
    """The spec of a pod or of a pod template."""
    fill_empty(spec, _SPEC)
    fill(spec, {"securityContext": {}, "terminationGracePeriodSeconds": 30})
    # `serviceAccount` is the older name of the same field; each follows the other.
    account = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in _CONTAINER_LISTS:
        for container in objects(spec, name):
            _container(container)
    for volume in objects(spec, "volumes"):
        _volume(volume)
    normalise(spec, "overhead")
    for part in ("limits", "requests"):
        normalise(spec, "resources", part)


def pull_policy(image: str) -> str:
    """Images without a tag, or with `latest`, are pulled each time."""
    name, _, digest = image.partition("@")
    _, _, tag = name.rsplit("/", 1)[-1].partition(":")
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def quality_class(spec: JsonObject) -> str:
    """Guaranteed, Burstable or BestEffort, by the requests and limits of cpu and memory."""
    containers = objects(spec, "containers") + objects(spec, "initContainers")
    whole = read(spec, "resources")
    sources = [whole] if whole else [read(container, "resources") for container in containers]
    some, all_limited, equal = False, True, True
    for resources in sources:
        requests, limits = read(resources, "requests"), read(resources, "limits")
        for name in ("cpu", "memory"):
            requested, limit = billionths(requests.get(name)), billionths(limits.get(name))
            some = some or requested > 0 or limit > 0
            all_limited = all_limited and limit > 0
            equal = equal and (requested or limit) == limit
    if not some:
        return "BestEffort"
    return "Guaranteed" if all_limited and equal else "Burstable"


def _gated(obj: JsonObject) -> JsonObject:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastTransitionTime": read(obj, "metadata").get("creationTimestamp"),
    }


def _container(container: JsonObject) -> None:
    fill_empty(container, _CONTAINER)
    fill_empty(container, {"imagePullPolicy": pull_policy(text(container, "image"))})
    fill(container, {"resources": {}})
    for part in ("limits", "requests"):
        normalise(container, "resources", part)
    for port in objects(container, "ports"):
        fill_empty(port, {"protocol": "TCP"})
    for name in _PROBES:
        if probe := read(container, name):
            fill_empty(probe, _PROBE)
            _handler(probe)
    for name in ("postStart", "preStop"):
        _handler(read(container, "lifecycle", name))
    for variable in objects(container, "env"):
        source = read(variable, "valueFrom")
        if reference := read(source, "fieldRef"):
            fill_empty(reference, {"apiVersion": "v1"})
        if reference := read(source, "resourceFieldRef"):
            _divisor(reference)
        if reference := read(source, "fileKeyRef"):
            fill(reference, {"optional": False})


def _handler(handler: JsonObject) -> None:
    if request := read(handler, "httpGet"):
        fill_empty(request, {"path": "/", "scheme": "HTTP"})
    if call := read(handler, "grpc"):
        fill(call, {"service": ""})


def _divisor(reference: JsonObject) -> None:
    fill(reference, {"divisor": "0"})
    reference["divisor"] = canonical(reference["divisor"])


def _volume(volume: JsonObject) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for name, defaults in _VOLUMES.items():
        if isinstance(volume.get(name), dict):
            fill(volume[name], defaults)
    if limit := read(volume, "emptyDir").get("sizeLimit"):
        volume["emptyDir"]["sizeLimit"] = canonical(limit)
    if image := read(volume, "image"):
        fill_empty(image, {"pullPolicy": pull_policy(text(image, "reference"))})
    if claim := read(volume, "ephemeral", "volumeClaimTemplate"):
        claim_spec(make_object(claim, "spec"))
    for item in members(read(volume, "downwardAPI"), "items"):
        _downward(item)
    for source in objects(read(volume, "projected"), "sources"):
        if token := read(source, "serviceAccountToken"):
            fill(token, {"expirationSeconds": 3600})
        for item in members(read(source, "downwardAPI"), "items"):
            _downward(item)


def _downward(item: Any) -> None:
    if reference := read(item, "fieldRef"):
        fill_empty(reference, {"apiVersion": "v1"})
    if reference := read(item, "resourceFieldRef"):
        _divisor(reference)


def claim_spec(spec: JsonObject) -> None:
    """The spec of a volume claim, wherever it is."""
    fill_empty(spec, {"volumeMode": "Filesystem"})
    for part in ("limits", "requests"):
        normalise(spec, "resources", part)


def _request_limits(container: JsonObject) -> None:
    limits = read(container, "resources", "limits")
    if limits:
        fill(make_object(make_object(container, "resources"), "requests"), limits)
