"""The room of a cluster as what runs there ends, and the first moment at which a gang would fit.

Ends are reckoned by limits (see `run_ends`). The search halves the list of ends, so it takes for
granted that what fits now fits later too; where a heuristic packing disagrees, the moment found is
a little late. Fractions of devices are taken to be given back as whole ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairway.core.forecast.run_ends import NEVER, end_of
from fairway.core.model import Request, Workload
from fairway.core.nodes import Amounts, Packing, Room
from fairway.core.packing import pack
from fairway.core.packing.occupancy import requests_of

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Pods that got their place in the plan being made."""

    workload: Workload
    packing: Packing
    requests: Mapping[str, Request]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """What is given back of one resource: amounts at nodes, in order of time."""

    times: npt.NDArray[np.float64]
    positions: Amounts
    amounts: Amounts


class Future:
    """One cluster, from now on."""

    def __init__(self, planning: PlanningRound, cluster: str, started: Sequence[Started]) -> None:
        self._room = planning.ledger.rooms[cluster]
        self._now = planning.now
        given: dict[str, list[tuple[float, int, int]]] = {}
        for end, packing, requests in _endings(planning, cluster, started):
            if end == NEVER:
                continue
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
        """When pods would fit at the earliest, and where; none: not by any end that is known."""
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
        """The room when everything that ends by then is gone."""
        room = Room(self._room.cluster)
        room.free = dict(self._room.free)
        for resource, column in self._columns.items():
            some = int(np.searchsorted(column.times, moment, side="right"))
            free = room.free.get(resource)
            if some and free is not None:
                room.free[resource] = free.copy()
                np.add.at(room.free[resource], column.positions[:some], column.amounts[:some])
        return room


def _column(rows: list[tuple[float, int, int]]) -> _Column:
    rows.sort()
    return _Column(
        times=np.array([end for end, _, _ in rows], dtype=np.float64),
        positions=np.array([position for _, position, _ in rows], dtype=np.int64),
        amounts=np.array([amount for _, _, amount in rows], dtype=np.int64),
    )


def _endings(
    planning: PlanningRound, cluster: str, started: Sequence[Started]
) -> list[tuple[float, Packing, Mapping[str, Request]]]:
    """What holds nodes of a cluster, with its expected end."""
    endings: list[tuple[float, Packing, Mapping[str, Request]]] = []
    snapshot = planning.snapshot
    for key in snapshot.holders.get(cluster, ()):
        packing = snapshot.packings.get((key, cluster))
        if not packing or key in planning.preempted:
            continue
        workload = snapshot.facts.workloads[key]
        held = workload.held.placed if workload.held is not None else ()
        requests: dict[str, Request] = {}
        for placed in (*workload.releasing, *held):
            if placed.cluster == cluster:
                requests.update(requests_of(placed))
        # What is leaving is as good as gone.
        end = end_of(workload, planning.now) if held else planning.now
        endings.append((end, packing, requests))
    endings.extend(
        (end_of(other.workload, planning.now), other.packing, other.requests) for other in started
    )
    return endings
