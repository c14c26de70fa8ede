"""The objects of a work, with the decision applied.

Dependencies of the pods come first (configuration, secrets, volume claims), then the other
manifests of the template, then its first manifest, which runs. Counts are those of the placement;
flavors and topology domains become node selectors, affinities and tolerations; finally the
cluster's own names replace the fleet's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

from msgspec.structs import replace

from fairway.api.claim import PlacedPodSet, Placement
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.meta import JsonObject, NodeRequirement, NodeTerm, ObjectReference, Toleration
from fairway.api.podset import PodSetChange
from fairway.api.work import FeedbackPath, FeedbackRule, Manifest, WorkPodSet
from fairway.api.workload import Template, Workload
from fairway.controllers.rollouts.register import Second
from fairway.controllers.works import generated
from fairway.kinds import decision, profile, tasks
from fairway.kinds.device_claims import (
    NO_DEVICES,
    Counted,
    Way,
    chosen_way,
    claims_among,
    count_devices,
    pin_claims,
    rename_claims,
)
from fairway.kinds.native import clean_manifest
from fairway.kinds.plain import text, with_value, without
from fairway.kinds.registry import KnownKinds
from fairway.kinds.updates import Pace, second_of, with_pace
from fairway.kinds.volumes import BOUND_IN

HOSTNAME = "kubernetes.io/hostname"
_VALUES_MOST = 64  # of one node requirement
_WELL_KNOWN = FeedbackRule(type="WellKnown")
# The whole status is copied back to the native object that the workload represents.
_STATUS = FeedbackRule(type="JsonPaths", paths=(FeedbackPath(name="status", path=".status"),))
_KEPT = ("PersistentVolumeClaim", "ServiceAccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The inputs of manifests besides the workload and its claim."""

    cluster: Cluster
    kinds: KnownKinds
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    objects: Sequence[JsonObject] = ()  # dependencies found on the hub
    avoided_nodes: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)  # of a service with a Rollout
    second: Second | None = None  # what runs beside it meanwhile


def manifests_of(
    workload: Workload, placement: Placement, work: str, around: Surroundings
) -> tuple[Manifest, ...]:
    """The objects that a cluster is to have for a placement."""
    namespace = workload.metadata.namespace
    if workload.spec.template is not None:
        first, *others = _at_home(workload.spec.template, workload)
        part, more = _beside(workload, placement, work, around)
        first = _count(first, part, around)
        running = [*_running(workload, part, work, first, around), *more[:1]]
        others += [entry for entry in more[1:] if entry not in others]
    else:
        others = []
        running = [
            made
            for manifest in generated.manifests(workload, placement)
            for made in _running(workload, placement, work, manifest, around)
        ]
    way = _way(workload, around)
    needed, renamed = pin_claims(around.objects, way)
    others, renamed_others = pin_claims(others, way)
    renamed.update(renamed_others)
    own = around.cluster.spec.profile
    made = [_dependency(profile.apply_profile(None, object_, own), namespace) for object_ in needed]
    for entry in others:
        made.append(Manifest(object=profile.apply_profile(around.kinds.of(entry), entry, own)))
    # Feedback costs a write of the work's status whenever it changes.
    feedback = (_WELL_KNOWN, _STATUS) if workload.spec.source else ()
    for entry in running:
        kind = around.kinds.of(entry)
        fitted = profile.apply_profile(kind, rename_claims(kind, entry, renamed), own)
        made.append(Manifest(object=fitted, feedback=feedback))
    return tuple(made)


def _way(workload: Workload, around: Surroundings) -> Way:
    """The chosen alternatives of the devices that its pods ask for."""
    counted = devices_at(workload, around.objects, around.kinds)
    form = workload.status.claim.alternative if workload.status.claim else ""
    return chosen_way(counted, form)


