"""The fleet frozen at `now`, indexed for reading.

Facts are what the view knows. A snapshot adds what the planner asks for again and again: the quota
tree with everything charged, the room left on every node, who waits in which queue in which order,
and who holds what where. Planning changes the ledger inside trials and puts everything back, so a
snapshot is the same before and after.

Free capacity = what the report says, less what is claimed and not bound yet. Claims name clusters,
flavors and domains, not nodes; pods that no report has seen on a node are packed here as the
planner would, in the order in which they were decided.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairway.core.fitting import fit
from fairway.core.fitting.eligibility import Eligibility
from fairway.core.fitting.overlaps import Overlap, overlaps, rivals_of
from fairway.core.fitting.topology import level_index, levels_of
from fairway.core.ledger import Ledger
from fairway.core.model import (
    EVERYWHERE,
    Flavor,
    Placed,
    PlacedPods,
    Policy,
    Queue,
    Request,
    Workload,
)
from fairway.core.nodes import Cluster, Packing, Room
from fairway.core.places.stock import Stock
from fairway.core.turns.limits import Claims
from fairway.core.turns.quota import Tree

if TYPE_CHECKING:
    from fairway.core.ahead.futures import Future

_NO_DOMAIN = -2  # of no node, not even of those outside all domains


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for the whole fleet."""

    fair_sharing: bool = True
    half_life_seconds: float = 0.0
    preemption_tests: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    reserves: bool = True
    reserve_after_seconds: float = 0.0
    reservations_per_flavor: int = 1
    backfills: bool = True
    is_paused: bool = False
    forecast_depth: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a decision may look at."""

    now: float
    queues: Mapping[str, Queue] = field(default_factory=dict)
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    settings: Settings = Settings()
    default_policy: Policy = EVERYWHERE


class Snapshot:
    """Facts, with everything charged and indexed."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.now = facts.now
        groups = (group for queue in facts.queues.values() for group in queue.groups)
        self.eligibility = Eligibility(rivals_of(groups, facts.flavors))
        self.tree = Tree.of(facts.queues.values())
        self.ledger = Ledger(self.tree, facts.clusters)
        # Where the pods of a workload are, or are taken to be: (workload, cluster) -> packing.
        self.packings: dict[tuple[str, str], Packing] = {}
        self.holders: dict[str, list[str]] = {name: [] for name in facts.clusters}
        self.claims = Claims(self.tree, facts.queues)
        self.holding: dict[str, list[str]] = {}  # queue -> who holds something of it, by key
        self.reserving = sorted(one.key for one in facts.workloads.values() if one.reservation)
        self.stock = Stock(self)
        self.futures: dict[str, Future] = {}  # of clusters, kept by `reservations`
        self._overlaps: tuple[Overlap, ...] | None = None
        self._own: dict[str, Workload] | None = None  # workloads, once somebody has come
        self._charge_all()
        self.lines = self._line_up()

    # Charging what is held.

    def _charge_all(self) -> None:
        held = [one for one in self.facts.workloads.values() if one.held or one.releasing]
        claimed: list[tuple[str, Placed]] = []
        for workload in sorted(held, key=_decided):
            queue = workload.held.queue if workload.held else workload.queue
            placed = (*(workload.held.placed if workload.held else ()), *workload.releasing)
            if workload.held:
                self.claims.count(queue, workload.user, 1)
                insort(self.holding.setdefault(queue or workload.queue, []), workload.key)
            for one in placed:
                usage = usage_of(one)
                self.ledger.charge(queue, usage)
                self.claims.add(queue, workload.user, usage)
                if one.cluster in self.ledger.rooms:
                    claimed.append((workload.key, one))
        # Pods that were seen are where they are; only then is it known what is left for the others.
        for key, one in claimed:
            self._occupy(key, one, one.bound)
        unseen: dict[str, list[tuple[str, Placed]]] = {}
        for key, one in claimed:
            unseen.setdefault(one.cluster, []).append((key, one))
        for claims in unseen.values():
            self._assume(claims)
        self.ledger.settle()

    def _assume(self, claims: list[tuple[str, Placed]]) -> None:
        """Packs what no report has seen: those tied to domains first, then in order of decision.

        The order within one plan is not known any more. Where somebody finds no room it must have
        been another, and the largest pods go first.
        """
        tied_first = sorted(claims, key=lambda one: not _is_tied(one[1]))
        found = self._packed_in(tied_first)
        if found is None:
            largest_first = sorted(claims, key=lambda one: (not _is_tied(one[1]), _size(one[1])))
            found = (
                self._packed_in(largest_first)
                or self._packed_together(claims)
                or self._packed_in(tied_first, is_whole=False)
            )
        for key, one, packing in found or ():
            self._occupy(key, one, packing)

    def _packed_in(
        self, claims: list[tuple[str, Placed]], *, is_whole: bool = True
    ) -> list[tuple[str, Placed, Packing]] | None:
        """Packings of claims in this order; none where one is left out, if all must be whole."""
        found: list[tuple[str, Placed, Packing]] = []
        with self.ledger.trial():
            for key, one in claims:
                packing = self._assumed(one)
                if is_whole and _pods(packing) + _pods(one.bound) < _wanted(one):
                    return None
                self.ledger.take(one.cluster, packing, requests_of(one))
                found.append((key, one, packing))
        return found

    def _occupy(self, key: str, placed: Placed, packing: Packing) -> None:
        """Takes the nodes that pods of a claim are on, or are taken to be on."""
        before = self.packings.get((key, placed.cluster))
        self.ledger.take(placed.cluster, packing, requests_of(placed))
        self.packings[key, placed.cluster] = _joined(before, packing)
        if key not in self.holders[placed.cluster]:
            self.holders[placed.cluster].append(key)

    def _packed_together(
        self, claims: list[tuple[str, Placed]]
    ) -> list[tuple[str, Placed, Packing]] | None:
        """Packings of all claims at once, found by search where the case is small."""
        room = self.ledger.rooms[claims[0][1].cluster]
        wants: list[fit.Want] = []
        owner: dict[str, tuple[int, str]] = {}
        for number, (_, one) in enumerate(claims):
            for pods in one.pods:
                for want in self._unseen(room, pods, one.bound.get(pods.name, {})):
                    name = f"{number}/{want.name}"
                    owner[name] = (number, pods.name)
                    wants.append(replace(want, name=name))
        whole = fit.pack(room, wants)
        if isinstance(whole, fit.Shortage):
            return None
        packings: list[dict[str, dict[int, int]]] = [{} for _ in claims]
        for name, counts in whole.packing.items():
            number, pod_set = owner[name]
            into = packings[number].setdefault(pod_set, {})
            for position, count in counts.items():
                into[position] = into.get(position, 0) + count
        return [(key, one, found) for (key, one), found in zip(claims, packings, strict=True)]

    def _assumed(self, placed: Placed) -> Packing:
        """Where pods that no report has seen will be; what finds no room is left out."""
        room = self.ledger.rooms[placed.cluster]
        wants: list[fit.Want] = []
        set_of: dict[str, str] = {}
        for pods in placed.pods:
            for want in self._unseen(room, pods, placed.bound.get(pods.name, {})):
                wants.append(want)
                set_of[want.name] = pods.name
        packing: dict[str, dict[int, int]] = {}
        for name, counts in self._most_of(room, wants).items():
            into = packing.setdefault(set_of[name], {})
            for position, count in counts.items():
                into[position] = into.get(position, 0) + count
        return packing

    def _most_of(self, room: Room, wants: list[fit.Want]) -> Packing:
        """All of them together; else as many of each as fit beside the others."""
        whole = fit.pack(room, wants)
        if isinstance(whole, fit.Packed):
            return whole.packing
        packing: dict[str, Mapping[int, int]] = {}
        with self.ledger.trial():
            for want in wants:
                found = fit.pack_most(room, [want])
                if isinstance(found, fit.Packed):
                    packing[want.name] = found.packing[want.name]
                    taken = {want.name: packing[want.name]}
                    self.ledger.take(room.cluster.name, taken, {want.name: want.shape.requests})
        return packing

    def _unseen(self, room: Room, pods: PlacedPods, seen: Mapping[int, int]) -> Iterator[fit.Want]:
        """The pods of a set that no report has seen, apart for each domain they were put in."""
        missing = pods.count - sum(seen.values())
        if missing <= 0:
            return
        names = sorted({flavor for _, flavor in pods.flavors if flavor in self.facts.flavors})
        flavors = [self.facts.flavors[name] for name in names]
        mask = self.eligibility.of(room.cluster, pods.shape, flavors)
        index = level_index(room, pods.level) if pods.domains else None
        if index is None:
            yield fit.Want(name=pods.name, shape=pods.shape, count=missing, least=0, mask=mask)
            return
        level = levels_of(room)[index]
        for domain, count in pods.domains:
            code = level.names.index(domain) if domain in level.names else _NO_DOMAIN
            here = sum(some for position, some in seen.items() if level.codes[position] == code)
            left = min(missing, count - here)
            if left > 0:
                missing -= left
                inside = mask & (level.codes == code)
                yield fit.Want(
                    name=f"{pods.name}@{domain}",
                    shape=pods.shape,
                    count=left,
                    least=0,
                    mask=inside,
                )

    # Who waits.

    def _line_up(self) -> dict[str, list[Workload]]:
        lines: dict[str, list[Workload]] = {}
        for workload in self.facts.workloads.values():
            if workload.is_waiting or wants_more(workload, self.policy(workload)):
                lines.setdefault(workload.queue, []).append(workload)
        for line in lines.values():
            line.sort(key=precedence)
        return lines

    # Changes. The snapshot then equals one made with them from the start.

    def put(self, workload: Workload) -> None:
        """A workload has come or changed. What is on nodes changes by a new snapshot alone."""
        self.remove(workload.key)
        own = self._workloads()
        own[workload.key] = workload
        if workload.is_waiting or wants_more(workload, self.policy(workload)):
            insort(self.lines.setdefault(workload.queue, []), workload, key=precedence)
        if workload.reservation:
            insort(self.reserving, workload.key)
        self._charge(workload, 1)

    def remove(self, key: str) -> None:
        """A workload is gone, if it was here."""
        workload = self._workloads().pop(key, None)
        if workload is None:
            return
        line = self.lines.get(workload.queue, [])
        at = bisect_left(line, precedence(workload), key=precedence)
        if at < len(line) and line[at].key == key:
            del line[at]
            if not line:
                del self.lines[workload.queue]
        if workload.reservation:
            self.reserving.remove(key)
        self._charge(workload, -1)

    def _charge(self, workload: Workload, sign: int) -> None:
        """Charges what a workload has without nodes, or takes the charge back."""
        held = workload.held
        queue = held.queue if held else workload.queue
        if held:
            self.claims.count(queue, workload.user, sign)
            keys = self.holding.setdefault(queue or workload.queue, [])
            if sign > 0:
                insort(keys, workload.key)
            else:
                keys.remove(workload.key)
        for one in (*(held.placed if held else ()), *workload.releasing):
            assert one.cluster not in self.ledger.rooms, "nodes are packed all at once"
            usage = usage_of(one)
            self.ledger.charge(queue, {pair: sign * amount for pair, amount in usage.items()})
            self.claims.add(queue, workload.user, usage, sign)
        self.ledger.settle()

    def _workloads(self) -> dict[str, Workload]:
        """The workloads as a mapping of our own, which may change."""
        if self._own is None:
            self._own = dict(self.facts.workloads)
            self.facts = replace(self.facts, workloads=self._own)
        return self._own

    def advance(self, now: float) -> None:
        """Time has passed."""
        self.futures.clear()
        self.now = now
        self.facts = replace(self.facts, now=now)

    # Reading.

    def policy(self, workload: Workload) -> Policy:
        return self.facts.policies.get(workload.policy, self.facts.default_policy)

    def above(self, queue: str) -> list[Queue]:
        return [self.facts.queues[name] for name in self.tree.ancestors(queue)]

    def overlaps(self) -> tuple[Overlap, ...]:
        """Nodes that have two flavors of one resource group, and are used for neither."""
        if self._overlaps is None:
            facts = self.facts
            found = overlaps(facts.clusters, facts.flavors, self.eligibility.rivals)
            self._overlaps = tuple(found)
        return self._overlaps

    def is_running(self, workload: Workload) -> bool:
        return workload.held is not None and workload.held.started_at is not None


