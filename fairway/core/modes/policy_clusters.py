"""Placement without a workload: the clusters that policies choose by themselves, for others to use.

Policies choose one after another, by name. Balance counts, for each cluster, the other policies
that have chosen it: so policies spread over the fleet instead of all choosing the same clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairway.core.clusters.choice import Choice, choose
from fairway.core.planning_round import PlanningRound
from fairway.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChoice:
    """The clusters that a policy chooses now."""

    policy: str
    choice: Choice

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "policy": self.policy,
            "clusters": [
                {
                    "cluster": chosen.cluster,
                    **({"group": chosen.group} if chosen.group else {}),
                    "score": chosen.score,
                }
                for chosen in self.choice.chosen
            ],
        }
        if self.choice.missing:
            rendered["missing"] = self.choice.missing
        if self.choice.faults:
            rendered["faults"] = list(self.choice.faults)
        return rendered


def choose_clusters(snapshot: Snapshot) -> Iterator[PolicyChoice]:
    """The choices of all policies, by name."""
    planning, facts = PlanningRound(snapshot), snapshot.facts
    counts = Counter(name for policy in facts.policies.values() for name in policy.chosen)
    for key in sorted(facts.policies):
        policy = facts.policies[key]
        counts.subtract(policy.chosen)
        inputs = {
            name: planning.facts_of(name, None, others=counts[name])
            for name in sorted(facts.clusters)
        }
        choice = choose(policy, facts.clusters, inputs, snapshot.now)
        counts.update(chosen.cluster for chosen in choice.chosen)
        yield PolicyChoice(policy=key, choice=choice)
