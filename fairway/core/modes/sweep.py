"""Sweeps: tasks that need not run together, in any number and in any clusters.

Tasks are numbered. A cluster gets ranges of numbers, in whole multiples of the workload's range
size if that many fit. As many tasks are placed as fit, up to the limit on concurrent tasks: first
on idle room, then range by range by preempting the least harmful victims, then on new nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters import ranking
from fairway.core.model import Form, Placed, Workload
from fairway.core.modes.allocation import charge, evict, placed_of, provision
from fairway.core.modes.forms import times, together
from fairway.core.modes.ladder import (
    LadderStep,
    borrow_passes,
    climb,
    forms_due,
    least_harmful,
    offers,
)
from fairway.core.modes.outcome import Outcome
from fairway.core.modes.restraint import are_of_others, has_made_yield, victims_to_grow
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Admit
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.provisioning.pools import NoNodes, Provisioned, find_pool, most_on_new_nodes
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE
from fairway.core.reasons import no_pool, no_room_for_more, quota_reason
from fairway.core.task_numbers import numbers_of, ranges


def decide(planning: PlanningRound, workload: Workload, *, is_last_resort: bool = False) -> Outcome:
    """Places as many tasks as fit; what they take stays charged in the ledger."""
    outcome = Outcome()
    tasks = _next_tasks(workload)
    if not tasks:
        return outcome
    for form in forms_due(planning, workload, outcome):
        sweep = _Sweep(planning, workload, form, tasks, is_last_resort)
        climb(sweep, outcome)
        if sweep.placed:
            break
    if sweep.placed:
        outcome.steps.append(
            Admit(
                workload=workload.key,
                placed=_by_cluster(sweep.everything),
                form=sweep.form.name,
                rung=sweep.rung,
            )
        )
    if sweep.left:
        outcome.reasons.append(Reason(code=Code.PARTLY_PLACED, count=len(sweep.left)))
    else:
        outcome.reasons.clear()
    return outcome


def _next_tasks(workload: Workload) -> list[int]:
    """Numbers of the tasks to place now: neither running nor over, within the concurrency limit."""
    held = workload.held.placed if workload.held else ()
    running = {number for placement in held for number in numbers_of(placement.tasks)}
    passed = running | set(numbers_of(workload.tasks_over))
    wanted = range(workload.first_task, workload.first_task + workload.tasks)
    left = (number for number in wanted if number not in passed)
    if not workload.concurrency:
        return list(left)
    return list(islice(left, max(0, workload.concurrency - len(running))))


@dataclass(slots=True)
class _Sweep:
    """A sweep on its way up the ladder: each step places as many tasks as it can."""

    planning: PlanningRound
    workload: Workload
    form: Form
    left: list[int]  # numbers of tasks to place, in order
    is_last_resort: bool = False
    placed: list[Placed] = field(default_factory=list)
    rung: Rung = "Idle"  # the last that gave something; Preempt stays

    def __post_init__(self) -> None:
        if has_made_yield(self.workload):
            self.rung = "Preempt"

    @property
    def needs_all_flavors(self) -> bool:
        return False

    def wants(self, rung: Rung) -> bool:
        del rung
        return bool(self.left)

    @property
    def everything(self) -> tuple[Placed, ...]:
        """All placements: those held before and those added now."""
        return (*(self.workload.held.placed if self.workload.held else ()), *self.placed)

    def _may_mix(self, cluster: str, option: Assignment) -> bool:
        """Whether the sweep's tasks in a cluster, if any, are on the flavors of `option`."""
        return all(
            pods.flavors == option.flavors_of(pods.name)
            for placement in self.everything
            if placement.cluster == cluster
            for pods in placement.pods
            if pods.name in option.flavors
        )

    def _quota(self, option: Assignment, *, reach: int = ANYWHERE) -> int:
        """How many of the remaining tasks quota allows."""
        usage = option.full_usage(self.form)
        copies = self.planning.copies(
            self.workload, usage, reach=reach, is_restrained=self.rung == "Preempt"
        )
        return len(self.left) if copies is None else min(copies, len(self.left))

    def _request(self, option: Assignment, count: int | None = None) -> PlacementRequest:
        """A request for one task on some flavors, or for `count` whole tasks."""
        form = self.form if count is None else times(self.form, count)
        return PlacementRequest(self.workload, form, option)

    def _whole_ranges(self, count: int) -> int:
        """The largest multiple of the range size up to `count`, or 1 if `count` is below a range.

        If all remaining tasks fit, the last range may be incomplete.
        """
        if 0 < count < len(self.left):
            size = self.workload.task_range
            return max(1, count // size * size)
        return count

    def _rank(self, step: LadderStep) -> Iterable[ranking.Ranked]:
        policy = self.planning.snapshot.policy(self.workload)
        return self.planning.rank(step.clusters, self.workload, policy)

    # Idle room.

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes idle room in the clusters whose upper bounds allow a fit."""
        stock = self.planning.stock
        for reach in borrow_passes(self.planning, self.workload, step):
            for option in step.options:
                fits = stock.chance(option, self.form).fits
                for ranked_cluster in self._rank(step):
                    cluster = ranked_cluster.cluster
                    if self._quota(option, reach=reach) <= 0:
                        break
                    if fits[stock.position[cluster]] and self._may_mix(cluster, option):
                        self._fill((cluster, step.group), option, reach=reach)
                if reach == step.reach and self.left:
                    self._refuse(step, option, outcome)

    def _fill(self, place: tuple[str, str], option: Assignment, *, reach: int = ANYWHERE) -> None:
        """Places as many of the next tasks as fit on the nodes of a cluster."""
        planning, cluster = self.planning, place[0]
        room = planning.ledger.rooms[cluster]
        quota = self._quota(option, reach=reach)
        most = pack.copies(room, planning.wants(cluster, self._request(option)), quota)
        count = self._whole_ranges(most)
        if count:
            packed = pack.pack(room, planning.wants(cluster, self._request(option, count)))
            assert isinstance(packed, pack.Packed), "what was counted fits"
            self._keep(place, option, count, (packed, packed))
        elif quota > 0:
            planning.stock.look_again(cluster, option, self.form)

    def _refuse(self, step: LadderStep, option: Assignment, outcome: Outcome) -> None:
        """Notes why waiting tasks get no idle room: quota, a reservation, or no room."""
        request = self._request(option)
        quota = quota_reason(self.planning, request)
        if quota is not None:
            outcome.reasons.append(quota)
        else:
            outcome.reasons.later(
                no_room_for_more(self.planning, request, step.group, step.clusters, len(self.left))
            )

    # Victims.

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts for one range at a time, each time where it does the least harm."""
        planning = self.planning
        while self.left:
            count = min(self.workload.task_range, len(self.left))
            request_of = partial(self._request, count=count)
            best = least_harmful(planning, self.workload, offers(self, step, request_of, outcome))
            if best is None:
                outcome.reasons.extend(planning.no_victims(step.group, step.clusters))
                return
            evict(planning, self.workload, best, outcome)
            if are_of_others(best):
                self.rung = "Preempt"
            assert best.packed is not None, "where there are clusters there is a packing"
            place = (best.cluster, step.group)
            self._keep(place, best.assignment, count, (best.packed, best.packed))
            self._fill(place, best.assignment)  # victims may have freed more than a range

    def victims(self, cluster: str, option: Assignment, *, reach: int = ANYWHERE) -> Victims | None:
        """The victims in a cluster for the next range of tasks."""
        if not self._may_mix(cluster, option):
            return None
        count = min(self.workload.task_range, len(self.left))
        request = self._request(option, count)
        return victims_to_grow(self.planning, request, cluster, self.everything, reach=reach)

    # New nodes.

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Provisions nodes of elastic pools for as many tasks as they can hold, in whole ranges."""
        for reach in borrow_passes(self.planning, self.workload, step):
            for option in step.options:
                for ranked_cluster in self._rank(step):
                    cluster = ranked_cluster.cluster
                    if not self.left or not self._may_mix(cluster, option):
                        continue
                    best = self._most_on_new_nodes(cluster, option, reach=reach)
                    if isinstance(best, NoNodes):
                        if reach == step.reach:
                            outcome.refuse_nodes(best)
                        continue
                    count, nodes = best
                    provision(self.planning, self.workload, cluster, nodes, outcome)
                    if self.rung != "Preempt":
                        self.rung = "Provision"
                    place = (cluster, step.group)
                    self._keep(place, option, count, (nodes.packed, nodes.on_existing))

    def _most_on_new_nodes(
        self, cluster: str, option: Assignment, *, reach: int
    ) -> tuple[int, Provisioned] | NoNodes:
        """The most tasks, in whole ranges, that new nodes of a pool can hold, and those nodes."""
        size, quota = self.workload.task_range, self._quota(option, reach=reach)
        steps = quota // size if quota < len(self.left) else -(-quota // size)
        counts = [min(number * size, quota) for number in range(1, steps + 1)]
        return most_on_new_nodes(cluster, counts, lambda count: self._nodes(cluster, option, count))

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        if not self._may_mix(cluster, option):
            return NoNodes(no_pool(cluster))
        return self._nodes(cluster, option, min(self.workload.task_range, len(self.left)))

    def _nodes(self, cluster: str, option: Assignment, count: int) -> Provisioned | NoNodes:
        request = self._request(option, count)
        return find_pool(self.planning, request, cluster, is_last_resort=self.is_last_resort)

    def _keep(
        self,
        place: tuple[str, str],
        option: Assignment,
        count: int,
        packed: tuple[pack.Packed, pack.Packed],
    ) -> None:
        """Charges the next tasks to quota, and their pods on existing nodes to these nodes."""
        numbers, self.left = self.left[:count], self.left[count:]
        whole, on_existing = packed
        placed = placed_of(self._request(option, len(numbers)), *place, whole)
        charge(self.planning, self.workload, placed, on_existing)
        self.placed.append(
            Placed(cluster=place[0], group=place[1], pods=placed.pods, tasks=ranges(numbers))
        )


def _by_cluster(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    """One placement per cluster, with its ranges joined."""
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
