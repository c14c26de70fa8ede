"""What a work has made in a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairway.agent.drivers.interface import WorkSeen
from fairway.agent.drivers.simulated.lives import LivePod
from fairway.agent.drivers.simulated.objects import FindKind
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.kinds.device_claims import devices_of_work


@dataclass(slots=True, kw_only=True, eq=False)
class Made:
    """What exists of one work."""

    work: Work
    pods: dict[str, LivePod] = field(default_factory=dict)
    objects: dict[int, JsonObject] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)  # of these, those that would be refused again
    checkpointed_at: float | None = None
    checkpoints_by: float | None = None  # when it will have saved a checkpoint, while it ends
    next: Work | None = None  # to be applied once the pods of the earlier attempt are gone
    is_removed: bool = False  # it is dropped once its pods are gone
    seen: WorkSeen | None = None  # None: must be computed again
    is_replacing: bool = False  # pods of an earlier template are being replaced

    def keep_ready(self, is_wanted: Callable[[LivePod], bool]) -> None:
        """Lets ready pods of a Deployment that shrinks take the names of those that are not.

        As a real one, it stops what is not ready first.
        """
        pods = [pod for pod in self.pods.values() if pod.is_live and pod.position in self.objects]
        pods = [pod for pod in pods if self.objects[pod.position].get("kind") == "Deployment"]
        spare = [pod for pod in pods if pod.phase == "Ready" and not is_wanted(pod)]
        for pod in [pod for pod in pods if pod.phase != "Ready"] if spare else ():
            if spare and is_wanted(pod):
                ready = spare.pop()
                pod.swap_with(ready)
                self.pods[pod.name], self.pods[ready.name] = pod, ready

    def devices_of(self, pod_set: str, find_kind: FindKind) -> Mapping[str, int]:
        """The devices that each pod of a set asks for, by class."""
        manifests = [manifest.object for manifest in self.work.spec.manifests]
        return devices_of_work(manifests, find_kind).get(pod_set, {})
