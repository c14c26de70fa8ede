"""Kinds that can gain or lose pods while they run.

Their controllers create or delete pods when a count in the object changes, and their processes
adapt or are not affected. All other kinds run with the pods that they started with.
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
    """Whether an object can gain pods while it runs."""
    kind = (str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest.get("kind", "")))
    if kind in _IF_ELASTIC:
        return bool(child(manifest, "spec", "elasticPolicy"))
    return kind in _ALWAYS
