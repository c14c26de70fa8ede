"""What the template of a workload may hold: the one place where manifests are refused.

Permission to create workloads must not give a tenant more rights in a cluster. Objects are created
in the workload's own namespace only, and kinds that grant rights or are cluster-scoped are refused
everywhere. A real cluster accepts only kinds that are listed here, that are known to run something,
or that its administrator permits. `pod_security` says what pods may ask for there.

The hub checks before it sends a work, and the agent again before it creates the objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fairway.api.cluster import Permits
from fairway.api.meta import GROUP, JsonObject
from fairway.kinds.interface import Kind
from fairway.kinds.plain import child, name_of, text
from fairway.kinds.pod_security import Allowed, pod_faults

FindKind = Callable[[JsonObject], Kind | None]

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
# Namespaced kinds that run nothing themselves, which pods need.
HARMLESS = frozenset(
    {
        ("", "ConfigMap"),
        ("", "PersistentVolumeClaim"),
        ("", "Secret"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("scheduling.volcano.sh", "PodGroup"),
    }
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def faults(manifests: Sequence[JsonObject], namespace: str) -> list[str]:
    """Why any cluster refuses these manifests, each with its field's path."""
    result = []
    for position, manifest in enumerate(manifests):
        path = f"spec.template.manifests[{position}]"
        result += [f"{path}.{fault}" for fault in _name_faults(manifest)]
        kind = str(manifest.get("kind", ""))
        if _grants_rights(manifest):
            result.append(f"{path}.kind: {kind} is not allowed in a workload")
        named = text(manifest, "metadata", "namespace")
        if named and named != namespace:
            result.append(
                f"{path}.metadata.namespace: {named} is not the workload's own, {namespace}"
            )
    return result


def faults_in(
    manifests: Sequence[JsonObject], permits: Permits, find_kind: FindKind
) -> dict[int, list[str]]:
    """Why a real cluster refuses manifests, by position, each with its field's path."""
    brought = {name_of(manifest) for manifest in manifests if is_account(manifest)}
    accounts = frozenset({"default", *permits.service_accounts, *brought})
    faults = {
        position: list(_faults_of(manifest, permits, find_kind, accounts))
        for position, manifest in enumerate(manifests)
    }
    return {position: several for position, several in faults.items() if several}


def is_account(manifest: JsonObject) -> bool:
    return manifest.get("apiVersion") == "v1" and manifest.get("kind") == "ServiceAccount"


def is_listed(group: str, kind: str, permits: Permits) -> bool:
    """Whether a kind is permitted in a work although Fairway does not know how it runs."""
    written = f"{group}/{kind}" if group else kind
    return (group, kind) in HARMLESS or written in permits.kinds


def _faults_of(
    manifest: JsonObject, permits: Permits, find_kind: FindKind, accounts: frozenset[str]
) -> Iterator[str]:
    name = str(manifest.get("kind", ""))
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    if _grants_rights(manifest):
        yield f"kind: {name} is not allowed in a workload"
    elif find_kind(manifest) is None and not is_listed(group, name, permits):
        yield f"kind: the cluster does not permit {name} of {group or 'v1'} in workloads"
    else:
        yield from _name_faults(manifest)
        yield from pod_faults(manifest, Allowed(permits=permits, accounts=accounts))


def _name_faults(manifest: JsonObject) -> Iterator[str]:
    """Names become parts of paths, of the API or of folders."""
    for field in ("name", "namespace"):
        name = child(manifest, "metadata").get(field)
        if name and not is_name(name):
            yield f"metadata.{field}: {name!r} is not a name of Kubernetes"


def is_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= 253 and _NAME.fullmatch(name) is not None


def _grants_rights(manifest: JsonObject) -> bool:
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    if (group, manifest.get("kind")) in HARMLESS:
        return False
    return group in _GROUPS_REFUSED or (not group and manifest.get("kind") in _CORE_REFUSED)
