"""Rebuilds a work from what runs in the cluster, when neither the hub nor the agent knows it."""

from __future__ import annotations

from fairway.agent.drivers.interface import WorkSeen
from fairway.api.meta import JsonObject, ObjectMeta, WorkloadReference
from fairway.api.work import Manifest, Work, WorkPodSet, WorkSpec
from fairway.kinds import ranges
from fairway.kinds.tasks import tasks_of

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


def adopt(seen: WorkSeen, *, cluster: str, namespace: str, term: int) -> Work | None:
    """The work that would produce what is seen; None if its name does not name a workload."""
    tenant, dot, name = seen.name.partition(".")
    if not dot or not tenant or not name:
        return None
    counts: dict[str, int] = {}
    for pod in seen.pods:
        if pod.attempt == seen.attempt:
            counts[pod.pod_set] = counts.get(pod.pod_set, 0) + 1
    return Work(
        metadata=ObjectMeta(name=seen.name, namespace=namespace),
        spec=WorkSpec(
            cluster=cluster,
            workload=WorkloadReference(namespace=tenant, name=name),
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
    metadata = {key: value for key, value in body.get("metadata", {}).items() if key not in _ADDED}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
