"""Objects of a day's fleet, with what all days share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.serving import serving_api_version
from fairway.demo.days.day import NAMESPACE, SERVICE

GPU = "nvidia.com/gpu"
POLICY = "in-order"
QUEUE = "serving"
BAD = "model:bad"
_START_SECONDS = 45
_STOP_SECONDS = 20


def _object(kind: str, name: str, spec: JsonObject, **metadata: Any) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def fleet() -> JsonObject:
    """The fleet's settings; heartbeats are rare, because a day is long."""
    spec: JsonObject = {
        "defaults": {
            "queue": QUEUE,
            "pendingSeconds": 180,
            "onClusterLost": "AllowDuplicate",
            "retry": {"limit": 20, "backoffSeconds": 10, "backoffSecondsMax": 60},
        },
        "health": {"heartbeatSeconds": 30, "unreadySeconds": 90, "lostSeconds": 150},
    }
    return _object("Fleet", "fleet", spec)


def flavor(name: str, price: str, speed: str = "1") -> JsonObject:
    spec: JsonObject = {"nodeLabels": {"gpu": name}, "speed": speed, "prices": {GPU: price}}
    return _object("Flavor", name, spec)


def cluster(
    name: str,
    group: str,
    flavor: str,
    *,
    nodes: int,
    pools: Sequence[JsonObject] = (),
) -> JsonObject:
    """A cluster of one flavor, with four GPUs per node; one version of the model is bad."""
    standing = {"name": "own", "count": nodes, "shape": shape(), "labels": {"gpu": flavor}}
    spec: JsonObject = {
        "simulated": {
            "nodePools": [standing],
            "startSeconds": _START_SECONDS,
            "stopSeconds": _STOP_SECONDS,
            "runSeconds": 0,
            "faults": {"badImages": [BAD]},
        },
        "elasticPools": list(pools),
    }
    return _object("Cluster", name, spec, labels={"group": group})


def pool(flavor: str, price: str, *, most: int, stock: int | None = None) -> JsonObject:
    """An elastic pool; `price` is per node and hour."""
    result: JsonObject = {
        "name": "elastic",
        "shape": shape(),
        "labels": {"gpu": flavor},
        "countMax": most,
        "pricePerHour": price,
        "provisionSeconds": 240,
        "idleSeconds": 300,
    }
    return result if stock is None else {**result, "stock": stock}


def shape() -> JsonObject:
    return {"cpu": "64", "memory": "512Gi", GPU: "4", "pods": "110"}


def queue(quotas: Mapping[str, int]) -> JsonObject:
    flavors = [
        {"name": name, "quotas": [{"resource": GPU, "nominal": many}]}
        for name, many in quotas.items()
    ]
    spec: JsonObject = {
        "uncovered": "Unlimited",
        "resourceGroups": [{"resources": [GPU], "flavors": flavors}],
        "preemption": {"withinQueue": "LowerPriority"},
    }
    return _object("Queue", QUEUE, spec)


def policy(groups: Sequence[str], **spec: Any) -> JsonObject:
    """Groups in order, with return home enabled."""
    result: JsonObject = {
        "groups": [
            {"name": group, "selector": {"labels": {"matchLabels": {"group": group}}}}
            for group in groups
        ],
        "returnHome": {
            "enabled": True,
            "afterSeconds": 900,
            "replicasPerMinute": 4,
            "surge": 2,
        },
        **spec,
    }
    return _object("PlacementPolicy", POLICY, result, namespace="fairway-system")


def service(replicas: int, flavors: Sequence[str], unavailable: int = 1) -> JsonObject:
    spec: JsonObject = {
        "queue": QUEUE,
        "policy": POLICY,
        "priority": 100,
        "mode": "Divided",
        "replicas": replicas,
        "flavors": list(flavors),
        "disruption": {"maxUnavailable": unavailable},
        "template": {"manifests": [_deployment()]},
    }
    return _object("Workload", SERVICE, spec, namespace=NAMESPACE)


def rollout(**strategy: Any) -> JsonObject:
    """How new versions of the service roll out."""
    spec = {"workload": {"name": SERVICE}, "strategy": strategy, "progressDeadlineSeconds": 600}
    made = _object("Rollout", SERVICE, spec, namespace=NAMESPACE)
    return {**made, "apiVersion": serving_api_version()}


def batch(name: str, pods: int, seconds: int, flavor: str, policy: str = "") -> JsonObject:
    """A workload of lower priority that takes room for a while."""
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [_container()]}},
        },
    }
    spec: JsonObject = {
        "queue": QUEUE,
        "flavors": [flavor],
        "runSeconds": {"estimate": seconds},
        "template": {"manifests": [job]},
        **({"policy": policy} if policy else {}),
    }
    return _object("Workload", name, spec, namespace=NAMESPACE)


def _deployment() -> JsonObject:
    labels = {"app": SERVICE}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": SERVICE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [_container()]}},
        },
    }


def _container() -> JsonObject:
    limits = {"cpu": "4", "memory": "32Gi", GPU: "1"}
    return {"name": "main", "image": "model", "resources": {"limits": limits}}
