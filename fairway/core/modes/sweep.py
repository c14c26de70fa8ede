"""Sweeps: tasks that need not run together, in any number and in any clusters.

Tasks are numbered; a cluster gets ranges of numbers, in whole multiples of the workload's range
size where there are so many. As many are placed as fit, up to the cap on tasks at a time: what is
idle first, then range by range where the least harmful victims yield, then on new nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import ladder
from fairway.core.explain.reasons import (
    kept_reason,
    no_pool,
    no_room,
    quota_reason,
    refusal_reason,
    user_reason,
)
from fairway.core.model import Form, Placed, Workload
from fairway.core.modes.forms import full_usage, times, together
from fairway.core.modes.gang import Attempt, Outcome, charge, evict, placed_of
from fairway.core.modes.restraint import are_of_others, has_made_yield, is_peaceful
from fairway.core.modes.task_numbers import numbers_of, ranges
from fairway.core.packing import pack
from fairway.core.plan import Admit, Provision
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.provisioning.pools import Provisioned, find_pool
from fairway.core.quota.flavors import Assignment


@dataclass(slots=True)
class _Sweep:
    """A sweep while it is being placed."""

    planning: PlanningRound
    workload: Workload
    form: Form
    left: list[int]  # numbers of tasks to place, in order
    placed: list[Placed] = field(default_factory=list)
    rung: Rung = "Idle"  # the last that gave something; Preempt stays

    @property
    def everything(self) -> tuple[Placed, ...]:
        """What it held before, and what it was given now."""
        return (*(self.workload.held.placed if self.workload.held else ()), *self.placed)

    def may_mix(self, cluster: str, option: Assignment) -> bool:
        """Whether what the cluster has of this sweep already is of the same flavors."""
        return all(
            pods.flavors == option.flavors_of(pods.name)
            for placement in self.everything
            if placement.cluster == cluster
            for pods in placement.pods
            if pods.name in option.flavors
        )

    def allowed(self, option: Assignment) -> int:
        """How many of the tasks that are left quota allows."""
        may_borrow = self.rung != "Preempt"
        usage = full_usage(self.form, option)
        copies = self.planning.copies(self.workload, usage, may_borrow=may_borrow)
        return len(self.left) if copies is None else min(copies, len(self.left))

    def victims(self, cluster: str, option: Assignment, form: Form) -> Victims | None:
        """Who would have to yield for some tasks."""
        if not self.may_mix(cluster, option):
            return None
        result = find_victims(self.planning, self.workload, form, option, cluster)
        if result is None or not is_peaceful(self.planning, self.workload, self.everything, result):
            return None
        return result

    def whole_ranges(self, count: int) -> int:
        """As many of so many tasks as make whole ranges; a single one where there is no range."""
        if 0 < count < len(self.left):
            size = self.workload.task_range
            return max(1, count // size * size)
        return count

    def take_idle(self, cluster: str, group: str, option: Assignment) -> None:
        """Places as many of the next tasks as fit on the nodes of a cluster."""
        room, planning = self.planning.ledger.rooms[cluster], self.planning
        most = pack.copies(room, planning.wants(cluster, option, self.form), self.allowed(option))
        count = self.whole_ranges(most)
        if count:
            packed = pack.pack(room, planning.wants(cluster, option, times(self.form, count)))
            assert isinstance(packed, pack.Packed), "what was counted fits"
            self.keep((cluster, group), option, count, (packed, packed))

    def keep(
        self,
        place: tuple[str, str],
        option: Assignment,
        count: int,
        packed: tuple[pack.Packed, pack.Packed],
    ) -> None:
        """Charges the next tasks: all of what is packed, and what of it takes room that is here."""
        numbers, self.left = self.left[:count], self.left[count:]
        whole, on_existing = packed
        placed = placed_of(*place, times(self.form, len(numbers)), option, whole)
        charge(self.planning, self.workload, placed, on_existing)
        self.placed.append(
            Placed(cluster=place[0], group=place[1], pods=placed.pods, tasks=ranges(numbers))
        )


def decide(planning: PlanningRound, workload: Workload) -> Outcome:
    """Places as many tasks as fit; what they take stays charged in the ledger."""
    verdict = Outcome()
    left = _next_tasks(workload)
    if not left:
        return verdict
    sweep = _Sweep(planning, workload, workload.forms[0], left)
    if has_made_yield(workload):
        sweep.rung = "Preempt"
    _climb(sweep, verdict)
    if sweep.placed:
        verdict.steps.append(
            Admit(
                workload=workload.key,
                placed=_by_cluster(sweep.everything),
                rung=sweep.rung,
            )
        )
    if sweep.left:
        verdict.reasons.append(Reason(code=Code.PARTLY_PLACED, count=len(sweep.left)))
    else:
        verdict.reasons.clear()
    return verdict


def _next_tasks(workload: Workload) -> list[int]:
    """Numbers of the tasks that may be placed now: neither running nor over, and not too many."""
    held = workload.held.placed if workload.held else ()
    running = {number for placement in held for number in numbers_of(placement.tasks)}
    passed = running | set(numbers_of(workload.tasks_over))
    wanted = range(workload.first_task, workload.first_task + workload.tasks)
    left = (number for number in wanted if number not in passed)
    if not workload.concurrency:
        return list(left)
    return list(islice(left, max(0, workload.concurrency - len(running))))


def _climb(sweep: _Sweep, verdict: Outcome) -> None:
    """Takes what each step of the ladder gives."""
    planning, workload = sweep.planning, sweep.workload
    options = planning.assignments(workload, sweep.form)
    if not options:
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=workload.queue))
    candidates = planning.candidates(workload)
    verdict.reasons.extend(refusal_reason(*pair) for pair in candidates.refused)
    policy = planning.snapshot.policy(workload)
    for group, rung in ladder(policy, tuple(name for name, _ in candidates.groups)):
        names = candidates.in_group(group)
        if sweep.left and names:
            attempt = Attempt(
                workload=workload, form=sweep.form, options=options, group=group, clusters=names
            )
            stopped = planning.stopped_by(rung)
            if stopped is not None:
                verdict.reasons.append(stopped)
            else:
                _RUNGS[rung](sweep, attempt, verdict)


def _fill(sweep: _Sweep, attempt: Attempt, verdict: Outcome) -> None:
    """Takes what nobody uses."""
    planning, workload = sweep.planning, sweep.workload
    policy = planning.snapshot.policy(workload)
    for option in attempt.options:
        for ranked_cluster in planning.ranked(attempt.clusters, workload, policy):
            if sweep.allowed(option) <= 0:
                break
            if sweep.may_mix(ranked_cluster.cluster, option):
                sweep.take_idle(ranked_cluster.cluster, attempt.group, option)
        if sweep.left:
            verdict.reasons.extend(_why_not_idle(sweep, attempt, option))


def _why_not_idle(sweep: _Sweep, attempt: Attempt, option: Assignment) -> Iterator[Reason]:
    """What keeps the tasks that wait from idle room: quota, somebody's place, or no room."""
    planning, workload, form = sweep.planning, sweep.workload, sweep.form
    quota = quota_reason(planning, workload, full_usage(form, option), option)
    if quota is not None:
        yield quota
        return
    for name in attempt.clusters:
        kept = kept_reason(planning, workload, form, option, (attempt.group, name))
        pods = form.pod_sets[0]
        flavor, count = ",".join(option.names), pods.count * len(sweep.left)
        yield kept or no_room(name, attempt.group, flavor, pods.name, count)


