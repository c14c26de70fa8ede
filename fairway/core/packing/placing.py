"""One pod set and its place in a space: exact, whatever its topology asks for."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.core.model import Shape, Topology
from fairway.core.nodes import Mask
from fairway.core.packing.space import Space
from fairway.core.packing.topology import Spot, place

NO_TOPOLOGY = Topology()
# More pods than anybody has room for, and than sums of `space.UNLIMITED` reach.
_TOO_MANY = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Want:
    """Pods to be placed: `mask` says which nodes may take them (None: all that are ready)."""

    name: str
    shape: Shape
    count: int
    mask: Mask | None = None
    topology: Topology = NO_TOPOLOGY
    least: int | None = None  # for `pack_most`; None: all of them


def place_one(space: Space, want: Want) -> Spot | int:
    """Where a set goes, or how many pods of it could be placed at most."""
    request = want.shape.requests
    if want.count <= 0:
        return Spot(counts={})
    is_free = want.topology == NO_TOPOLOGY
    if is_free and (filled := space.filled(request, want.mask, want.count)) is not None:
        return Spot(counts=filled)
    positions = space.candidates(request, want.mask)
    if is_free:
        counts = space.choose(request, positions, want.count)
        if counts is None:
            return int(space.pods_at(request, positions).sum())
        return Spot(counts=counts)
    return place(
        space.room,
        want.topology,
        positions,
        space.pods_at(request, positions),
        want.count,
        lambda some, count: space.choose(request, some, count),
    )


def most_of(space: Space, want: Want) -> int:
    """How many pods of a set could be placed, whatever it wants."""
    request = want.shape.requests
    positions = space.candidates(request, want.mask)
    pods = space.pods_at(request, positions)
    if want.topology == NO_TOPOLOGY:
        return int(pods.sum())
    most = place(space.room, want.topology, positions, pods, _TOO_MANY, lambda _, __: None)
    assert isinstance(most, int), "more pods than fit anywhere were placed"
    return most
