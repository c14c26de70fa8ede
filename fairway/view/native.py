"""Native objects with a queue label, as the workloads that they stand for.

A Job, Deployment, StatefulSet or Pod that names its queue needs no Workload: it is one. Services
are Divided by their replicas; everything else is a Gang.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.api.meta import API_VERSION

# Our own label first; Kueue's is understood as well.
QUEUE_LABELS = ("fairway.dev/queue", "kueue.x-k8s.io/queue-name")
_POLICY_LABEL = "fairway.dev/policy"
_MODES = {
    ("batch/v1", "Job"): "Gang",
    ("v1", "Pod"): "Gang",
    ("apps/v1", "Deployment"): "Divided",
    ("apps/v1", "StatefulSet"): "Divided",
}


def as_workload(plain: Mapping[str, Any]) -> dict[str, Any] | None:
    """The Workload of a native object; None where it has no queue or its kind is not known."""
    mode = _MODES.get((str(plain.get("apiVersion")), str(plain.get("kind"))))
    metadata = _map(plain.get("metadata"))
    labels = _map(metadata.get("labels"))
    queue = next((labels[key] for key in QUEUE_LABELS if key in labels), "")
    if mode is None or not queue:
        return None
    spec: dict[str, Any] = {
        "queue": queue,
        "mode": mode,
        "template": {"manifests": [dict(plain)]},
    }
    if labels.get(_POLICY_LABEL):
        spec["policy"] = labels[_POLICY_LABEL]
    own = _map(plain.get("spec"))
    if mode == "Divided":
        spec["replicas"] = own.get("replicas", 1)
    pod = own if plain.get("kind") == "Pod" else _map(_map(own.get("template")).get("spec"))
    if pod.get("priorityClassName"):
        spec["priorityClass"] = pod["priorityClassName"]
    kept = ("name", "namespace", "creationTimestamp", "annotations")
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {
            "namespace": "default",
            **{key: metadata[key] for key in kept if key in metadata},
        },
        "spec": spec,
    }


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
