"""The simulated fleet, and what its users request."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from fairway.api.meta import API_VERSION, JsonObject

GPU = "nvidia.com/gpu"
NAMESPACE = "default"
QUEUES = ("research", "serving")
FLAVOR_OF = {"east": "h100", "west": "h100", "south": "a100"}
HOME = "east"  # of services that return
NODES = 3
GPUS = 8  # per node
NOMINAL = {"research": {"h100": 24, "a100": 12}, "serving": {"h100": 12, "a100": 6}}
BORROWING = 16
HEALTH = {"heartbeatSeconds": 3, "unreadySeconds": 9, "lostSeconds": 18, "skewSeconds": 6}
LOST_SECONDS = 10
STOP_SECONDS = 2


def fleet() -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "Fleet",
        "metadata": {"name": "fleet"},
        "spec": {
            "health": HEALTH,
            "defaults": {
                "clusterLostSeconds": LOST_SECONDS,
                "readySeconds": 60,
                "pendingSeconds": 45,
                "retry": {"limit": 6, "backoffSeconds": 2, "backoffSecondsMax": 20},
            },
        },
    }


def flavors() -> list[JsonObject]:
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "Flavor",
            "metadata": {"name": name},
            "spec": {"nodeLabels": {"accelerator": name}},
        }
        for name in sorted(set(FLAVOR_OF.values()))
    ]


def queue(name: str, nominal: dict[str, int]) -> JsonObject:
    flavors = [
        {
            "name": flavor,
            "quotas": [{"resource": GPU, "nominal": many, "borrowingLimit": BORROWING}],
        }
        for flavor, many in sorted(nominal.items())
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            "parent": "lab",
            "resourceGroups": [{"resources": [GPU], "flavors": flavors}],
            "preemption": {"withinQueue": "LowerPriority", "reclaim": "Any"},
        },
    }


def queues() -> list[JsonObject]:
    lab: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {"name": "lab"},
        "spec": {"uncovered": "Unlimited"},
    }
    return [lab, *(queue(name, NOMINAL[name]) for name in QUEUES)]


def cluster(name: str, seed: int) -> JsonObject:
    pool = {
        "name": "gpu",
        "count": NODES,
        "shape": {"cpu": "64", "memory": "512Gi", GPU: str(GPUS), "pods": "110"},
        "labels": {"accelerator": FLAVOR_OF[name]},
    }
    simulated = {
        "nodePools": [pool],
        "seed": seed % 1_000_000,
        "startSeconds": 1,
        "runSeconds": 8,
        "stopSeconds": STOP_SECONDS,
        "faults": {"nodeRepairSeconds": 40},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"simulated": simulated},
    }


def policy(**spec: Any) -> JsonObject:
    """The policy of all services: everywhere, unless it says otherwise; taints pass by."""
    bears = {"key": "repairs", "operator": "Exists", "tolerationSeconds": 5}
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementPolicy",
        "metadata": {"name": "services", "namespace": "fairway-system"},
        "spec": {"tolerations": [bears], **spec},
    }


def home_policy() -> JsonObject:
    """The policy of services with a home, to which their replicas return when it has room."""
    away = [name for name in sorted(FLAVOR_OF) if name != HOME]
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementPolicy",
        "metadata": {"name": "homes", "namespace": "fairway-system"},
        "spec": {
            "groups": [
                {"name": "home", "selector": {"names": [HOME]}},
                {"name": "away", "selector": {"names": away}},
            ],
            "returnHome": {"enabled": True, "afterSeconds": 4, "replicasPerMinute": 60, "surge": 2},
        },
    }


def draw_policy(chance: random.Random) -> dict[str, Any]:
    """What a user may change in the policy of services: where they may be, and how many there."""
    names = sorted(FLAVOR_OF)
    return {
        "selector": {"names": chance.choice((names, names, names[:2], names[1:], names[:1]))},
        "division": {
            "type": chance.choice(("Aggregated", "DynamicWeight", "StaticWeight")),
            "perClusterMax": chance.choice((None, None, 1, 2)),
        },
        "spread": chance.choice(([], [], [{"by": "Cluster", "skew": 1}])),
    }


@dataclass(slots=True, kw_only=True)
class Wish:
    """A workload that a user submitted, with its later changes."""

    name: str
    mode: str
    pods: int  # of a gang, or replicas, or tasks
    gpus: int
    is_duplicate_allowed: bool = False
    is_moved_when_lost: bool = False
    has_home: bool = False  # a service that returns there
    is_native: bool = False
    is_deleted: bool = False
    is_cancelled: bool = False
    is_held: bool = False
    uid: str = ""
    body: JsonObject = field(default_factory=dict, repr=False)  # as it was submitted


def draw_workload(name: str, chance: random.Random) -> tuple[Wish, JsonObject]:
    """A random workload, as users write them."""
    mode = chance.choices(("Gang", "Divided", "Independent"), (12, 1, 2))[0]
    lost = chance.choice((None, None, "Wait", "StopAndMove", "StopAndMove", "AllowDuplicate"))
    wish = Wish(
        name=name,
        mode=mode,
        pods=chance.choice((1, 1, 2, 2, 3, 4)),
        gpus=chance.choice((1, 2, 4)) if mode == "Gang" else 1,
        is_duplicate_allowed=lost == "AllowDuplicate",
        is_moved_when_lost=lost == "StopAndMove",
    )
    spec: dict[str, Any] = {
        "queue": "serving" if mode == "Divided" else chance.choice(QUEUES),
        "priority": chance.choice((0, 0, 0, 0, 5, 10)),
        "mode": mode,
        "template": {"manifests": [_manifest(wish)]},
    }
    if lost is not None:
        spec["onClusterLost"] = lost
    if mode == "Divided":
        wish.has_home = chance.random() < 0.5
        spec["replicas"] = wish.pods
        spec["policy"] = "homes" if wish.has_home else "services"
    else:
        spec["runSeconds"] = {"estimate": chance.randint(2, 15)}
    if mode == "Independent":
        wish.pods = chance.randint(3, 10)
        spec["tasks"] = {"count": wish.pods, "concurrency": 4, "retries": 1, "failedMax": 10}
    if chance.random() < 0.3:
        spec["checkpoint"] = {"intervalSeconds": 10, "graceSeconds": chance.choice((1, 5))}
    if chance.random() < 0.3:
        spec["retry"] = {"limit": 5, "backoffSeconds": 1, "backoffSecondsMax": 10}
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if chance.random() < 0.8 or mode == "Divided":
        metadata["finalizers"] = ["fairway.dev/works"]
    body = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}
    return wish, body


def native(name: str, chance: random.Random) -> tuple[Wish, JsonObject]:
    """A Job as its users would give it to a cluster, with the name of a queue."""
    wish = Wish(name=f"job-{name}", mode="Gang", pods=chance.choice((1, 2)), gpus=1, is_native=True)
    body = _manifest(wish)
    body["metadata"] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"fairway.dev/queue": chance.choice(QUEUES)},
    }
    return wish, body


def _manifest(wish: Wish) -> dict[str, Any]:
    container = {"name": "main", "image": "training", "resources": {"limits": {GPU: wish.gpus}}}
    pod: dict[str, Any] = {"containers": [container]}
    if wish.mode == "Divided":
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": wish.name},
            "spec": {
                "selector": {"matchLabels": {"app": wish.name}},
                "template": {"metadata": {"labels": {"app": wish.name}}, "spec": pod},
            },
        }
    spec: dict[str, Any] = {"template": {"spec": {**pod, "restartPolicy": "Never"}}}
    if wish.mode == "Gang":
        spec |= {"parallelism": wish.pods, "completions": wish.pods, "backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": wish.name},
        "spec": spec,
    }
