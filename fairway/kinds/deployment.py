"""Deployment: a service of identical pods, divided by replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.kinds import pods
from fairway.kinds.conditions import condition
from fairway.kinds.conditions import find_condition as condition_of
from fairway.kinds.interface import Observed, Phase, Pod, PodState
from fairway.kinds.plain import child, name_of, number, text, texts
from fairway.kinds.replicated import Replicated, added_up, is_current, wanted_replicas

POD_SET = "pod"
_COUNTS = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
)


class Deployment(Replicated):
    """apps/v1 Deployment."""

    api_versions: tuple[str, ...] = ("apps/v1",)
    name: str = "Deployment"

    def faults(self, manifest: JsonObject) -> list[str]:
        return pods.template_faults(child(manifest, "spec", "template"), "spec.template")

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        return (pods.pod_set(_pod_set(manifest), child(manifest, "spec", "template"), 1),)

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {_pod_set(manifest): child(manifest, "spec", "template")}

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        template = child(manifest, "spec", "template")
        return [
            Pod(
                name=f"{name_of(manifest)}-{index}",
                pod_set=_pod_set(manifest),
                index=index,
                spec=child(template, "spec"),
                labels=texts(template, "metadata", "labels"),
                annotations=texts(template, "metadata", "annotations"),
                retries=None,
            )
            for index in range(wanted_replicas(manifest))
        ]

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        made = [pod for pod in pods if pod.phase not in ("Succeeded", "Failed")]
        ready = [pod for pod in made if pod.phase == "Ready"]
        count = wanted_replicas(manifest)
        counts = {
            "replicas": len(made),
            "updatedReplicas": len(made),
            "readyReplicas": len(ready),
            "availableReplicas": len(ready),
            "unavailableReplicas": max(0, count - len(ready)),
        }
        since = max((pod.started_at or now for pod in ready), default=now)
        is_available = len(ready) >= count - _unavailable_most(manifest, count)
        is_done = len(ready) >= count
        return {
            "observedGeneration": number(manifest, "metadata", "generation", default=1),
            **{name: count for name, count in counts.items() if count},
            "conditions": [
                condition(
                    "Available",
                    holds=is_available,
                    since=since,
                    reason=f"MinimumReplicas{'Available' if is_available else 'Unavailable'}",
                    message="Deployment has minimum availability."
                    if is_available
                    else "Deployment does not have minimum availability.",
                ),
                condition(
                    "Progressing",
                    holds=True,
                    since=since,
                    reason="NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
                    message=f'ReplicaSet of "{name_of(manifest)}" '
                    + ("has successfully progressed." if is_done else "is progressing."),
                ),
            ],
        }

    def read(self, body: JsonObject) -> Observed:
        status = child(body, "status")
        count, ready = wanted_replicas(body), number(status, "readyReplicas")
        updated = number(status, "updatedReplicas")
        current = is_current(body)
        # A ready pod is available only after `minReadySeconds`.
        is_there = number(status, "availableReplicas") >= count and updated >= count
        phase: Phase = "Running" if ready or not count else "Pending"
        if self.is_held(body):
            phase = "Suspended"
        why = _trouble(status, is_there=is_there)
        return Observed(
            phase=phase,
            reason=text(why, "reason"),
            message=text(why, "message"),
            ready=ready,
            progress=f"{ready}/{count} ready" + (", paused" if _is_paused(body) else ""),
            is_healthy=is_there if current and status else None,
            is_current=current,
        )

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        whole = added_up(
            statuses, _COUNTS, {"Available": False, "Progressing": False, "ReplicaFailure": True}
        )
        return _of_generation(whole, manifest) if len(statuses) > 1 else whole


def _pod_set(manifest: JsonObject) -> str:
    return pods.pod_set_name(child(manifest, "spec", "template"), POD_SET)


def _of_generation(whole: JsonObject, manifest: JsonObject) -> JsonObject:
    """Sets the generation of the hub's object, because generations differ between clusters."""
    return {"observedGeneration": number(manifest, "metadata", "generation"), **whole}


def _is_paused(manifest: JsonObject) -> bool:
    return child(manifest, "spec").get("paused") is True


def _unavailable_most(manifest: JsonObject, count: int) -> int:
    """How many replicas may be unavailable during an update; by default a quarter, rounded down."""
    value = child(manifest, "spec", "strategy", "rollingUpdate").get("maxUnavailable", "25%")
    if isinstance(value, int):
        return value
    share = str(value).removesuffix("%")
    return count * int(share) // 100 if share.isdecimal() else 0


def _trouble(status: JsonObject, *, is_there: bool) -> JsonObject:
    """The condition that says why replicas are missing."""
    failure = condition_of(status, "ReplicaFailure")
    if failure.get("status") == "True":
        return failure
    progress = condition_of(status, "Progressing")
    if progress.get("status") == "False":
        return progress
    available = condition_of(status, "Available")
    return available if available.get("status") == "False" and not is_there else {}
