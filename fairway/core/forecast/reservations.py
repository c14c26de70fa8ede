"""Reservation and backfill: nodes kept for gangs that wait for room.

A gang that its queue allows, and that no cluster has room for, holds a place in the cluster where
it is expected to start first, by the ends of what runs there. It sticks to that place from plan to
plan. So many may hold one for each cluster and flavor; where more want to, the one that comes first
does: by priority of queues from the root down, its own priority, age, name. That order does not
change with shares, so a stream of small workloads from a queue with a small share, each of them
before the gang in the order of the cycle, cannot keep it waiting for ever.

Kept are the nodes on which it would be packed at its start. Whoever comes after the holder in that
order may use them only if it ends by its limit before that start, or if the holder could preempt it
then; all other nodes are free to all. Later workloads of the holder's own queue must leave it its
quota, too. Who lacks quota holds no place: nodes would stand empty that it might not even be
allowed to use. Quota comes back by the rules of preemption, and to whom first is the queue's order;
a queue that must not let small ones pass a large one is strict. What a holder needs is worked out
when somebody would be in its way; new places are looked for only so many times in a plan, and
places nobody asked about are kept as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import TYPE_CHECKING, Final

import numpy as np

from fairway.api.reasons import Code, Reason
from fairway.core.forecast.future_room import Future, Started
from fairway.core.model import Form, Workload
from fairway.core.nodes import Mask
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Reservation
from fairway.core.quota.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

Rank = tuple[tuple[int, ...], int, float, str]
LOOKS_MAX: Final = 32  # futures of clusters that a plan searches where nobody is in the way
CLUSTERS_MAX: Final = 8  # that a gang looks at, those with the fewest pods missing first
_LACKS_ROOM: Final = (Code.DOES_NOT_FIT, Code.NO_DOMAIN, Code.RESERVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """When a holder is expected to start, and the nodes it then needs."""

    starts_at: float
    nodes: Mask


@dataclass(slots=True, kw_only=True, eq=False)
class Hold:
    """One who holds a place."""

    workload: Workload
    rank: Rank
    cluster: str
    form: Form
    option: Assignment
    spot: Spot | None = None
    is_known: bool = False  # whether `spot` was worked out

    @property
    def slots(self) -> list[tuple[str, str]]:
        """What it is counted in: (cluster, flavor)."""
        return [(self.cluster, flavor) for flavor in self.option.names or ("",)]

    def usage(self) -> dict[tuple[str, str], int]:
        counts = {pod_set.name: pod_set.count for pod_set in self.form.pod_sets}
        return self.option.usage(
            counts, {pod_set.name: pod_set.shape for pod_set in self.form.pod_sets}
        )


class Reservations:
    """Who holds a place, while one plan is made."""

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
                if self._outranked(hold) == []:
                    self._put(hold)

    # What the planner asks.

    def __bool__(self) -> bool:
        return bool(self._holds)

    def kept_from(self, workload: Workload, cluster: str, option: Assignment) -> list[Hold]:
        """Those in a cluster whose nodes a workload must leave alone."""
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
        """The nodes of a cluster that are kept from a workload; none: no node is."""
        kept: Mask | None = None
        for hold in self.kept_from(workload, cluster, option):
            if hold.spot is not None:
                kept = hold.spot.nodes if kept is None else kept | hold.spot.nodes
        return kept

    def is_held_back(self, workload: Workload) -> bool:
        """Whether something was kept from a workload, among what was asked for it."""
        return any(holds for key, holds in self._asked.items() if key[0] == workload.key)

    def forget_asked(self) -> None:
        """Another workload is looked at: what was asked for the last one is not needed."""
        self._asked.clear()

    def keeper(self, request: PlacementRequest, cluster: str) -> Hold | None:
        """For whom the nodes are kept on which a request would fit; none: it would not anyway."""
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
        """Who of the same queue could not start any more if a request were granted."""
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

    # What the planner tells.

    def started(self, cluster: str, started: Started) -> None:
        """Pods got their place; they will leave it one day."""
        self._started.setdefault(cluster, []).append(started)

    def waits(self, workload: Workload, reasons: Iterable[Reason]) -> None:
        """A workload waits: if it holds a place, it goes on only if it is room that it lacks."""
        hold = self._holds.get(workload.key)
        if hold is not None and not any(
            reason.cluster == hold.cluster and reason.code in _LACKS_ROOM for reason in reasons
        ):
            self.drop(workload)

    def drop(self, workload: Workload) -> None:
        """A workload holds no place any more."""
        if workload.key in self._holds:
            self._order([hold for key, hold in self._holds.items() if key != workload.key])

    def award(self, workload: Workload, reasons: Sequence[Reason]) -> None:
        """Gives a gang that lacks room a place to hold, if there is one for it."""
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
            spot = self._glance(place) if self._outranked(place) is not None else None
            if spot is not None and (
                best is None or best.spot is None or spot.starts_at < best.spot.starts_at
            ):
                best = place
        if best is not None:
            for other in self._outranked(best) or ():
                self.drop(other.workload)
            self._put(best)

    def listed(self) -> tuple[Reservation, ...]:
        """All places held, as the plan says them."""
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

    # Who may hold, and where.

    def _may_hold(self, workload: Workload) -> bool:
        waited = self._planning.now - workload.queued_at
        return (
            self._settings.reserves
            and workload.mode == "Gang"
            and workload.held is None
            and workload.not_before <= self._planning.now
            and not workload.is_held
            and not workload.refused_by
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
        """Where it lacks room and nothing else, the nearest miss first."""
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
        """The first form whose time has come, with each of its flavors."""
        form = workload.forms[0]
        return [(form, option) for option in self._planning.assignments(workload, form)]

    def _hold(self, workload: Workload, cluster: str, form: Form, option: Assignment) -> Hold:
        rank = self.rank(workload)
        return Hold(workload=workload, rank=rank, cluster=cluster, form=form, option=option)

    def rank(self, workload: Workload) -> Rank:
        """The order among those who wait, whatever the shares are."""
        snapshot = self._planning.snapshot
        path = [workload.queue, *snapshot.tree.ancestors(workload.queue)]
        priorities = tuple(-snapshot.facts.queues[name].priority for name in reversed(path))
        return (priorities, -workload.priority, workload.queued_at, workload.key)

    def _outranked(self, hold: Hold) -> list[Hold] | None:
        """Who must give up their places for this one; none: it comes after those who hold them."""
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

    # What is kept.

    def _glance(self, hold: Hold) -> Spot | None:
        """The start and the nodes of a holder, if they are known or there is time for a look."""
        if not hold.is_known:
            if self._looks <= 0:
                return None
            self._looks -= 1
        return self._spot(hold)

    def _spot(self, hold: Hold) -> Spot | None:
        """The start and the nodes of a holder, next to those who come before it."""
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
        """Where the plan has changed nothing yet: the same for every plan of a snapshot."""
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
    """Whether the holder could preempt a workload at its start, were it running by then."""
    # The rules of preemption are gathered by modules that need the round themselves.
    from fairway.core.preemption.holders import Holder, holders_of  # noqa: PLC0415 - as above
    from fairway.core.preemption.rules import PreemptionCase  # noqa: PLC0415 - as above

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
