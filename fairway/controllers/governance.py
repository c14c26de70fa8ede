"""Fleet policies and what already runs: which apply to a workload, and which rules it breaks now.

The core keeps workloads from starting that break a rule. Policies change while workloads run, so
what runs is compared with the policies as they are now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairway.api.cluster import Cluster
from fairway.api.governance import Enforcement, FleetPolicy, FleetPolicySpec, Violation
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.governance.cluster_selectors import chosen, facts_of
from fairway.governance.rules import selects, subject_of, violations
from fairway.store.keys import NAMESPACES

NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A rule that a running workload breaks, and what follows from it."""

    violation: Violation
    enforcement: Enforcement
    cluster: str = ""  # whose placement breaks it; empty: all of the workload
    grace_seconds: int | None = None  # after which it is stopped; None: it is kept


def policies_for(cache: Cache, namespace: str) -> dict[str, FleetPolicySpec]:
    """The fleet policies that apply to the workloads of a namespace, by name."""
    specs = {policy.metadata.name: policy.spec for policy in cache.all(FleetPolicy)}
    if not specs:
        return specs
    stored = cache.mirror(NAMESPACES).get(("", namespace))
    labels = (stored.object()["metadata"].get("labels") if stored is not None else None) or {}
    return {
        name: specs[name]
        for name in sorted(specs)
        if selects(specs[name].namespaces, namespace, labels)
    }


def breaches(cache: Cache, workload: Workload, now: float) -> tuple[tuple[Breach, ...], float]:
    """The rules that a workload breaks where it runs, and when time alone breaks the next one.

    Policies that are only tried out are left out: their own status counts what breaks them.
    """
    result: list[Breach] = []
    due = NEVER
    for name, spec in policies_for(cache, workload.metadata.namespace).items():
        if spec.enforcement == "DryRun":
            continue
        stops = spec.enforcement == "Enforce" and spec.on_violation == "Stop"
        grace = spec.grace_seconds if stops else None
        for violation, cluster in _violations(cache, name, spec, workload):
            result.append(
                Breach(
                    violation=violation,
                    enforcement=spec.enforcement,
                    cluster=cluster,
                    grace_seconds=grace,
                )
            )
        ends_at = _longest_until(spec, workload)
        if ends_at <= now:
            longest = f"more than {spec.run_seconds_max}"
            ran = Violation(policy=name, rule="runSeconds", what=longest)
            result.append(Breach(violation=ran, enforcement=spec.enforcement, grace_seconds=grace))
        else:
            due = min(due, ends_at)
    return tuple(result), due


def _violations(
    cache: Cache, name: str, spec: FleetPolicySpec, workload: Workload
) -> Iterator[tuple[Violation, str]]:
    given = workload.spec.priority
    priority = workload.status.priority if given is None else given
    for violation in violations(name, spec, subject_of(workload.spec, priority)):
        yield violation, ""
    claim = workload.status.claim
    for placement in claim.placements if claim is not None else ():
        cluster = cache.get(Cluster, placement.cluster) if placement.cluster else None
        if cluster is not None and not chosen(spec.clusters, {"": facts_of(cluster)}):
            place = placement.cluster
            yield Violation(policy=name, rule="clusters", what=place), place


def _longest_until(spec: FleetPolicySpec, workload: Workload) -> float:
    """When a running workload has run for as long as a policy allows."""
    claim, longest = workload.status.claim, spec.run_seconds_max
    if longest is None or claim is None or claim.ready_at is None:
        return NEVER
    return claim.ready_at.timestamp() + max(0, longest - workload.status.ran_seconds)
