"""JobSet: jobs that start, succeed and fail together.

Each replicated job is a pod set; each of its jobs is a member, which stays in one cluster if the
gang may split. Pods find each other by the host names of the set's headless service. They read
their own identity from labels and annotations, as its own controller writes them.

Its failure policy recreates all jobs. Without its controller this is left to the hub, so a failed
job ends the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1

from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet
from fairway.kinds import dependencies, job, job_status, pods
from fairway.kinds.conditions import condition, first_of, first_true, last_of
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

CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
_PREFIX = "jobset.sigs.k8s.io/"
_COUNTS = ("ready", "succeeded", "failed", "active", "suspended")
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class JobSet:
    """jobset.x-k8s.io JobSet."""

    api_versions: tuple[str, ...] = ("jobset.x-k8s.io/v1alpha2", "jobset.x-k8s.io/v1")
    name: str = "JobSet"

    def faults(self, manifest: JsonObject) -> list[str]:
        replicated = maps_at(manifest, "spec", "replicatedJobs")
        if not replicated:
            return ["spec.replicatedJobs: a set needs at least one job"]
        faults = job.managed_by_faults(manifest, CONTROLLER)
        for index, value in enumerate(replicated):
            path = f"spec.replicatedJobs[{index}]"
            if not text(value, "name"):
                faults.append(f"{path}.name: a replicated job needs a name")
            template = child(value, "template", "spec", "template")
            faults += pods.template_faults(template, f"{path}.template.spec.template")
        return faults

    def mode(self, manifest: JsonObject) -> Mode:
        return "Gang"

    def replicas(self, manifest: JsonObject) -> int | None:
        return None

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        return tuple(
            pods.pod_set(
                text(replicated_job, "name"),
                child(replicated_job, "template", "spec", "template"),
                _replicas(replicated_job) * _job_size(replicated_job),
                member_size=_job_size(replicated_job) or None,
                completions=_replicas(replicated_job)
                * job.completions_of(child(replicated_job, "template")),
            )
            for replicated_job in maps_at(manifest, "spec", "replicatedJobs")
        )

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        return {
            text(replicated_job, "name"): child(replicated_job, "template", "spec", "template")
            for replicated_job in maps_at(manifest, "spec", "replicatedJobs")
        }

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        """Changes the number of whole jobs; if there is one job only, its size."""
        replicated = [
            _with_count(replicated_job, counts[text(replicated_job, "name")])
            if text(replicated_job, "name") in counts
            else replicated_job
            for replicated_job in maps_at(manifest, "spec", "replicatedJobs")
        ]
        return with_value(manifest, ("spec", "replicatedJobs"), replicated)

    def is_held(self, manifest: JsonObject) -> bool:
        return child(manifest, "spec").get("suspend") is True

    def hold(self, manifest: JsonObject) -> JsonObject:
        return with_value(manifest, ("spec", "suspend"), to=True)

    def release(self, manifest: JsonObject) -> JsonObject:
        return with_value(manifest, ("spec", "suspend"), to=False)

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        if self.is_held(manifest):
            return ()
        made: list[Pod] = []
        for replicated in maps_at(manifest, "spec", "replicatedJobs"):
            first = 0
            for entry in _jobs(manifest, replicated):
                of_job = job.pods_of(entry, text(replicated, "name"), first=first)
                made += of_job
                first += len(of_job)
        return made

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        return _play(manifest, pods, now)

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        counted = [
            {"name": text(entry, "name"), **dict.fromkeys(_COUNTS, 0)}
            for entry in maps_at(manifest, "spec", "replicatedJobs")
        ]
        status: JsonObject = {
            "restarts": 0,
            "replicatedJobsStatus": counted,
            "conditions": [
                condition(
                    said.phase, holds=True, since=said.at, reason=said.reason, message=said.message
                )
            ],
        }
        return status if said.phase == "Suspended" else {**status, "terminalState": said.phase}

    def read(self, body: JsonObject) -> Observed:
        return _read(body)

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        return _merge(statuses)

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        return dependencies.of_templates(self.templates(manifest).values())


def _replicas(replicated: JsonObject) -> int:
    return max(0, number(replicated, "replicas", default=1))


def _job_size(replicated: JsonObject) -> int:
    return job.pods_at_a_time(child(replicated, "template"))


def _with_count(replicated: JsonObject, count: int) -> JsonObject:
    size, jobs = _job_size(replicated), _replicas(replicated)
    if count == size * jobs:
        return replicated
    if jobs == 1 and count % max(1, size):
        template = job.with_parallelism(child(replicated, "template"), count)
        return {**replicated, "template": template}
    return {**replicated, "replicas": count // max(1, size)}


def subdomain(jobset: JsonObject) -> str:
    """The service for the pods' host names; empty if DNS host names are not enabled."""
    network = child(jobset, "spec", "network")
    if network.get("enableDNSHostnames") is False:
        return ""
    return text(network, "subdomain") or name_of(jobset)


