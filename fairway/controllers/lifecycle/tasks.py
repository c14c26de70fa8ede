"""The tasks of an Independent workload: which are over, and which parts of its claim are done.

A task that succeeded, or failed for good, leaves its placement at once, so that the next task can
use its room. Tasks are retried in their cluster; a placement that fails through a fault of its
cluster gives all its unfinished tasks back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from fairway.api.claim import Placement
from fairway.api.workload import Tasks
from fairway.controllers.lifecycle.case import LifecycleCase, WorkObservation
from fairway.kinds import ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The progress of a sweep."""

    succeeded: frozenset[int]
    failed: frozenset[int]
    placements: tuple[Placement, ...]  # what is left of the claim
    count: int  # of all tasks

    @property
    def is_over(self) -> bool:
        return len(self.succeeded | self.failed) >= self.count


def swept(case: LifecycleCase, tasks: Tasks) -> Swept:
    """The tasks that are over by the current reports, and what is left of the claim."""
    status = case.workload.status
    every = frozenset(range(tasks.first, tasks.first + tasks.count))
    succeeded = set(_numbers(status.succeeded_tasks))
    failed = set(_numbers(status.failed_tasks))
    placements = status.claim.placements if status.claim else ()
    for placement in placements:
        seen = case.observation_of(placement)
        if seen is not None:
            own = _numbers(
                placement.tasks
            )  # a cluster may report only on the tasks that it was given
            succeeded |= _succeeded(placement, seen) & own
            failed |= _numbers(seen.failed_tasks) & own
    done = frozenset(succeeded) & every
    lost = (frozenset(failed) & every) - done
    left = (_without(placement, done | lost) for placement in placements)
    return Swept(
        succeeded=done,
        failed=lost,
        placements=tuple(placement for placement in left if placement is not None),
        count=tasks.count,
    )


def each_task_once(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Placements in which a task that several have is left to the latest of them."""
    taken: frozenset[int] = frozenset()
    result = []
    for placement in sorted(placements, key=lambda each: -each.attempt):
        left = _without(placement, taken)
        taken |= _numbers(placement.tasks)
        result += [left] if left is not None else []
    return tuple(sorted(result, key=lambda each: each.cluster))


def _succeeded(placement: Placement, seen: WorkObservation) -> set[int]:
    """Tasks that succeeded; if the agent reports no numbers, all tasks of a succeeded work."""
    numbers = set(_numbers(seen.succeeded_tasks))
    if seen.phase == "Succeeded" and not numbers and not seen.failed_tasks:
        return set(_numbers(placement.tasks))
    return numbers


def _without(placement: Placement, over: frozenset[int]) -> Placement | None:
    """A placement without the tasks that are over; None if none is left."""
    before = sorted(_numbers(placement.tasks))
    left = [number for number in before if number not in over]
    if len(left) == len(before):
        return placement
    if not left:
        return None
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * len(left) // len(before))
        for pod_set in placement.pod_sets
    )
    return replace(placement, tasks=text(left), pod_sets=pod_sets)


def _numbers(given: str) -> frozenset[int]:
    return frozenset(ranges.numbers(ranges.parse(given)))


def text(numbers: frozenset[int] | list[int]) -> str:
    """Numbers as ranges."""
    return ranges.text(ranges.of(sorted(numbers)))
