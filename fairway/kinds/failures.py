"""Why a pod failed or does not start, read from its status as Kubernetes writes it.

Several parts of a status may describe one failure. The reason comes from the first of these: what
ended the whole pod, what ended or blocks a container, a warning event on the pod (volumes and
sandboxes appear only there), why no node was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairway.api.meta import JsonObject
from fairway.kinds.conditions import find_condition
from fairway.kinds.plain import child, maps_at, text

_MESSAGE_MOST = 1024
# Normal waiting reasons, which explain no failure.
_ORDINARY = ("", "ContainerCreating", "PodInitializing")
_EVENTS = (
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
    "FailedBinding",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFailure:
    """What a cluster says about a pod that failed or cannot start."""

    reason: str
    message: str = ""
    exit_code: int | None = None
    node: str = ""


def failure_of(pod: JsonObject, events: Sequence[JsonObject] = ()) -> PodFailure | None:
    """Why a pod failed or does not start; None if nothing is wrong with it."""
    status = child(pod, "status")
    if status.get("phase") == "Succeeded":
        return None
    node = text(pod, "spec", "nodeName")
    for of_event in (
        *_of_pod(status),
        *_of_containers(status),
        *_of_events(events),
        *_of_scheduling(status),
    ):
        return PodFailure(
            reason=of_event.reason,
            message=of_event.message.strip()[:_MESSAGE_MOST],
            exit_code=of_event.exit_code,
            node=node,
        )
    return PodFailure(reason="", node=node) if status.get("phase") == "Failed" else None


def _of_pod(status: JsonObject) -> Iterator[PodFailure]:
    """What ended the whole pod: its node, or a disruption."""
    exit_code = next((pod_failure.exit_code for pod_failure in _of_containers(status)), None)
    reason = text(status, "reason")
    if reason:
        yield PodFailure(reason=reason, message=text(status, "message"), exit_code=exit_code)
    target = find_condition(status, "DisruptionTarget")
    if target.get("status") == "True":
        yield PodFailure(
            reason=text(target, "reason"), message=text(target, "message"), exit_code=exit_code
        )


def _of_containers(status: JsonObject) -> Iterator[PodFailure]:
    """Containers that ended in failure, earliest first; then those that do not start."""
    every = [
        entry
        for name in ("initContainerStatuses", "containerStatuses")
        for entry in maps_at(status, name)
    ]
    ended = [
        part
        for entry in every
        for part in (child(entry, "state", "terminated"), child(entry, "lastState", "terminated"))
        if part.get("exitCode") not in (None, 0) or part.get("reason") in ("StartError",)
    ]
    for part in sorted(ended, key=lambda entry: text(entry, "finishedAt")):
        code = part.get("exitCode")
        yield PodFailure(
            reason=text(part, "reason"),
            message=text(part, "message"),
            exit_code=code if isinstance(code, int) else None,
        )
    for entry in every:
        waiting = child(entry, "state", "waiting")
        reason = text(waiting, "reason")
        if reason not in _ORDINARY:
            yield PodFailure(reason=reason, message=text(waiting, "message"))


def _of_events(events: Sequence[JsonObject]) -> Iterator[PodFailure]:
    for event in reversed(events):
        if event.get("type") == "Warning" and event.get("reason") in _EVENTS:
            yield PodFailure(reason=text(event, "reason"), message=text(event, "message"))


def _of_scheduling(status: JsonObject) -> Iterator[PodFailure]:
    scheduled = find_condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        yield PodFailure(reason=text(scheduled, "reason"), message=text(scheduled, "message"))
