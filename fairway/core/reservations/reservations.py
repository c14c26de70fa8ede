"""Reservation and backfill: nodes are reserved for gangs that wait for room.

A gang that its queue allows, but that no cluster has room for, gets a reservation in the cluster
where it is expected to start first, by the expected ends of the workloads there. It keeps that
reservation from plan to plan. The number of reservations per cluster and flavor is limited; if more
gangs want one, those first in rank get it. Rank is the priority of queues from the root down, then
the workload's priority, age and name. Rank does not depend on shares. So a stream of small
workloads from a queue with a small share, which are before the gang in the order of the cycle,
cannot make it wait for ever.

The nodes on which the gang would be packed at its start are reserved. A workload of lower rank may
use them only if its run-time limit ends before that start (backfill), or if the gang could preempt
it then; other nodes are open to all. Later workloads of the gang's own queue must also leave it its
quota.

A gang that lacks quota gets no reservation: nodes would be idle that it might not be allowed to
use. It gets quota back by the rules of preemption, and the order of the queue says which workload
is first; a queue in which small workloads must not pass a large one is strict.

The nodes of a reservation are computed when another workload may need them. The number of searches
for new reservations in a plan is limited, and reservations that no workload asked about stay as
they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import TYPE_CHECKING, Final

import numpy as np

from fairway.api.reasons import Code, Reason
from fairway.core.model import Form, Workload
from fairway.core.nodes import Mask
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Reservation
from fairway.core.preemption.holders import Holder, holders_of
from fairway.core.preemption.rules import PreemptionCase
from fairway.core.quota.flavors import Assignment
from fairway.core.reservations.future_room import Future, Started

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

Rank = tuple[tuple[int, ...], int, float, str]
LOOKS_MAX: Final = 32  # searches of a cluster's future per plan that no other workload requires
CLUSTERS_MAX: Final = 8  # searched per gang, those with the fewest missing pods first
_LACKS_ROOM: Final = (Code.DOES_NOT_FIT, Code.RESERVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """When the holder of a reservation is expected to start, and the nodes it then needs."""

    starts_at: float
    nodes: Mask


@dataclass(slots=True, kw_only=True, eq=False)
class Hold:
    """A gang with a reservation."""

    workload: Workload
    rank: Rank
    cluster: str
    form: Form
    option: Assignment
    spot: Spot | None = None
    is_known: bool = False  # whether `spot` is computed

    @property
    def slots(self) -> list[tuple[str, str]]:
        """What the limit on reservations counts: (cluster, flavor)."""
        return [(self.cluster, flavor) for flavor in self.option.names or ("",)]

    def usage(self) -> dict[tuple[str, str], int]:
        counts = {pod_set.name: pod_set.count for pod_set in self.form.pod_sets}
        return self.option.usage(
            counts, {pod_set.name: pod_set.shape for pod_set in self.form.pod_sets}
        )


class Reservations:
    """The reservations while one plan is made."""

    def __init__(self, planning: PlanningRound) -> None:
        self._planning = planning
        self._settings = planning.snapshot.facts.settings
        self._looks = LOOKS_MAX
        self._holds: dict[str, Hold] = {}  # by workload, in order of rank
        self._in_cluster: dict[str, list[Hold]] = {}
        self._started: dict[str, list[Started]] = {}
        self._futures: dict[str, tuple[int, int, Future]] = {}
        self._asked: dict[tuple[str, str, tuple[str, ...]], list[Hold]] = {}
        if self._settings.reserves and planning.has_clusters:
            for hold in sorted(self._kept_from_before(), key=lambda hold: hold.rank):
                if self._find_outranked(hold) == []:
                    self._put(hold)

    # Questions of the planner.

    def __bool__(self) -> bool:
        return bool(self._holds)

    def kept_from(self, workload: Workload, cluster: str, option: Assignment) -> list[Hold]:
        """The reservations in a cluster whose nodes a workload must not use."""
        here = self._in_cluster.get(cluster)
        if not here:
            return []
        key = (workload.key, cluster, option.names)
        known = self._asked.get(key)
        if known is None:
            known = self._asked[key] = [
                hold for hold in here if self._is_kept_from(hold, workload, option)
            ]
        return known

    def kept_nodes(self, workload: Workload, cluster: str, option: Assignment) -> Mask | None:
        """The nodes of a cluster that are reserved against a workload; None: no node is."""
        kept: Mask | None = None
        for hold in self.kept_from(workload, cluster, option):
            if hold.spot is not None:
                kept = hold.spot.nodes if kept is None else kept | hold.spot.nodes
        return kept

    def is_held_back(self, workload: Workload) -> bool:
        """Whether any reservation was in the way of a workload while it was decided."""
        return any(holds for key, holds in self._asked.items() if key[0] == workload.key)

    def forget_asked(self) -> None:
        """Drops what was computed for the last workload, before another is decided."""
        self._asked.clear()

    def keeper(self, request: PlacementRequest, cluster: str) -> Hold | None:
        """The reservation but for which a request would fit; None if it would not fit anyway."""
        workload, option = request.workload, request.assignment
        holds = self.kept_from(workload, cluster, option)
        if not holds:
            return None
        room = self._planning.ledger.rooms[cluster]
        wants = self._planning.bare_wants(cluster, option, request.form)
        packed = pack.pack(room, wants, workload.domain)
        if isinstance(packed, pack.Shortage):
            return None
        used = sorted({at for counts in packed.packing.values() for at in counts})
        for hold in holds:
            if hold.spot is not None and bool(hold.spot.nodes[used].any()):
                return hold
        return holds[0]

    def quota_keeper(self, request: PlacementRequest) -> Hold | None:
        """The reservation of the same queue that would lack quota if a request were granted."""
        workload, usage, option = request.workload, request.usage, request.assignment
        for hold in list(self._holds.values()):
            if hold.workload.queue != workload.queue or hold.workload.key == workload.key:
                continue
            tree, needs = self._planning.ledger.tree, hold.usage()
            for pair, amount in usage.items():
                available = tree.available(workload.queue, pair)
                is_tight = needs.get(pair, 0) <= available < needs.get(pair, 0) + amount
                if needs.get(pair) and is_tight and self._is_kept_from(hold, workload, option):
                    return hold
        return None

    # Changes during a plan.

    def note_started(self, cluster: str, started: Started) -> None:
        """Notes pods that this plan placed: their end frees room in future."""
        self._started.setdefault(cluster, []).append(started)

    def waits(self, workload: Workload, reasons: Iterable[Reason]) -> None:
        """Drops the reservation of a waiting workload unless it lacks room in that cluster."""
        hold = self._holds.get(workload.key)
        if hold is not None and not any(
            reason.cluster == hold.cluster and reason.code in _LACKS_ROOM for reason in reasons
        ):
            self.drop(workload)

    def drop(self, workload: Workload) -> None:
        """Drops the reservation of a workload."""
        if workload.key in self._holds:
            self._order([hold for key, hold in self._holds.items() if key != workload.key])

    def award(self, workload: Workload, reasons: Sequence[Reason]) -> None:
        """Gives a gang that lacks room a reservation, if it can have one."""
        if not self._may_hold(workload):
            return
        hold = self._holds.get(workload.key)
        if hold is not None:
            if self._glance(hold) is not None or not hold.is_known:
                return
            self.drop(workload)
        if self._looks <= 0:
            return
        best: Hold | None = None
        for place in self._places(workload, reasons):
            spot = self._glance(place) if self._find_outranked(place) is not None else None
            if spot is not None and (
                best is None or best.spot is None or spot.starts_at < best.spot.starts_at
            ):
                best = place
        if best is not None:
            for other in self._find_outranked(best) or ():
                self.drop(other.workload)
            self._put(best)

    def entries(self) -> tuple[Reservation, ...]:
        """All reservations, as listed in the plan."""
        reservations = []
        for hold in self._holds.values():
            spot = self._glance(hold)
            if spot is not None or not hold.is_known:
                reservations.append(
                    Reservation(
                        workload=hold.workload.key,
                        cluster=hold.cluster,
                        flavors=hold.option.names,
                        starts_at=spot.starts_at if spot is not None else None,
                    )
                )
        return tuple(
            sorted(
                reservations, key=lambda reservation: (reservation.cluster, reservation.workload)
            )
        )

    # Which gangs may have a reservation, and where.

    def _may_hold(self, workload: Workload) -> bool:
        waited = self._planning.now - workload.queued_at
        return (
            self._settings.reserves
            and workload.mode == "Gang"
            and workload.held is None
            and workload.not_before <= self._planning.now
            and not workload.is_held
            and not workload.is_refused
            and waited >= self._settings.reserve_after_seconds
        )

    def _kept_from_before(self) -> Iterable[Hold]:
        facts = self._planning.snapshot.facts
        for key in self._planning.snapshot.reserving:
            workload = facts.workloads[key]
            if workload.reservation is None or not self._may_hold(workload):
                continue
            cluster, flavors = workload.reservation
            queue = facts.queues.get(workload.queue)
            if queue is None or queue.is_held or cluster not in facts.clusters:
                continue
            for form, option in self._options(workload):
                if option.names == flavors:
                    yield self._hold(workload, cluster, form, option)
                    break

    def _places(self, workload: Workload, reasons: Sequence[Reason]) -> list[Hold]:
        """Possible reservations: where the gang lacks only room, the fewest missing pods first."""
        options = {
            ",".join(option.names): (form, option) for form, option in self._options(workload)
        }
        places: dict[tuple[str, str], int] = {}
        for reason in reasons:
            if reason.code in _LACKS_ROOM and reason.rung == "Idle" and reason.flavor in options:
                place = (reason.cluster, reason.flavor)
                places[place] = min(reason.count, places.get(place, reason.count))
        nearest = sorted(places, key=lambda place: (places[place], place))
        return [
            self._hold(workload, cluster, *options[flavor])
            for cluster, flavor in nearest[:CLUSTERS_MAX]
        ]

    def _options(self, workload: Workload) -> list[tuple[Form, Assignment]]:
        """The first form, with each assignment of flavors."""
        form = workload.forms[0]
        return [(form, option) for option in self._planning.assignments(workload, form)]

    def _hold(self, workload: Workload, cluster: str, form: Form, option: Assignment) -> Hold:
        rank = self.rank(workload)
        return Hold(workload=workload, rank=rank, cluster=cluster, form=form, option=option)

    def rank(self, workload: Workload) -> Rank:
        """The order among waiting workloads; it does not depend on shares."""
        snapshot = self._planning.snapshot
        path = [workload.queue, *snapshot.tree.ancestors(workload.queue)]
        priorities = tuple(-snapshot.facts.queues[name].priority for name in reversed(path))
        return (priorities, -workload.priority, workload.queued_at, workload.key)

    def _find_outranked(self, hold: Hold) -> list[Hold] | None:
        """The reservations that this one replaces; None if it ranks after those in its slots."""
        losers: list[Hold] = []
        for slot in hold.slots:
            others = [other for other in self._holds.values() if slot in other.slots]
            if len(others) >= self._settings.reservations_per_flavor:
                if others[-1].rank < hold.rank:
                    return None
                losers.append(others[-1])
        return losers

    def _put(self, hold: Hold) -> None:
        self._order(sorted([*self._holds.values(), hold], key=lambda other: other.rank))

    def _order(self, holds: list[Hold]) -> None:
        self._holds = {hold.workload.key: hold for hold in holds}
        self._in_cluster = {}
        for hold in holds:
            self._in_cluster.setdefault(hold.cluster, []).append(hold)
        self._asked.clear()

    # What is reserved.

    def _glance(self, hold: Hold) -> Spot | None:
        """The start and the nodes of a reservation, if known or if a search is left."""
        if not hold.is_known:
            if self._looks <= 0:
                return None
            self._looks -= 1
        return self._spot(hold)

    def _spot(self, hold: Hold) -> Spot | None:
        """The start and the nodes of a reservation, beside those that rank before it."""
        if hold.is_known:
            return hold.spot
        planning, workload, cluster = self._planning, hold.workload, hold.cluster
        kept = self.kept_nodes(workload, cluster, hold.option)
        wants = planning.bare_wants(cluster, hold.option, hold.form)
        if kept is not None:
            wants = [
                with_changes(want, mask=None if want.mask is None else want.mask & ~kept)
                for want in wants
            ]
        result = self._future(cluster).first_fit(wants, workload.domain)
        hold.is_known = True
        if result is not None:
            starts_at, packed = result
            nodes = np.zeros(len(planning.cluster(cluster).nodes), dtype=np.bool_)
            for counts in packed.packing.values():
                nodes[list(counts)] = True
            hold.spot = Spot(starts_at=starts_at, nodes=nodes)
        return hold.spot

    def _future(self, cluster: str) -> Future:
        started = self._started.get(cluster, [])
        state = (len(started), len(self._planning.preempted))
        if state == (0, 0):
            return self._future_as_it_stands(cluster)
        known = self._futures.get(cluster)
        if known is None or known[:2] != state:
            known = (*state, Future(self._planning, cluster, started))
            self._futures[cluster] = known
        return known[2]

    def _future_as_it_stands(self, cluster: str) -> Future:
        """The future while the plan has changed nothing: shared by all plans of a snapshot."""
        futures = self._planning.snapshot.futures
        future = futures.get(cluster)
        if future is None:
            future = futures[cluster] = Future(self._planning, cluster, [])
        return future

    def _is_kept_from(self, hold: Hold, workload: Workload, option: Assignment) -> bool:
        if hold.workload.key == workload.key or hold.rank > self.rank(workload):
            return False
        spot = self._spot(hold)
        if spot is None:
            return False
        if not self._settings.backfills:
            return True
        limit = workload.limit_seconds
        if limit is not None and workload.mode != "Divided":
            ends_in_time = self._planning.now + limit <= spot.starts_at
        else:
            ends_in_time = False
        return not ends_in_time and not could_preempt(self._planning, hold, workload, option)


def could_preempt(
    planning: PlanningRound, hold: Hold, workload: Workload, option: Assignment
) -> bool:
    """Whether the holder of a reservation could preempt a workload that runs at its start."""
    rules = planning.queue(hold.workload).preemption
    if not workload.preemptible or (rules.within_queue == "Never" and rules.reclaim == "Never"):
        return False
    form = next((form for form in workload.forms if _suits(form, option)), None)
    if form is None or hold.spot is None:
        return False
    shapes = {pod_set.name: pod_set.shape for pod_set in form.pod_sets}
    usage = option.usage({pod_set.name: pod_set.count for pod_set in form.pod_sets}, shapes)
    as_victim = Holder(
        workload=workload,
        key=workload.key,
        queue=workload.queue,
        usage=usage,
        lost_seconds=0.0,
        loss=0,
        held_seconds=hold.spot.starts_at - planning.now,
    )
    needs = hold.usage()
    case = PreemptionCase(
        planning, holders_of(planning), hold.workload, needs, needs, contests_nodes=True
    )
    with planning.ledger.trial():
        planning.ledger.charge(workload.queue, usage)
        if not case.suspects([as_victim]):
            return False
    with planning.ledger.trial():
        planning.ledger.charge(hold.workload.queue, needs)
        return case.judge([as_victim]) is not None


def _suits(form: Form, option: Assignment) -> bool:
    return {pod_set.name for pod_set in form.pod_sets} == set(option.flavors)
