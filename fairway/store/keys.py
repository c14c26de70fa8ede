"""The resources that Fairway itself reads and writes, by one name each in all packages."""

from __future__ import annotations

from fairway.api.costs import COSTS_GROUP
from fairway.api.governance import GOVERNANCE_GROUP
from fairway.api.kindrule import KINDS_GROUP
from fairway.api.meta import GROUP, VERSION
from fairway.api.scores import SCORES_GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.store.interface import ResourceKey


def resource_of(api_version: str, kind: str) -> ResourceKey:
    """The resource of a native kind; every known kind has a regular plural."""
    group, _, version = api_version.rpartition("/")
    return ResourceKey(group, version, f"{kind.lower()}s")


def _ours(plural: str) -> ResourceKey:
    return ResourceKey(GROUP, VERSION, plural)


WORKLOADS = _ours("workloads")
WORKS = _ours("works")
CLUSTERS = _ours("clusters")
REPORTS = _ours("clusterreports")
FLAVORS = _ours("flavors")
QUEUES = _ours("queues")
POLICIES = _ours("placementpolicies")
FLEETS = _ours("fleets")
COST_ACCOUNTS = ResourceKey(COSTS_GROUP, VERSION, "costaccounts")
FLEET_POLICIES = ResourceKey(GOVERNANCE_GROUP, VERSION, "fleetpolicies")
SCORERS = ResourceKey(SCORES_GROUP, VERSION, "scorers")
CLUSTER_SCORES = ResourceKey(SCORES_GROUP, VERSION, "clusterscores")
KIND_RULES = ResourceKey(KINDS_GROUP, VERSION, "kindrules")
ROLLOUTS = ResourceKey(SERVING_GROUP, VERSION, "rollouts")
REVISIONS = ResourceKey(SERVING_GROUP, VERSION, "revisions")
AUTOSCALERS = ResourceKey(SERVING_GROUP, VERSION, "fleetautoscalers")

EVENTS = ResourceKey("", "v1", "events")
NAMESPACES = ResourceKey("", "v1", "namespaces")
NODES = ResourceKey("", "v1", "nodes")
PODS = ResourceKey("", "v1", "pods")
CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
SECRETS = ResourceKey("", "v1", "secrets")
ACCOUNTS = ResourceKey("", "v1", "serviceaccounts")
VOLUME_CLAIMS = ResourceKey("", "v1", "persistentvolumeclaims")
DEVICE_CLAIMS = ResourceKey("resource.k8s.io", "v1", "resourceclaims")
DEVICE_CLAIM_TEMPLATES = ResourceKey("resource.k8s.io", "v1", "resourceclaimtemplates")
JOBS = ResourceKey("batch", "v1", "jobs")
LEASES = ResourceKey("coordination.k8s.io", "v1", "leases")
PRIORITY_CLASSES = ResourceKey("scheduling.k8s.io", "v1", "priorityclasses")
DEFINITIONS = ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions")
SELF_REVIEWS = ResourceKey("authentication.k8s.io", "v1", "selfsubjectreviews")
TOKEN_REVIEWS = ResourceKey("authentication.k8s.io", "v1", "tokenreviews")
HTTP_ROUTES = ResourceKey("gateway.networking.k8s.io", "v1", "httproutes")

RBAC = "rbac.authorization.k8s.io"
ROLES = ResourceKey(RBAC, "v1", "roles")
ROLE_BINDINGS = ResourceKey(RBAC, "v1", "rolebindings")
CLUSTER_ROLES = ResourceKey(RBAC, "v1", "clusterroles")
CLUSTER_ROLE_BINDINGS = ResourceKey(RBAC, "v1", "clusterrolebindings")

ADMISSION = "admissionregistration.k8s.io"
WEBHOOKS = ResourceKey(ADMISSION, "v1", "validatingwebhookconfigurations")
