"""A workload at a glance: the fields that controllers follow, decoded once for all of them.

Workloads are many and change all the time, so a change is not decoded whole, and not by every
controller that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from fairway.api.amounts import MILLI, Quantity, is_accelerator
from fairway.clock import parse_timestamp
from fairway.core.costs.accounts import ClusterFlavor
from fairway.store.interface import Stored

_KEPT = 256  # followers get one object after another


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    labels: dict[str, str] = {}


class RunSeconds(msgspec.Struct, frozen=True):
    estimate: float | None = None
    limit: float | None = None


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """The native object that it stands for."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    queue: str = ""
    mode: str = ""
    replicas: int | None = None
    run_seconds: RunSeconds = RunSeconds()
    source: Source | None = None


class PodSet(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    requests: dict[str, str | int | float] = {}
    flavors: dict[str, str] = {}

    @property
    def gpus(self) -> int:
        """GPUs of all its pods, in thousandths."""
        nanos = sum(
            Quantity.of(amount).nanos
            for resource, amount in self.requests.items()
            if is_accelerator(resource)
        )
        return nanos * self.count // MILLI

    @property
    def flavor(self) -> str:
        """The flavor that its pods are counted by: that of their accelerators, if they have any."""
        return flavor_of(self.flavors.items())


class Placement(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    attempt: int = 0
    replicas: int | None = None
    pod_sets: tuple[PodSet, ...] = ()


class Mention(msgspec.Struct, frozen=True):
    """Another workload; one of another namespace has no name here."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    queue: str = ""
    priority: int | None = None


class WaitsFor(msgspec.Struct, frozen=True):
    type: str = ""
    workload: Mention | None = None
    cluster: str = ""
    pool: str = ""
    count: int = 0


class Claim(msgspec.Struct, frozen=True, rename="camel"):
    attempt: int = 0
    term: int = 0
    decided_at: str = ""
    ready_at: str = ""
    queue: str = ""
    alternative: str = ""
    rung: str = "Idle"
    placements: tuple[Placement, ...] = ()
    waits_for: tuple[WaitsFor, ...] = ()


class Attempt(msgspec.Struct, frozen=True, rename="camel"):
    """An attempt that is over."""

    attempt: int = 0
    clusters: tuple[str, ...] = ()
    started_at: str = ""
    ended_at: str = ""
    reason: str = ""
    blame: str = ""
    lost_seconds: int = 0
    exit_code: int | None = None
    preempted_by: Mention | None = None

    @property
    def start(self) -> float | None:
        return _moment(self.started_at)

    @property
    def end(self) -> float | None:
        return _moment(self.ended_at)


class Reserved(msgspec.Struct, frozen=True, rename="camel"):
    """Capacity that is reserved for it."""

    cluster: str = ""
    flavors: tuple[str, ...] = ()
    starts_at: str = ""

    @property
    def start(self) -> float | None:
        return _moment(self.starts_at)


class Pods(msgspec.Struct, frozen=True):
    wanted: int = 0
    ready: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    queue: str = ""
    finished_at: str = ""
    queued_at: str = ""
    claim: Claim | None = None
    releasing: tuple[Placement, ...] = ()
    reservation: Reserved | None = None
    history: tuple[Attempt, ...] = ()
    pods: Pods = Pods()
    surge_replicas: int = 0


class Glance(msgspec.Struct, frozen=True):
    """A workload as last seen."""

    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def is_service(self) -> bool:
        return self.spec.mode == "Divided"

    @property
    def charged_queue(self) -> str:
        """The queue whose quota it uses or used; empty before it is known."""
        claim = self.status.claim
        return (claim.queue if claim else "") or self.status.queue

    @property
    def submitted_at(self) -> float | None:
        return _moment(self.metadata.creation_timestamp)

    @property
    def finished_at(self) -> float | None:
        return _moment(self.status.finished_at)

    @property
    def decided_at(self) -> float | None:
        return _moment(self.status.claim.decided_at) if self.status.claim else None

    @property
    def ready_at(self) -> float | None:
        return _moment(self.status.claim.ready_at) if self.status.claim else None

    @property
    def pending_since(self) -> float | None:
        """Since when it waits, or waited for its claim: an attempt before it is no wait."""
        times = [self.status.queued_at or self.metadata.creation_timestamp]
        times += [attempt.ended_at for attempt in self.status.history]
        return max((parse_timestamp(text) for text in times if text), default=None)

    @property
    def run_seconds(self) -> float | None:
        """How long it is likely to run; None: it does not say."""
        given = self.spec.run_seconds
        return given.estimate if given.estimate is not None else given.limit

    @property
    def last_attempt(self) -> int:
        """The number of the last attempt that is over."""
        return max((attempt.attempt for attempt in self.status.history), default=0)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Everything that is charged: what it holds, and what is not confirmed gone."""
        held = self.status.claim.placements if self.status.claim else ()
        return (*held, *self.status.releasing)

    def gpus_by_place(self) -> dict[ClusterFlavor, int]:
        """Everything that is charged, in thousandths of a GPU."""
        result: dict[ClusterFlavor, int] = {}
        for placement in self.placements:
            for pods in placement.pod_sets:
                place = (placement.cluster, pods.flavor)
                result[place] = result.get(place, 0) + pods.gpus
        return result


def glance(stored: Stored) -> Glance | None:
    """What controllers follow; None if it cannot be read, which the planner reports."""
    return _read(stored.raw)


_decode = msgspec.json.Decoder(Glance).decode


@lru_cache(maxsize=_KEPT)
def _read(raw: bytes) -> Glance | None:
    try:
        return _decode(raw)
    except msgspec.MsgspecError:
        return None


def flavor_of(flavors: Iterable[tuple[str, str]]) -> str:
    """The flavor of accelerators among flavors by resource, if there are any; else the first."""
    chosen = sorted(flavors, key=lambda flavor: (not is_accelerator(flavor[0]), flavor))
    return chosen[0][1] if chosen else ""


def _moment(text: str) -> float | None:
    return parse_timestamp(text) if text else None
