"""The tables of the built-in kinds, with the columns that `kubectl` shows from a cluster.

A table is a tuple of Columns and a function that gives one object's cells in their order. Objects
come from the store, but other programs write their status: every part may be missing. The table of
pods is in its own module, `pod_table`.
"""

from __future__ import annotations

from typing import Any

from fairway.resources.builtin.ages import age_of, epoch, human_age
from fairway.resources.builtin.autoscaler import metric_targets
from fairway.resources.builtin.parts import members, number, objects, read, text
from fairway.resources.builtin.pod_table import POD, pod
from fairway.resources.resource import Cells, Column
from fairway.schema.node import JsonObject

__all__ = ["TABLES", "human_age", "selector_text"]

NAME = Column(name="Name", format="name")
AGE = Column(name="Age")
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
# A job shows the first of these that is true.
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _columns(*names: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    shown = tuple(Column(name=name, format="name" if name == "Name" else "") for name in names)
    return shown + tuple(Column(name=name, priority=1) for name in wide)


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")


def _age(obj: JsonObject, now: float) -> str:
    return age_of(read(obj, "metadata").get("creationTimestamp"), now)


def _name_and_age(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), _age(obj, now)]


def _name_and_creation(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), text(obj, "metadata", "creationTimestamp")]


def _namespace(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), text(obj, "status", "phase"), _age(obj, now)]


def _service(obj: JsonObject, now: float) -> list[Any]:
    spec = read(obj, "spec")
    addresses = members(spec, "clusterIPs") or [text(spec, "clusterIP") or "<none>"]
    ports = ",".join(_port(port) for port in objects(spec, "ports"))
    labels = ",".join(f"{key}={value}" for key, value in sorted(read(spec, "selector").items()))
    return [
        _name(obj),
        text(spec, "type"),
        addresses[0],
        _external_address(obj),
        ports or "<none>",
        _age(obj, now),
        labels or "<none>",
    ]


def _port(port: JsonObject) -> str:
    node_port = number(port, "nodePort")
    outside = f":{node_port}" if node_port else ""
    return f"{number(port, 'port')}{outside}/{text(port, 'protocol')}"


def _external_address(obj: JsonObject) -> str:
    spec = read(obj, "spec")
    given = [str(address) for address in members(spec, "externalIPs")]
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or "<none>"
        case "LoadBalancer":
            balanced = {
                text(object_, "ip") or text(object_, "hostname")
                for object_ in objects(read(obj, "status", "loadBalancer"), "ingress")
            }
            return ",".join(sorted(balanced - {""}) + given) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
        case _:
            return "<unknown>"


def _claim(obj: JsonObject, now: float) -> list[Any]:
    spec, status = read(obj, "spec"), read(obj, "status")
    volume = text(spec, "volumeName")
    given = members(status, "accessModes")
    modes = [short for mode, short in _ACCESS_MODES.items() if mode in given]
    going = read(obj, "metadata").get("deletionTimestamp")
    return [
        _name(obj),
        "Terminating" if going else text(status, "phase"),
        volume,
        str(read(status, "capacity").get("storage", "0")) if volume else "",
        ",".join(modes) if volume else "",
        text(spec, "storageClassName"),
        text(spec, "volumeAttributesClassName") or "<unset>",
        _age(obj, now),
        text(spec, "volumeMode") or "<unset>",
    ]


def _secret(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), text(obj, "type"), len(read(obj, "data")), _age(obj, now)]


def _config_map(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), len(read(obj, "data")) + len(read(obj, "binaryData")), _age(obj, now)]