def _preempt(sweep: _Sweep, attempt: Attempt, verdict: Outcome) -> None:
    """Makes room range by range, each time where it does the least harm."""
    planning, workload = sweep.planning, sweep.workload
    while sweep.left:
        count = min(workload.task_range, len(sweep.left))
        form = times(sweep.form, count)
        best: Victims | None = None
        for option in attempt.options:
            reason = user_reason(planning, workload, full_usage(form, option))
            if reason is not None:
                verdict.reasons.append(reason)
                continue
            for name in attempt.clusters:
                victims = sweep.victims(name, option, form)
                if victims is not None and (best is None or victims.harm < best.harm):
                    best = victims
        if best is None:
            verdict.reasons.extend(planning.no_victims(attempt.group, attempt.clusters))
            return
        evict(planning, workload, best, verdict)
        if are_of_others(best):
            sweep.rung = "Preempt"
        assert best.packed is not None, "where there are clusters there is a packing"
        place = (best.cluster, attempt.group)
        sweep.keep(place, best.assignment, count, (best.packed, best.packed))
        # Victims may have been larger than a range.
        sweep.take_idle(*place, best.assignment)


def _provision(sweep: _Sweep, attempt: Attempt, verdict: Outcome) -> None:
    """Asks elastic pools for as many tasks as they can still hold, in whole ranges."""
    planning, workload = sweep.planning, sweep.workload
    policy = planning.snapshot.policy(workload)
    for option in attempt.options:
        for ranked_cluster in planning.ranked(attempt.clusters, workload, policy):
            if not sweep.left or not sweep.may_mix(ranked_cluster.cluster, option):
                continue
            result = _most_on_new_nodes(sweep, ranked_cluster.cluster, option)
            if isinstance(result, Reason):
                verdict.reasons.append(result)
                continue
            count, nodes = result
            planning.ledger.provision(ranked_cluster.cluster, nodes.pool, nodes.count)
            if sweep.rung != "Preempt":
                sweep.rung = "Provision"
            verdict.steps.append(
                Provision(
                    workload=workload.key,
                    cluster=ranked_cluster.cluster,
                    pool=nodes.pool,
                    count=nodes.count,
                )
            )
            place = (ranked_cluster.cluster, attempt.group)
            sweep.keep(place, option, count, (nodes.packed, nodes.on_existing))


