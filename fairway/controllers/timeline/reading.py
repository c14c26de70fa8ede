"""As much of a workload as a timeline needs; there are many, and they change all the time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairway.api.amounts import NANO, Quantity
from fairway.clock import parse_timestamp
from fairway.core.costs.supplies import is_accelerator

_MILLI = NANO // 1000

Place = tuple[str, str]  # cluster, flavor


class _PodSet(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    requests: dict[str, str | int | float] = {}
    flavors: dict[str, str] = {}


class _Placement(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    pod_sets: tuple[_PodSet, ...] = ()


class _Claim(msgspec.Struct, frozen=True, rename="camel"):
    decided_at: str = ""
    ready_at: str = ""
    queue: str = ""
    placements: tuple[_Placement, ...] = ()


class _Somebody(msgspec.Struct, frozen=True):
    name: str = ""


class Attempt(msgspec.Struct, frozen=True, rename="camel"):
    """An attempt that is over."""

    ended_at: str = ""
    reason: str = ""
    preempted_by: _Somebody | None = None


class Reserved(msgspec.Struct, frozen=True, rename="camel"):
    """Room that is kept for it."""

    cluster: str = ""
    flavors: tuple[str, ...] = ()
    starts_at: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    queue: str = ""
    claim: _Claim | None = None
    releasing: tuple[_Placement, ...] = ()
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


class Seen(msgspec.Struct, frozen=True):
    """A workload as it was told of."""

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

    def gpus_by_place(self) -> dict[Place, int]:
        """All that it is charged for, in thousandths: what it holds, and what is not gone yet."""
        held = self.status.claim.placements if self.status.claim else ()
        found: dict[Place, int] = {}
        for placement in (*held, *self.status.releasing):
            for pods in placement.pod_sets:
                place = (placement.cluster, flavor_of(pods.flavors))
                found[place] = found.get(place, 0) + _gpus(pods)
        return found


read_seen = msgspec.json.Decoder(Seen).decode


def flavor_of(flavors: Mapping[str, str]) -> str:
    """The flavor by which pods are drawn: that of their accelerators, where they have any."""
    chosen = sorted(flavors.items(), key=lambda one: (not is_accelerator(one[0]), one))
    return chosen[0][1] if chosen else ""


def starts_at(reserved: Reserved) -> float | None:
    return _moment(reserved.starts_at)


def _gpus(pods: _PodSet) -> int:
    nanos = sum(
        Quantity.of(told).nanos for resource, told in pods.requests.items()
        if is_accelerator(resource)
    )  # fmt: skip
    return nanos * pods.count // _MILLI


def _moment(text: str) -> float | None:
    return parse_timestamp(text) if text else None
