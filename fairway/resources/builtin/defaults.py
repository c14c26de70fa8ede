"""Defaults that Kubernetes sets on its own kinds when they are written, one function per kind.

Each is a `Prepare`: it changes the object in place, before validation, and may get any JSON. The
zero values that Kubernetes' encoder writes (`status: {}`, `name: ""`) are defaults in the schemas.

Cluster addresses of Services are not allocated: the hub runs no network.
"""

from __future__ import annotations

import base64
from copy import deepcopy

from fairway.resources.builtin.parts import (
    fill,
    fill_empty,
    make_object,
    members,
    objects,
    read,
    text,
)
from fairway.resources.builtin.pod_defaults import claim_spec, pod_spec
from fairway.resources.builtin.quantities import normalise
from fairway.schema.node import JsonObject

RBAC_GROUP = "rbac.authorization.k8s.io"
_DAY_SECONDS_OF_AFFINITY = 10800
_MOST_FAILURES = 2**31 - 1
_REACHABLE_FROM_OUTSIDE = ("NodePort", "LoadBalancer")


def namespace(obj: JsonObject, old: JsonObject | None) -> None:
    metadata = make_object(obj, "metadata")
    if name := text(metadata, "name"):
        make_object(metadata, "labels")["kubernetes.io/metadata.name"] = name
    if old is None:
        make_object(obj, "spec")["finalizers"] = ["kubernetes"]
        obj["status"] = {"phase": "Active"}
    else:
        fill(make_object(obj, "spec"), {"finalizers": members(read(old, "spec"), "finalizers")})
        fill_empty(make_object(obj, "status"), {"phase": text(old, "status", "phase") or "Active"})


def service(obj: JsonObject, old: JsonObject | None) -> None:
    spec = make_object(obj, "spec")
    fill_empty(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    kind = spec.get("type")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = make_object(make_object(spec, "sessionAffinityConfig"), "clientIP")
        fill(client, {"timeoutSeconds": _DAY_SECONDS_OF_AFFINITY})
    for port in objects(spec, "ports"):
        fill_empty(port, {"protocol": "TCP"})
        if port.get("targetPort") in (None, "", 0) and port.get("port") is not None:
            port["targetPort"] = port["port"]
    if kind in _REACHABLE_FROM_OUTSIDE or (kind == "ClusterIP" and spec.get("externalIPs")):
        fill_empty(spec, {"externalTrafficPolicy": "Cluster"})
    if kind != "ExternalName":
        fill(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        fill(spec, {"allocateLoadBalancerNodePorts": True})
    if old is None:
        obj["status"] = {"loadBalancer": {}}


def claim(obj: JsonObject, old: JsonObject | None) -> None:
    claim_spec(make_object(obj, "spec"))
    if old is None:
        obj["status"] = {"phase": "Pending"}
    normalise(obj, "status", "capacity")


def secret(obj: JsonObject, old: JsonObject | None) -> None:
    """Moves the strings of `stringData` into `data`, where they override existing keys."""
    fill_empty(obj, {"type": "Opaque"})
    given = obj.pop("stringData", None)
    if isinstance(given, dict) and given:
        data = make_object(obj, "data")
        for key, value in given.items():
            if isinstance(value, str):
                data[key] = base64.b64encode(value.encode()).decode()
            else:
                # Put back what cannot be encoded, so that validation reports it.
                obj.setdefault("stringData", {})[key] = value
    elif given is not None and not isinstance(given, dict):
        obj["stringData"] = given


def job(obj: JsonObject, old: JsonObject | None) -> None:
    spec = make_object(obj, "spec")
    if spec.get("parallelism") is None and spec.get("completions") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": _MOST_FAILURES if per_index else 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": replacement,
            "manualSelector": False,
        },
    )
    for rule in objects(read(spec, "podFailurePolicy"), "rules"):
        for pattern in objects(rule, "onPodConditions"):
            fill_empty(pattern, {"status": "True"})
    template = make_object(spec, "template")
    metadata = make_object(obj, "metadata")
    pod_spec(make_object(template, "spec"))
    if old is None:
        obj["status"] = {}
        if spec.get("manualSelector") is False:
            _select_own_pods(spec, metadata)
    labels = read(template, "metadata", "labels")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _select_own_pods(spec: JsonObject, metadata: JsonObject) -> None:
    """A job's pods carry its uid, and it selects by that: two jobs never share pods."""
    uid, name = text(metadata, "uid"), text(metadata, "name")
    labels = make_object(make_object(make_object(spec, "template"), "metadata"), "labels")
    identity = {"batch.kubernetes.io/controller-uid": uid}
    labels.update(identity)
    labels.update({"controller-uid": uid})
    labels.update({"batch.kubernetes.io/job-name": name, "job-name": name})
    fill(make_object(make_object(spec, "selector"), "matchLabels"), identity)


