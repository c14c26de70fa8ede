"""The built-in kinds as Resources, in one table.

Names, scopes, categories, short names and selectable fields are those of Kubernetes 1.36. The
kinds with a `metadata.generation` are the same as in Kubernetes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fairway.resources.builtin import (
    access_checks,
    autoscaler,
    checks,
    defaults,
    definition_checks,
    device_claims,
    pod_checks,
    pod_defaults,
    workload_checks,
)
from fairway.resources.builtin.definitions import node_of, reference
from fairway.resources.builtin.tables import TABLES
from fairway.resources.resource import Check, Prepare, Resource, ScalePaths

_CORE = "io.k8s.api.core.v1"
_DEVICES = "io.k8s.api.resource.v1"
_RBAC = "io.k8s.api.rbac.v1"
_AUTHORIZATION = "io.k8s.api.authorization.v1"
_AUTHENTICATION = "io.k8s.api.authentication.v1"
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_ALL = ("all",)
_SCALE = ScalePaths(
    replicas=".spec.replicas", status_replicas=".status.replicas", selector=".spec.selector"
)
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The specifics of one built-in kind."""

    kind: str
    package: str
    group: str = ""
    version: str = "v1"
    plural: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    has_status: bool = False
    scale: ScalePaths | None = None
    counts_generations: bool = False
    selectable_fields: tuple[str, ...] = ()
    prepare: Prepare | None = None
    check: Check | None = None
    name_rule: str = "subdomain"
    allows_blind_update: bool = True


STORED: tuple[Kind, ...] = (
    Kind(
        kind="Namespace",
        package=_CORE,
        short_names=("ns",),
        namespaced=False,
        has_status=True,
        selectable_fields=("status.phase",),
        prepare=defaults.namespace,
        name_rule="label",
    ),
    Kind(
        kind="Pod",
        package=_CORE,
        short_names=("po",),
        categories=_ALL,
        has_status=True,
        counts_generations=True,
        selectable_fields=(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ),
        prepare=pod_defaults.pod,
        check=pod_checks.pod,
    ),
    Kind(
        kind="Service",
        package=_CORE,
        short_names=("svc",),
        categories=_ALL,
        has_status=True,
        selectable_fields=("spec.clusterIP", "spec.type"),
        prepare=defaults.service,
        check=checks.service,
        name_rule="label",
    ),
    Kind(kind="ServiceAccount", package=_CORE, short_names=("sa",)),
    Kind(
        kind="PersistentVolumeClaim",
        package=_CORE,
        short_names=("pvc",),
        has_status=True,
        prepare=defaults.claim,
        check=checks.claim,
    ),
    Kind(
        kind="Secret",
        package=_CORE,
        selectable_fields=("type",),
        prepare=defaults.secret,
        check=checks.secret,
    ),
    Kind(kind="ConfigMap", package=_CORE, short_names=("cm",), check=checks.config_map),
    Kind(
        kind="Event",
        package=_CORE,
        short_names=("ev",),
        selectable_fields=(
            *(f"involvedObject.{name}" for name in _ABOUT),
            "reason",
            "reportingComponent",
            "source",
            "type",
        ),
        check=checks.event,
    ),
    Kind(
        kind="Job",
        package="io.k8s.api.batch.v1",
        group="batch",
        categories=_ALL,
        has_status=True,
        counts_generations=True,
        selectable_fields=("status.successful",),
        prepare=defaults.job,
        check=workload_checks.job,
    ),
    Kind(
        kind="Deployment",
        package="io.k8s.api.apps.v1",
        group="apps",
        short_names=("deploy",),
        categories=_ALL,
        has_status=True,
        scale=_SCALE,
        counts_generations=True,
        prepare=defaults.deployment,
        check=workload_checks.deployment,
    ),
    Kind(
        kind="StatefulSet",
        package="io.k8s.api.apps.v1",
        group="apps",
        short_names=("sts",),
        categories=_ALL,
        has_status=True,
        scale=_SCALE,
        counts_generations=True,
        prepare=defaults.stateful_set,
        check=workload_checks.stateful_set,
    ),
    Kind(
        kind="HorizontalPodAutoscaler",
        package="io.k8s.api.autoscaling.v2",
        group="autoscaling",
        version="v2",
        short_names=("hpa",),
        categories=_ALL,
        has_status=True,
        prepare=autoscaler.prepare,
        check=autoscaler.check,
    ),
    Kind(
        kind="Lease",
        package="io.k8s.api.coordination.v1",
        group="coordination.k8s.io",
        check=checks.lease,
        allows_blind_update=False,
    ),
    Kind(
        kind="ResourceClaim",
        package=_DEVICES,
        group="resource.k8s.io",
        has_status=True,
        prepare=device_claims.claim,
        check=device_claims.claim_faults,
    ),
    Kind(
        kind="ResourceClaimTemplate",
        package=_DEVICES,
        group="resource.k8s.io",
        prepare=device_claims.template,
        check=device_claims.template_faults,
    ),
    Kind(
        kind="PriorityClass",
        package="io.k8s.api.scheduling.v1",
        group="scheduling.k8s.io",
        plural="priorityclasses",
        short_names=("pc",),
        namespaced=False,
        counts_generations=True,
        prepare=defaults.priority_class,
        check=checks.priority_class,
    ),
    Kind(
        kind="Role",
        package=_RBAC,
        group=defaults.RBAC_GROUP,
        check=access_checks.role,
        name_rule="path",
    ),
    Kind(
        kind="ClusterRole",
        package=_RBAC,
        group=defaults.RBAC_GROUP,
        namespaced=False,
        check=access_checks.cluster_role,
        name_rule="path",
    ),
    Kind(
        kind="RoleBinding",
        package=_RBAC,
        group=defaults.RBAC_GROUP,
        prepare=defaults.role_binding,
        check=access_checks.role_binding,
        name_rule="path",
    ),
    Kind(
        kind="ClusterRoleBinding",
        package=_RBAC,
        group=defaults.RBAC_GROUP,
        namespaced=False,
        prepare=defaults.role_binding,
        check=access_checks.cluster_role_binding,
        name_rule="path",
    ),
    Kind(
        kind="CustomResourceDefinition",
        package=_APIEXTENSIONS,
        group="apiextensions.k8s.io",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        namespaced=False,
        has_status=True,
        counts_generations=True,
        prepare=defaults.definition,
        check=definition_checks.definition,
        allows_blind_update=False,
    ),
)

