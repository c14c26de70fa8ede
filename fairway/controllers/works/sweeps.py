"""Which tasks of a sweep a work has."""

from __future__ import annotations

from msgspec.structs import replace

from fairway.api.claim import Placement
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.kinds import ranges


def with_whole_runs(workload: Workload, placement: Placement, same: Work | None) -> Placement:
    """Keeps finished tasks whose run has unfinished ones: runs are never split differently."""
    asked = workload.spec.tasks
    if same is None or asked is None or not same.spec.tasks:
        return placement
    sent, wanted = ranges.parse(same.spec.tasks), ranges.parse(placement.tasks)
    if not set(ranges.numbers(wanted)) - set(ranges.numbers(sent)):
        return _with_tasks(placement, sent)
    runs = {(number - asked.first) // asked.range_size for number in ranges.numbers(wanted)}
    kept = [
        number
        for number in ranges.numbers(sent)
        if (number - asked.first) // asked.range_size in runs
    ]
    return _with_tasks(placement, ranges.union([wanted, ranges.of(kept)]))


def _with_tasks(placement: Placement, tasks: ranges.Ranges) -> Placement:
    """A placement with other tasks, and pods in proportion."""
    before = max(1, ranges.size(ranges.parse(placement.tasks)))
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * ranges.size(tasks) // before)
        for pod_set in placement.pod_sets
    )
    return replace(placement, tasks=ranges.text(tasks), pod_sets=pod_sets)
