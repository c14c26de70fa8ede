"""The future room of a cluster as workloads end, and the first time at which a gang fits.

Ends are estimated by limits (see `run_ends`). The binary search over ends assumes that what fits at
one time also fits later; where the heuristic packing disagrees, the time found is a little late.
Fractions of devices are assumed to be given back as whole devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairway.core.admission import taken_in
from fairway.core.allowances import AllowanceKey
from fairway.core.model import Request, Workload
from fairway.core.nodes import Amounts, Packing, Room
from fairway.core.packing import pack
from fairway.core.reservations.run_ends import NEVER, end_of
from fairway.core.seats import needs_of

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Pods that are placed by the plan being made."""

    workload: Workload
    packing: Packing
    requests: Mapping[str, Request]
    allowance: Mapping[AllowanceKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """Amounts of one resource that are freed on nodes, in order of time."""

    times: npt.NDArray[np.float64]
    positions: Amounts
    amounts: Amounts


class Future:
    """The room of one cluster from now on."""

    def __init__(self, planning: PlanningRound, cluster: str, started: Sequence[Started]) -> None:
        self._room = planning.ledger.rooms[cluster]
        self._now = planning.now
        given: dict[str, list[tuple[float, int, int]]] = {}
        self._allowances: list[tuple[float, Mapping[AllowanceKey, int]]] = []
        for end, packing, requests, allowance in _endings(planning, cluster, started):
            if end == NEVER:
                continue
            if allowance:
                self._allowances.append((end, allowance))
            for name, counts in packing.items():
                for resource, amount in requests[name]:
                    into = given.setdefault(resource, [])
                    for position, count in counts.items():
                        into.append((end, position, amount * count))
        self._columns = {resource: _column(rows) for resource, rows in sorted(given.items())}
        self._times = sorted({end for rows in given.values() for end, _, _ in rows})

    def first_fit(
        self, wants: Sequence[pack.Want], domain: str
    ) -> tuple[float, pack.Packed] | None:
        """When and where pods first fit; None if they do not, even after every known end."""
        times = [self._now, *self._times]
        best = pack.pack(self._room_at(times[-1]), wants, domain)
        if isinstance(best, pack.Shortage):
            return None
        low, high = 0, len(times) - 1
        while low < high:
            middle = (low + high) // 2
            packed = pack.pack(self._room_at(times[middle]), wants, domain)
            if isinstance(packed, pack.Packed):
                best, high = packed, middle
            else:
                low = middle + 1
        return times[high], best

    def _room_at(self, moment: float) -> Room:
        """The room when everything that ends by `moment` is gone."""
        room = Room(self._room.cluster)
        room.free = dict(self._room.free)
        for resource, column in self._columns.items():
            some = int(np.searchsorted(column.times, moment, side="right"))
            free = room.free.get(resource)
            if some and free is not None:
                room.free[resource] = free.copy()
                np.add.at(room.free[resource], column.positions[:some], column.amounts[:some])
        room.spent = dict(self._room.spent)
        for end, allowance in self._allowances:
            for key, amount in allowance.items() if end <= moment else ():
                room.spent[key] = room.spent.get(key, 0) - amount
        return room


def _column(rows: list[tuple[float, int, int]]) -> _Column:
    rows.sort()
    return _Column(
        times=np.array([end for end, _, _ in rows], dtype=np.float64),
        positions=np.array([position for _, position, _ in rows], dtype=np.int64),
        amounts=np.array([amount for _, _, amount in rows], dtype=np.int64),
    )


_Ending = tuple[float, Packing, Mapping[str, Request], Mapping[AllowanceKey, int]]


def _endings(planning: PlanningRound, cluster: str, started: Sequence[Started]) -> list[_Ending]:
    """The workloads that hold nodes of a cluster, with their expected ends."""
    endings: list[_Ending] = []
    snapshot = planning.snapshot
    for key in snapshot.holders.get(cluster, ()):
        packing = snapshot.packings.get((key, cluster))
        if not packing or key in planning.preempted:
            continue
        workload = snapshot.facts.workloads[key]
        held = workload.held.placed if workload.held is not None else ()
        requests: dict[str, Request] = {}
        here = [placed for placed in (*workload.releasing, *held) if placed.cluster == cluster]
        for placed in here:
            requests.update(needs_of(placed))
        # A workload that is only being released counts as gone.
        end = end_of(workload, planning.now) if held else planning.now
        packing, needs = snapshot.on_nodes(key, cluster, requests)
        endings.append((end, packing, needs, taken_in(cluster, here)))
    endings.extend(
        (end_of(other.workload, planning.now), other.packing, other.requests, other.allowance)
        for other in started
    )
    return endings
