"""How many workloads break the rules of each fleet policy, pending and running ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairway.api.governance import RuleName
from fairway.core.fleet_policy import FleetPolicy
from fairway.core.model import Workload
from fairway.core.snapshot import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCount:
    """The workloads that a policy applies to, and those that break each of its rules."""

    workloads: int
    by_rule: Mapping[RuleName, tuple[str, ...]]  # keys of workloads, sorted


def policy_counts(facts: Facts) -> dict[str, PolicyCount]:
    """The counts of all policies that apply to a workload."""
    applied: dict[str, int] = {}
    broken: dict[str, dict[RuleName, list[str]]] = {}
    for key in sorted(facts.workloads):
        workload = facts.workloads[key]
        if workload.is_over:
            continue
        for policy in workload.fleet_policies:
            applied[policy.name] = applied.get(policy.name, 0) + 1
            for rule in dict.fromkeys(_broken_rules(workload, policy, facts.now)):
                broken.setdefault(policy.name, {}).setdefault(rule, []).append(key)
    return {
        name: PolicyCount(
            workloads=count,
            by_rule={rule: tuple(keys) for rule, keys in broken.get(name, {}).items()},
        )
        for name, count in applied.items()
    }


def _broken_rules(workload: Workload, policy: FleetPolicy, now: float) -> Iterator[RuleName]:
    for violation in workload.violations:
        if violation.policy == policy.name:
            yield violation.rule
    held = workload.held
    if held is None:
        return
    if policy.clusters is not None and any(
        placement.cluster and placement.cluster not in policy.clusters for placement in held.placed
    ):
        yield "clusters"
    longest, started_at = policy.run_seconds_max, held.started_at
    if longest is None or started_at is None:
        return
    if workload.ran_seconds + now - started_at >= longest:
        yield "runSeconds"
