"""The table of pods: one status word for several containers.

The word is the pod's phase or its reason, unless a container is more specific: the first init
container that is not finished, else the first container that waits or has ended. Restarts of plain
init containers no longer count once initialisation is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.resources.builtin.ages import age_of, epoch, human_age
from fairway.resources.builtin.parts import number, objects, read, text
from fairway.resources.resource import Column
from fairway.schema.node import JsonObject

POD: tuple[Column, ...] = (
    Column(name="Name", format="name"),
    *(Column(name=name) for name in ("Ready", "Status", "Restarts", "Age")),
    *(Column(name=name, priority=1) for name in ("IP", "Node", "Nominated Node")),
    Column(name="Readiness Gates", priority=1),
)


@dataclass(slots=True)
class _Tally:
    """Totals over the containers of a pod."""

    word: str
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0

    def count(self, status: JsonObject) -> None:
        self.restarts += number(status, "restartCount")
        ended = epoch(read(status, "lastState", "terminated").get("finishedAt"))
        self.last_restart = max(self.last_restart, ended or 0.0)


def pod(obj: JsonObject, now: float) -> list[Any]:
    metadata, spec, status = read(obj, "metadata"), read(obj, "spec"), read(obj, "status")
    conditions = {text(object_, "type"): object_ for object_ in objects(status, "conditions")}
    word = text(status, "reason") or text(status, "phase")
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    sidecars = {
        text(object_, "name")
        for object_ in objects(spec, "initContainers")
        if object_.get("restartPolicy") == "Always"
    }
    tally = _Tally(word)
    initialising = _initialising(tally, spec, status, sidecars)
    if not initialising or conditions.get("Initialized", {}).get("status") == "True":
        _running(tally, status, sidecars, is_ready=conditions.get("Ready", {}).get("status"))
    if metadata.get("deletionTimestamp"):
        if text(status, "reason") == "NodeLost":
            tally.word = "Unknown"
        elif text(status, "phase") not in ("Failed", "Succeeded"):
            tally.word = "Terminating"
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({human_age(now - tally.last_restart)} ago)"
    containers = len(objects(spec, "containers")) + len(sidecars)
    addresses = [text(object_, "ip") for object_ in objects(status, "podIPs")]
    return [
        text(metadata, "name"),
        f"{tally.ready}/{containers}",
        tally.word,
        restarts,
        age_of(metadata.get("creationTimestamp"), now),
        (addresses[0] if addresses else "") or "<none>",
        text(spec, "nodeName") or "<none>",
        text(status, "nominatedNodeName") or "<none>",
        _readiness_gates(spec, conditions),
    ]


def _initialising(tally: _Tally, spec: JsonObject, status: JsonObject, sidecars: set[str]) -> bool:
    """Counts init containers up to the first unfinished one; returns whether there is one."""
    for index, container in enumerate(objects(status, "initContainerStatuses")):
        tally.count(container)
        ended = _state(container, "terminated")
        if ended is not None and number(ended, "exitCode") == 0:
            continue
        if text(container, "name") in sidecars and container.get("started") is True:
            tally.ready += container.get("ready") is True
            continue
        waiting = text(container, "state", "waiting", "reason")
        if ended is not None:
            tally.word = "Init:" + _end(ended)
        elif waiting and waiting != "PodInitializing":
            tally.word = "Init:" + waiting
        else:
            tally.word = f"Init:{index}/{len(objects(spec, 'initContainers'))}"
        return True
    return False


def _running(tally: _Tally, status: JsonObject, sidecars: set[str], *, is_ready: Any) -> None:
    tally.restarts, tally.last_restart = 0, 0.0
    for container in objects(status, "initContainerStatuses"):
        if text(container, "name") in sidecars:
            tally.count(container)
    runs, failure = False, ""
    for container in reversed(objects(status, "containerStatuses")):
        tally.count(container)
        ended = _state(container, "terminated")
        waiting = text(container, "state", "waiting", "reason")
        if waiting:
            tally.word = waiting
        elif ended is not None:
            tally.word = _end(ended)
            failure = tally.word if number(ended, "exitCode") else failure
        elif container.get("ready") is True and _state(container, "running") is not None:
            runs = True
            tally.ready += 1
    if tally.word == "Completed":
        tally.word = _mixed(runs, failure, is_ready=is_ready == "True")


def _mixed(runs: bool, failure: str, *, is_ready: bool) -> str:
    """The word for a pod with a finished container: the state of the others takes precedence."""
    if runs and is_ready:
        return "Running"
    return failure or ("NotReady" if runs else "Completed")


def _state(container: JsonObject, name: str) -> JsonObject | None:
    state = read(container, "state").get(name)
    return state if isinstance(state, dict) else None


def _end(ended: JsonObject) -> str:
    signal = number(ended, "signal")
    plain = f"Signal:{signal}" if signal else f"ExitCode:{number(ended, 'exitCode')}"
    return text(ended, "reason") or plain


def _readiness_gates(spec: JsonObject, conditions: dict[str, JsonObject]) -> str:
    gates = [text(gate, "conditionType") for gate in objects(spec, "readinessGates")]
    held = sum(conditions.get(gate, {}).get("status") == "True" for gate in gates)
    return f"{held}/{len(gates)}" if gates else "<none>"
