"""Whether a selector chooses a cluster; an expression that fails to evaluate does not choose it.

The expressions of one object share a budget for each cluster, so that no object delays the planner.
What an expression answers for a cluster is kept with the facts of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.cluster import Cluster
from fairway.api.meta import ClusterSelector
from fairway.api.selectors import matches, requirements
from fairway.schema.cel.cluster_expressions import CLUSTER_UNITS, bindings, cluster_program
from fairway.schema.cel.environment import Budget, CompileError, CostExceeded, EvaluationError

_ANSWERS_MAX = 4096


@dataclass(frozen=True, slots=True)
class _Answer:
    """Whether an expression holds for a cluster, and what it cost."""

    holds: bool
    units: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What selectors look at."""

    name: str
    labels: Mapping[str, str]
    claims: Mapping[str, str]
    _answers: dict[str, _Answer] = field(default_factory=dict, compare=False, repr=False)

    def answer(self, expression: str) -> _Answer:
        known = self._answers.get(expression)
        if known is None:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            known = self._answers[expression] = self._evaluate(expression)
        return known

    def _evaluate(self, expression: str) -> _Answer:
        budget = Budget(CLUSTER_UNITS)
        try:
            values = bindings(self.name, self.labels, self.claims)
            holds = cluster_program(expression).evaluate(values, budget) is True
        except CostExceeded:
            return _Answer(holds=False, units=CLUSTER_UNITS + 1)
        except (CompileError, EvaluationError):
            return _Answer(holds=False, units=budget.spent)
        return _Answer(holds=holds, units=budget.spent)


class Budgets:
    """What the expressions of one object may still cost, for each cluster."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self.too_costly: set[str] = set()  # expressions that were not evaluated

    def holds(self, expression: str, cluster: str, facts: ClusterFacts) -> bool:
        """Whether an expression holds for a cluster; past the budget none is evaluated."""
        spent = self._spent.get(cluster, 0.0)
        if spent <= CLUSTER_UNITS:
            answer = facts.answer(expression)
            spent = self._spent[cluster] = spent + answer.units
            if spent <= CLUSTER_UNITS:
                return answer.holds
        self.too_costly.add(expression)
        return False


def facts_of(cluster: Cluster) -> ClusterFacts:
    return ClusterFacts(
        name=cluster.metadata.name,
        labels=cluster.metadata.labels,
        claims={**cluster.status.claims, **cluster.spec.claims},
    )


def chosen(
    selector: ClusterSelector,
    clusters: Mapping[str, ClusterFacts],
    budgets: Budgets | None = None,
) -> frozenset[str]:
    """The clusters that a selector chooses, within the budgets of its object."""
    tests = requirements(selector.labels)
    budgets = budgets or Budgets()
    return frozenset(
        name
        for name, facts in clusters.items()
        if (not selector.names or name in selector.names)
        and name not in selector.exclude
        and matches(tests, facts.labels)
        and all(budgets.holds(text, name, facts) for text in selector.expressions)
    )