def coordinator(jobset: JsonObject) -> str:
    """The address of the coordinator pod; empty if there is none."""
    result = child(jobset, "spec", "coordinator")
    if not result:
        return ""
    place = f"{number(result, 'jobIndex')}-{number(result, 'podIndex')}"
    host = f"{name_of(jobset)}-{text(result, 'replicatedJob')}-{place}"
    return f"{host}.{text(jobset, 'spec', 'network', 'subdomain') or name_of(jobset)}"


def _jobs(jobset: JsonObject, replicated: JsonObject) -> Iterator[JsonObject]:
    """The jobs that the set's controller would make from a replicated job."""
    name = text(replicated, "name")
    spec = child(replicated, "template", "spec")
    template = child(spec, "template")
    pod: JsonObject = {"restartPolicy": "OnFailure", **child(template, "spec")}
    if subdomain(jobset):
        pod["subdomain"] = subdomain(jobset)
    for index in range(_replicas(replicated)):
        marks = _marks(jobset, replicated, index)
        own = child(replicated, "template", "metadata", "annotations")
        exclusive = own.get(_EXCLUSIVE) or child(jobset, "metadata", "annotations").get(_EXCLUSIVE)
        annotations = {**marks, **({_EXCLUSIVE: str(exclusive)} if exclusive else {})}
        metadata = {
            "labels": {**texts(template, "metadata", "labels"), **marks},
            "annotations": {**texts(template, "metadata", "annotations"), **annotations},
        }
        yield {
            "metadata": {
                "name": f"{name_of(jobset)}-{name}-{index}",
                "namespace": namespace_of(jobset),
            },
            "spec": {
                "completionMode": "Indexed",
                **spec,
                # An indexed job has as many completions as pods by default.
                "completions": number(spec, "completions", default=_job_size(replicated)),
                "template": {"metadata": metadata, "spec": pod},
            },
        }


def _marks(jobset: JsonObject, replicated: JsonObject, index: int) -> dict[str, str]:
    """The labels (and equal annotations) that identify a pod."""
    name, job_name = text(replicated, "name"), ""
    before, total = 0, 0
    for replicated_job in maps_at(jobset, "spec", "replicatedJobs"):
        if text(replicated_job, "name") == name:
            before = total
        total += _replicas(replicated_job)
    job_name = f"{name_of(jobset)}-{name}-{index}"
    key = f"{namespace_of(jobset)}/{job_name}".encode()
    marks = {
        "jobset-name": name_of(jobset),
        "replicatedjob-name": name,
        "replicatedjob-replicas": str(_replicas(replicated)),
        "global-replicas": str(total),
        "job-index": str(index),
        "job-global-index": str(before + index),
        "job-key": sha1(key, usedforsecurity=False).hexdigest(),
        "restart-attempt": str(number(jobset, "status", "restarts")),
    }
    if coordinator(jobset):
        marks["coordinator"] = coordinator(jobset)
    return {_PREFIX + mark: value for mark, value in marks.items()}


def _play(jobset: JsonObject, states: Sequence[PodState], now: float) -> JsonObject:
    if child(jobset, "spec").get("suspend") is True:
        return _suspend(jobset, now)
    by_set: dict[str, list[PodState]] = {}
    for state in states:
        by_set.setdefault(state.pod_set, []).append(state)
    verdicts: dict[str, list[job_status.JobEnd | None]] = {}
    counted = []
    for replicated in maps_at(jobset, "spec", "replicatedJobs"):
        name = text(replicated, "name")
        job_end, counts = _played_jobs(jobset, replicated, by_set.get(name, []), now)
        verdicts[name] = job_end
        counted.append(counts)
    status: JsonObject = {"restarts": 0, "replicatedJobsStatus": counted}
    over = _over(jobset, verdicts)
    if over:
        ended = max((state.finished_at or now for state in states), default=now)
        kind, reason, message = over
        status["conditions"] = [
            condition(kind, holds=True, since=ended, reason=reason, message=message)
        ]
        status["terminalState"] = kind
    return status


def _played_jobs(
    jobset: JsonObject, replicated: JsonObject, states: Sequence[PodState], now: float
) -> tuple[list[job_status.JobEnd | None], JsonObject]:
    """The result of each job of a replicated job, and the counts for its status."""
    verdicts: list[job_status.JobEnd | None] = []
    counts = dict.fromkeys(_COUNTS, 0)
    first = 0
    for entry in _jobs(jobset, replicated):
        size = len(job.pods_of(entry, ""))
        own = [_renumber(state, first) for state in states if first <= state.index < first + size]
        first += size
        verdict = job_status.verdict_of(entry, own, now=now)
        verdicts.append(verdict)
        if verdict is not None:
            counts["succeeded" if verdict.is_success else "failed"] += 1
            continue
        done = sum(state.phase in ("Ready", "Succeeded") for state in own)
        counts["active"] += any(state.phase in ("Pending", "Running", "Ready") for state in own)
        counts["ready"] += done >= job.pods_at_a_time(entry)
    return verdicts, {"name": text(replicated, "name"), **counts}


