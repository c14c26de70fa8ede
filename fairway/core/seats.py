"""Seats: the placements of workloads in a cluster, and those that are about to leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.core.admission import shape_in
from fairway.core.model import Placed, Request, Workload
from fairway.core.nodes import Packing

Spilled = tuple[tuple[int, str, int], ...]  # positions of nodes, resources and amounts


@dataclass(slots=True, kw_only=True, eq=False)
class Seat:
    """One placement of a workload in the cluster."""

    key: str
    placed: Placed
    decided: tuple[float, str, int]
    leaves: bool = False  # it is being stopped: what it holds is about to be free
    assumed: Packing = field(default_factory=dict)  # where its unseen pods are assumed to be
    # What they need beyond their nodes, kept free on other nodes.
    spilled: Spilled = ()

    @property
    def turn(self) -> tuple[bool, tuple[float, str, int]]:
        """Its place in the order of packing."""
        return (not is_tied(self.placed), self.decided)

    @property
    def is_unseen(self) -> bool:
        """Whether some of its pods have not been seen on a node."""
        return any(
            pods.count > sum(self.placed.bound.get(pods.name, {}).values())
            for pods in self.placed.pods
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Departure:
    """Pods that are being stopped, and the nodes that they were seen on or assumed on."""

    key: str
    packing: Packing
    requests: Mapping[str, Request]


def seats_of(workload: Workload) -> dict[str, list[Seat]]:
    """The placements of a workload, by cluster: held ones, then those being stopped."""
    held = workload.held
    decided_at = held.decided_at if held else 0.0
    seats: dict[str, list[Seat]] = {}
    holds = held.placed if held else ()
    for number, hold in enumerate((*holds, *workload.releasing)):
        seat = Seat(
            key=workload.key,
            placed=hold,
            decided=(decided_at, workload.key, number),
            leaves=number >= len(holds),
        )
        seats.setdefault(hold.cluster, []).append(seat)
    return seats


def is_tied(placed: Placed) -> bool:
    return any(pods.domains for pods in placed.pods)


def needs_of(placed: Placed) -> dict[str, Request]:
    """What a pod of each set takes of its node."""
    return {
        pods.name: (
            shape_in(pods.shape, placed.cluster) if pods.shape.admitted else pods.shape
        ).needs
        for pods in placed.pods
    }


def kept_free(spilled: Spilled) -> tuple[Packing, dict[str, Request]]:
    """What is kept free on nodes, as a pod for each part, with its needs."""
    pods = {
        f"{resource}@{position}#{number}": (position, resource, amount)
        for number, (position, resource, amount) in enumerate(spilled)
    }
    return (
        {name: {position: 1} for name, (position, _, _) in pods.items()},
        {name: ((resource, amount),) for name, (_, resource, amount) in pods.items()},
    )


def with_kept_free(
    packing: Packing, requests: Mapping[str, Request], spilled: Spilled
) -> tuple[Packing, Mapping[str, Request]]:
    """Pods on nodes, and what is kept free for those of them that fit on no node."""
    if not spilled:
        return packing, requests
    parts, needs = kept_free(spilled)
    return {**packing, **parts}, {**requests, **needs}


def are_alike(placement: Placed, other: Placed) -> bool:
    """Whether two placements have the same flavors, so that one can take over the other's quota."""
    return {pods.name: pods.flavors for pods in placement.pods} == {
        pods.name: pods.flavors for pods in other.pods
    }
