"""Workloads whose pods ask for devices through resource claims, as manifests."""

from __future__ import annotations

from typing import Any

from fairway.clock import timestamp
from tests.builders import NOW, Plain, fleet

GPU = "nvidia.com/gpu"
CLASS = "deviceclass.resource.kubernetes.io/"
MAPPED = fleet(
    deviceClasses=[
        {"name": "gpu.example.com", "resource": GPU},
        {"name": "large.example.com", "resource": GPU},
        {"name": "slice.example.com", "resource": "example.com/slice"},
    ]
)


def devices(name: str = "devices", count: int = 1, **more: Any) -> Plain:
    """A request for exactly so many devices of a class."""
    exactly = {"deviceClassName": "gpu.example.com", "count": count, **more}
    return {"name": name, "exactly": exactly}


def either(*alternatives: tuple[str, int], name: str = "devices") -> Plain:
    """A request for the first of several classes that is available."""
    listed = [
        {"name": f"option-{at}", "deviceClassName": f"{kind}.example.com", "count": count}
        for at, (kind, count) in enumerate(alternatives)
    ]
    return {"name": name, "firstAvailable": listed}


def template(name: str, *requests: Plain, namespace: str = "team", **more: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": list(requests), **more}}},
    }


def claim(name: str, *requests: Plain, namespace: str = "team") -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": list(requests)}},
    }


def from_template(name: str) -> Plain:
    return {"name": name, "resourceClaimTemplateName": name}


def named(name: str) -> Plain:
    return {"name": name, "resourceClaimName": name}


def job(name: str, *claims: Plain, count: int = 1, requests: Plain | None = None) -> Plain:
    """A Job whose pods have these claims."""
    asked = {"cpu": "1", **(requests or {})}
    container = {"name": "main", "image": "train", "resources": {"requests": asked}}
    container["resources"]["claims"] = [{"name": each["name"]} for each in claims]  # type: ignore[index]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "parallelism": count,
            "completions": count,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [container],
                    "resourceClaims": list(claims),
                }
            },
        },
    }


def asking(
    name: str,
    *claims: Plain,
    queue: str = "q",
    count: int = 1,
    waited: int = 60,
    requests: Plain | None = None,
    beside: tuple[Plain, ...] = (),
    **spec: Any,
) -> Plain:
    """A Workload of such a Job."""
    manifests = [job(name, *claims, count=count, requests=requests), *beside]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": timestamp(NOW - waited),
        },
        "spec": {"queue": queue, "template": {"manifests": manifests}, **spec},
    }


def nodes(name: str, *shapes: Plain, model: str = "h100", **more: Any) -> Plain:
    """A simulated cluster with a node for each shape; devices are counted by class."""
    pools = [
        {
            "name": f"n{number}",
            "count": 1,
            "shape": {"cpu": "64", "memory": "512Gi", **shape},
            "labels": {"accelerator": model},
        }
        for number, shape in enumerate(shapes)
    ]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"simulated": {"nodePools": pools}, **more},
    }
