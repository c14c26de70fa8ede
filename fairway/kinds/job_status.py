"""The status of a Job: what its controller writes, and what it means.

A job ends by its own rules: enough completions or its success policy; its backoff limit (for all
pods or per index), its pod failure policy, or its deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairway.api.meta import JsonObject
from fairway.kinds import ranges
from fairway.kinds.conditions import (
    condition,
    earliest,
    find_condition,
    first_of,
    first_true,
    last_of,
    latest,
    moment,
)
from fairway.kinds.interface import Announcement, Observed, Phase, PodState
from fairway.kinds.plain import child, copy_of, maps_at, number, text

BACKOFF_LIMIT = 6
_ALIVE = ("Pending", "Running", "Ready")
_NO_PODS: JsonObject = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
_COUNTS = ("active", "ready", "succeeded", "failed", "terminating")


class JobEnd(NamedTuple):
    """Why a job ended."""

    is_success: bool
    reason: str
    message: str


def play(job: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
    spec = child(job, "spec")
    if spec.get("suspend") is True:
        return _suspend(now, "JobSuspended", "Job suspended")
    verdict = verdict_of(job, pods, now=now)
    alive = [pod for pod in pods if pod.phase in _ALIVE] if verdict is None else []
    succeeded = [pod for pod in pods if pod.phase == "Succeeded"]
    failed = sum(pod.restarts + (pod.phase == "Failed") for pod in pods)
    counts = {
        "active": len(alive),
        "ready": sum(pod.phase == "Ready" for pod in alive),
        "succeeded": len(succeeded),
        "failed": failed,
    }
    status: JsonObject = {
        "startTime": moment(_start(pods, now)),
        **{name: count for name, count in counts.items() if count},
        "ready": counts["ready"],
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    if spec.get("completionMode") == "Indexed":
        status["completedIndexes"] = ranges.text(ranges.of(pod.index for pod in succeeded))
        if isinstance(spec.get("backoffLimitPerIndex"), int):
            status["failedIndexes"] = ranges.text(_failed_indexes(spec, pods))
    if verdict is not None:
        ended = max(
            (pod.finished_at or now for pod in pods if pod.phase not in _ALIVE), default=now
        )
        _end(status, verdict, ended)
    return status


def announce(said: Announcement) -> JsonObject:
    """The status of a job that no cluster runs; a server wants a start time of a failed one."""
    if said.phase == "Suspended":
        return _suspend(said.at, said.reason, said.message)
    status: JsonObject = {**_NO_PODS, "startTime": moment(said.at)}
    _end(status, JobEnd(False, said.reason, said.message), said.at)
    return status


def _suspend(now: float, reason: str, message: str) -> JsonObject:
    suspended = condition("Suspended", holds=True, since=now, reason=reason, message=message)
    return {**_NO_PODS, "conditions": [_probe(suspended)]}


def _probe(entry: JsonObject) -> JsonObject:
    """Adds the probe time that Job conditions have."""
    return {**entry, "lastProbeTime": entry["lastTransitionTime"]}


def _start(pods: Sequence[PodState], now: float) -> float:
    return min((pod.started_at for pod in pods if pod.started_at is not None), default=now)


def _end(status: JsonObject, verdict: JobEnd, ended: float) -> None:
    """Writes the two conditions that end a job: the decision, and the end of its pods."""
    kinds = (
        ("SuccessCriteriaMet", "Complete") if verdict.is_success else ("FailureTarget", "Failed")
    )
    if verdict.is_success:
        status["completionTime"] = moment(ended)
    status["conditions"] = [
        _probe(
            condition(kind, holds=True, since=ended, reason=verdict.reason, message=verdict.message)
        )
        for kind in kinds
    ]


def verdict_of(job: JsonObject, pods: Sequence[PodState], *, now: float) -> JobEnd | None:
    """Why a job ended; None if it has not."""
    return _failure(child(job, "spec"), pods, now) or _success(child(job, "spec"), pods)


def _failure(spec: JsonObject, pods: Sequence[PodState], now: float) -> JobEnd | None:
    by_policy = _failed_by_policy(spec, pods)
    if by_policy is not None:
        return by_policy
    if isinstance(spec.get("backoffLimitPerIndex"), int):
        by_index = _failed_by_index(spec, pods)
        if by_index is not None:
            return by_index
    failures = sum(
        pod.restarts + (pod.phase == "Failed") for pod in pods if not _is_ignored(spec, pod)
    )
    per_index = isinstance(spec.get("backoffLimitPerIndex"), int)
    limit = number(spec, "backoffLimit", default=2**31 - 1 if per_index else BACKOFF_LIMIT)
    if failures > limit:
        message = "Job has reached the specified backoff limit"
        return JobEnd(False, "BackoffLimitExceeded", message)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and now - _start(pods, now) >= deadline:
        message = "Job was active longer than specified deadline"
        if _success(spec, pods) is None:
            return JobEnd(False, "DeadlineExceeded", message)
    return None


def _failed_by_index(spec: JsonObject, pods: Sequence[PodState]) -> JobEnd | None:
    failed = ranges.size(_failed_indexes(spec, pods))
    most = spec.get("maxFailedIndexes")
    if isinstance(most, int) and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobEnd(False, "MaxFailedIndexesExceeded", message)
    succeeded = sum(pod.phase == "Succeeded" for pod in pods)
    if failed and failed + succeeded >= number(spec, "completions"):
        return JobEnd(False, "FailedIndexes", "Job has failed indexes")
    return None


def _failed_indexes(spec: JsonObject, pods: Sequence[PodState]) -> ranges.Ranges:
    limit = number(spec, "backoffLimitPerIndex")
    return ranges.of(
        pod.index for pod in pods if pod.phase == "Failed" and pod.restarts + 1 > limit
    )


def _success(spec: JsonObject, pods: Sequence[PodState]) -> JobEnd | None:
    succeeded = {pod.index for pod in pods if pod.phase == "Succeeded"}
    for position, rule in enumerate(maps_at(spec, "successPolicy", "rules")):
        if _meets(rule, succeeded):
            return JobEnd(True, "SuccessPolicy", f"Matched rules at index {position}")
    wanted = spec.get("completions")
    if not isinstance(wanted, int):
        # A work queue: one success means that the work is done; the other pods may finish.
        wanted = 1 if "parallelism" not in spec else None
    if wanted is None:
        is_done = bool(succeeded) and not any(pod.phase in _ALIVE for pod in pods)
    else:
        is_done = len(succeeded) >= wanted
    if not is_done:
        return None
    return JobEnd(True, "CompletionsReached", "Reached expected number of succeeded pods")


def _meets(rule: JsonObject, succeeded: set[int]) -> bool:
    """Whether a rule of a success policy is met."""
    indexes = text(rule, "succeededIndexes")
    wanted = set(ranges.numbers(ranges.parse(indexes))) if indexes else None
    counted = succeeded if wanted is None else succeeded & wanted
    count = rule.get("succeededCount")
    if isinstance(count, int):
        return len(counted) >= count
    return wanted is not None and counted == wanted


def _rule_of(spec: JsonObject, pod: PodState) -> tuple[int, str]:
    """The matching rule of the pod failure policy for a failed pod, and its action."""
    for position, rule in enumerate(maps_at(spec, "podFailurePolicy", "rules")):
        codes = child(rule, "onExitCodes")
        values = codes.get("values")
        if pod.exit_code is None or not isinstance(values, list):
            continue
        if (pod.exit_code in values) == (codes.get("operator") == "In") and pod.exit_code != 0:
            return position, text(rule, "action")
    return -1, "Count"


def _is_ignored(spec: JsonObject, pod: PodState) -> bool:
    return pod.phase == "Failed" and _rule_of(spec, pod)[1] == "Ignore"


def _failed_by_policy(spec: JsonObject, pods: Sequence[PodState]) -> JobEnd | None:
    for pod in pods:
        position, action = _rule_of(spec, pod) if pod.phase == "Failed" else (-1, "")
        if action == "FailJob":
            return JobEnd(
                False,
                "PodFailurePolicy",
                f"Pod {pod.name} failed with exit code {pod.exit_code} matching FailJob rule "
                f"at index {position}",
            )
    return None


def read(body: JsonObject) -> Observed:
    status, spec = child(body, "status"), child(body, "spec")
    succeeded, failed = _ended(status, "succeeded"), _ended(status, "failed")
    active = number(status, "active")
    # Old clusters have no `ready` field; then every active pod counts as ready.
    ready = number(status, "ready", default=active)
    wanted = spec.get("completions")
    total = f"/{wanted}" if isinstance(wanted, int) else ""
    ended = first_true(status, "Complete", "Failed")
    why = ended or first_true(status, "FailureTarget", "Suspended")
    phase: Phase
    if ended:
        phase = "Succeeded" if ended.get("type") == "Complete" else "Failed"
    elif first_true(status, "Suspended") or (spec.get("suspend") is True and not active):
        phase = "Suspended"
    else:
        is_ending = bool(first_true(status, "SuccessCriteriaMet", "FailureTarget"))
        phase = "Running" if ready or is_ending or (succeeded and active) else "Pending"
    return Observed(
        phase=phase,
        reason=text(why, "reason"),
        message=text(why, "message"),
        ready=ready,
        succeeded=succeeded,
        failed=failed,
        progress=f"{succeeded}{total} completions",
    )


def _ended(status: JsonObject, how: str) -> int:
    """Pods that ended this way: those counted, and those the controller has not counted yet."""
    uncounted = child(status, "uncountedTerminatedPods").get(how)
    return number(status, how) + (len(uncounted) if isinstance(uncounted, list) else 0)


def merge_statuses(statuses: Mapping[str, JsonObject]) -> JsonObject:
    """Adds the counts; a job failed if any part failed, and is complete once all parts are."""
    parts = [statuses[key] for key in sorted(statuses)]
    if len(parts) < 2:
        return copy_of(parts[0]) if parts else {}
    whole: JsonObject = {
        name: sum(number(part, name) for part in parts)
        for name in _COUNTS
        if any(name in part for part in parts)
    }
    started = earliest(text(part, "startTime") for part in parts)
    if started:
        whole["startTime"] = started
    ended = [
        *(first_of(parts, kind) for kind in ("FailureTarget", "Failed")),
        *(last_of(parts, kind) for kind in ("SuccessCriteriaMet", "Complete", "Suspended")),
    ]
    whole["conditions"] = [copy_of(entry) for entry in ended if entry]
    if any(condition.get("type") == "Complete" for condition in whole["conditions"]):
        whole["completionTime"] = latest(text(part, "completionTime") for part in parts)
    if not whole["conditions"]:
        del whole["conditions"]
    return whole


def follow_status(
    status: JsonObject,
    before: JsonObject,
    *,
    has_failed: bool,
    may_be_complete: bool = True,
    since: float | None = None,
) -> JsonObject:
    """Adjusts a status to what may follow `before` on a server: final facts are not taken back.

    A retried job, perhaps in another cluster, keeps its first start time; its counts never fall;
    and it has failed only once its last attempt has. A job with a copy in each of several clusters
    may be complete only once all copies are. `since` is when its queue let it go; None: it is
    suspended.
    """
    made = dict(status)
    if before.get("startTime"):
        made["startTime"] = before["startTime"]
    for name in ("succeeded", "failed"):
        if number(before, name) > number(made, name):
            made[name] = number(before, name)
    conditions = maps_at(made, "conditions")
    if not has_failed:
        over = ("Failed", "FailureTarget")
        conditions = [entry for entry in conditions if entry.get("type") not in over]
    if not may_be_complete:
        over = ("Complete", "SuccessCriteriaMet")
        conditions = [entry for entry in conditions if entry.get("type") not in over]
        made.pop("completionTime", None)
    conditions = _resumed(before, since) + conditions if since is not None else conditions
    made.pop("conditions", None)
    return {**made, "conditions": conditions} if conditions else made


def _resumed(before: JsonObject, since: float) -> list[JsonObject]:
    """Says that a job which was suspended is so no more, as its own controller does."""
    suspended = find_condition(before, "Suspended")
    if not suspended or suspended.get("status") == "False":
        return [suspended] if suspended else []
    resumed = condition(
        "Suspended", holds=False, since=since, reason="JobResumed", message="Job resumed"
    )
    return [_probe(resumed)]
