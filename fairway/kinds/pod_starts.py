"""Which pods a kind's own controller would start next, for drivers without such a controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairway.api.meta import JsonObject
from fairway.kinds.interface import Kind, Observed, Pod, PodState

_OVER = ("Succeeded", "Failed")


def observe_pods(
    kind: Kind, manifest: JsonObject, states: Sequence[PodState], *, now: float
) -> Observed:
    """What the status would say for pods in these states."""
    return kind.read({**manifest, "status": kind.play(manifest, states, now=now)})


def controller_states(
    kind: Kind, manifest: JsonObject, states: Sequence[PodState], *, now: float
) -> Sequence[PodState]:
    """States as a controller would report them: a failure shows only once all pods have ended."""
    phases = {state.phase for state in states}
    if "Failed" not in phases or phases <= set(_OVER):
        return states
    if observe_pods(kind, manifest, states, now=now).phase != "Failed":
        return states
    return [
        replace(state, phase="Ready", exit_code=None, finished_at=None)
        if state.phase == "Failed"
        else state
        for state in states
    ]


def due(
    kind: Kind, manifest: JsonObject, states: Sequence[PodState], *, now: float
) -> tuple[Pod, ...]:
    """Pods to start: at most `count` of a set at a time; failed pods are retried first.

    Empty once the workload is over by the kind's own rules.
    """
    by_name = {state.name: state for state in states}
    alive = Counter(state.pod_set for state in states if state.phase not in _OVER)
    times = kind.replicas(manifest)
    rooms = {
        pod_set.name: pod_set.count * (1 if times is None else times) - alive[pod_set.name]
        for pod_set in kind.pod_sets(manifest)
    }
    # Usually all pods that may run already do, so the cheap check comes first.
    if all(room <= 0 for room in rooms.values()):
        return ()
    if observe_pods(kind, manifest, states, now=now).phase in _OVER:
        return ()
    chosen = []
    for pod in _in_turn(kind.pods(manifest), by_name):
        if rooms.get(pod.pod_set, 0) > 0:
            rooms[pod.pod_set] -= 1
            chosen.append(pod)
    return tuple(chosen)


def _in_turn(pods: Sequence[Pod], by_name: dict[str, PodState]) -> Iterator[Pod]:
    """Failed pods with retries left, then pods that were never made."""
    for pod in pods:
        state = by_name.get(pod.name)
        if state is None or state.phase != "Failed":
            continue
        if pod.retries is None or state.restarts < pod.retries:
            yield pod
    for pod in pods:
        if pod.name not in by_name:
            yield pod
