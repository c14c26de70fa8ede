"""The lives of pods: bound, started, ended, failed, stopped, replaced.

A pod's life is a chain of timers. Each step checks that the pod has not changed since its timer was
set, so timers of a pod that was stopped or lost its node in between have no effect.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from fairway.agent.drivers.interface import PodPhase, PodSeen
from fairway.agent.drivers.pod_replacement import Part
from fairway.agent.drivers.simulated.nodes import Need, Node, Nodes
from fairway.agent.drivers.simulated.timers import Timers
from fairway.api.cluster import SimulatedDriver
from fairway.kinds.interface import PodPhase as KindPhase
from fairway.kinds.interface import PodState

_LIVE: frozenset[PodPhase] = frozenset({"Pending", "Bound", "Ready"})
_HOUR = 3600.0
_KIND_PHASES: dict[PodPhase, KindPhase] = {
    "Pending": "Pending",
    "Bound": "Pending",
    "Ready": "Ready",
    "Terminating": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}


@dataclass(slots=True, kw_only=True, eq=False)
class LivePod:
    """A pod and its current state."""

    work: str
    name: str
    pod_set: str
    index: int
    attempt: int
    position: int  # of its manifest; -1 for a placeholder
    need: Need
    run_seconds: float | None  # None: until it is stopped
    restarts_in_place: bool = False
    made_from: str = ""  # digest of what it was made from
    revision: str = ""
    is_beside: bool = False
    images: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    phase: PodPhase = "Pending"
    node: Node | None = None
    node_name: str = ""  # its current or last node
    prefer: str = ""
    since: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None
    restarts: int = 0
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    is_gone: bool = False
    step: int = 0  # increases with each change; a timer of an earlier step is void
    _seen: PodSeen | None = field(default=None, repr=False)

    @property
    def is_live(self) -> bool:
        return self.phase in _LIVE

    def enter(self, phase: PodPhase, now: float, *, reason: str = "", message: str = "") -> None:
        self.phase, self.since, self.reason, self.message = phase, now, reason, message
        self.step += 1
        self._seen = None

    def swap_with(self, other: LivePod) -> None:
        """Exchanges names with another pod of the same set."""
        self.name, other.name = other.name, self.name
        self.index, other.index = other.index, self.index
        self._seen = other._seen = None

    def observe(self) -> PodSeen:
        if self._seen is None:
            self._seen = PodSeen(
                name=self.name,
                pod_set=self.pod_set,
                attempt=self.attempt,
                phase=self.phase,
                node=self.node_name,
                since=self.since,
                started_at=self.started_at,
                finished_at=self.finished_at,
                restarts=self.restarts,
                exit_code=self.exit_code,
                reason=self.reason,
                message=self.message,
                revision=self.revision,
                is_beside=self.is_beside,
                containers=self.containers,
            )
        return self._seen

    def part(self, wanted: str) -> Part:
        """The pod as part of a service whose current template has the digest `wanted`."""
        return Part(
            name=self.name,
            index=self.index,
            is_ready=self.phase == "Ready",
            is_current=self.made_from == wanted,
            is_live=self.is_live,
        )

    def state(self) -> PodState:
        return PodState(
            name=self.name,
            pod_set=self.pod_set,
            index=self.index,
            phase=_KIND_PHASES[self.phase],
            restarts=self.restarts,
            exit_code=self.exit_code,
            started_at=self.started_at,
            finished_at=self.finished_at,
        )


class Lives:
    """Moves pods from step to step, and calls `changed` on each change."""

    def __init__(
        self,
        settings: SimulatedDriver,
        *,
        nodes: Nodes,
        timers: Timers,
        changed: Callable[[LivePod, float], None],
    ) -> None:
        self.settings = settings
        self._nodes = nodes
        self._timers = timers
        self._changed = changed
        self._waiting: dict[LivePod, None] = {}
        self._has_room = False  # whether pending pods may fit by now
        self.by_node: dict[str, dict[LivePod, None]] = {}

    def begin(self, pod: LivePod, now: float) -> None:
        """Makes a new or restarted pod pending, in line for a node."""
        pod.enter("Pending", now)
        pod.node_name = ""
        self._waiting[pod] = None
        self._has_room = True

    def room(self) -> None:
        """Records that there may be room where there was none."""
        self._has_room = True

    def bind(self, now: float) -> None:
        """Binds pending pods to nodes, first come, first served."""
        if not self._has_room or not self._waiting:
            return
        self._has_room = False
        hopeless: dict[Need, None] = {}
        for pod in list(self._waiting):
            node = None if pod.need in hopeless else self._nodes.place(pod.need, prefer=pod.prefer)
            if node is None:
                hopeless[pod.need] = None
                if not pod.reason:
                    pod.reason, pod.message = "Unschedulable", "no node has room for it"
                    pod._seen = None
                    self._changed(pod, now)
                continue
            del self._waiting[pod]
            pod.node, pod.node_name = node, node.name
            self.by_node.setdefault(node.name, {})[pod] = None
            pod.enter("Bound", now)
            self._start_after(pod, self.settings.start_seconds, now)

    def end(self, pod: LivePod, *, seconds: float, now: float) -> None:
        """Terminates a pod; it is gone after `seconds`."""
        if pod.phase == "Terminating":
            return
        self._waiting.pop(pod, None)
        if pod.node is None or not pod.is_live or seconds <= 0:
            self.drop(pod, now)
            return
        pod.enter("Terminating", now)
        self._later(pod, seconds, now, self.drop)
        self._changed(pod, now)

    def drop(self, pod: LivePod, now: float) -> None:
        """Removes a pod for good."""
        self._waiting.pop(pod, None)
        self._leave_node(pod, now)
        pod.is_gone = True
        pod.enter("Terminating", now)
        self._changed(pod, now)

    def fail(
        self, pod: LivePod, now: float, *, reason: str, message: str, code: int | None
    ) -> None:
        self._leave_node(pod, now)
        pod.exit_code, pod.finished_at = code, now
        pod.enter("Failed", now, reason=reason, message=message)
        self._changed(pod, now)

    def restart(self, pod: LivePod, now: float) -> None:
        """Restarts a failed pod on its node if there is still room, else on any node."""
        pod.restarts += 1
        pod.prefer, pod.finished_at, pod.started_at = pod.node_name, None, None
        self.begin(pod, now)

    def _start_after(self, pod: LivePod, seconds: float, now: float) -> None:
        if seconds > 0:
            self._later(pod, seconds, now, self._start)
            self._changed(pod, now)
        else:
            self._start(pod, now)

    def _start(self, pod: LivePod, now: float) -> None:
        bad = [image for image in pod.images if image in self.settings.faults.bad_images]
        if bad:
            message = f"the program of {bad[0]} does not become ready"
            pod.enter("Bound", now, reason="Unhealthy", message=message)
            self._changed(pod, now)
            return
        pod.started_at = now
        pod.enter("Ready", now)
        runs = pod.run_seconds
        fails = self._seconds_to_failure(pod) if pod.position >= 0 else None
        if fails is not None and (runs is None or fails < runs):
            self._later(pod, fails, now, self._fail_by_chance)
        elif runs is not None:
            self._later(pod, runs, now, self._succeed)
        self._changed(pod, now)

    def _succeed(self, pod: LivePod, now: float) -> None:
        self._leave_node(pod, now)
        pod.exit_code, pod.finished_at = 0, now
        pod.enter("Succeeded", now, reason="Completed")
        self._changed(pod, now)

    def _fail_by_chance(self, pod: LivePod, now: float) -> None:
        self.fail(pod, now, reason="Error", message="the process ended with code 1", code=1)

    def _seconds_to_failure(self, pod: LivePod) -> float | None:
        per_hour = self.settings.faults.pod_failures_per_hour.nanos / 1e9
        if per_hour <= 0:
            return None
        seed = f"{self.settings.seed}/{pod.work}/{pod.name}/{pod.attempt}/{pod.restarts}"
        return random.Random(seed).expovariate(per_hour / _HOUR)  # noqa: S311 - a simulation

    def _leave_node(self, pod: LivePod, now: float) -> None:
        node = pod.node
        if node is None:
            return
        pod.node = None
        del self.by_node[node.name][pod]
        self._nodes.release(node, pod.need)
        self._has_room = True

    def _later(
        self, pod: LivePod, seconds: float, now: float, then: Callable[[LivePod, float], None]
    ) -> None:
        step = pod.step

        def act(moment: float) -> None:
            if pod.step == step:
                then(pod, moment)

        self._timers.at(now + seconds, act)
