"""What clusters with rules for a namespace make of the pods of a workload (see `core.allowances`).

How much is left of a quota changes with every pod of others and belongs to the cluster. Which
quotas there are, what they count, and the bounds and defaults of LimitRanges change rarely; they
decide what a pod takes, so workloads of the namespace are read again when they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from msgspec import structs

from fairway.api.amounts import Quantity
from fairway.api.cluster import Cluster, Profile
from fairway.api.meta import JsonObject
from fairway.api.namespaces import NamespaceRules
from fairway.api.report import ClusterReport
from fairway.api.workload import Workload
from fairway.core import model
from fairway.core.allowances import (
    Admission,
    Admitted,
    Allowance,
    AllowanceKey,
    Allowances,
    counted_as,
)
from fairway.kinds.decision import change_requests
from fairway.kinds.namespace_rules import Verdict, admit
from fairway.kinds.plain import child, maps_at
from fairway.kinds.profile import rename_resources
from fairway.kinds.registry import KnownKinds
from fairway.view.queues import base_units
from fairway.view.reports import fleet_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRules:
    """What a cluster makes of pods in one namespace, whatever is used there."""

    rules: NamespaceRules  # with the names of a quota's resources alone
    profile: Profile


# Namespace -> {cluster: its rules}; namespaces without rules are left out.
Rules = Mapping[str, Mapping[str, ClusterRules]]


def rules_in(cluster: Cluster, reports: Sequence[ClusterReport]) -> tuple[NamespaceRules, ...]:
    """The rules of a cluster, as reported; before the first report, those that it simulates."""
    if not reports:
        return cluster.spec.simulated.namespaces if cluster.spec.simulated is not None else ()
    return tuple(rules for report in reports for rules in report.spec.namespaces)


def allowances_of(namespaces: Iterable[NamespaceRules]) -> Allowances:
    """What is left of each quota for pods of Fairway."""
    result: dict[AllowanceKey, Allowance] = {}
    for rules in namespaces:
        for quota in rules.quotas:
            for resource, hard in quota.hard.items():
                others = quota.others.get(resource, Quantity(0))
                left = Quantity(hard.nanos - others.nanos)
                counted = counted_as(resource)
                result[AllowanceKey(rules.name, quota.name, resource)] = Allowance(
                    hard=base_units(counted, hard, up=False),
                    left=base_units(counted, left, up=False),
                )
    return result


def lasting_rules(
    namespaces: Iterable[NamespaceRules], profile: Profile
) -> dict[str, ClusterRules]:
    """Rules by namespace, without amounts of quotas."""
    return {
        rules.name: ClusterRules(
            rules=structs.replace(
                rules,
                quotas=tuple(
                    structs.replace(
                        quota, others={}, hard=dict.fromkeys(sorted(quota.hard), Quantity(0))
                    )
                    for quota in rules.quotas
                ),
            ),
            profile=profile,
        )
        for rules in namespaces
        if rules.quotas or rules.limits
    }


def by_namespace(lasting: Mapping[str, Mapping[str, ClusterRules]]) -> Rules:
    """The rules of each namespace by cluster, from those of each cluster by namespace."""
    result: dict[str, dict[str, ClusterRules]] = {}
    for cluster in sorted(lasting):
        for namespace, rules in lasting[cluster].items():
            result.setdefault(namespace, {})[cluster] = rules
    return result


class RuleBook:
    """The rules of all clusters, updated cluster by cluster."""

    def __init__(self) -> None:
        self.rules: Rules = {}
        self._by_cluster: dict[str, Mapping[str, ClusterRules]] = {}

    def take(self, cluster: str, rules: Mapping[str, ClusterRules]) -> set[str]:
        """Takes the rules of a cluster; returns the namespaces for which they changed."""
        before = self._by_cluster.pop(cluster, {})
        if rules:
            self._by_cluster[cluster] = rules
        names = before.keys() | rules.keys()
        changed = {name for name in names if before.get(name) != rules.get(name)}
        if changed:
            self.rules = by_namespace(self._by_cluster)
        return changed


def admitted_forms(
    workload: Workload,
    forms: Sequence[model.Form],
    clusters: Mapping[str, ClusterRules],
    kinds: KnownKinds,
) -> tuple[model.Form, ...]:
    """The forms of a workload with what these clusters make of their pods."""
    specs = _pod_specs(workload, kinds)
    changes = {
        (alternative.name, pods.name): pods.requests
        for alternative in workload.spec.alternatives
        for pods in alternative.pod_sets
    }
    result = []
    for form in forms:
        sets = []
        for pod_set in form.pod_sets:
            spec = specs.get(pod_set.name)
            if spec is None:
                spec = _alone(pod_set)
            elif changed := changes.get((form.name, pod_set.name)):
                spec = deepcopy(spec)
                change_requests(maps_at(spec, "containers"), changed)
            shape = replace(pod_set.shape, admitted=_admitted(spec, clusters))
            sets.append(replace(pod_set, shape=shape))
        result.append(replace(form, pod_sets=tuple(sets)))
    return tuple(result)


def refusing_clusters(forms: Sequence[model.Form]) -> tuple[tuple[str, str], ...]:
    """The clusters that refuse pods of every form, and why they refuse the first."""
    refused = [
        {
            cluster: admission.refusal
            for pod_set in reversed(form.pod_sets)
            for cluster, admission in pod_set.shape.admitted
            if admission.refusal and pod_set.count
        }
        for form in forms
    ]
    if not refused:
        return ()
    everywhere = set(refused[0]).intersection(*refused[1:])
    return tuple((cluster, refused[0][cluster]) for cluster in sorted(everywhere))


def _pod_specs(workload: Workload, kinds: KnownKinds) -> dict[str, JsonObject]:
    """The specs of its pods, by pod set."""
    if workload.spec.template is None:
        return {}
    manifest = workload.spec.template.manifests[0]
    kind = kinds.of(manifest)
    if kind is None:
        return {}
    templates = kind.templates(manifest)
    return {name: child(template, "spec") for name, template in templates.items()}


def _alone(pod_set: model.PodSet) -> JsonObject:
    """The pod that is made for a pod set without a template: its requests are its limits."""
    amounts = {
        resource: str(Quantity(amount * model.unit_nanos(resource)))
        for resource, amount in pod_set.shape.requests
    }
    resources = {"requests": amounts, "limits": amounts}
    return {"containers": [{"name": pod_set.name, "resources": resources}]}


def _admitted(spec: JsonObject, clusters: Mapping[str, ClusterRules]) -> Admitted:
    return tuple(
        (name, _admission(spec, clusters[name].rules, clusters[name].profile))
        for name in sorted(clusters)
    )


def _admission(spec: JsonObject, rules: NamespaceRules, profile: Profile) -> Admission:
    if profile.resources:
        spec = deepcopy(spec)
        rename_resources(spec, profile.resources)
    verdict = admit(spec, rules)
    return Admission(
        added=_added(verdict, fleet_names(profile)),
        takes=tuple(
            (
                AllowanceKey(rules.name, quota, resource),
                base_units(counted_as(resource), Quantity(nanos)),
            )
            for (quota, resource), nanos in sorted(verdict.takes.items())
        ),
        refusal=f"namespace {rules.name}: {verdict.refusal}" if verdict.refusal else "",
    )


def _added(verdict: Verdict, back: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted(
            (back.get(resource, resource), base_units(resource, Quantity(nanos)))
            for resource, nanos in verdict.added.items()
        )
    )
