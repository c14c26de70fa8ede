"""The identities that act in a cluster, and the rights that they need.

An agent watches under its own identity. To create, change and delete objects, it impersonates a
service account of the tenant's namespace, so that the cluster itself limits a tenant to what that
account may do, whatever a workload says. The agent creates a missing namespace, with that account
and its binding to the role of tenants; a namespace that the agent did not make is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairway.api.meta import JsonObject
from fairway.api.work import Work

TENANT = "fairway-tenant"  # the service account of a namespace, and the role it is bound to
AGENT = "fairway-agent"
_RBAC = "rbac.authorization.k8s.io"
_READING = ("get", "list", "watch")
_SEEN = (
    ("", "events"),
    ("", "limitranges"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("", "resourcequotas"),
    ("autoscaling.x-k8s.io", "provisioningrequests"),
    ("cluster.x-k8s.io", "machinedeployments"),
    ("karpenter.sh", "nodepools"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceslices"),
)
# What the owners of a cluster may allow in addition, and the right that it needs.
ALLOWABLE = {"exec": "pods/exec", "port-forward": "pods/portforward"}
_WRITING = ("get", "list", "watch", "create", "update", "patch", "delete")


def account(namespace: str, name: str = TENANT) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def executor_of(work: Work | None, namespace: str) -> str:
    """The user that makes a work's objects in a namespace, when the agent acts as tenant."""
    named = work.spec.executor if work is not None else None
    return account(named.namespace, named.name) if named is not None else account(namespace)


def tenant_role(kinds: Iterable[tuple[str, str]], *, allowed: Iterable[str] = ()) -> JsonObject:
    """What a tenant may do in a namespace.

    It may write the kinds of workloads, given as groups and plurals, read the logs of pods, and do
    inside pods what is allowed (`ALLOWABLE`).
    """
    by_group: dict[str, list[str]] = {}
    for group, plural in sorted(set(kinds)):
        by_group.setdefault(group, []).append(plural)
    rules = [_rule(group, several, _WRITING) for group, several in by_group.items()]
    rules.append(_rule("", ["pods/log"], ("get",)))
    if inside := [ALLOWABLE[name] for name in sorted(set(allowed))]:
        # Streams are opened by GET; newer servers require the right to create as well.
        rules.append(_rule("", inside, ("create", "get")))
    return _role(TENANT, rules)


def agent_role(kinds: Iterable[tuple[str, str]], *, may_act: bool = True) -> JsonObject:
    """What an agent may do in a cluster.

    It may read nodes, pods and the kinds of works, impersonate tenants, and prepare namespaces for
    them. It cannot read secrets: only a tenant reads those of works. Without `may_act` it only
    reads, as in mode Observe.
    """
    by_group: dict[str, list[str]] = {}
    for group, plural in sorted({*kinds, *_SEEN} - {("", "secrets")}):
        by_group.setdefault(group, []).append(plural)
    seeing = [_rule(group, several, _READING) for group, several in by_group.items()]
    if not may_act:
        return _role(AGENT, seeing)
    return _role(
        AGENT,
        [
            *seeing,
            _rule("metrics.k8s.io", ["pods"], ("get", "list")),  # what pods of works use
            _rule("", ["serviceaccounts"], ("impersonate", "create")),
            _rule("", ["namespaces"], ("create",)),
            # The agent requests nodes under its own identity, by requests with pod templates.
            _rule("", ["podtemplates"], ("create", "delete")),
            _rule("autoscaling.x-k8s.io", ["provisioningrequests"], ("create", "delete")),
            _rule(_RBAC, ["rolebindings"], ("create",)),
            {**_rule(_RBAC, ["clusterroles"], ("get", "bind")), "resourceNames": [TENANT]},
        ],
    )


def namespace_of_tenant(name: str, cluster: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"fairway.dev/cluster": cluster}},
    }


def tenant_account(namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": TENANT, "namespace": namespace},
    }


def tenant_binding(namespace: str) -> JsonObject:
    subject = {"kind": "ServiceAccount", "name": TENANT, "namespace": namespace}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": TENANT, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": TENANT},
        "subjects": [subject],
    }


def _role(name: str, rules: Sequence[JsonObject]) -> JsonObject:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
