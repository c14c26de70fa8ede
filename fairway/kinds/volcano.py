"""Volcano's Job: tasks that start together, with plugins that give pods each other's addresses.

It has no field to suspend it: a Volcano job is suspended by a Command to its controller. So a job
that is to be held is not created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet
from fairway.kinds import dependencies, pods, volcano_plugins
from fairway.kinds.conditions import earliest, latest, moment
from fairway.kinds.interface import Announcement, Mode, Observed, Phase, Pod, PodState
from fairway.kinds.plain import (
    child,
    copy_of,
    maps_at,
    name_of,
    namespace_of,
    number,
    text,
    texts,
    with_value,
)
from fairway.kinds.volcano_plugins import pod_name, task_name

_PREFIX = "volcano.sh/"
_COUNTS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_POD_PHASES = {
    "Pending": "Pending",
    "Running": "Running",
    "Ready": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
# Its controller's states as our phases; a job that is ending still runs.
_PHASES: Mapping[str, Phase] = {
    "": "Pending",
    "Pending": "Pending",
    "Restarting": "Pending",
    "Running": "Running",
    "Completing": "Running",
    "Terminating": "Running",
    "Aborting": "Running",
    "Aborted": "Suspended",
    "Completed": "Succeeded",
    "Terminated": "Failed",
    "Failed": "Failed",
}
# Of the states of several parts, the first in this list counts.
_WORST_FIRST = (
    "Failed",
    "Terminated",
    "Terminating",
    "Aborting",
    "Aborted",
    "Restarting",
    "Pending",
    "Running",
    "Completing",
    "Completed",
)


class VolcanoJob:
    """batch.volcano.sh Job."""

    api_versions: tuple[str, ...] = ("batch.volcano.sh/v1alpha1",)
    name: str = "Job"

    def faults(self, manifest: JsonObject) -> list[str]:
        tasks = maps_at(manifest, "spec", "tasks")
        if not tasks:
            return ["spec.tasks: a job needs at least one task"]
        faults = []
        for index, task in enumerate(tasks):
            path = f"spec.tasks[{index}].template"
            faults += pods.template_faults(child(task, "template"), path)
        total = sum(_replicas(task) for task in tasks)
        if number(manifest, "spec", "minAvailable") > total:
            faults.append(f"spec.minAvailable: more than the {total} pods of all tasks")
        return faults

    def mode(self, manifest: JsonObject) -> Mode:
        return "Gang"

    def replicas(self, manifest: JsonObject) -> int | None:
        return None

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        least = _least(manifest)
        return tuple(
            pods.pod_set(
                task_name(task, index),
                child(task, "template"),
                _replicas(task),
                least_count=least[index] if least[index] < _replicas(task) else None,
            )
            for index, task in enumerate(maps_at(manifest, "spec", "tasks"))
        )

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {
            task_name(task, index): child(task, "template")
            for index, task in enumerate(maps_at(manifest, "spec", "tasks"))
        }

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        """Changes the replicas; minimums are capped at the new counts."""
        tasks = []
        for index, task in enumerate(maps_at(manifest, "spec", "tasks")):
            count = counts.get(task_name(task, index))
            if count is not None:
                task = {**task, "replicas": count}  # noqa: PLW2901  # the task, changed
                if "minAvailable" in task:
                    task["minAvailable"] = min(number(task, "minAvailable"), count)
            tasks.append(task)
        manifest = with_value(manifest, ("spec", "tasks"), tasks)
        total = sum(_replicas(task) for task in tasks)
        if number(manifest, "spec", "minAvailable") > total:
            manifest = with_value(manifest, ("spec", "minAvailable"), total)
        return manifest

    def is_held(self, manifest: JsonObject) -> bool:
        return False

    def hold(self, manifest: JsonObject) -> JsonObject:
        return manifest

    def release(self, manifest: JsonObject) -> JsonObject:
        return manifest

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        return [
            _pod(manifest, task, task_name(task, position), index)
            for position, task in enumerate(maps_at(manifest, "spec", "tasks"))
            for index in range(_replicas(task))
        ]

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        return _play(manifest, pods, now)

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        state = {
            "phase": "Pending" if said.phase == "Suspended" else "Failed",
            "reason": said.reason,
            "message": said.message,
            "lastTransitionTime": moment(said.at),
        }
        return {"state": state}

    def read(self, body: JsonObject) -> Observed:
        status = child(body, "status")
        state = child(status, "state")
        phase = _PHASES.get(text(state, "phase"), "Pending")
        succeeded, running = number(status, "succeeded"), number(status, "running")
        total = sum(_replicas(task) for task in maps_at(body, "spec", "tasks"))
        is_trouble = phase in ("Failed", "Suspended") or text(state, "phase") == "Restarting"
        return Observed(
            phase=phase,
            reason=text(state, "reason") or (text(state, "phase") if is_trouble else ""),
            message=text(state, "message"),
            ready=running,
            succeeded=succeeded,
            failed=number(status, "failed"),
            progress=f"{running} running, {succeeded}/{total} succeeded",
        )

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        return _merge(statuses)

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        """Those of its pods, and claims that the job names; others are created for it."""
        claims = [
            dependencies.claim(text(volume, "volumeClaimName"))
            for volume in maps_at(manifest, "spec", "volumes")
            if not child(volume, "volumeClaim")
        ]
        of_pods = dependencies.of_templates(self.templates(manifest).values())
        return dependencies.in_order([*of_pods, *claims])


def _replicas(task: JsonObject) -> int:
    return max(0, number(task, "replicas", default=1))


def _least(manifest: JsonObject) -> list[int]:
    """The minimum useful number of pods of each task.

    A task may set it. Otherwise the job's own minimum applies: pods above it are taken from the
    last tasks first, because leading tasks are written first.
    """
    tasks = maps_at(manifest, "spec", "tasks")
    least = [
        min(_replicas(task), number(task, "minAvailable", default=_replicas(task)))
        for task in tasks
    ]
    minimum = number(manifest, "spec", "minAvailable")
    if not minimum:
        return least
    spare = sum(least) - minimum
    for index in reversed(range(len(tasks))):
        if "minAvailable" not in tasks[index] and spare > 0:
            taken = min(spare, max(0, least[index] - 1))
            least[index] -= taken
            spare -= taken
    return least


def _pod(job: JsonObject, task: JsonObject, task_called: str, index: int) -> Pod:
    template = child(task, "template")
    name = pod_name(job, task_called, index)
    spec = copy_of(child(template, "spec"))
    scheduler = text(job, "spec", "schedulerName", default="volcano")
    spec.setdefault("schedulerName", scheduler)
    queue = text(job, "spec", "queue", default="default")
    for position, volume in enumerate(maps_at(job, "spec", "volumes")):
        _mount(spec, volume, f"{name_of(job)}-volume-{position}")
    volcano_plugins.apply(job, spec, task=task_called, index=index)
    labels = {
        "job-name": name_of(job),
        "task-spec": task_called,
        "task-index": str(index),
        "job-namespace": namespace_of(job),
        "queue-name": queue,
    }
    annotations = {
        "job-name": name_of(job),
        "task-spec": task_called,
        "task-index": str(index),
        "queue-name": queue,
        "job-version": str(number(job, "status", "version")),
        "template-uid": f"{name_of(job)}-{task_called}",
    }
    return Pod(
        name=name,
        pod_set=task_called,
        index=index,
        spec=spec,
        labels={
            **texts(template, "metadata", "labels"),
            **{_PREFIX + key: value for key, value in labels.items()},
        },
        annotations={
            **texts(template, "metadata", "annotations"),
            **{_PREFIX + key: value for key, value in annotations.items()},
            "scheduling.k8s.io/group-name": name_of(job),
        },
    )


def _mount(spec: JsonObject, volume: JsonObject, name: str) -> None:
    """Mounts a volume of the job in a pod."""
    claim = text(volume, "volumeClaimName") or name
    own = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    spec["volumes"] = [*maps_at(spec, "volumes"), own]
    for container in maps_at(spec, "containers"):
        mount = {"name": name, "mountPath": text(volume, "mountPath")}
        container["volumeMounts"] = [*maps_at(container, "volumeMounts"), mount]


def _play(job: JsonObject, states: Sequence[PodState], now: float) -> JsonObject:
    counts = Counter(_POD_PHASES[state.phase].lower() for state in states)
    by_task: dict[str, Counter[str]] = {}
    for state in states:
        by_task.setdefault(state.pod_set, Counter())[_POD_PHASES[state.phase]] += 1
    phase = _phase(job, counts, by_task)
    is_over = phase in ("Completed", "Failed")
    times = [state.finished_at if is_over else state.started_at for state in states]
    since = max((number for number in times if number is not None), default=now)
    status: JsonObject = {
        "state": {"phase": phase, "lastTransitionTime": moment(since)},
        "minAvailable": _minimum(job),
        **{name: counts[name] for name in _COUNTS if counts[name]},
        "taskStatusCount": {
            name: {"phase": dict(sorted(value.items()))} for name, value in sorted(by_task.items())
        },
        "conditions": [{"status": phase, "lastTransitionTime": moment(since)}],
    }
    if is_over:
        begun = min(
            (state.started_at for state in states if state.started_at is not None), default=since
        )
        status["runningDuration"] = f"{int(max(0, since - begun))}s"
    return status


def _minimum(job: JsonObject) -> int:
    """The job's minimum; by default all pods."""
    total = sum(_replicas(task) for task in maps_at(job, "spec", "tasks"))
    return number(job, "spec", "minAvailable") or total