def deployment(obj: JsonObject, old: JsonObject | None) -> None:
    spec = make_object(obj, "spec")
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    strategy = make_object(spec, "strategy")
    fill_empty(strategy, {"type": "RollingUpdate"})
    if strategy.get("type") == "RollingUpdate":
        fill(make_object(strategy, "rollingUpdate"), {"maxUnavailable": "25%", "maxSurge": "25%"})
    pod_spec(make_object(make_object(spec, "template"), "spec"))
    if old is None:
        obj["status"] = {}


def stateful_set(obj: JsonObject, old: JsonObject | None) -> None:
    spec = make_object(obj, "spec")
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10})
    fill_empty(spec, {"podManagementPolicy": "OrderedReady"})
    strategy = make_object(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        make_object(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        fill(strategy["rollingUpdate"], {"partition": 0})
    retention = make_object(spec, "persistentVolumeClaimRetentionPolicy")
    fill_empty(retention, {"whenDeleted": "Retain", "whenScaled": "Retain"})
    pod_spec(make_object(make_object(spec, "template"), "spec"))
    for template in objects(spec, "volumeClaimTemplates"):
        template.update({"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        claim_spec(make_object(template, "spec"))
        fill_empty(make_object(template, "status"), {"phase": "Pending"})
    if old is None:
        obj["status"] = {"replicas": 0, "availableReplicas": 0}


def priority_class(obj: JsonObject, old: JsonObject | None) -> None:
    fill(obj, {"preemptionPolicy": "PreemptLowerPriority"})


def role_binding(obj: JsonObject, old: JsonObject | None) -> None:
    """The defaults of RoleBinding and ClusterRoleBinding."""
    fill_empty(make_object(obj, "roleRef"), {"apiGroup": RBAC_GROUP})
    for subject in objects(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill_empty(subject, {"apiGroup": RBAC_GROUP})


def definition(obj: JsonObject, old: JsonObject | None) -> None:
    """A CustomResourceDefinition; it is served as soon as it is written, and its status says so."""
    spec = make_object(obj, "spec")
    names = make_object(spec, "names")
    kind = text(names, "kind")
    fill_empty(names, {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""})
    conversion = make_object(spec, "conversion")
    fill_empty(conversion, {"strategy": "None"})
    if old is None:
        obj["status"] = {}
    status = make_object(obj, "status")
    previous = read(old, "status")
    status["acceptedNames"] = deepcopy(names)
    stored = members(status, "storedVersions") or members(previous, "storedVersions")
    status["storedVersions"] = _with_storage_version(stored, spec)
    fill(status, {"conditions": members(previous, "conditions") or _establish(obj)})


def _with_storage_version(stored: list[str], spec: JsonObject) -> list[str]:
    for version in objects(spec, "versions"):
        name = text(version, "name")
        if version.get("storage") is True and name and name not in stored:
            return [*stored, name]
    return list(stored)


def _establish(obj: JsonObject) -> list[JsonObject]:
    since = read(obj, "metadata").get("creationTimestamp")
    return [
        {
            "type": "NamesAccepted",
            "status": "True",
            "lastTransitionTime": since,
            "reason": "NoConflicts",
            "message": "no conflicts found",
        },
        {
            "type": "Established",
            "status": "True",
            "lastTransitionTime": since,
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ]