def devices_at(workload: Workload, objects: Sequence[JsonObject], kinds: KnownKinds) -> Counted:
    """The devices that the pods of a workload ask for, with these objects of its namespace."""
    if workload.spec.template is None:
        return NO_DEVICES
    manifests = workload.spec.template.manifests
    claims = claims_among((*objects, *manifests))
    return count_devices(manifests[0], kinds.of(manifests[0]), claims)


def _at_home(template: Template, workload: Workload) -> Iterator[JsonObject]:
    """The manifests of a template, in the namespace of its workload and with a name."""
    for manifest in template.manifests:
        plain = clean_manifest(manifest)
        named = with_value(plain, ("metadata", "namespace"), workload.metadata.namespace)
        if not text(named, "metadata", "name"):
            named = with_value(named, ("metadata", "name"), workload.metadata.name)
        yield named


def _beside(
    workload: Workload, placement: Placement, work: str, around: Surroundings
) -> tuple[Placement, list[JsonObject]]:
    """What is left of a placement for the first object, and what runs in a second one.

    The second comes with the other manifests of its template.
    """
    second, replicas = around.second, placement.replicas or 0
    if second is None:
        return placement, []
    count = min(second.replicas, replicas)
    first, *others = _at_home(second.template, workload)
    part = replace(placement, replicas=count)
    around = with_fields(around, pace=second.pace, second=None)
    (made,) = _running(workload, part, work, second_of(_count(first, part, around)), around)
    return replace(placement, replicas=replicas - count), [made, *others]


def _dependency(body: JsonObject, namespace: str) -> Manifest:
    """A dependency as a manifest. Objects that hold data or identity outlive the work."""
    plain = with_value(clean_manifest(body), ("metadata", "namespace"), namespace)
    plain = without(plain, "metadata", "annotations", BOUND_IN)  # only for the hub
    is_kept = plain.get("kind") in _KEPT
    return Manifest(
        object=plain,
        update="CreateOnly" if is_kept else "ServerSideApply",
        deletion="Orphan" if is_kept else "Delete",
    )


def _running(
    workload: Workload,
    placement: Placement,
    work: str,
    manifest: JsonObject,
    around: Surroundings,
) -> list[JsonObject]:
    """The object that runs, for this placement; a Job of tasks becomes one object per run."""
    kind = around.kinds.of(manifest)
    if kind is None:
        return [manifest]
    decorated = decision.decorate(kind, manifest, _changes(workload, placement, around))
    attempt = placement.attempt
    labelled = decision.with_pod_labels(kind, decorated, work=work, attempt=attempt)
    if placement.replicas is not None:
        labelled = with_pace(kind, labelled, around.pace, placement.replicas)
    asked = workload.spec.tasks
    if asked is None or not placement.tasks or kind.name != "Job":
        return [labelled]
    return tasks.jobs(
        labelled,
        placement.tasks,
        range_size=asked.range_size,
        first=asked.first,
        retries=asked.retries,
    )


def _count(manifest: JsonObject, placement: Placement, around: Surroundings) -> JsonObject:
    """The manifest that runs, with the counts of the placement."""
    kind = around.kinds.of(manifest)
    if kind is None or placement.tasks:
        return manifest
    if placement.replicas is not None:
        return kind.with_counts(manifest, {"replicas": placement.replicas})
    return kind.with_counts(
        manifest, {pod_set.name: pod_set.count for pod_set in placement.pod_sets}
    )


def _changes(
    workload: Workload, placement: Placement, around: Surroundings
) -> dict[str, decision.Change]:
    chosen = workload.status.claim.alternative if workload.status.claim else ""
    other = {
        change.name: change
        for alternative in workload.spec.alternatives
        if alternative.name == chosen
        for change in alternative.pod_sets
    }
    return {
        pod_set.name: _change(pod_set, other.get(pod_set.name), around)
        for pod_set in placement.pod_sets
    }


