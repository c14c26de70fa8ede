"""Queues, flavors and the settings of the fleet as the core's plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairway.api.amounts import Quantity
from fairway.api.flavor import Flavor
from fairway.api.queue import Queue, QueueSpec, Uncovered
from fairway.core import model
from fairway.view.selectors import ClusterFacts, both, choose


def request_of(amounts: Mapping[str, Quantity], *, up: bool = True) -> model.Request:
    """Amounts in base units, sorted, without zeros; fractions are rounded up, or down."""
    result = []
    for resource in sorted(amounts):
        amount = base_units(resource, amounts[resource], up=up)
        if amount:
            result.append((resource, amount))
    return tuple(result)


def base_units(resource: str, quantity: Quantity, *, up: bool = True) -> int:
    unit = model.unit_nanos(resource)
    return -(-quantity.nanos // unit) if up else quantity.nanos // unit


def flavor_of(flavor: Flavor) -> model.Flavor:
    spec = flavor.spec
    return model.Flavor(
        name=flavor.metadata.name,
        node_labels=tuple(sorted(spec.node_labels.items())),
        cluster_labels=tuple(sorted(spec.cluster_labels.items())),
        node_taints=spec.node_taints,
        tolerations=spec.tolerations,
        is_interruptible=spec.interruptible,
        speed_nanos=spec.speed.nanos,
        prices={resource: price.nanos for resource, price in sorted(spec.prices.items())},
    )


def queues_of(
    queues: Mapping[str, Queue], clusters: Mapping[str, ClusterFacts]
) -> dict[str, model.Queue]:
    """All queues, with what they inherit."""
    return {name: queue_of(name, queues, clusters) for name in sorted(queues)}


def queue_of(
    name: str, queues: Mapping[str, Queue], clusters: Mapping[str, ClusterFacts]
) -> model.Queue:
    """One queue, with what it inherits from the queues above it."""
    return _queue(queues[name], line_of(queues, name), clusters)


def at_or_below(names: Collection[str], queues: Mapping[str, Queue]) -> set[str]:
    """These queues, known or not, and all queues below them."""
    result = set(names)
    for name in queues:
        way: list[str] = []
        at = name
        while at in queues and at not in way and at not in result:
            way.append(at)
            at = queues[at].spec.parent
        if at in result:
            result.update(way)
    return result


def line_of(queues: Mapping[str, Queue], name: str) -> list[QueueSpec]:
    """A queue and its ancestors, itself first; a cycle is cut."""
    return [spec for _, spec in named_line_of(queues, name)]


def named_line_of(queues: Mapping[str, Queue], name: str) -> list[tuple[str, QueueSpec]]:
    """The same, each with its name."""
    line: dict[str, QueueSpec] = {}
    while name in queues and name not in line:
        line[name] = queues[name].spec
        name = line[name].parent
    return list(line.items())


def uncovered_of(queue: Queue, line: list[QueueSpec]) -> Uncovered:
    """What a queue says of resources that no group names; `line` is itself and its ancestors.

    A queue that an earlier version stored says nothing, and limits nothing.
    """
    says = next((spec.uncovered for spec in line if spec.uncovered is not None), None)
    return says or ("Unlimited" if is_from_before(queue) else "Unavailable")


def is_from_before(queue: Queue) -> bool:
    """Whether a hub of a version that did not know `uncovered` has looked at a queue."""
    return queue.status.observed_generation > 0 and queue.status.uncovered is None


def _queue(
    queue: Queue, line: list[QueueSpec], clusters: Mapping[str, ClusterFacts]
) -> model.Queue:
    spec = queue.spec
    fence: model.Clusters = None
    for other in line:
        fence = both(fence, choose(other.clusters, clusters))
    remembered = queue.status.remembered
    return model.Queue(
        name=queue.metadata.name,
        parent=spec.parent,
        weight_nanos=spec.weight.nanos,
        priority=spec.priority,
        groups=tuple(
            model.ResourceGroup(
                resources=group.resources, flavors=tuple(flavor.name for flavor in group.flavors)
            )
            for group in spec.resource_groups
        ),
        quotas=_quotas(spec),
        is_strict=spec.strategy == "Strict",
        preemption=_preemption(spec),
        refuses_uncovered=uncovered_of(queue, line) == "Unavailable",
        fungibility=model.Fungibility(
            borrows_last=spec.fungibility.when_can_borrow == "TryNextFlavor",
            compares_victims=spec.fungibility.when_can_preempt == "TryNextFlavor",
            prefers_preemption=spec.fungibility.preference == "PreemptionOverBorrowing",
        ),
        minimum_run_within=_inherited(line, "within_queue_seconds"),
        minimum_run_reclaim=_inherited(line, "reclaim_seconds"),
        is_held=any(other.hold != "None" for other in line),
        fence=fence,
        claimed_max=spec.claimed_workloads_max,
        waiting_max=spec.waiting_workloads_max,
        user_limits=tuple(
            model.UserLimit(
                users=user_limit.users,
                claimed_max=user_limit.claimed_workloads,
                waiting_max=user_limit.waiting_workloads,
                amounts=request_of(user_limit.amounts, up=False),
            )
            for user_limit in spec.user_limits
        ),
        remembered={
            resource: base_units(resource, amount)
            for resource, amount in (remembered.amounts.items() if remembered else ())
        },
    )


def _quotas(spec: QueueSpec) -> dict[model.FlavorResource, model.Quota]:
    quotas: dict[model.FlavorResource, model.Quota] = {}
    for group in spec.resource_groups:
        for flavor in group.flavors:
            given = {quota.resource: quota for quota in flavor.quotas}
            for resource in group.resources:
                quota = given.get(resource)
                quotas[flavor.name, resource] = (
                    model.Quota()
                    if quota is None
                    else model.Quota(
                        nominal=base_units(resource, quota.nominal, up=False),
                        borrowing_limit=_limit(resource, quota.borrowing_limit),
                        lending_limit=_limit(resource, quota.lending_limit),
                    )
                )
    return quotas


def _limit(resource: str, quantity: Quantity | None) -> int | None:
    return None if quantity is None else base_units(resource, quantity, up=False)


def _preemption(spec: QueueSpec) -> model.PreemptionRules:
    rules = spec.preemption
    return model.PreemptionRules(
        within_queue=rules.within_queue,
        reclaim=rules.reclaim,
        while_borrowing=rules.while_borrowing.policy,
        while_borrowing_priority_max=rules.while_borrowing.priority_max,
        protect_within_nominal=rules.protect_within_nominal,
    )


def _inherited(line: list[QueueSpec], field: str) -> float:
    """The nearest value up the line; 0 if no queue sets one."""
    for queue in line:
        value = getattr(queue.minimum_run, field)
        if value is not None:
            return float(value)
    return 0.0
