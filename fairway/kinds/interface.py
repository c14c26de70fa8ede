"""What is asked of every kind.

A manifest is what a user wrote; an object is what a cluster made of it, with its status. Manifests
that come in are never changed; what comes out is a copy.
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
    # How often the controller makes it anew after it failed; None: for ever. Containers that are
    # restarted in place, by the pod's restart policy, are the driver's own affair.
    retries: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """What one pod does; from it a kind says what its own controller's status would be.

    A pod that was made anew has the name and index of the one before, and one restart more.
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
    """What the status of an object says, in our words."""

    phase: Phase = "Pending"
    reason: str = ""  # a code, as the cluster gave it
    message: str = ""
    ready: int = 0  # pods or replicas that are ready
    succeeded: int = 0
    failed: int = 0
    progress: str = ""  # what a person would like to read, such as 3/10 completions
    is_healthy: bool | None = None  # of services; None: not known yet
    is_current: bool = True  # whether the status is of the newest generation


class Kind(Protocol):
    """A native kind."""

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Every version that is understood, the preferred one first, such as `batch/v1`."""
        ...

    @property
    def name(self) -> str:
        """The kind, such as `Job`."""
        ...

    def faults(self, manifest: JsonObject) -> list[str]:
        """Why a manifest cannot be run, each with its field's path; none where it can."""
        ...

    def mode(self, manifest: JsonObject) -> Mode: ...

    def replicas(self, manifest: JsonObject) -> int | None:
        """Of a Divided kind: how many copies of its pod sets; None for all others."""
        ...

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        """Its roles; those of a Divided kind are of one replica."""
        ...

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        """The pod templates by pod set, as they stand in this manifest: parts of it, not copies.

        A template has `metadata` and `spec`; a plain Pod is its own template. Several pod sets may
        share one, and several templates may make up one pod set under `NAME/2`, `NAME/3` and so on.
        One that a user may leave out is there after `with_counts`.
        """
        ...

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        """The manifest with other numbers of pods; for Divided kinds `replicas` is the key."""
        ...

    def is_held(self, manifest: JsonObject) -> bool:
        """Whether it is written so that its own controller makes no pods."""
        ...

    def held(self, manifest: JsonObject) -> JsonObject:
        """The manifest such that its own controller makes no pods; unchanged if it has no way."""
        ...

    def released(self, manifest: JsonObject) -> JsonObject:
        """The manifest such that its pods are made."""
        ...

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        """The pods that its own controller would make, with the environment it gives them.

        All that it would ever make, in their order; none while it is held. No more pods of a set
        run at a time than the set counts (a Job of ten completions, three in parallel, is a set
        of three and ten pods). Drivers without such a controller (local, simulated) go by this;
        `running.due` tells which pods to start next.
        """
        ...

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        """The status that its own controller would write for pods in these states.

        Pods that were not made yet may be left out.
        """
        ...

    def read(self, body: JsonObject) -> Observed:
        """What an object's status says."""
        ...

    def merged(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        """One status of the parts in several clusters, for the object on the hub."""
        ...

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        """Objects of the namespace that its pods need: configuration, secrets, volume claims,
        service accounts."""
        ...
