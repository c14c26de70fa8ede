"""Pod: a single pod. It is held by a scheduling gate, which keeps it off every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet
from fairway.kinds import dependencies, pods
from fairway.kinds.conditions import condition, find_condition, first_true, moment
from fairway.kinds.interface import Announcement, Mode, Observed, Phase, PodPhase, PodState
from fairway.kinds.interface import Pod as MadePod
from fairway.kinds.plain import (
    child,
    copy_of,
    maps_at,
    name_of,
    number,
    text,
    texts,
    with_value,
    without,
)

POD_SET = "pod"
GATE = "fairway.dev/held"
_PHASES: Mapping[PodPhase, str] = {
    "Pending": "Pending",
    "Running": "Running",
    "Ready": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
_WORST_FIRST = ("Failed", "Pending", "Running", "Succeeded")


class Pod:
    """v1 Pod."""

    api_versions: tuple[str, ...] = ("v1",)
    name: str = "Pod"

    def faults(self, manifest: JsonObject) -> list[str]:
        return [fault.removeprefix(".") for fault in pods.template_faults(manifest, "")]

    def mode(self, manifest: JsonObject) -> Mode:
        return "Gang"

    def replicas(self, manifest: JsonObject) -> int | None:
        return None

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        return (pods.pod_set(POD_SET, manifest, 1),)

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {POD_SET: manifest}

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        return manifest

    def is_held(self, manifest: JsonObject) -> bool:
        return bool(maps_at(manifest, "spec", "schedulingGates"))

    def hold(self, manifest: JsonObject) -> JsonObject:
        gates = maps_at(manifest, "spec", "schedulingGates")
        if any(gate.get("name") == GATE for gate in gates):
            return manifest
        return with_value(manifest, ("spec", "schedulingGates"), [*gates, {"name": GATE}])

    def release(self, manifest: JsonObject) -> JsonObject:
        """Removes our gate; gates of others stay."""
        gates = maps_at(manifest, "spec", "schedulingGates")
        others = [gate for gate in gates if gate.get("name") != GATE]
        if len(others) == len(gates):
            return manifest
        if others:
            return with_value(manifest, ("spec", "schedulingGates"), others)
        return without(manifest, "spec", "schedulingGates")

    def pods(self, manifest: JsonObject) -> Sequence[MadePod]:
        if self.is_held(manifest):
            return ()
        return (
            MadePod(
                name=name_of(manifest),
                pod_set=POD_SET,
                index=0,
                spec=child(manifest, "spec"),
                labels=texts(manifest, "metadata", "labels"),
                annotations=texts(manifest, "metadata", "annotations"),
            ),
        )

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        if self.is_held(manifest) or not pods:
            return _unscheduled(now, is_gated=self.is_held(manifest))
        return _play(manifest, pods[0], now)

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        if said.phase == "Suspended":
            gated = condition(
                "PodScheduled", holds=False, since=said.at, reason=said.reason, message=said.message
            )
            return {"phase": "Pending", "conditions": [gated]}
        return {"phase": "Failed", "reason": said.reason, "message": said.message}

    def read(self, body: JsonObject) -> Observed:
        return _read(body)

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        """A pod is in one cluster; during a move, the status furthest from success counts."""
        parts = [statuses[key] for key in sorted(statuses)]
        ranked = sorted(parts, key=lambda part: _rank(text(part, "phase", default="Pending")))
        return copy_of(ranked[0]) if ranked else {}

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        return dependencies.of_templates([manifest])


def _rank(phase: str) -> int:
    return _WORST_FIRST.index(phase) if phase in _WORST_FIRST else 0


def _unscheduled(now: float, *, is_gated: bool) -> JsonObject:
    if not is_gated:
        return {"phase": "Pending", "qosClass": "BestEffort"}
    gated = condition(
        "PodScheduled",
        holds=False,
        since=now,
        reason="SchedulingGated",
        message="Scheduling is blocked due to non-empty scheduling gates",
    )
    return {"phase": "Pending", "conditions": [gated]}


def _play(manifest: JsonObject, pod: PodState, now: float) -> JsonObject:
    is_ready = pod.phase == "Ready"
    started = pod.started_at if pod.started_at is not None else now
    ended = pod.finished_at if pod.finished_at is not None else now
    has_ended = pod.phase in ("Succeeded", "Failed")
    completed = "PodCompleted" if pod.phase == "Succeeded" else "PodFailed"
    why = completed if has_ended else ("" if is_ready else "ContainersNotReady")
    conditions: list[JsonObject] = [
        {
            "type": kind,
            "status": "True" if holds else "False",
            "lastTransitionTime": moment(ended if has_ended else started),
            **({"reason": why} if not holds and why else {}),
        }
        for kind, holds in (
            ("Initialized", pod.phase != "Pending"),
            ("Ready", is_ready),
            ("ContainersReady", is_ready),
            ("PodScheduled", True),
        )
    ]
    status: JsonObject = {"phase": _PHASES[pod.phase], "conditions": conditions}
    if pod.phase != "Pending":
        status["startTime"] = moment(started)
        status["containerStatuses"] = [
            {
                "name": text(container, "name"),
                "image": text(container, "image"),
                "ready": is_ready,
                "started": not has_ended,
                "restartCount": pod.restarts,
                "state": _state(pod, started, ended),
            }
            for container in maps_at(manifest, "spec", "containers")
        ]
    return status


def _state(pod: PodState, started: float, ended: float) -> JsonObject:
    if pod.phase in ("Running", "Ready"):
        return {"running": {"startedAt": moment(started)}}
    code = pod.exit_code if pod.exit_code is not None else int(pod.phase == "Failed")
    return {
        "terminated": {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": moment(started),
            "finishedAt": moment(ended),
        }
    }


def _read(pod: JsonObject) -> Observed:
    status = child(pod, "status")
    plain = text(status, "phase", default="Pending")
    scheduled = find_condition(status, "PodScheduled")
    is_ready = bool(first_true(status, "Ready"))
    phase: Phase = "Pending"
    if plain in ("Running", "Succeeded", "Failed"):
        phase = plain  # type: ignore[assignment]  # one of three phases, as just tested
    elif scheduled.get("reason") == "SchedulingGated":
        phase = "Suspended"
    reason, message = _why(status, scheduled)
    return Observed(
        phase=phase,
        reason=reason,
        message=message,
        ready=int(is_ready),
        succeeded=int(phase == "Succeeded"),
        failed=int(phase == "Failed"),
        progress=f"{int(is_ready)}/1 ready" if phase in ("Pending", "Running") else "",
        is_healthy=is_ready if phase == "Running" else None,
    )


def _why(status: JsonObject, scheduled: JsonObject) -> tuple[str, str]:
    """The pod's own reason, else that of the first container that waits or failed."""
    if text(status, "reason"):
        return text(status, "reason"), text(status, "message")
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in maps_at(status, field):
            state = child(container, "state")
            waiting, ended = child(state, "waiting"), child(state, "terminated")
            if waiting:
                return text(waiting, "reason"), text(waiting, "message")
            if number(ended, "exitCode"):
                return text(ended, "reason"), text(ended, "message")
    if scheduled.get("status") == "False":
        return text(scheduled, "reason"), text(scheduled, "message")
    return "", ""