def _change(
    pods: PlacedPodSet, other: PodSetChange | None, around: Surroundings
) -> decision.Change:
    return decision.Change(
        node_selector=node_selector(pods, around.flavors),
        node_affinity=_affinity(pods, around),
        tolerations=tolerations(pods, around.flavors),
        environment={variable.name: variable.value for variable in other.environment}
        if other
        else {},
        requests=other.requests if other else {},
        image=other.image if other else "",
    )


def node_selector(pods: PlacedPodSet, flavors: Mapping[str, Flavor]) -> dict[str, str]:
    """The node labels of the chosen flavors."""
    result: dict[str, str] = {}
    for flavor in _flavors(pods, flavors):
        result.update(flavor.spec.node_labels)
    return result


def tolerations(pods: PlacedPodSet, flavors: Mapping[str, Flavor]) -> tuple[Toleration, ...]:
    result = [
        toleration for flavor in _flavors(pods, flavors) for toleration in flavor.spec.tolerations
    ]
    return tuple(
        toleration for at, toleration in enumerate(result) if toleration not in result[:at]
    )


def _flavors(pods: PlacedPodSet, flavors: Mapping[str, Flavor]) -> Iterator[Flavor]:
    for name in sorted(set(pods.flavors.values())):
        if name in flavors:
            yield flavors[name]


def _affinity(pods: PlacedPodSet, around: Surroundings) -> tuple[NodeTerm, ...]:
    """The chosen topology domains, without the nodes that are set aside."""
    terms = list(_domain_terms(pods, around.cluster)) or [()]
    aside = around.avoided_nodes[:_VALUES_MOST]
    if aside:
        away = NodeRequirement(key=HOSTNAME, operator="NotIn", values=aside)
        terms = [(*term, away) for term in terms]
    return tuple(NodeTerm(match_expressions=term) for term in terms if term)


def _domain_terms(pods: PlacedPodSet, cluster: Cluster) -> Iterator[tuple[NodeRequirement, ...]]:
    levels = cluster.spec.topology
    position = next(
        (at for at, level in enumerate(levels) if level.name == pods.topology_level), None
    )
    if position is None or not pods.domains:
        return
    label = levels[position].node_label
    plain = sorted(domain for domain in pods.domains if "/" not in domain)
    for start in range(0, len(plain), _VALUES_MOST):
        values = tuple(plain[start : start + _VALUES_MOST])
        yield (NodeRequirement(key=label, operator="In", values=values),)
    for domain in sorted(set(pods.domains) - set(plain)):
        # Racks of the same name in two blocks are distinguished by the block: block/rack.
        parts = domain.split("/")
        around = levels[max(0, position + 1 - len(parts)) : position + 1]
        yield tuple(
            NodeRequirement(key=level.node_label, operator="In", values=(part,))
            for level, part in zip(around, parts[-len(around) :], strict=True)
            if part
        )


def work_pod_sets(placement: Placement) -> tuple[WorkPodSet, ...]:
    return tuple(
        WorkPodSet(name=pod_set.name, count=pod_set.count) for pod_set in placement.pod_sets
    )


def dependencies_of(workload: Workload, kinds: KnownKinds) -> tuple[ObjectReference, ...]:
    """Objects of its namespace that a workload needs in its cluster."""
    dependencies = dict.fromkeys(workload.spec.dependencies)
    for manifest in workload.spec.template.manifests if workload.spec.template else ():
        kind = kinds.of(manifest)
        if kind is not None:
            dependencies.update(dict.fromkeys(kind.dependencies(manifest)))
    given = {
        (
            str(manifest.get("apiVersion")),
            str(manifest.get("kind")),
            text(manifest, "metadata", "name"),
        )
        for manifest in (workload.spec.template.manifests if workload.spec.template else ())
    }
    own = ("", workload.metadata.namespace)
    return tuple(
        reference
        for reference in dependencies
        if reference.namespace in own
        and (reference.api_version, reference.kind, reference.name) not in given
        and (reference.kind, reference.name) != ("ServiceAccount", "default")
    )
