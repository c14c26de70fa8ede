"""As much of a workload as a timeline needs; workloads are many and change all the time."""

from __future__ import annotations

import msgspec

from fairway.clock import parse_timestamp
from fairway.controllers.holdings import Placement, Somebody
from fairway.core.costs.accounts import ClusterFlavor


class _Claim(msgspec.Struct, frozen=True, rename="camel"):
    decided_at: str = ""
    ready_at: str = ""
    queue: str = ""
    placements: tuple[Placement, ...] = ()


class Attempt(msgspec.Struct, frozen=True, rename="camel"):
    """An attempt that is over."""

    ended_at: str = ""
    reason: str = ""
    preempted_by: Somebody | None = None


class Reserved(msgspec.Struct, frozen=True, rename="camel"):
    """Room that is reserved for it."""

    cluster: str = ""
    flavors: tuple[str, ...] = ()
    starts_at: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    queue: str = ""
    claim: _Claim | None = None
    releasing: tuple[Placement, ...] = ()
    reservation: Reserved | None = None
    history: tuple[Attempt, ...] = ()


class _RunSeconds(msgspec.Struct, frozen=True):
    estimate: float | None = None
    limit: float | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    queue: str = ""
    run_seconds: _RunSeconds = _RunSeconds()


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""


class TimelineWorkload(msgspec.Struct, frozen=True):
    """A workload as last seen."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def queue(self) -> str:
        claim = self.status.claim
        return (claim.queue if claim else "") or self.status.queue or self.spec.queue

    @property
    def decided_at(self) -> float | None:
        return _moment(self.status.claim.decided_at) if self.status.claim else None

    @property
    def ready_at(self) -> float | None:
        return _moment(self.status.claim.ready_at) if self.status.claim else None

    @property
    def run_seconds(self) -> float | None:
        """How long it is likely to run; None: it does not say."""
        said = self.spec.run_seconds
        return said.estimate if said.estimate is not None else said.limit

    def gpus_by_place(self) -> dict[ClusterFlavor, int]:
        """All that is charged, in thousandths: what it holds, and what is not gone yet."""
        held = self.status.claim.placements if self.status.claim else ()
        result: dict[ClusterFlavor, int] = {}
        for placement in (*held, *self.status.releasing):
            for pods in placement.pod_sets:
                place = (placement.cluster, pods.flavor)
                result[place] = result.get(place, 0) + pods.gpus
        return result


read_seen = msgspec.json.Decoder(TimelineWorkload).decode


def starts_at(reserved: Reserved) -> float | None:
    return _moment(reserved.starts_at)


def _moment(text: str) -> float | None:
    return parse_timestamp(text) if text else None
