"""The protocol that every kind implements.

A manifest is what a user wrote; an object is what a cluster made from it, with its status. Input
manifests are never changed; results are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet

Mode = Literal["Gang", "Divided", "Independent"]
Phase = Literal["Pending", "Suspended", "Running", "Succeeded", "Failed"]
PodPhase = Literal["Pending", "Running", "Ready", "Succeeded", "Failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod that the kind's own controller would make."""

    name: str
    pod_set: str
    index: int  # within its pod set
    spec: JsonObject  # with the environment that the controller injects
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    # How often the controller recreates it after a failure; None: without limit. Restarting
    # containers in place, by the pod's restart policy, is up to the driver.
    retries: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """The state of one pod; from these a kind derives the status that its controller would write.

    A recreated pod keeps its name and index, and has one restart more.
    """

    name: str
    pod_set: str
    index: int
    phase: PodPhase
    restarts: int = 0
    exit_code: int | None = None
    started_at: float | None = None
    finished_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the status of an object says, in Fairway's words."""

    phase: Phase = "Pending"
    reason: str = ""  # the cluster's reason code
    message: str = ""
    ready: int = 0  # pods or replicas that are ready
    succeeded: int = 0
    failed: int = 0
    progress: str = ""  # human-readable, such as 3/10 completions
    is_healthy: bool | None = None  # services only; None: not known yet
    is_current: bool = True  # whether the status is of the newest generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What the fleet says of an object that no cluster runs."""

    phase: Literal["Suspended", "Failed"]
    reason: str  # a code
    message: str
    at: float  # since when


class Kind(Protocol):
    """A native kind."""

    @property
    def api_versions(self) -> tuple[str, ...]:
        """All supported versions, the preferred one first, such as `batch/v1`."""
        ...

    @property
    def name(self) -> str:
        """The kind, such as `Job`."""
        ...

    def faults(self, manifest: JsonObject) -> list[str]:
        """Why a manifest cannot be run, each with its field's path; empty if it can."""
        ...

    def mode(self, manifest: JsonObject) -> Mode: ...

    def replicas(self, manifest: JsonObject) -> int | None:
        """For a Divided kind, the number of copies of its pod sets; None for all others."""
        ...

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        """Its pod sets; for a Divided kind, those of one replica."""
        ...

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        """The pod templates by pod set: references into this manifest, not copies.

        A template has `metadata` and `spec`; a plain Pod is its own template. Several pod sets may
        share one template. Several templates may form one pod set, as `NAME/2`, `NAME/3` and so on.
        A template that a user may leave out exists after `with_counts`.
        """
        ...

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        """The manifest with other pod counts; for Divided kinds `replicas` is the key."""
        ...

    def is_held(self, manifest: JsonObject) -> bool:
        """Whether its own controller makes no pods, as the manifest is written."""
        ...

    def hold(self, manifest: JsonObject) -> JsonObject:
        """The manifest such that its own controller makes no pods; unchanged if it has no way."""
        ...

    def release(self, manifest: JsonObject) -> JsonObject:
        """The manifest, no longer suspended, so that its pods are made."""
        ...

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        """The pods that its own controller would make, with the environment it gives them.

        These are all pods that it would ever make, in order; none while it is held. At most `count`
        pods of a set run at a time (a Job of ten completions, three in parallel, is a set of three
        and has ten pods). Drivers without such a controller (local, simulated) use this;
        `pod_starts.due` says which pods to start next.
        """
        ...

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        """The status that its own controller would write for pods in these states.

        Pods that were not made yet may be left out.
        """
        ...

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        """The status of an object that no cluster runs, by the conventions of its controller."""
        ...

    def read(self, body: JsonObject) -> Observed:
        """What an object's status says."""
        ...

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        """The statuses from several clusters merged into one, for the object on the hub."""
        ...

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        """ConfigMaps, Secrets, volume and resource claims, accounts that its pods need."""
        ...
