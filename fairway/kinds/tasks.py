"""The tasks of an Independent workload, run by Jobs.

A cluster gets tasks as ranges, such as `0-41,43`; tasks are added later, and finished ones removed.
A Job can't skip indexes, and its completions can't change once it runs. So the ranges are cut into
runs, at multiples of the workload's range size, and each run is an indexed Job of its own, named
after its first task. An existing Job stays as it is while any of its tasks is wanted.

The number of a task is `FAIRWAY_TASK_OFFSET` plus `JOB_COMPLETION_INDEX`; `FAIRWAY_TASKS` is its
run.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.api.meta import JsonObject
from fairway.kinds import ranges
from fairway.kinds.decision import Change, decorate
from fairway.kinds.job import Job, pod_set_of
from fairway.kinds.plain import annotation, child, name_of, text, with_value, without

TASKS = "fairway.dev/tasks"
OFFSET_VARIABLE = "FAIRWAY_TASK_OFFSET"
TASKS_VARIABLE = "FAIRWAY_TASKS"


def jobs(
    job: JsonObject,
    tasks: str,
    *,
    range_size: int = 1,
    first: int = 0,
    retries: int | None = None,
    existing: Iterable[JsonObject] = (),
) -> list[JsonObject]:
    """The Jobs that run these tasks, all tasks of a run at once; ValueError for an invalid range.

    `first` is the number of the workload's first task, from which runs are counted. `existing` are
    Jobs of the same attempt that were made before, as manifests or as found in the cluster.
    """
    wanted = ranges.parse(tasks)
    runs = [run for entry in existing for run in tasks_of(entry) if ranges.overlap(wanted, (run,))]
    new = ranges.minus(wanted, tuple(runs))
    runs += ranges.cut(new, max(1, range_size), start=first)
    return [_job(job, begin, end, retries) for begin, end in sorted(runs)]


def _job(job: JsonObject, begin: int, end: int, retries: int | None) -> JsonObject:
    run, size = ranges.text(((begin, end),)), end - begin + 1
    change = Change(
        environment={OFFSET_VARIABLE: str(begin), TASKS_VARIABLE: run},
        annotations={TASKS: run},
    )
    made = decorate(Job(), job, {pod_set_of(job): change})
    made = with_value(made, ("metadata", "name"), f"{name_of(job)}-{begin}")
    made = with_value(made, ("metadata", "annotations", TASKS), run)
    spec = {
        **child(made, "spec"),
        "completionMode": "Indexed",
        "completions": size,
        "parallelism": size,
    }
    if retries is not None:
        # A retry limit per index needs pods that are never restarted in place.
        if text(spec, "template", "spec", "restartPolicy") == "Never":
            spec["backoffLimitPerIndex"] = retries
        else:
            spec["backoffLimit"] = retries * size
    made["spec"] = spec
    # A success policy refers to the indexes of the whole workload.
    return without(made, "spec", "successPolicy")


def tasks_of(job: JsonObject) -> ranges.Ranges:
    """The tasks that a Job runs; empty if it runs none."""
    return ranges.parse(annotation(job, TASKS))


def outcomes(items: Iterable[JsonObject]) -> tuple[str, str]:
    """The tasks that succeeded and those that finally failed, by the statuses of their Jobs."""
    succeeded, failed = [], []
    for job in items:
        tasks = tasks_of(job)
        if not tasks:
            continue
        done = ranges.parse(text(job, "status", "completedIndexes"))
        succeeded.append(ranges.shift(done, tasks[0][0]))
        if Job().read(job).phase == "Failed":
            rest = set(ranges.numbers(tasks)) - set(ranges.numbers(succeeded[-1]))
            failed.append(ranges.of(rest))
        else:
            lost = ranges.parse(text(job, "status", "failedIndexes"))
            failed.append(ranges.shift(lost, tasks[0][0]))
    return ranges.text(ranges.union(succeeded)), ranges.text(ranges.union(failed))