REVIEWS: tuple[Kind, ...] = (
    *(
        Kind(
            kind=kind,
            package=_AUTHORIZATION,
            group="authorization.k8s.io",
            namespaced=kind.startswith("Local"),
        )
        for kind in (
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
            "LocalSubjectAccessReview",
            "SelfSubjectRulesReview",
        )
    ),
    *(
        Kind(kind=kind, package=_AUTHENTICATION, group="authentication.k8s.io", namespaced=False)
        for kind in ("SelfSubjectReview", "TokenReview")
    ),
)


@cache
def _resources() -> tuple[Resource, ...]:
    stored = tuple(_resource(kind, is_stored=True) for kind in STORED)
    return stored + tuple(_resource(kind, is_stored=False) for kind in REVIEWS)


def builtin_resources() -> list[Resource]:
    """Every built-in kind, stored ones first; built once."""
    return list(_resources())


def _resource(kind: Kind, *, is_stored: bool) -> Resource:
    name = f"{kind.package}.{kind.kind}"
    columns, cells = TABLES.get(kind.kind, ((), None))
    return Resource(
        group=kind.group,
        version=kind.version,
        plural=kind.plural or kind.kind.lower() + "s",
        kind=kind.kind,
        singular=kind.kind.lower(),
        list_kind=f"{kind.kind}List" if is_stored else "",
        short_names=kind.short_names,
        categories=kind.categories,
        namespaced=kind.namespaced,
        verbs=_verbs(kind, is_stored=is_stored),
        schema=node_of(name),
        openapi=reference(name),
        columns=columns,
        cells=cells,
        has_status=kind.has_status,
        scale=kind.scale,
        counts_generations=kind.counts_generations,
        storage_version=kind.version,
        selectable_fields=kind.selectable_fields,
        prepare=kind.prepare,
        check=kind.check,
        name_rule=kind.name_rule,
        allows_blind_update=kind.allows_blind_update,
        is_stored=is_stored,
    )


def _verbs(kind: Kind, *, is_stored: bool) -> tuple[str, ...]:
    if not is_stored:
        return ("create",)
    # A namespace is deleted with all its content, so never many at once.
    many = () if kind.kind == "Namespace" else ("deletecollection",)
    return ("create", "delete", *many, "get", "list", "patch", "update", "watch")
