"""Questions to the planner: each is a value that knows how to answer itself from the view.

A question is sent to the planner process as it is, and its answer comes back. A new question is a
new class here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from fairway.api.explanations import Explanation as ExplanationOf
from fairway.controllers.scheduling.expected_starts import Ahead, ahead
from fairway.core import cycle
from fairway.core.costs.accounts import ClusterFlavor, supplies
from fairway.core.cycle import START
from fairway.core.explain.explain import explain
from fairway.core.explain.extent import Extent, extent
from fairway.core.explain.flavor_status import FlavorNodes, flavor_nodes
from fairway.core.explain.policy_counts import PolicyCount, policy_counts
from fairway.core.explain.queue_status import QueueState, standings
from fairway.core.explain.samples import Gauges, gauges
from fairway.core.measured import MeasuredScores
from fairway.core.modes.policy_clusters import PolicyChoice, choose_clusters
from fairway.core.plan import Admit
from fairway.core.provisioning.idle_nodes import Idle, idle_nodes
from fairway.core.snapshot import Change, Snapshot
from fairway.view.clusters import SHADOWED
from fairway.view.view import View

_SHADOW_MOST = 1_000  # decisions when planning with shadowed clusters

T = TypeVar("T")


class Question(ABC, Generic[T]):
    """A query on the current state of the fleet."""

    __slots__ = ()

    @abstractmethod
    def answer(self, view: View, now: float) -> T:
        """The answer; changes nothing."""


@dataclass(frozen=True, slots=True)
class Explain(Question[ExplanationOf | None]):
    """Why a workload waits and what would let it start; None if it is over or unknown."""

    key: str

    def answer(self, view: View, now: float) -> ExplanationOf | None:
        facts = view.snapshot(now).facts
        workload = facts.workloads.get(self.key)
        return None if workload is None or workload.is_over else explain(facts, self.key)


@dataclass(frozen=True, slots=True)
class Standings(Question[list[QueueState]]):
    """The state of every queue."""

    def answer(self, view: View, now: float) -> list[QueueState]:
        return standings(view.snapshot(now))


@dataclass(frozen=True, slots=True)
class NodesByFlavor(Question[list[FlavorNodes]]):
    """The nodes of every flavor."""

    def answer(self, view: View, now: float) -> list[FlavorNodes]:
        return flavor_nodes(view.snapshot(now))


@dataclass(frozen=True, slots=True)
class IdleNodes(Question[list[Idle]]):
    """Idle nodes of elastic pools, in the order in which to give them back."""

    def answer(self, view: View, now: float) -> list[Idle]:
        return list(idle_nodes(view.snapshot(now)))


@dataclass(frozen=True, slots=True)
class Supplies(Question[dict[ClusterFlavor, int]]):
    """Accelerators that clusters have, in thousandths, by cluster and flavor."""

    def answer(self, view: View, now: float) -> dict[ClusterFlavor, int]:
        return supplies(view.snapshot(now))


@dataclass(frozen=True, slots=True)
class ExpectedStarts(Question[list[Ahead]]):
    """The workloads that are expected to start next, and where."""

    def answer(self, view: View, now: float) -> list[Ahead]:
        return ahead(view.facts(now))


@dataclass(frozen=True, slots=True)
class Samples(Question[Gauges]):
    """A sample of the fleet for the history."""

    def answer(self, view: View, now: float) -> Gauges:
        return gauges(view.snapshot(now))


@dataclass(frozen=True, slots=True)
class Extents(Question[Extent]):
    """How large the fleet is, for metrics."""

    def answer(self, view: View, now: float) -> Extent:
        return extent(view.snapshot(now))


@dataclass(frozen=True, slots=True)
class PolicyChoices(Question[list[PolicyChoice]]):
    """The clusters that every policy chooses, as it is or with other scores of clusters."""

    scores: Mapping[str, MeasuredScores] | None = None  # in addition, by cluster

    def answer(self, view: View, now: float) -> list[PolicyChoice]:
        snapshot = view.snapshot(now)
        if self.scores is None:
            return list(choose_clusters(snapshot))
        before = snapshot.facts.scores
        tried = {name: {**before.get(name, {}), **fresh} for name, fresh in self.scores.items()}
        try:
            snapshot.change(Change(scores={**before, **tried}))
            return list(choose_clusters(snapshot))
        finally:
            snapshot.change(Change(scores=before))


@dataclass(frozen=True, slots=True)
class PolicyCounts(Question[dict[str, PolicyCount]]):
    """How many workloads break the rules of each fleet policy."""

    def answer(self, view: View, now: float) -> dict[str, PolicyCount]:
        return policy_counts(view.snapshot(now).facts)


@dataclass(frozen=True, slots=True)
class Shadow(Question[dict[str, list[str]]]):
    """Which waiting workloads would be placed in shadowed clusters, by cluster."""

    def answer(self, view: View, now: float) -> dict[str, list[str]]:
        facts = view.facts(now)
        opened = {
            name: replace(cluster, is_open=True, closed_because="")
            for name, cluster in facts.clusters.items()
            if cluster.closed_because == SHADOWED
        }
        if not opened:
            return {}
        others = replace(facts, clusters={**facts.clusters, **opened})
        starts: dict[str, list[str]] = {name: [] for name in opened}
        for step in cycle.plan(Snapshot(others), START, _SHADOW_MOST)[0].steps:
            for placed in step.placed if isinstance(step, Admit) else ():
                if placed.cluster in starts:
                    starts[placed.cluster].append(step.workload)
        return starts