def _most_on_new_nodes(
    sweep: _Sweep, cluster: str, option: Assignment
) -> tuple[int, Provisioned] | Reason:
    """The most ranges of tasks that new nodes of a pool can hold, and those nodes."""
    size = sweep.workload.task_range
    best: tuple[int, Provisioned] | Reason = no_pool(cluster)
    allowed = sweep.allowed(option)
    low, high = 1, allowed // size if allowed < len(sweep.left) else -(-allowed // size)
    while low <= high:
        middle = (low + high) // 2
        count = min(middle * size, allowed)
        form = times(sweep.form, count)
        provisioned = find_pool(sweep.planning, sweep.workload, form, option, cluster)
        if isinstance(provisioned, Provisioned):
            best, low = (count, provisioned), middle + 1
        else:
            high = middle - 1
            best = provisioned if isinstance(best, Reason) else best
    return best


_RUNGS = {"Idle": _fill, "Preempt": _preempt, "Provision": _provision}


def _by_cluster(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    """One placement for each cluster: ranges are joined."""
    placements: dict[str, Placed] = {}
    for placement in placed:
        before = placements.get(placement.cluster)
        placements[placement.cluster] = placement if before is None else _join(before, placement)
    return tuple(placements[name] for name in sorted(placements))


def _join(before: Placed, after: Placed) -> Placed:
    earlier = {pods.name: pods for pods in before.pods}
    numbers = sorted({*numbers_of(before.tasks), *numbers_of(after.tasks)})
    return Placed(
        cluster=after.cluster,
        group=after.group,
        pods=tuple(together(earlier.get(pods.name), pods) for pods in after.pods),
        tasks=ranges(numbers),
        bound=before.bound,
        attempt=before.attempt,
    )
