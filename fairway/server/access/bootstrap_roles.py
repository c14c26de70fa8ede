"""The roles and bindings a hub starts with.

Names and meanings are those of Kubernetes: `view` reads what is not secret, `edit` changes what a
tenant runs, `admin` also grants rights within a namespace, `cluster-admin` may do anything. The
first three are aggregated, so a role with the label `rbac.authorization.k8s.io/aggregate-to-view:
"true"` widens `view` for every user of it; `edit` includes `view`, and `admin` includes `edit`.

Workloads, placement policies, autoscalers and rollouts belong to tenants. Fleets, clusters,
reports, flavors, queues, kind rules, fleet policies and scorers with their scores belong to the
platform, works to the hub: these three roles only read them. Works carry the secrets of a
workload, so `view` may not read them. Recent decisions and the snapshot of the hub show all
tenants, so only `cluster-admin` may read them.

`fairway-fleet-viewer` is for members of one team, next to `view` or more in their own namespace:
they see the fleet, its queues and its utilization, and nothing of what other teams run.

A newer hub adds at its start what its roles and bindings lack, and removes nothing; an object whose
annotation `rbac.authorization.kubernetes.io/autoupdate` is `"false"` is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.api.costs import COSTS_GROUP
from fairway.api.governance import GOVERNANCE_GROUP
from fairway.api.kindrule import KINDS_GROUP
from fairway.api.scores import SCORES_GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.server.access.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from fairway.server.access.rbac import GROUP, Authorizer
from fairway.server.access.rbac_rules import Rule, compact, uncovered_rules

FLEET_VIEWER = "fairway-fleet-viewer"
BASIC_USER = "fairway-basic-user"
_API_VERSION = f"{GROUP}/v1"
_HORIZONTAL = "horizontalpodautoscalers"
_DEVICES = "resource.k8s.io"
_CLAIMS = ("resourceclaims", "resourceclaimtemplates")
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_FAIRWAY = "fairway.dev"
_TENANT_KINDS = ("workloads", "placementpolicies")
_SERVING_KINDS = ("fleetautoscalers", "rollouts")
_PLATFORM_KINDS = ("fleets", "clusters", "clusterreports", "flavors", "queues")
_QUESTIONS = (
    "workloads/explain", "workloads/pods", "workloads/log", "workloads/traffic",
    "fleets/standing", "fleets/history", "fleets/timeline", "fleets/traffic",
)  # fmt: skip
_SHARED_KINDS = ("fleets", "clusters", "flavors", "queues")  # these name no workloads
_OWN_ACCESS = "fleets/access"  # answers with what the caller may see
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_REVIEWS = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"

JsonObject = dict[str, Any]


def bootstrap_objects() -> list[JsonObject]:
    """Every ClusterRole and ClusterRoleBinding of a fresh hub, roles first."""
    objects = [*_plain_roles(), *_aggregated_roles(), *_bindings()]
    # Aggregated roles are stored with their rules, so that they are not empty at first.
    written = {
        role["metadata"]["name"]: role for role in Authorizer(objects).unwritten_aggregations()
    }
    return [
        written.get(object_["metadata"]["name"], object_)
        if object_["kind"] == "ClusterRole"
        else object_
        for object_ in objects
    ]


def complete(stored: JsonObject, wanted: JsonObject) -> JsonObject | None:
    """A role or binding completed with what it lacks of the built-in one; None: no change."""
    metadata = stored["metadata"]
    if (metadata.get("annotations") or {}).get(_AUTOUPDATE) == "false":
        return None
    changed = {**stored, "metadata": {**metadata}}
    for field in ("labels", "annotations"):
        changed["metadata"][field] = {**wanted["metadata"][field], **(metadata.get(field) or {})}
    if "aggregationRule" in wanted:  # its rules are aggregated
        changed["aggregationRule"] = {
            "clusterRoleSelectors": _with_missing(
                (stored.get("aggregationRule") or {}).get("clusterRoleSelectors"),
                wanted["aggregationRule"]["clusterRoleSelectors"],
            )
        }
    elif "rules" in wanted:
        held = [Rule.of(rule) for rule in stored.get("rules") or ()]
        missing = compact(uncovered_rules(held, map(Rule.of, wanted["rules"])))
        changed["rules"] = [*(stored.get("rules") or ()), *(rule.raw() for rule in missing)]
    if "subjects" in wanted:
        changed["subjects"] = _with_missing(stored.get("subjects"), wanted["subjects"])
    return changed if changed != stored else None


def _with_missing(held: Sequence[Any] | None, wanted: Sequence[Any]) -> list[Any]:
    held = held or ()
    return [*held, *(item for item in wanted if item not in held)]


def _plain_roles() -> list[JsonObject]:
    reviews = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    return [
        _role(
            "cluster-admin",
            [_rule(("*",), ("*",), ("*",)), _urls("*", verbs=("*",))],
        ),
        _role("system:discovery", [_urls(*_DISCOVERY, *_HEALTH)]),
        _role("system:public-info-viewer", [_urls(*_HEALTH)]),
        _role(
            "system:basic-user",
            [
                _rule(("create",), (_REVIEWS,), reviews),
                _rule(("create",), (_AUTHENTICATION,), ("selfsubjectreviews",)),
            ],
        ),
        _role(
            "system:auth-delegator",
            [
                _rule(("create",), (_AUTHENTICATION,), ("tokenreviews",)),
                _rule(("create",), (_REVIEWS,), ("subjectaccessreviews",)),
            ],
        ),
        _role(FLEET_VIEWER, _fleet_rules()),
        _role(BASIC_USER, [_rule(("get",), (_FAIRWAY,), (_OWN_ACCESS,))]),
        _role(
            "system:monitoring",
            [_urls("/metrics", "/healthz", "/healthz/*", "/livez", "/livez/*"), _urls("/readyz")],
        ),
    ]


def _aggregated_roles() -> list[JsonObject]:
    return [
        _role("system:aggregate-to-view", _view_rules(), label="view"),
        _role("system:aggregate-to-edit", _edit_rules(), label="edit"),
        _role("system:aggregate-to-admin", _admin_rules(), label="admin"),
        _role("view", [], label="edit", gathers="view"),
        _role("edit", [], label="admin", gathers="edit"),
        _role("admin", [], gathers="admin"),
    ]


def _view_rules() -> list[JsonObject]:
    core = ("configmaps", "persistentvolumeclaims", "persistentvolumeclaims/status", "pods")
    more = ("pods/log", "pods/status", "serviceaccounts", "services", "services/status")
    scaled = ("deployments", "statefulsets")
    apps = [f"{kind}{suffix}" for kind in scaled for suffix in ("", "/status", "/scale")]
    ours = [f"{kind}{suffix}" for kind in _TENANT_KINDS for suffix in ("", "/status")]
    serving = [f"{kind}{suffix}" for kind in _SERVING_KINDS for suffix in ("", "/status")]
    platform = [f"{kind}{suffix}" for kind in _PLATFORM_KINDS for suffix in ("", "/status")]
    return [
        _rule(_READ, ("",), (*core, *more)),
        _rule(_READ, ("",), ("namespaces", "namespaces/status")),
        _rule(_READ, ("", "events.k8s.io"), ("events",)),
        _rule(_READ, ("apps",), apps),
        _rule(_READ, ("autoscaling",), (_HORIZONTAL, f"{_HORIZONTAL}/status")),
        _rule(_READ, ("batch",), ("jobs", "jobs/status")),
        _rule(_READ, (_DEVICES,), (*_CLAIMS, "resourceclaims/status")),
        _rule(_READ, (_FAIRWAY,), ours),
        _rule(_READ, (SERVING_GROUP,), (*serving, "revisions")),
        _rule(_READ, (_FAIRWAY,), platform),
        _rule(("get",), (_FAIRWAY,), _QUESTIONS),
        _rule(_READ, (KINDS_GROUP,), ("kindrules", "kindrules/status")),
        _rule(_READ, (COSTS_GROUP,), ("costaccounts",)),
        _rule(_READ, (GOVERNANCE_GROUP,), ("fleetpolicies", "fleetpolicies/status")),
        _rule(_READ, (SCORES_GROUP,), ("scorers", "scorers/status", "clusterscores")),
    ]


def _fleet_rules() -> list[JsonObject]:
    shared = [f"{kind}{suffix}" for kind in _SHARED_KINDS for suffix in ("", "/status")]
    return [
        _rule(_READ, (_FAIRWAY,), (*shared, "clusterreports/nodes")),
        _rule(("get",), (_FAIRWAY,), ("fleets/standing", "fleets/timeline", "fleets/history")),
        _rule(_READ, (KINDS_GROUP,), ("kindrules", "kindrules/status")),
        _rule(_READ, (SCORES_GROUP,), ("clusterscores",)),
    ]


def _edit_rules() -> list[JsonObject]:
    # Reading a secret or running in a pod gives its identity, so `view` may do neither.
    inside = ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy")
    core = ("configmaps", "persistentvolumeclaims", "pods", "secrets", "serviceaccounts")
    apps = ("deployments", "deployments/scale", "statefulsets", "statefulsets/scale")
    return [
        _rule(_READ, ("",), (*inside, "secrets")),
        _rule(("impersonate",), ("",), ("serviceaccounts",)),
        _rule(_WRITE, ("",), (*core, "services", *inside)),
        _rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token")),
        _rule(_WRITE, ("", "events.k8s.io"), ("events",)),
        _rule(_WRITE, ("apps",), apps),
        _rule(_WRITE, ("autoscaling",), (_HORIZONTAL,)),
        _rule(_WRITE, ("batch",), ("jobs",)),
        _rule(_WRITE, (_DEVICES,), _CLAIMS),
        _rule((*_READ, *_WRITE), ("coordination.k8s.io",), ("leases",)),
        _rule(_WRITE, (_FAIRWAY,), _TENANT_KINDS),
        _rule(_WRITE, (SERVING_GROUP,), _SERVING_KINDS),
        _rule(("create",), (_FAIRWAY,), ("workloads/exec", "workloads/portforward")),
        _rule(_READ, (_FAIRWAY,), ("works", "works/status")),
    ]


def _admin_rules() -> list[JsonObject]:
    return [
        _rule(("create",), (_REVIEWS,), ("localsubjectaccessreviews",)),
        _rule((*_READ, *_WRITE), (GROUP,), ("roles", "rolebindings")),
    ]


def _bindings() -> list[JsonObject]:
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:basic-user", AUTHENTICATED),
        _binding(BASIC_USER, AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
        _binding("system:monitoring", "system:monitoring"),
    ]


def _role(name: str, rules: list[JsonObject], *, label: str = "", gathers: str = "") -> JsonObject:
    labels = _labels()
    if label:
        labels[f"{GROUP}/aggregate-to-{label}"] = "true"
    metadata = {"name": name, "labels": labels, "annotations": _annotations()}
    role: JsonObject = {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": metadata}
    if gathers:
        selector = {"matchLabels": {f"{GROUP}/aggregate-to-{gathers}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    role["rules"] = rules
    return role


def _binding(name: str, *groups: str) -> JsonObject:
    subjects = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": _labels(), "annotations": _annotations()},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": subjects,
    }


def _rule(verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str]) -> JsonObject:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def _urls(*urls: str, verbs: Sequence[str] = ("get",)) -> JsonObject:
    return {"verbs": list(verbs), "nonResourceURLs": list(urls)}


def _labels() -> dict[str, str]:
    return {"kubernetes.io/bootstrapping": "rbac-defaults"}


def _annotations() -> dict[str, str]:
    return {_AUTOUPDATE: "true"}
