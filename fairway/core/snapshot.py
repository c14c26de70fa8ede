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

from collections.abc import Mapping
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
from fairway.core.nodes import Cluster, Mask, Packing, Room
from fairway.core.quota import Tree


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
                    self._occupy(workload.key, one)
        self.ledger.settle()

    def _occupy(self, key: str, placed: Placed) -> None:
        """Takes the nodes that the pods of a claim are on, or would be put on."""
        packing = self._pack(placed)
        before = self.packings.get((key, placed.cluster))
        self.ledger.take(placed.cluster, packing, requests_of(placed))
        self.packings[key, placed.cluster] = _joined(before, packing)
        if key not in self.holders[placed.cluster]:
            self.holders[placed.cluster].append(key)

    def _pack(self, placed: Placed) -> dict[str, dict[int, int]]:
        room = self.ledger.rooms[placed.cluster]
        packing: dict[str, dict[int, int]] = {}
        for pods in placed.pods:
            seen = dict(placed.bound.get(pods.name, {}))
            packing[pods.name] = seen
            missing = pods.count - sum(seen.values())
            if missing > 0:
                for position, count in self._assume(room, pods, missing).items():
                    seen[position] = seen.get(position, 0) + count
        return packing

    def _assume(self, room: Room, pods: PlacedPods, missing: int) -> Mapping[int, int]:
        """Where pods that no report has seen will be; what finds no room is left out."""
        names = sorted({flavor for _, flavor in pods.flavors if flavor in self.facts.flavors})
        flavors = [self.facts.flavors[name] for name in names]
        mask = self.eligibility.of(room.cluster, pods.shape, flavors)
        if pods.domains:
            mask = mask & self._in_domains(room.cluster, pods)
        want = fit.Want(name=pods.name, shape=pods.shape, count=missing, least=0, mask=mask)
        found = fit.pack_most(room, [want])
        return found.packing[pods.name] if isinstance(found, fit.Packed) else {}

    def _in_domains(self, cluster: Cluster, pods: PlacedPods) -> Mask:
        label = cluster.level_label(pods.level) or ""
        column = cluster.nodes.labels.get(label)
        found = ~cluster.nodes.ready & cluster.nodes.ready  # nothing yet
        if column is not None:
            for domain, _ in pods.domains:
                found = found | column.where(domain)
        return found

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


def _joined(
    before: Packing | None, after: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    joined = {name: dict(counts) for name, counts in (before or {}).items()}
    for name, counts in after.items():
        into = joined.setdefault(name, {})
        for position, count in counts.items():
            into[position] = into.get(position, 0) + count
    return joined