def _decided(workload: Workload) -> tuple[float, str]:
    return (workload.held.decided_at if workload.held else 0.0, workload.key)


def precedence(workload: Workload) -> tuple[int, float, str]:
    """The order within a queue: priority, then age, then name."""
    return (-workload.priority, workload.queued_at, workload.key)


def wants_more(workload: Workload, policy: Policy) -> bool:
    """Whether a workload that holds something still waits for the rest of it."""
    if workload.held is None:
        return False
    if workload.mode == "Divided":
        if policy.division.type == "Duplicated":
            return True  # another cluster may have room for a copy by now
        return sum(one.replicas for one in workload.held.placed) != workload.replicas
    if workload.mode == "Independent":
        return workload.tasks > 0
    return False


def usage_of(placed: Placed) -> dict[tuple[str, str], int]:
    """What a placement is charged to quota."""
    total: dict[tuple[str, str], int] = {}
    for pods in placed.pods:
        for key, amount in pods.usage().items():
            total[key] = total.get(key, 0) + amount
    return total


def requests_of(placed: Placed) -> dict[str, Request]:
    return {pods.name: pods.shape.requests for pods in placed.pods}


def _is_tied(placed: Placed) -> bool:
    return any(pods.domains for pods in placed.pods)


def _size(placed: Placed) -> tuple[int, ...]:
    """The largest pod first, by accelerators and then by everything else."""
    return min(
        (
            (
                -sum(amount for name, amount in pods.shape.requests if "/" in name),
                -max((amount for _, amount in pods.shape.requests), default=0),
            )
            for pods in placed.pods
        ),
        default=(0, 0),
    )


def _pods(packing: Packing) -> int:
    return sum(sum(counts.values()) for counts in packing.values())


def _wanted(placed: Placed) -> int:
    return sum(pods.count for pods in placed.pods)


def _joined(before: Packing | None, after: Packing) -> dict[str, dict[int, int]]:
    joined = {name: dict(counts) for name, counts in (before or {}).items()}
    for name, counts in after.items():
        into = joined.setdefault(name, {})
        for position, count in counts.items():
            into[position] = into.get(position, 0) + count
    return joined
