"""Fleet policies as the core's plain values, and the rules that a workload breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairway.api.governance import FleetPolicy, FleetPolicySpec, Violation
from fairway.api.workload import WorkloadSpec
from fairway.core import fleet_policy
from fairway.governance.rules import selects, subject_of, violations
from fairway.view.selectors import ClusterFacts, choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Governing:
    """A policy with its clusters resolved."""

    spec: FleetPolicySpec
    policy: fleet_policy.FleetPolicy


def governing_of(
    policies: Mapping[str, FleetPolicy], clusters: Mapping[str, ClusterFacts]
) -> tuple[Governing, ...]:
    """All policies, by name."""
    return tuple(
        Governing(
            spec=policies[name].spec,
            policy=fleet_policy.FleetPolicy(
                name=name,
                clusters=choose(policies[name].spec.clusters, clusters),
                run_seconds_max=policies[name].spec.run_seconds_max,
                is_enforced=policies[name].spec.enforcement == "Enforce",
            ),
        )
        for name in sorted(policies)
    )


def that_apply(
    policies: tuple[Governing, ...], namespace: str, labels: Mapping[str, str]
) -> tuple[Governing, ...]:
    """The policies that apply to the workloads of a namespace."""
    return tuple(
        governing for governing in policies if selects(governing.spec.namespaces, namespace, labels)
    )


def broken_rules(
    policies: tuple[Governing, ...], spec: WorkloadSpec, priority: int
) -> Iterator[Violation]:
    """The rules that a workload breaks, wherever it runs."""
    if policies:
        subject = subject_of(spec, priority)
        for governing in policies:
            yield from violations(governing.policy.name, governing.spec, subject)


def capped(priority: int, policies: tuple[Governing, ...]) -> int:
    """The priority in effect: what runs with one that is too high gains nothing by it."""
    ranges = (item.spec.priority for item in policies if item.policy.is_enforced)
    highest = (given.max for given in ranges if given is not None and given.max is not None)
    return min(priority, min(highest, default=priority))


def limited(limit: int | None, policies: tuple[Governing, ...]) -> int | None:
    """A run-time limit, lowered to what enforced policies allow."""
    limits = (limit, fleet_policy.longest_run(governing.policy for governing in policies))
    return min((seconds for seconds in limits if seconds is not None), default=None)
