"""What the template of a workload may hold: the one place where manifests are refused.

Permission to create workloads must not give a tenant more rights in a cluster. Objects are created
in the workload's own namespace only, and kinds that grant rights or are cluster-scoped are refused
everywhere. A real cluster accepts only kinds that are listed here, that are known to run something,
or that its administrator permits. Pods there have no access to their node, and use no service
account of the cluster, unless that is permitted too.

The hub checks before it sends a work, and the agent again before it creates the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fairway.api.cluster import Permits
from fairway.api.meta import GROUP, JsonObject
from fairway.kinds.interface import Kind
from fairway.kinds.plain import child, maps_at, name_of, text

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
_OWN_ACCOUNTS = ("", "default")


def faults(manifests: Sequence[JsonObject], namespace: str) -> list[str]:
    """Why any cluster refuses these manifests, each with its field's path."""
    result = []
    for position, manifest in enumerate(manifests):
        path = f"spec.template.manifests[{position}]"
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
    accounts = {*_OWN_ACCOUNTS, *permits.service_accounts, *brought}
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
    manifest: JsonObject, permits: Permits, find_kind: FindKind, accounts: set[str]
) -> Iterator[str]:
    name = str(manifest.get("kind", ""))
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    kind = find_kind(manifest)
    if _grants_rights(manifest):
        yield f"kind: {name} is not allowed in a workload"
        return
    if kind is None:
        if not is_listed(group, name, permits):
            yield f"kind: the cluster does not permit {name} of {group or 'v1'} in workloads"
        return
    seen: set[str] = set()
    for template in kind.templates(manifest).values():
        for fault in _pod_faults(child(template, "spec"), permits, accounts):
            if fault not in seen:
                seen.add(fault)
                yield fault


def _grants_rights(manifest: JsonObject) -> bool:
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    if (group, manifest.get("kind")) in HARMLESS:
        return False
    return group in _GROUPS_REFUSED or (not group and manifest.get("kind") in _CORE_REFUSED)


def _pod_faults(pod: JsonObject, permits: Permits, accounts: Iterable[str]) -> Iterator[str]:
    for field in ("serviceAccountName", "serviceAccount"):
        account = text(pod, field)
        if account not in accounts:
            yield f"{field}: pods may not run as the service account {account} of the cluster"
    may = frozenset(permits.host)
    for volume in maps_at(pod, "volumes"):
        if "hostPath" in volume and "HostPath" not in may:
            where = text(volume, "hostPath", "path")
            yield f"volumes[{text(volume, 'name')}].hostPath: {where} of the node is not permitted"
    if pod.get("hostNetwork") is True and "HostNetwork" not in may:
        yield "hostNetwork: the node's network is not permitted"
    for field in ("hostPID", "hostIPC"):
        if pod.get(field) is True and "HostNamespaces" not in may:
            yield f"{field}: the node's namespaces are not permitted"
    if "Privileged" in may:
        return
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in maps_at(pod, field):
            if child(container, "securityContext").get("privileged") is True:
                yield f"{field}[{text(container, 'name')}]: privileged containers are not permitted"
