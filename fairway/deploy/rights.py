"""Permissions of a hub on the cluster that stores its objects, and of people on our kinds.

A hub writes our own kinds in all namespaces, because tenants have their workloads in their own
namespaces. For everything else it has only the permissions that it uses. It neither defines kinds
nor creates admission policies: write access to those allows anything in a cluster, so an
administrator creates them at installation. It may change our definitions with several versions and
one configuration of webhooks, because they name the hub's address and certificate. A policy of the
server confines the latter to kinds that the hub reads anyway. It reads Secrets one by one, by name:
those that `fairway join` creates for it, those in its own namespace, and those in namespaces whose
owners bind `fairway-hub-secrets`. Of these it changes only the first, whose tokens it renews.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairway.agent.join import push
from fairway.api.costs import COSTS_GROUP
from fairway.api.governance import GOVERNANCE_GROUP
from fairway.api.kindrule import KINDS_GROUP
from fairway.api.kinds import KINDS
from fairway.api.meta import GROUP, JsonObject
from fairway.api.names import AGENT_LEASE, AUTHORITY, REPLICAS
from fairway.api.scores import SCORES_GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.controllers import terms
from fairway.deploy.settings import SYSTEM, Settings
from fairway.kinds.registry import built_in
from fairway.server.access.bootstrap_roles import BASIC_USER, FLEET_VIEWER, bootstrap_objects
from fairway.server.access.identity import AUTHENTICATED
from fairway.store.keys import ADMISSION, HTTP_ROUTES, WEBHOOKS, resource_of
from fairway.store.kubernetes import checked_writes, creators, held_back, submitters

HUB = "fairway-hub"
SECRETS = "fairway-hub-secrets"
WEBHOOK = "fairway-hub-webhook"
RBAC = "rbac.authorization.k8s.io"
_LEASES = "coordination.k8s.io"
_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete")


def hub_role() -> JsonObject:
    """The hub's permissions in every namespace."""
    return role(HUB, [*_our_kinds(), *_native_kinds(), *_beside()])


def _our_kinds() -> list[JsonObject]:
    by_group: dict[str, list[str]] = {}
    for kind in KINDS:
        parts = ["", *(["/status"] if kind.has_status else []), *(["/scale"] if kind.scale else [])]
        plurals = [f"{kind.plural}{part}" for part in parts]
        by_group.setdefault(kind.struct.api_group, []).extend(plurals)
    return [rule(group, plurals, (*_READ, *_WRITE)) for group, plurals in by_group.items()]


def _native_kinds() -> list[JsonObject]:
    """Reads native objects that are workloads, and updates their status.

    Patches write the replicas of a service, whether a job is suspended, and how an object ended.
    """
    by_group: dict[str, set[str]] = {}
    for api_version, kind in built_in().names():
        resource_key = resource_of(api_version, kind)
        by_group.setdefault(resource_key.group, set()).add(resource_key.plural)
    rules = []
    for group, plurals in sorted(by_group.items()):
        rules.append(rule(group, sorted(plurals), (*_READ, "patch")))
        rules.append(rule(group, sorted(f"{plural}/status" for plural in plurals), ("update",)))
    return rules


