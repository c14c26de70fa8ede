"""Job: pods that run to completion, indexed or not.

It is a gang of as many pods as run in parallel. It is held by `suspend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet
from fairway.kinds import dependencies, job_status, pods
from fairway.kinds.interface import Announcement, Mode, Observed, Pod, PodState
from fairway.kinds.plain import annotation, child, name_of, number, texts, with_value

POD_SET = "pod"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
INDEX = "batch.kubernetes.io/job-completion-index"
LEAST_COUNT = ("fairway.dev/least-count", "kueue.x-k8s.io/job-min-parallelism")
# Annotations that make each index a worker of one computation: fewer workers mean fewer indexes.
FOLLOWS_PARALLELISM = (
    "fairway.dev/completions-equal-parallelism",
    "kueue.x-k8s.io/job-completions-equal-parallelism",
)
CONTROLLER = "kubernetes.io/job-controller"
# Fleet-level controllers: `managedBy` names them on the hub only, not in the member clusters.
FLEET_CONTROLLERS = ("fairway.dev/hub", "kueue.x-k8s.io/multikueue")


class Job:
    """batch/v1 Job."""

    api_versions: tuple[str, ...] = ("batch/v1",)
    name: str = "Job"

    def faults(self, manifest: JsonObject) -> list[str]:
        faults = pods.template_faults(child(manifest, "spec", "template"), "spec.template")
        faults += managed_by_faults(manifest, CONTROLLER)
        if is_indexed(manifest) and child(manifest, "spec").get("completions") is None:
            faults.append("spec.completions: an indexed job needs a number of completions")
        return faults

    def mode(self, manifest: JsonObject) -> Mode:
        return "Gang"

    def replicas(self, manifest: JsonObject) -> int | None:
        return None

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        count = pods_at_a_time(manifest)
        least = annotation(manifest, *LEAST_COUNT)
        return (
            pods.pod_set(
                pod_set_of(manifest),
                child(manifest, "spec", "template"),
                count,
                least_count=min(int(least), count) if least.isdecimal() else None,
                completions=completions_of(manifest),
            ),
        )

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {pod_set_of(manifest): child(manifest, "spec", "template")}

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        own = pod_set_of(manifest)
        return with_parallelism(manifest, counts[own]) if own in counts else manifest

    def is_held(self, manifest: JsonObject) -> bool:
        return child(manifest, "spec").get("suspend") is True

    def hold(self, manifest: JsonObject) -> JsonObject:
        return with_value(manifest, ("spec", "suspend"), to=True)

    def release(self, manifest: JsonObject) -> JsonObject:
        return with_value(manifest, ("spec", "suspend"), to=False)

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        return () if self.is_held(manifest) else pods_of(manifest, pod_set_of(manifest))

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        return job_status.play(manifest, pods, now=now)

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        return job_status.announce(said)

    def read(self, body: JsonObject) -> Observed:
        return job_status.read(body)

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        return job_status.merge_statuses(statuses)

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        return dependencies.of_templates(self.templates(manifest).values())


def pod_set_of(job: JsonObject) -> str:
    return pods.pod_set_name(child(job, "spec", "template"), POD_SET)


def managed_by_faults(manifest: JsonObject, own: str) -> list[str]:
    """A fault if another controller manages the job, because then Fairway must not run it."""
    manager = child(manifest, "spec").get("managedBy")
    if manager in (None, own, *FLEET_CONTROLLERS):
        return []
    return [f"spec.managedBy: {manager} runs it, so it can't be run by a queue"]


def is_indexed(job: JsonObject) -> bool:
    return child(job, "spec").get("completionMode") == "Indexed"


def pods_at_a_time(job: JsonObject) -> int:
    """Its parallelism, capped at its completions."""
    spec = child(job, "spec")
    parallelism = max(0, number(spec, "parallelism", default=1))
    completions = spec.get("completions")
    return min(parallelism, completions) if isinstance(completions, int) else parallelism


def completions_of(job: JsonObject) -> int:
    """How many pods succeed until it ends; without a number, each of those that run does."""
    completions = child(job, "spec").get("completions")
    return completions if isinstance(completions, int) else pods_at_a_time(job)


def with_parallelism(job: JsonObject, count: int) -> JsonObject:
    """A copy of a job with another parallelism.

    Its completions stay, because each is a piece of work, unless an annotation couples the two.
    """
    follows = annotation(job, *FOLLOWS_PARALLELISM) == "true"
    if follows and child(job, "spec").get("completions") is not None:
        job = with_value(job, ("spec", "completions"), to=count)
    return with_value(job, ("spec", "parallelism"), to=count)


def pods_of(job: JsonObject, pod_set: str, *, first: int = 0) -> list[Pod]:
    """The pods of a job, numbered within the pod set from `first`."""
    spec, name = child(job, "spec"), name_of(job)
    template = child(spec, "template")
    completions = spec.get("completions")
    count = completions if isinstance(completions, int) else pods_at_a_time(job)
    labels = {
        **texts(template, "metadata", "labels"),
        "batch.kubernetes.io/job-name": name,
        "job-name": name,
    }
    annotations = texts(template, "metadata", "annotations")
    retries = spec.get("backoffLimitPerIndex")
    if not isinstance(retries, int):
        retries = number(spec, "backoffLimit", default=job_status.BACKOFF_LIMIT)
    made = []
    for index in range(count):
        pod = child(template, "spec")
        own = {}
        if is_indexed(job):
            own = {INDEX: str(index)}
            pod = pods.with_environment(pod, {INDEX_VARIABLE: str(index)})
            pod.setdefault("hostname", f"{name}-{index}")
        made.append(
            Pod(
                name=f"{name}-{index}",
                pod_set=pod_set,
                index=first + index,
                spec=pod,
                labels={**labels, **own},
                annotations={**annotations, **own},
                retries=retries,
            )
        )
    return made
