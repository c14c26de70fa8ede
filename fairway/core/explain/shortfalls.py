"""What exactly is missing where a workload does not fit: computed when it is read.

While a plan is made it is enough to know that pods do not fit in a cluster, by whichever bound says
so first. A reader wants to know how close it was: how many pods do not fit, what they lack, and on
which node or in which domain the least is missing. The state is that after the plan, when
everything that the plan starts has started.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from fairway.api.reasons import Code, Reason
from fairway.core.forecast.judge import judged
from fairway.core.model import Form, Workload, unit_nanos
from fairway.core.modes.forms import times
from fairway.core.nodes import Room
from fairway.core.packing.near_fit import nearest_miss, offers
from fairway.core.packing.space import leading_resource
from fairway.core.packing.topology import Want
from fairway.core.plan import Plan
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after

NODE = "node"  # as a level: a single node must hold a pod
FLAVOR = "flavor"  # as a level: the cluster has no node of the flavor, so nothing is nearly enough


def completed(facts: Facts, plan: Plan) -> Plan:
    """The plan, made from these facts, with what each workload lacks and which can never start."""
    return judged(Snapshot(facts), with_shortfalls(facts, plan))


def with_shortfalls(facts: Facts, plan: Plan) -> Plan:
    """The plan, made from these facts, with the missing amounts of all waiting workloads."""
    if not any(
        reason.code == Code.DOES_NOT_FIT for each in plan.waiting for reason in each.reasons
    ):
        return plan
    shortfalls = _Shortfalls(after(facts, plan))
    return replace(
        plan,
        waiting=tuple(
            replace(
                waiting_workload,
                reasons=shortfalls.of(
                    facts.workloads[waiting_workload.workload], waiting_workload.reasons
                ),
            )
            for waiting_workload in plan.waiting
        ),
    )


class _Shortfalls:
    """Computes each answer once, since many workloads are alike."""

    def __init__(self, facts: Facts) -> None:
        self._planning = PlanningRound(Snapshot(facts))
        self._known: dict[Hashable, Reason] = {}

    def of(self, workload: Workload, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
        return tuple(
            self._complete(workload, reason) if reason.code == Code.DOES_NOT_FIT else reason
            for reason in reasons
        )

    def _complete(self, workload: Workload, reason: Reason) -> Reason:
        key = (workload.queue, workload.forms, workload.replicas, workload.tasks, reason)
        known = self._known.get(key)
        if known is None:
            known = reason
            for want, option in self._wants(workload, reason):
                if self._is_offered(want, option, reason.cluster):
                    known = _with_miss(self._room(reason), want, reason)
                else:
                    known = replace(reason, count=want.count, level=FLAVOR)
                break
            self._known[key] = known
        return known

    def _is_offered(self, want: Want, option: Assignment, cluster: str) -> bool:
        known = self._planning.snapshot.facts.flavors
        flavors = [known[name] for name in option.kinds(want.name)]
        return not flavors or offers(self._planning.cluster(cluster), want.shape, flavors)

    def _room(self, reason: Reason) -> Room:
        return self._planning.ledger.rooms[reason.cluster]

    def _wants(self, workload: Workload, reason: Reason) -> Iterator[tuple[Want, Assignment]]:
        """The pods that a reason is about: a pod set of the forms that have these flavors."""
        if reason.cluster not in self._planning.ledger.rooms:
            return
        for form in workload.forms:
            whole = form if workload.mode == "Gang" else _copies(form, reason)
            for option in self._planning.assignments(workload, form):
                if ",".join(option.names) == reason.flavor:
                    for want in self._planning.bare_wants(reason.cluster, option, whole):
                        if want.name == reason.pod_set:
                            yield want, option


def _copies(form: Form, reason: Reason) -> Form:
    """The form times the number of replicas or tasks that a reason is about."""
    pods = next((pod_set.count for pod_set in form.pod_sets if pod_set.name == reason.pod_set), 1)
    return times(form, max(1, reason.count // max(1, pods)))


def _with_miss(room: Room, want: Want, reason: Reason) -> Reason:
    """The reason with what the pods lack at the place where the least is missing."""
    miss = nearest_miss(room, want)
    if miss is None:  # alone it fits; not beside other pod sets, or in one domain with them
        resource, amount = leading_resource(room, want.shape.needs)
        short = ((resource, amount * reason.count),) if resource else ()
        return replace(reason, short=_in_nanos(short))
    total = _short_in_all(room, want) if miss.node else ()
    if total:
        return replace(reason, count=want.count - miss.placeable, short=_in_nanos(total))
    level = NODE if miss.node else want.topology.required if miss.domain else ""
    return replace(
        reason,
        count=want.count - miss.placeable,
        short=_in_nanos(miss.short),
        level=level,
        other=miss.node or miss.domain,
    )


def _short_in_all(room: Room, want: Want) -> tuple[tuple[str, int], ...]:
    """Resources of which all nodes together have too little, so that no node need be named."""
    result: list[tuple[str, int]] = []
    for resource, amount in want.shape.needs:
        column = room.free.get(resource)
        if column is None:
            free = 0
        else:
            usable = column if want.mask is None else column[want.mask]
            free = int(usable.clip(min=0).sum())
        if free < amount * want.count:
            result.append((resource, amount * want.count - free))
    return tuple(result)


def _in_nanos(short: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, amount * unit_nanos(name)) for name, amount in short))