def _beside() -> list[JsonObject]:
    """Permissions on objects that run nothing."""
    policies = [
        f"{sort}admissionpolic{ending}"
        for sort in ("mutating", "validating")
        for ending in ("ies", "ybindings")
    ]
    policy_names = [creators.NAME, submitters.NAME, held_back.NAME, held_back.STATUS_NAME]
    return [
        rule("", ["namespaces"], (*_READ, "create")),  # each cluster has one for its works
        rule("", ["events"], (*_READ, "create", "patch")),
        rule("", ["configmaps", "serviceaccounts"], ("get",)),  # they are copied with workloads
        # Access to a joined cluster, with a token that is renewed before it expires.
        rule("", ["secrets"], ("get", "update"), [push.SECRET]),
        rule("", ["persistentvolumeclaims"], (*_READ, "patch")),  # an annotation names its cluster
        # They say which devices pods ask for, and are copied with workloads.
        rule("resource.k8s.io", ["resourceclaims", "resourceclaimtemplates"], _READ),
        # Finds another autoscaler of the same object, and removes it if that was requested.
        rule("autoscaling", ["horizontalpodautoscalers"], ("list", "delete")),
        rule("scheduling.k8s.io", ["priorityclasses"], _READ),
        rule(HTTP_ROUTES.group, [HTTP_ROUTES.plural], (*_READ, "patch")),  # weights of backends
        rule(RBAC, ["roles", "clusterroles", "rolebindings", "clusterrolebindings"], _READ),
        rule("authentication.k8s.io", ["tokenreviews"], ("create",)),  # callers: agents, people
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
        # For kinds with several versions it sets the conversion and the stored versions.
        rule(
            "apiextensions.k8s.io",
            ["customresourcedefinitions", "customresourcedefinitions/status"],
            ("patch",),
            [kind.qualified for kind in KINDS if kind.further],
        ),
        rule(ADMISSION, policies, ("get",), policy_names),
        # Agents inside the hub show by leases that they live. Leases of nodes must not change.
        rule(_LEASES, ["leases"], (*_READ, "update", "patch"), [AGENT_LEASE]),
        rule(_LEASES, ["leases"], ("create",)),
    ]


def secrets_role() -> JsonObject:
    return role(SECRETS, [rule("", ["secrets"], ("get",))])


def webhook_role() -> JsonObject:
    """Permission to say where the server asks about writes, in one configuration."""
    rules = [rule(ADMISSION, [WEBHOOKS.plural], ("get", "patch"), [checked_writes.NAME])]
    return role(WEBHOOK, rules)


def term_role() -> JsonObject:
    """Permissions on two leases, for the leader and for the list of replicas, and on one Secret.

    The Secret has the certificate authority that replicas share.
    """
    rules = [
        rule(_LEASES, ["leases"], ("get", "update"), [terms.NAME]),
        rule(_LEASES, ["leases"], ("get", "patch"), [REPLICAS]),
        rule("", ["secrets"], ("get", "update"), [AUTHORITY]),
    ]
    return role("fairway-hub-term", rules, namespace=SYSTEM)


def roles_of_people() -> list[JsonObject]:
    """Our kinds for people who have `view`, `edit` or `admin`, as on an embedded hub."""
    rules = {
        object_["metadata"]["name"]: object_["rules"]
        for object_ in bootstrap_objects()
        if "rules" in object_
    }
    result = []
    groups = {GROUP, KINDS_GROUP, SERVING_GROUP, COSTS_GROUP, GOVERNANCE_GROUP, SCORES_GROUP}
    for name in ("view", "edit"):
        ours = [
            rule
            for rule in rules[f"system:aggregate-to-{name}"]
            if set(rule.get("apiGroups", ())) <= groups
        ]
        made = role(f"fairway-{name}", ours)
        # `admin` aggregates `edit` by itself.
        made["metadata"]["labels"] = {f"{RBAC}/aggregate-to-{name}": "true"}
        result.append(made)
    # A Kubernetes server has neither of these.
    result.extend(role(name, rules[name]) for name in (FLEET_VIEWER, BASIC_USER))
    result.append(_for_everybody(BASIC_USER))
    return result


def _for_everybody(name: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": AUTHENTICATED}],
    }


def binding(settings: Settings, name: str, namespace: str = "") -> JsonObject:
    """Binds the hub's account to a role of the same name; in a namespace, or everywhere."""
    return _binding("ClusterRole", name, settings, namespace)


def term_binding(settings: Settings) -> JsonObject:
    return _binding("Role", "fairway-hub-term", settings, SYSTEM)


def _binding(kind: str, name: str, settings: Settings, namespace: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": HUB, "namespace": settings.namespace}],
    }


def role(name: str, rules: Sequence[JsonObject], *, namespace: str = "") -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "rules": list(rules),
    }


def rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Iterable[str] = ()
) -> JsonObject:
    only = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(resources), **only, "verbs": list(verbs)}
