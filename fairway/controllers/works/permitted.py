"""What the template of a workload may hold: the one place where manifests are refused.

A tenant who may create workloads must not gain more rights in a cluster than that. Objects are made
in the workload's own namespace only, and kinds that grant rights or belong to a whole cluster are
refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api.meta import GROUP, JsonObject
from fairway.kinds.plain import text

_GROUPS_REFUSED = frozenset(
    {
        GROUP,
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
_CORE_REFUSED = frozenset(
    {"Binding", "LimitRange", "Namespace", "Node", "PersistentVolume", "ResourceQuota"}
)


def faults(manifests: Sequence[JsonObject], namespace: str) -> list[str]:
    """Why manifests are refused, each with its field's path."""
    found = []
    for position, manifest in enumerate(manifests):
        path = f"spec.template.manifests[{position}]"
        group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
        kind = str(manifest.get("kind", ""))
        if group in _GROUPS_REFUSED or (not group and kind in _CORE_REFUSED):
            found.append(f"{path}.kind: {kind} is not allowed in a workload")
        named = text(manifest, "metadata", "namespace")
        if named and named != namespace:
            found.append(
                f"{path}.metadata.namespace: {named} is not the workload's own, {namespace}"
            )
    return found
