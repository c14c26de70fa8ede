"""StatefulSet: numbered pods with their own volumes, divided by replicas.

Each cluster numbers the pods of its part independently, from `spec.ordinals.start`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.kinds import pods
from fairway.kinds.interface import Observed, Phase, Pod, PodState
from fairway.kinds.plain import child, maps_at, name_of, number, text, texts
from fairway.kinds.replicated import Replicated, added_up, is_current, wanted_replicas

POD_SET = "pod"
POD_INDEX = "apps.kubernetes.io/pod-index"
POD_NAME = "statefulset.kubernetes.io/pod-name"
_COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
)


class StatefulSet(Replicated):
    """apps/v1 StatefulSet."""

    api_versions: tuple[str, ...] = ("apps/v1",)
    name: str = "StatefulSet"

    def faults(self, manifest: JsonObject) -> list[str]:
        return pods.template_faults(child(manifest, "spec", "template"), "spec.template")

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        return (pods.pod_set(POD_SET, child(manifest, "spec", "template"), 1),)

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {POD_SET: child(manifest, "spec", "template")}

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        first = number(manifest, "spec", "ordinals", "start")
        return [_pod(manifest, first, index) for index in range(wanted_replicas(manifest))]

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        made = [pod for pod in pods if pod.phase not in ("Succeeded", "Failed")]
        ready = sum(pod.phase == "Ready" for pod in made)
        revision = f"{name_of(manifest)}-1"
        counts = {"readyReplicas": ready, "currentReplicas": len(made)}
        return {
            "observedGeneration": number(manifest, "metadata", "generation", default=1),
            "replicas": len(made),
            **{name: count for name, count in counts.items() if count},
            "updatedReplicas": len(made),
            "availableReplicas": ready,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }

    def read(self, body: JsonObject) -> Observed:
        status = child(body, "status")
        count, ready = wanted_replicas(body), number(status, "readyReplicas")
        updated = number(status, "updatedReplicas")
        # A partition deliberately leaves the lower ordinals unchanged.
        partition = number(body, "spec", "updateStrategy", "rollingUpdate", "partition")
        # A ready pod is available only after `minReadySeconds`.
        available = number(status, "availableReplicas", default=ready)
        is_there = available >= count and updated >= max(0, count - partition)
        current = is_current(body)
        phase: Phase = "Running" if ready or not count else "Pending"
        if self.is_held(body):
            phase = "Suspended"
        return Observed(
            phase=phase,
            ready=ready,
            progress=f"{ready}/{count} ready",
            is_healthy=is_there if current and status else None,
            is_current=current,
        )

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        whole = added_up(statuses, _COUNTS, {})
        if len(statuses) < 2:
            return whole
        return {"observedGeneration": number(manifest, "metadata", "generation"), **whole}


def _pod(manifest: JsonObject, first: int, index: int) -> Pod:
    template, name = child(manifest, "spec", "template"), name_of(manifest)
    ordinal = first + index
    pod_name = f"{name}-{ordinal}"
    spec = dict(child(template, "spec"))
    spec["hostname"] = pod_name
    service = text(manifest, "spec", "serviceName")
    if service:
        spec["subdomain"] = service
    templates = {
        text(template, "metadata", "name"): {
            "name": text(template, "metadata", "name"),
            "persistentVolumeClaim": {
                "claimName": f"{text(template, 'metadata', 'name')}-{pod_name}"
            },
        }
        for template in maps_at(manifest, "spec", "volumeClaimTemplates")
    }
    if templates:
        others = [
            volume for volume in maps_at(spec, "volumes") if volume.get("name") not in templates
        ]
        spec["volumes"] = [*others, *templates.values()]
    return Pod(
        name=pod_name,
        pod_set=POD_SET,
        index=index,
        spec=spec,
        labels={
            **texts(template, "metadata", "labels"),
            POD_NAME: pod_name,
            POD_INDEX: str(ordinal),
        },
        annotations=texts(template, "metadata", "annotations"),
        retries=None,
    )