def _phase(job: JsonObject, counts: Counter[str], by_task: Mapping[str, Counter[str]]) -> str:
    tasks = maps_at(job, "spec", "tasks")
    total = sum(_replicas(task) for task in tasks)
    enough = child(job, "spec").get("minSuccess")
    if isinstance(enough, int) and counts["succeeded"] >= enough:
        return "Completed"
    completing = volcano_plugins.completing_task(job)
    if completing and by_task.get(completing, Counter())["Succeeded"]:
        return "Completed"
    if total and counts["succeeded"] + counts["failed"] >= total:
        lacks = any(
            by_task.get(task_name(task, index), Counter())["Succeeded"]
            < number(task, "minAvailable")
            for index, task in enumerate(tasks)
        )
        least = enough if isinstance(enough, int) else _minimum(job)
        return "Failed" if lacks or counts["succeeded"] < least else "Completed"
    seen = counts["running"] + counts["succeeded"] + counts["failed"]
    return "Running" if seen and seen >= _minimum(job) else "Pending"


def _merge(statuses: Mapping[str, JsonObject]) -> JsonObject:
    """Adds the counts; the worst state of all parts is the state of the whole."""
    parts = [statuses[key] for key in sorted(statuses)]
    if len(parts) < 2:
        return copy_of(parts[0]) if parts else {}
    worst = min(parts, key=lambda part: _rank(text(part, "state", "phase")))
    by_task: dict[str, Counter[str]] = {}
    for part in parts:
        for name, value in child(part, "taskStatusCount").items():
            counts = by_task.setdefault(name, Counter())
            counts.update({key: number(value, "phase", key) for key in child(value, "phase")})
    moments = [text(part, "state", "lastTransitionTime") for part in parts]
    is_over = text(worst, "state", "phase") == "Completed"
    since = latest(moments) if is_over else text(worst, "state", "lastTransitionTime")
    return {
        "state": {**child(worst, "state"), "lastTransitionTime": since or earliest(moments)},
        "minAvailable": sum(number(part, "minAvailable") for part in parts),
        **{
            name: sum(number(part, name) for part in parts)
            for name in _COUNTS
            if any(name in part for part in parts)
        },
        "taskStatusCount": {
            name: {"phase": dict(sorted(value.items()))} for name, value in sorted(by_task.items())
        },
    }


def _rank(phase: str) -> int:
    return _WORST_FIRST.index(phase) if phase in _WORST_FIRST else _WORST_FIRST.index("Pending")
