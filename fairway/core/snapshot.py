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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fairway.core import fit
from fairway.core.eligibility import Eligibility
from fairway.core.ledger import Ledger
from fairway.core.limits import Claims
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
from fairway.core.quota import Tree
from fairway.core.topology import level_index, levels_of

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
        self.eligibility = Eligibility()
        self.tree = Tree.of(facts.queues.values())
        self.ledger = Ledger(self.tree, facts.clusters)
        # Where the pods of a workload are, or are taken to be: (workload, cluster) -> packing.
        self.packings: dict[tuple[str, str], Packing] = {}
        self.holders: dict[str, list[str]] = {name: [] for name in facts.clusters}
        self.claims = Claims(self.tree, facts.queues)
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
            for one in placed:
                usage = usage_of(one)
                self.ledger.charge(queue, usage)
                self.claims.add(queue, workload.user, usage)
                if one.cluster in self.ledger.rooms:
                    claimed.append((workload.key, one))
        # Pods that were seen are where they are; only then is it known what is left for the others.
        for key, one in claimed:
            self._occupy(key, one, one.bound)
        for key, one in claimed:
            self._occupy(key, one, self._assumed(one))
        self.ledger.settle()

    def _occupy(self, key: str, placed: Placed, packing: Packing) -> None:
        """Takes the nodes that pods of a claim are on, or are taken to be on."""
        before = self.packings.get((key, placed.cluster))
        self.ledger.take(placed.cluster, packing, requests_of(placed))
        self.packings[key, placed.cluster] = _joined(before, packing)
        if key not in self.holders[placed.cluster]:
            self.holders[placed.cluster].append(key)

    def _assumed(self, placed: Placed) -> Packing:
        """Where pods that no report has seen will be; what finds no room is left out."""
        room = self.ledger.rooms[placed.cluster]
        wants: list[fit.Want] = []
        set_of: dict[str, str] = {}
        for pods in placed.pods:
            for want in self._unseen(room, pods, placed.bound.get(pods.name, {})):
                wants.append(want)
                set_of[want.name] = pods.name
        found = fit.pack_most(room, wants) if wants else None
        packing: dict[str, dict[int, int]] = {}
        if isinstance(found, fit.Packed):
            for name, counts in found.packing.items():
                into = packing.setdefault(set_of[name], {})
                for position, count in counts.items():
                    into[position] = into.get(position, 0) + count
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
            if workload.is_waiting or wants_more(workload):
                lines.setdefault(workload.queue, []).append(workload)
        for line in lines.values():
            line.sort(key=precedence)
        return lines

    # Reading.

    def policy(self, workload: Workload) -> Policy:
        return self.facts.policies.get(workload.policy, self.facts.default_policy)

    def above(self, queue: str) -> list[Queue]:
        return [self.facts.queues[name] for name in self.tree.ancestors(queue)]

    def is_running(self, workload: Workload) -> bool:
        return workload.held is not None and workload.held.started_at is not None


def _decided(workload: Workload) -> tuple[float, str]:
    return (workload.held.decided_at if workload.held else 0.0, workload.key)


def precedence(workload: Workload) -> tuple[int, float, str]:
    """The order within a queue: priority, then age, then name."""
    return (-workload.priority, workload.queued_at, workload.key)


def wants_more(workload: Workload) -> bool:
    """Whether a workload that holds something still waits for the rest of it."""
    if workload.held is None:
        return False
    if workload.mode == "Divided":
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


def _joined(before: Packing | None, after: Packing) -> dict[str, dict[int, int]]:
    joined = {name: dict(counts) for name, counts in (before or {}).items()}
    for name, counts in after.items():
        into = joined.setdefault(name, {})
        for position, count in counts.items():
            into[position] = into.get(position, 0) + count
    return joined
