"""Pods, replicas, feedback and conditions of a workload over all its clusters.

Counts change all the time, and not every change is worth a write. They are written with other
changes; alone only at a limited rate, or when a number that matters was reached or lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec.structs import replace

from fairway.api.claim import PlacedPodSet, Placement
from fairway.api.meta import Condition
from fairway.api.names import OVER, work_name
from fairway.api.work import Work
from fairway.api.workload import PodCount, Workload, WorkloadStatus
from fairway.controllers.lifecycle.case import LifecycleCase, WorkObservation
from fairway.kinds.decision import WORK
from fairway.kinds.native import derived_pod_sets

_FEEDBACK_MOST = 64


def is_ready(case: LifecycleCase, placement: Placement) -> bool:
    """Whether every pod of a placement is ready, or was ready and has succeeded since."""
    seen = case.observation_of(placement)
    if not placement.cluster:
        return True
    if seen is None or seen.phase not in ("Running", "Succeeded"):
        return False
    if seen.ready_at is not None or seen.phase == "Succeeded":
        return True
    return all(
        (pods := seen.pods.get(pod_set.name)) is not None
        and pods.ready + pods.succeeded >= pod_set.count
        for pod_set in placement.pod_sets
    ) and bool(placement.pod_sets)


def has_ready_pod(case: LifecycleCase, placement: Placement) -> bool:
    seen = case.observation_of(placement)
    return is_ready(case, placement) or (
        seen is not None and any(pod.ready for pod in seen.pods.values())
    )


def has_started(case: LifecycleCase, placement: Placement) -> bool:
    seen = case.observation_of(placement)
    return seen is not None and (seen.phase in ("Running", "Succeeded", "Failed"))


def count_pods(case: LifecycleCase, status: WorkloadStatus) -> PodCount:
    """The pods of a claim; without a claim, succeeded and failed keep their last counts.

    Those of copies that have succeeded, and left the claim, count as well.
    """
    if status.claim is None:
        return replace(status.pods, wanted=0, ready=0)
    wanted = ready = succeeded = failed = 0
    held = {placement.cluster for placement in status.claim.placements}
    for cluster in status.succeeded_clusters:
        copy = case.works.get(cluster)
        if copy is not None and cluster not in held:
            wanted += sum(pod.succeeded for pod in copy.pods.values())
            succeeded += sum(pod.succeeded for pod in copy.pods.values())
            failed += sum(pod.failed for pod in copy.pods.values())
    for placement in status.claim.placements:
        pods = sum(pod_set.count for pod_set in placement.pod_sets)
        wanted += pods
        seen = case.observation_of(placement)
        if seen is None:
            continue
        if seen.phase == "Succeeded" and not seen.pods:
            succeeded += pods
        ready += sum(pod.ready for pod in seen.pods.values())
        succeeded += sum(pod.succeeded for pod in seen.pods.values())
        failed += sum(pod.failed for pod in seen.pods.values())
    return PodCount(wanted=wanted, ready=ready, succeeded=succeeded, failed=failed)


def with_finished(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Notes pods that have finished and that no other pods follow: they give back what they held.

    A gang in several clusters gives back nothing before it ends: which part of its completions each
    cluster has is not known. Tasks of a sweep leave its claim by themselves.
    """
    claim = status.claim
    if claim is None or len(claim.placements) != 1 or case.workload.spec.mode != "Gang":
        return status
    placement = claim.placements[0]
    seen = case.observation_of(placement)
    if seen is None or not any(pods.succeeded for pods in seen.pods.values()):
        return status  # the manifests need not be read
    given = _completions(case)
    pod_sets = tuple(
        replace(pod_set, finished=max(pod_set.finished, _finished(pod_set, seen, given)))
        for pod_set in placement.pod_sets
    )
    if pod_sets == placement.pod_sets:
        return status
    placements = (replace(placement, pod_sets=pod_sets),)
    return replace(status, claim=replace(claim, placements=placements))


def _completions(case: LifecycleCase) -> dict[str, int]:
    pod_sets = case.workload.spec.pod_sets or derived_pod_sets(case.workload)
    return {
        pod_set.name: pod_set.completions for pod_set in pod_sets if pod_set.completions is not None
    }


def _finished(pod_set: PlacedPodSet, seen: WorkObservation, completions: Mapping[str, int]) -> int:
    pods = seen.pods.get(pod_set.name)
    if pods is None or pod_set.name not in completions:
        return 0
    left = max(0, completions[pod_set.name] - pods.succeeded)
    return max(0, pod_set.count - left)


def is_worth_writing(before: PodCount, after: PodCount) -> bool:
    """Whether a change of counts is worth a write of its own."""
    return _standing(before) != _standing(after) or before.failed != after.failed


def _standing(pods: PodCount) -> tuple[bool, bool]:
    return (pods.ready == 0, pods.ready + pods.succeeded >= pods.wanted)


def selector_of(workload: Workload) -> str:
    """The label selector of the pods of a service, for autoscalers; empty for other modes."""
    if workload.spec.mode != "Divided":
        return ""
    return f"{WORK}={work_name(workload.metadata.namespace, workload.metadata.name)}"


def feedback_of(works: Sequence[Work]) -> dict[str, str]:
    """Feedback of the works: integers are summed over clusters, others are kept if all agree."""
    gathered: dict[str, list[tuple[str, str]]] = {}
    for name, kind, value in _values(works):
        gathered.setdefault(name, []).append((kind, value))
    result: dict[str, str] = {}
    for name in sorted(gathered)[:_FEEDBACK_MOST]:
        values = gathered[name]
        if all(kind == "Integer" for kind, _ in values):
            result[name] = str(sum(int(value) for _, value in values))
        elif len(set(values)) == 1:
            result[name] = values[0][1]
    return result


def _values(works: Sequence[Work]) -> Iterator[tuple[str, str, str]]:
    for work in works:
        for manifest in work.status.manifests:
            for value in manifest.feedback:
                yield (value.name, value.type, value.value)


def conditions_of(
    status: WorkloadStatus, *, now: float, generation: int = 0
) -> tuple[Condition, ...]:
    """Claimed, Ready and Finished from the rest of the status; keeps unchanged transition times."""
    is_over = status.phase in OVER
    ready = status.claim is not None and status.claim.ready_at is not None
    wanted: list[tuple[str, bool, str]] = [
        ("Claimed", status.claim is not None, _claim_reason(status)),
        ("Ready", ready, "" if ready else _claim_reason(status)),
    ]
    if is_over:
        wanted.append(("Finished", True, status.reason or str(status.phase)))
    before = {condition.type: condition for condition in status.conditions}
    moment = datetime.fromtimestamp(now, UTC)
    made = []
    for name, holds, reason in wanted:
        word: Literal["True", "False"] = "True" if holds else "False"
        old = before.get(name)
        since = old.last_transition_time if old and old.status == word else moment
        made.append(
            Condition(
                type=name,
                status=word,
                reason=reason,
                last_transition_time=since,
                observed_generation=generation,
                message=status.message if name == "Finished" else "",
            )
        )
    kept = [
        condition
        for condition in status.conditions
        if condition.type not in ("Claimed", "Ready", "Finished")
    ]
    return (*made, *kept)


def _claim_reason(status: WorkloadStatus) -> str:
    if status.claim is not None:
        return str(status.claim.rung)
    return status.reason or str(status.phase or "Waiting")