def _renumber(state: PodState, first: int) -> PodState:
    return PodState(
        name=state.name,
        pod_set=state.pod_set,
        index=state.index - first,
        phase=state.phase,
        restarts=state.restarts,
        exit_code=state.exit_code,
        started_at=state.started_at,
        finished_at=state.finished_at,
    )


def _over(
    jobset: JsonObject, verdicts: Mapping[str, Sequence[job_status.JobEnd | None]]
) -> tuple[str, str, str] | None:
    """Why the set ended: a failed job ends it; otherwise its success policy does."""
    every = [verdict for job_end in verdicts.values() for verdict in job_end]
    if any(verdict is not None and not verdict.is_success for verdict in every):
        return "Failed", "FailedJobs", "jobset failed due to one or more job failures"
    policy = child(jobset, "spec", "successPolicy")
    targets = policy.get("targetReplicatedJobs") or list(verdicts)
    aimed = [verdict is not None for name in targets for verdict in verdicts.get(name, ())]
    is_done = any(aimed) if text(policy, "operator") == "Any" else bool(aimed) and all(aimed)
    if is_done:
        return "Completed", "AllJobsCompleted", "jobset completed successfully"
    return None


def _suspend(jobset: JsonObject, now: float) -> JsonObject:
    return {
        "conditions": [
            condition(
                "Suspended",
                holds=True,
                since=now,
                reason="SuspendedJobs",
                message="jobset is suspended",
            )
        ],
        "restarts": 0,
        "replicatedJobsStatus": [
            {
                "name": text(replicated_job, "name"),
                **dict.fromkeys(_COUNTS, 0),
                "suspended": _replicas(replicated_job),
            }
            for replicated_job in maps_at(jobset, "spec", "replicatedJobs")
        ],
    }


def _read(jobset: JsonObject) -> Observed:
    status = child(jobset, "status")
    sizes = {
        text(replicated_job, "name"): (_replicas(replicated_job), _job_size(replicated_job))
        for replicated_job in maps_at(jobset, "spec", "replicatedJobs")
    }
    counted = maps_at(status, "replicatedJobsStatus")
    jobs = sum(replicas for replicas, _ in sizes.values())
    succeeded = sum(number(entry, "succeeded") for entry in counted)
    ready = sum(number(entry, "ready") for entry in counted)
    # The controller counts jobs; all pods of a ready job are ready. A job stays ready until it is
    # counted as succeeded, but is no longer active once its last pod ended.
    ready_pods = sum(
        min(number(entry, "ready"), number(entry, "active"))
        * sizes.get(text(entry, "name"), (0, 0))[1]
        for entry in counted
    )
    ended = first_true(status, "Completed", "Failed")
    suspended = first_true(status, "Suspended")
    phase: Phase = "Running" if ready or succeeded else "Pending"
    if ended:
        phase = "Succeeded" if ended.get("type") == "Completed" else "Failed"
    elif suspended or (child(jobset, "spec").get("suspend") is True and not ready):
        phase = "Suspended"
    why = ended or suspended
    restarts = number(status, "restarts")
    return Observed(
        phase=phase,
        reason=text(why, "reason"),
        message=text(why, "message"),
        ready=ready_pods,
        succeeded=succeeded,
        failed=sum(number(entry, "failed") for entry in counted),
        progress=f"{succeeded}/{jobs} jobs" + (f", {restarts} restarts" if restarts else ""),
    )


def _merge(statuses: Mapping[str, JsonObject]) -> JsonObject:
    """Adds the counts; a set failed if any part failed, and is complete once all parts are."""
    parts = [statuses[key] for key in sorted(statuses)]
    if len(parts) < 2:
        return copy_of(parts[0]) if parts else {}
    by_name: dict[str, dict[str, int]] = {}
    for part in parts:
        for entry in maps_at(part, "replicatedJobsStatus"):
            counts = by_name.setdefault(text(entry, "name"), dict.fromkeys(_COUNTS, 0))
            for name in _COUNTS:
                counts[name] += number(entry, name)
    whole: JsonObject = {
        "restarts": max(number(part, "restarts") for part in parts),
        "replicatedJobsStatus": [{"name": name, **counts} for name, counts in by_name.items()],
    }
    failed, completed = first_of(parts, "Failed"), last_of(parts, "Completed")
    ended = failed or completed
    chosen = [entry for entry in (ended, last_of(parts, "Suspended")) if entry]
    if chosen:
        whole["conditions"] = copy_of(chosen)
    if ended:
        whole["terminalState"] = text(ended, "type")
    return whole
