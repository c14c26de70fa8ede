"""Kinds that take more pods in, or let some go, while they run.

Their own controllers make or end pods when a count in the object changes, and what they run is told
so or does not care. All others run with the pods that they began with; of kinds that rules describe
nothing is known.
"""

from __future__ import annotations

from fairway.api.meta import JsonObject
from fairway.kinds.plain import child

_ALWAYS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("ray.io", "RayCluster"),
    }
)
_IF_ELASTIC = frozenset({("kubeflow.org", "PyTorchJob")})


def grows(manifest: JsonObject) -> bool:
    """Whether an object takes more pods in while it runs."""
    kind = (str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest.get("kind", "")))
    if kind in _IF_ELASTIC:
        return bool(child(manifest, "spec", "elasticPolicy"))
    return kind in _ALWAYS
