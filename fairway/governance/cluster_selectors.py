"""Whether a selector chooses a cluster; an expression that fails to evaluate does not choose it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.api.cluster import Cluster
from fairway.api.meta import ClusterSelector
from fairway.api.selectors import matches, requirements
from fairway.schema.cel.environment import CompileError, EvaluationError, Program, compile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What selectors look at."""

    name: str
    labels: Mapping[str, str]
    claims: Mapping[str, str]


def facts_of(cluster: Cluster) -> ClusterFacts:
    return ClusterFacts(
        name=cluster.metadata.name,
        labels=cluster.metadata.labels,
        claims={**cluster.status.claims, **cluster.spec.claims},
    )


def chosen(selector: ClusterSelector, clusters: Mapping[str, ClusterFacts]) -> frozenset[str]:
    """The clusters that a selector chooses."""
    tests = requirements(selector.labels)
    programs = [_program(text) for text in selector.expressions]
    return frozenset(
        name
        for name, facts in clusters.items()
        if (not selector.names or name in selector.names)
        and name not in selector.exclude
        and matches(tests, facts.labels)
        and all(_holds(program, facts) for program in programs)
    )


def _program(text: str) -> Program | None:
    try:
        return compile(text, {"cluster": "dyn"})
    except CompileError:
        return None


def _holds(program: Program | None, facts: ClusterFacts) -> bool:
    if program is None:
        return False
    cluster = {
        "name": facts.name,
        "labels": dict(facts.labels),
        "claims": dict(facts.claims),
    }
    try:
        return program.evaluate({"cluster": cluster}) is True
    except EvaluationError:
        return False
