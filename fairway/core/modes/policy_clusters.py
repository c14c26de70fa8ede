"""Placement without a workload: the clusters that policies choose by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.core.clusters.choice import Choice, choose
from fairway.core.model import Policy
from fairway.core.planning_round import PlanningRound


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChoice:
    """The clusters that a policy with a number of clusters chooses now, for others to use."""

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


def choices(planning: PlanningRound) -> tuple[PolicyChoice, ...]:
    """The choices of all policies that choose without a workload, by name."""
    facts = planning.snapshot.facts
    return tuple(
        PolicyChoice(policy=key, choice=_choice(planning, facts.policies[key]))
        for key in sorted(facts.policies)
        if facts.policies[key].number_of_clusters is not None
    )


def _choice(planning: PlanningRound, policy: Policy) -> Choice:
    clusters = planning.snapshot.facts.clusters
    seen = {name: planning.facts_of(name, None) for name in sorted(clusters)}
    return choose(policy, clusters, seen, planning.now)
