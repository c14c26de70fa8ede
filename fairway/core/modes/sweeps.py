"""Sweeps: tasks that need not run together, in any number and in any clusters.

Tasks are numbered; a cluster gets ranges of numbers, in whole multiples of the workload's range
size where there are so many. As many are placed as fit, up to the cap on tasks at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fairway.api.reasons import Code, Reason
from fairway.core.desk import Desk
from fairway.core.fitting import fit
from fairway.core.model import Form, Placed, Workload
from fairway.core.modes.gangs import Verdict, full_usage, placed_of
from fairway.core.modes.multiples import times
from fairway.core.places import where
from fairway.core.refusals import quota_reason, refusal_reason
from fairway.core.steps import Admit
from fairway.core.turns.flavors import Assignment


@dataclass(slots=True)
class _Sweep:
    """A sweep while it is being placed."""

    desk: Desk
    workload: Workload
    form: Form
    left: list[int]  # numbers of tasks to place, in order
    placed: list[Placed] = field(default_factory=list)

    def may_mix(self, cluster: str, option: Assignment) -> bool:
        """Whether what the cluster has of this sweep already is of the same flavors."""
        held = self.workload.held.placed if self.workload.held else ()
        return all(
            pods.flavors == option.flavors_of(pods.name)
            for one in (*held, *self.placed)
            if one.cluster == cluster
            for pods in one.pods
            if pods.name in option.flavors
        )

    def take(self, cluster: str, group: str, option: Assignment, count: int) -> None:
        """Places the next tasks in a cluster."""
        numbers, self.left = self.left[:count], self.left[count:]
        form = times(self.form, len(numbers))
        found = fit.pack(self.desk.ledger.rooms[cluster], self.desk.wants(cluster, option, form))
        assert isinstance(found, fit.Packed), "what was counted fits"
        usage = full_usage(form, option)
        self.desk.charge(self.workload, usage)
        requests = {one.name: one.shape.requests for one in form.pod_sets}
        self.desk.ledger.take(cluster, found.packing, requests)
        placed = placed_of(cluster, group, form, option, found)
        self.placed.append(
            Placed(cluster=cluster, group=group, pods=placed.pods, tasks=ranges(numbers))
        )


def decide(desk: Desk, workload: Workload) -> Verdict:
    """Places as many tasks as fit; what they take stays charged in the ledger."""
    verdict = Verdict()
    held = workload.held.placed if workload.held else ()
    running = {number for one in held for number in numbers_of(one.tasks)}
    wanted = range(workload.first_task, workload.first_task + workload.tasks)
    left = [number for number in wanted if number not in running]
    if workload.concurrency:
        left = left[: max(0, workload.concurrency - len(running))]
    if not left:
        return verdict
    sweep = _Sweep(desk, workload, workload.forms[0], left)
    candidates = desk.candidates(workload)
    verdict.reasons.extend(refusal_reason(*one) for one in candidates.refused)
    policy = desk.snapshot.policy(workload)
    for group, rung in where.ladder(policy, tuple(name for name, _ in candidates.groups)):
        if rung == "Idle" and sweep.left:
            _fill(sweep, group, candidates.in_group(group), verdict)
    if sweep.placed:
        placed = (*held, *sweep.placed)
        verdict.steps.append(Admit(workload=workload.key, placed=_by_cluster(placed)))
    if sweep.left:
        verdict.reasons.append(Reason(code=Code.PARTLY_PLACED, count=len(sweep.left)))
    else:
        verdict.reasons.clear()
    return verdict


def _fill(sweep: _Sweep, group: str, names: tuple[str, ...], verdict: Verdict) -> None:
    desk, workload = sweep.desk, sweep.workload
    policy = desk.snapshot.policy(workload)
    for option in desk.assignments(workload, sweep.form):
        usage = full_usage(sweep.form, option)
        for one in desk.ranked(names, workload, policy):
            copies = desk.copies(workload, usage)
            allowed = len(sweep.left) if copies is None else copies
            if allowed <= 0:
                reason = quota_reason(desk, workload, usage, option)
                if reason is not None:
                    verdict.reasons.append(reason)
                break
            if not sweep.may_mix(one.cluster, option):
                continue
            wants = desk.wants(one.cluster, option, sweep.form)
            most = min(allowed, len(sweep.left))
            count = fit.copies(desk.ledger.rooms[one.cluster], wants, most)
            if 0 < count < len(sweep.left):
                count = max(1, count // workload.task_range * workload.task_range)
            if count:
                sweep.take(one.cluster, group, option, count)


def _by_cluster(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    """One placement for each cluster: ranges are joined."""
    found: dict[str, Placed] = {}
    for one in placed:
        before = found.get(one.cluster)
        if before is not None:
            numbers = sorted({*numbers_of(before.tasks), *numbers_of(one.tasks)})
            counts = {pods.name: pods.count for pods in before.pods}
            pods = tuple(
                type(each)(
                    name=each.name,
                    count=each.count + counts.get(each.name, 0),
                    shape=each.shape,
                    flavors=each.flavors,
                )
                for each in one.pods
            )
            one = Placed(  # noqa: PLW2901 - the joined placement stands in for both
                cluster=one.cluster, group=one.group, pods=pods, tasks=ranges(numbers)
            )
        found[one.cluster] = one
    return tuple(found[name] for name in sorted(found))


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges: `0-41,43`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def numbers_of(text: str) -> Iterator[int]:
    """The numbers that ranges stand for."""
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)
