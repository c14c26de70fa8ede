"""Fleet policies: which workloads break them, published in their statuses and as metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api.errors import ApiError
from fairway.api.governance import FleetPolicy, FleetPolicyStatus, RuleViolations
from fairway.api.meta import Condition
from fairway.controllers.context import Context
from fairway.controllers.scheduling.questions import PolicyCounts
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.statuses import with_condition, with_status
from fairway.core.explain.policy_counts import PolicyCount
from fairway.schema.cel.cluster_expressions import cluster_fault
from fairway.store.interface import Write
from fairway.store.keys import FLEET_POLICIES

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-fleet-policies")
_NAMES_MOST = 10
_NOTHING = PolicyCount(workloads=0, by_rule={})

# Violations by (policy, rule, enforcement).
Tally = Mapping[tuple[str, str, str], int]


class FleetPolicies:
    """The controller of the statuses of fleet policies."""

    def __init__(self, context: Context, *, scheduler: Scheduler, look_seconds: float) -> None:
        self._look_seconds = look_seconds
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._has_counted = False
        self.observers: list[Callable[[Tally], None]] = []

    async def run(self) -> None:
        """Counts what breaks policies and publishes it, until cancelled."""
        try:
            await self._count()
        finally:
            for observe in self.observers:
                observe({})  # another replica counts from now on

    async def _count(self) -> None:
        while True:
            await self._clock.sleep(self._look_seconds)
            if not len(self._cache.mirror(FLEET_POLICIES)) and not self._has_counted:
                continue
            try:
                counts = await self._scheduler.ask(PolicyCounts())
            except ApiError as fault:
                _log.info("what breaks fleet policies is not known: %s", fault)
                continue
            await self._publish(counts)

    async def _publish(self, counts: Mapping[str, PolicyCount]) -> None:
        policies = list(self._cache.all(FleetPolicy))
        self._has_counted = bool(policies)
        tally: dict[tuple[str, str, str], int] = {}
        for policy in policies:
            name = policy.metadata.name
            count = counts.get(name, _NOTHING)
            for rule, keys in count.by_rule.items():
                tally[name, rule, policy.spec.enforcement] = len(keys)
            try:
                await self._write(policy, count)
            except (ApiError, OSError) as fault:
                _log.info("the status of fleet policy %s was not written: %s", name, fault)
        for observe in self.observers:
            observe(tally)

    async def _write(self, policy: FleetPolicy, count: PolicyCount) -> None:
        stored = self._cache.mirror(FLEET_POLICIES).get(("", policy.metadata.name))
        status = status_of(policy, count, self._clock.now())
        if stored is None or status == policy.status:
            return
        await self._store.update(
            FLEET_POLICIES,
            with_status(stored.object(), status),
            subresource="status",
            write=_WRITE,
        )


def status_of(policy: FleetPolicy, count: PolicyCount, now: float) -> FleetPolicyStatus:
    """The status of a policy with these counts."""
    faults = ", ".join(_faults(policy))
    condition = Condition(
        type="Valid",
        status="False" if faults else "True",
        reason="Invalid" if faults else "Valid",
        message=f"{faults}: not valid, so no cluster is allowed" if faults else "",
        observed_generation=policy.metadata.generation,
        last_transition_time=datetime.fromtimestamp(int(now), UTC),
    )
    return replace(
        policy.status,
        observed_generation=policy.metadata.generation,
        workloads=count.workloads,
        violating=len({key for keys in count.by_rule.values() for key in keys}),
        violations=tuple(
            RuleViolations(rule=rule, count=len(keys), workloads=keys[:_NAMES_MOST])
            for rule, keys in sorted(count.by_rule.items())
        ),
        conditions=with_condition(policy.status.conditions, condition),
    )


def _faults(policy: FleetPolicy) -> Iterator[str]:
    """Expressions that are not valid; a kube-apiserver does not check them."""
    for at, text in enumerate(policy.spec.clusters.expressions):
        if cluster_fault(text):
            yield f"spec.clusters.expressions[{at}]"