def _event(obj: JsonObject, now: float) -> list[Any]:
    first = age_of(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = age_of(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = number(obj, "count") or 1
    series = read(obj, "series")
    if series:
        last, count = age_of(series.get("lastObservedTime"), now), number(series, "count")
    about = read(obj, "involvedObject")
    kind, name = text(about, "kind").lower(), text(about, "name")
    component = text(obj, "source", "component") or text(obj, "reportingComponent")
    host = text(obj, "source", "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        text(obj, "message").strip(),
        first,
        count,
        _name(obj),
    ]


def _containers(spec: JsonObject) -> tuple[str, str]:
    containers = objects(read(spec, "template", "spec"), "containers")
    names = ",".join(text(container, "name") for container in containers)
    return names, ",".join(text(container, "image") for container in containers)


def _job(obj: JsonObject, now: float) -> list[Any]:
    spec, status = read(obj, "spec"), read(obj, "status")
    succeeded, parallelism = number(status, "succeeded"), number(spec, "parallelism")
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = f"{succeeded}/1" + (f" of {parallelism}" if parallelism > 1 else "")
    began, ended = epoch(status.get("startTime")), epoch(status.get("completionTime"))
    duration = "" if began is None else human_age((now if ended is None else ended) - began)
    return [
        _name(obj),
        _job_state(obj),
        completions,
        duration,
        _age(obj, now),
        *_containers(spec),
        selector_text(read(spec, "selector")) or "<none>",
    ]


def _job_state(obj: JsonObject) -> str:
    conditions = objects(read(obj, "status"), "conditions")
    held = {
        text(condition, "type") for condition in conditions if condition.get("status") == "True"
    }
    if read(obj, "metadata").get("deletionTimestamp"):
        held.add("")
    return next((shown for wanted, shown in _JOB_STATES if wanted in held), "Running")


def _deployment(obj: JsonObject, now: float) -> list[Any]:
    spec, status = read(obj, "spec"), read(obj, "status")
    return [
        _name(obj),
        f"{number(status, 'readyReplicas')}/{number(spec, 'replicas')}",
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        _age(obj, now),
        *_containers(spec),
        selector_text(read(spec, "selector")),
    ]


def _stateful_set(obj: JsonObject, now: float) -> list[Any]:
    spec, status = read(obj, "spec"), read(obj, "status")
    ready = f"{number(status, 'readyReplicas')}/{number(spec, 'replicas')}"
    return [_name(obj), ready, _age(obj, now), *_containers(spec)]


def selector_text(selector: JsonObject) -> str:
    """A label selector in one line: `app=web,tier in (a,b),!old`."""
    parts = [(key, f"{key}={value}") for key, value in read(selector, "matchLabels").items()]
    for object_ in objects(selector, "matchExpressions"):
        key, values = text(object_, "key"), ",".join(sorted(map(str, members(object_, "values"))))
        shown = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append((key, shown.get(text(object_, "operator"), "<invalid>")))
    return ",".join(shown for _, shown in sorted(parts, key=lambda part: part[0]))


def _autoscaler(obj: JsonObject, now: float) -> list[Any]:
    spec, target = read(obj, "spec"), read(obj, "spec", "scaleTargetRef")
    return [
        _name(obj),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        metric_targets(obj),
        str(spec["minReplicas"]) if "minReplicas" in spec else "<unset>",
        number(spec, "maxReplicas"),
        number(obj, "status", "currentReplicas"),
        _age(obj, now),
    ]


def _device_claim(obj: JsonObject, now: float) -> list[Any]:
    is_deleted = bool(text(obj, "metadata", "deletionTimestamp"))
    is_allocated = "allocation" in read(obj, "status")
    states = ["deleted"] if is_deleted else [] if is_allocated else ["pending"]
    if is_allocated:
        states += [
            "allocated",
            *(["reserved"] if members(read(obj, "status"), "reservedFor") else []),
        ]
    return [_name(obj), ",".join(states), _age(obj, now)]


def _device_claim_template(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), _age(obj, now)]


def _lease(obj: JsonObject, now: float) -> list[Any]:
    return [_name(obj), text(obj, "spec", "holderIdentity"), _age(obj, now)]


def _priority_class(obj: JsonObject, now: float) -> list[Any]:
    is_default = obj.get("globalDefault") is True
    preemption = text(obj, "preemptionPolicy")
    return [_name(obj), number(obj, "value"), is_default, _age(obj, now), preemption]


def _binding(obj: JsonObject, now: float) -> list[Any]:
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in objects(obj, "subjects"):
        kind, name = text(subject, "kind"), text(subject, "name")
        if kind == "ServiceAccount":
            name = f"{text(subject, 'namespace')}/{name}"
        by_kind.setdefault(kind, []).append(name)
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    subjects = (", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount"))
    return [_name(obj), role, _age(obj, now), *subjects]


_CREATION = (NAME, Column(name="Created At", type="date"))
_BINDING = _columns("Name", "Role", "Age", wide=("Users", "Groups", "ServiceAccounts"))
_PODS_OF = ("Containers", "Images")

TABLES: dict[str, tuple[tuple[Column, ...], Cells]] = {
    "Namespace": (_columns("Name", "Status", "Age"), _namespace),
    "Pod": (POD, pod),
    "Service": (
        _columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        _service,
    ),
    "ServiceAccount": ((NAME, AGE), _name_and_age),
    "PersistentVolumeClaim": (
        _columns(
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            wide=("VolumeMode",),
        ),
        _claim,
    ),
    "Secret": (_columns("Name", "Type", "Data", "Age"), _secret),
    "ConfigMap": (_columns("Name", "Data", "Age"), _config_map),
    "Event": (
        (
            *_columns("Last Seen", "Type", "Reason", "Object", wide=("Subobject", "Source")),
            *_columns("Message", wide=("First Seen", "Count")),
            Column(name="Name", format="name", priority=1),
        ),
        _event,
    ),
    "Job": (
        _columns("Name", "Status", "Completions", "Duration", "Age", wide=(*_PODS_OF, "Selector")),
        _job,
    ),
    "Deployment": (
        _columns("Name", "Ready", "Up-to-date", "Available", "Age", wide=(*_PODS_OF, "Selector")),
        _deployment,
    ),
    "StatefulSet": (_columns("Name", "Ready", "Age", wide=_PODS_OF), _stateful_set),
    "HorizontalPodAutoscaler": (
        _columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        _autoscaler,
    ),
    "ResourceClaim": (_columns("Name", "State", "Age"), _device_claim),
    "ResourceClaimTemplate": (_columns("Name", "Age"), _device_claim_template),
    "Lease": (_columns("Name", "Holder", "Age"), _lease),
    "PriorityClass": (
        (
            NAME,
            Column(name="Value", type="integer"),
            Column(name="Global-Default", type="boolean"),
            AGE,
            Column(name="PreemptionPolicy"),
        ),
        _priority_class,
    ),
    "Role": (_CREATION, _name_and_creation),
    "ClusterRole": (_CREATION, _name_and_creation),
    "RoleBinding": (_BINDING, _binding),
    "ClusterRoleBinding": (_BINDING, _binding),
    "CustomResourceDefinition": (_CREATION, _name_and_creation),
}
