"""The objects that the measurements write: like those that people write."""

from __future__ import annotations

from typing import Any


def workload(number: int) -> dict[str, Any]:
    """A Workload with one pod set: a training job of eight GPUs, about 1 KiB."""
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": f"train-{number:06d}",
            "labels": {"team": f"team-{number % 7}", "app.kubernetes.io/part-of": "bench"},
        },
        "spec": {
            "queue": f"queue-{number % 50}",
            "mode": "Gang",
            "podSets": [
                {
                    "name": "worker",
                    "count": 8,
                    "requests": {"cpu": "12", "memory": "96Gi", "nvidia.com/gpu": 1},
                }
            ],
            "runSeconds": {"estimate": 600 * (1 + number % 40)},
        },
    }


def config_map(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"settings-{number:06d}"},
        "data": {"rate": "0.1", "epochs": "20", "seed": str(number)},
    }
