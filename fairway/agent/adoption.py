"""Rebuilds a work from what runs in the cluster, when neither the hub nor the agent knows it.

Objects carry the decision that they were made by, and its proof: a hub believes no agent without.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from fairway.agent.drivers.interface import WorkSeen
from fairway.api.meta import JsonObject, ObjectMeta, WorkloadReference
from fairway.api.names import PLACEMENT, PROOF, WORKLOAD_UID
from fairway.api.work import Manifest, Work, WorkPodSet, WorkSpec
from fairway.kinds import ranges
from fairway.kinds.plain import child
from fairway.kinds.tasks import tasks_of

_NOTES = (PLACEMENT, PROOF, WORKLOAD_UID)
# Metadata that a cluster adds to an object.
_ADDED = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def with_notes(work: Work) -> Work:
    """A work whose objects carry its decision and the proof of it."""
    known = {
        **{key: work.metadata.annotations.get(key, "") for key in (PLACEMENT, PROOF)},
        WORKLOAD_UID: work.spec.workload.uid,
    }
    if not known[PROOF]:
        return work
    manifests = tuple(
        replace(manifest, object=_noted(manifest.object, known)) for manifest in work.spec.manifests
    )
    return replace(work, spec=replace(work.spec, manifests=manifests))


def _noted(body: JsonObject, notes: Mapping[str, str]) -> JsonObject:
    metadata = child(body, "metadata")
    annotations = {**child(metadata, "annotations"), **notes}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _notes_of(seen: WorkSeen) -> dict[str, str]:
    """The notes on the objects of a work; those of one object belong together."""
    for position in sorted(seen.objects):
        annotations = child(child(seen.objects[position], "metadata"), "annotations")
        if annotations.get(PROOF):
            return {key: str(annotations.get(key, "")) for key in _NOTES}
    return {}


def adopt(seen: WorkSeen, *, cluster: str, namespace: str, term: int) -> Work | None:
    """The work that would produce what is seen; None if its name does not name a workload."""
    tenant, dot, name = seen.name.partition(".")
    if not dot or not tenant or not name:
        return None
    notes = _notes_of(seen)
    uid = notes.pop(WORKLOAD_UID, "")
    counts: dict[str, int] = {}
    for pod in seen.pods:
        if pod.attempt == seen.attempt:
            counts[pod.pod_set] = counts.get(pod.pod_set, 0) + 1
    return Work(
        metadata=ObjectMeta(name=seen.name, namespace=namespace, annotations=notes),
        spec=WorkSpec(
            cluster=cluster,
            workload=WorkloadReference(namespace=tenant, name=name, uid=uid),
            attempt=seen.attempt,
            term=term,
            manifests=tuple(
                Manifest(object=_manifest(seen.objects[position]))
                for position in sorted(seen.objects)
            ),
            tasks=ranges.text(ranges.union(tasks_of(body) for body in seen.objects.values())),
            pod_sets=tuple(
                WorkPodSet(name=value, count=count) for value, count in sorted(counts.items())
            ),
        ),
    )


def _manifest(body: JsonObject) -> JsonObject:
    """The object as a user would have written it."""
    metadata = {key: value for key, value in child(body, "metadata").items() if key not in _ADDED}
    annotations = child(metadata, "annotations")
    if annotations:
        own = {key: value for key, value in annotations.items() if key not in _NOTES}
        metadata["annotations"] = own
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
