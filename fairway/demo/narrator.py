"""Describes what happens to workloads and clusters, one short line per change.

Lines are derived only from an object's previous and current state. A late narrator describes the
current state, and misses what happened in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairway.api.claim import Claim, PastAttempt, WorkloadMention
from fairway.api.cluster import Cluster
from fairway.api.meta import JsonObject
from fairway.api.reasons import Code
from fairway.api.rollout import Rollout
from fairway.api.workload import Workload

_TIMES = "\N{MULTIPLICATION SIGN}"
_HOME = "home"  # the policy's first group
_ORDINARY_ENDS = ("Succeeded", "TasksDone", Code.DRAINED.value)
_SIZES = {"Gang": "a gang of {}", "Divided": "{} replicas", "Independent": "{} tasks"}


@dataclass(frozen=True, slots=True)
class Line:
    """One event: a word for it, the object, and the rest of the sentence."""

    verb: str
    who: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class WaitsLine:
    """A workload that has begun to wait; the reason is worked out when the line is printed."""

    workload: Workload


def of_workload(
    before: Workload | None, after: Workload, others: Mapping[str, Workload]
) -> Iterator[Line | WaitsLine]:
    """What happened to a workload; `others` are all workloads, by `namespace/name`."""
    who = after.metadata.name
    if before is None:
        if after.status.phase is None:
            yield Line("submitted", who, _asks(after))
        return
    yield from _ended_attempts(before, after, others)
    if after.metadata.deletion_timestamp is not None:
        return
    yield from _claim(before.status.claim, after, others)
    if before.spec.replicas != after.spec.replicas:
        yield Line("scaled", who, f"from {before.spec.replicas} to {after.spec.replicas} replicas")
    if before.status.phase != after.status.phase:
        yield from _turn(after)
    elif after.status.phase == "Waiting" and _began_to_wait(before, after):
        yield WaitsLine(after)


def _asks(workload: Workload) -> str:
    """Such as `to research: a gang of 2 x 8 GPUs, priority 100`."""
    spec = workload.spec
    manifest = spec.template.manifests[0] if spec.template else {}
    pods = manifest.get("spec", {}).get("parallelism", 1)
    count = {"Gang": pods, "Divided": spec.replicas}.get(
        spec.mode, spec.tasks.count if spec.tasks else 1
    )
    container = manifest["spec"]["template"]["spec"]["containers"][0] if manifest else {}
    gpus = container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu")
    each = f" {_TIMES} {gpus} GPU{'s' if gpus != 1 else ''}" if gpus else ""
    on = f" on {' or '.join(spec.flavors)}" if spec.flavors else ""
    size = "one process" if count == 1 and not gpus else _SIZES[spec.mode].format(count)
    size = "one pod" if size == "a gang of 1" else size
    urgent = f", priority {spec.priority}" if spec.priority else ""
    return f"to {spec.queue}: {size}{each}{on}{urgent}"


def _claim(before: Claim | None, after: Workload, others: Mapping[str, Workload]) -> Iterator[Line]:
    """A new decision, or one with other clusters than before."""
    claim, who = after.status.claim, after.metadata.name
    if claim is None or not claim.summary or (before and before.summary == claim.summary):
        return
    if after.spec.mode == "Divided":
        yield Line("spread", who, f"over {claim.summary}")
        return
    if before is not None or _goes_on(after):
        return
    workloads = [
        _mention(victim.workload, others)
        for victim in claim.waits_for
        if victim.workload is not None
    ]
    victims = [
        workload.metadata.name if workload is not None else "another" for workload in workloads
    ]
    pools = [victim for victim in claim.waits_for if victim.type == "Provision"]
    is_away = any(placement.group not in ("", _HOME, "laptop") for placement in claim.placements)
    text = f"in {claim.summary}{_flavors(claim)}"
    if victims:
        text += f", as soon as {' and '.join(victims)} made room"
    for pool in pools:
        text += f": {pool.count} node{'s' if pool.count != 1 else ''} of {pool.pool} ordered"
    yield Line("overflowed" if is_away else "placed", who, text)


def _goes_on(workload: Workload) -> bool:
    """Whether it only takes its next tasks."""
    history = workload.status.history
    return bool(history) and history[-1].reason == "TasksDone"


def _flavors(claim: Claim) -> str:
    names = {
        name
        for placement in claim.placements
        for pods in placement.pod_sets
        for name in pods.flavors.values()
    }
    return f" on {' and '.join(sorted(names))}" if names else ""


def _turn(after: Workload) -> Iterator[Line | WaitsLine]:
    status, who = after.status, after.metadata.name
    where = status.claim.summary if status.claim else ""
    match status.phase:
        case "Running" if not _goes_on(after):
            yield Line("running", who, f"in {where}{_wait(after)}")
        case "Succeeded":
            troubles = sum(attempt.reason not in _ORDINARY_ENDS for attempt in status.history)
            more = f", after {troubles + 1} attempts" if troubles else ""
            yield Line("succeeded", who, f"in {_span(status.ran_seconds)} of running{more}")
        case "Failed":
            yield Line("failed", who, status.message or status.reason)
        case "Waiting" if status.reason:
            yield WaitsLine(after)
        case _:
            return


def _wait(after: Workload) -> str:
    created, status = after.metadata.creation_timestamp, after.status
    if created is None or status.claim is None or status.claim.ready_at is None:
        return ""
    if status.history:
        return f", attempt {status.claim.attempt}"
    seconds = (status.claim.ready_at - created).total_seconds()
    return f", {_span(seconds)} after it was submitted"


def why_it_waits(body: JsonObject, code: str) -> str:
    """A summary of an explanation: what it needs, what is missing, and when it may start."""
    parts = []
    if needs := body.get("needs"):
        parts.append(f"for {needs['amount']} {_TIMES} {needs['of']}")
    if (nearest := body.get("nearest")) and nearest["short"] != "0":
        parts.append(f"{nearest['cluster']} is {nearest['short']} short")
    if (quota := body.get("quota")) and not nearest:
        parts.append(str(quota["message"]))
    expected = body.get("expected") or {}
    if (start := expected.get("start")) and body.get("now"):
        ends = str(expected.get("because", "")).rpartition("/")[2]
        because = f", when {ends} ends" if ends else ""
        parts.append(f"expected to start in {_span(max(0.0, start - body['now']))}{because}")
    return "; ".join(parts) or code


def _began_to_wait(before: Workload, after: Workload) -> bool:
    return bool(after.status.reason) and not before.status.reason


def _ended_attempts(
    before: Workload, after: Workload, others: Mapping[str, Workload]
) -> Iterator[Line]:
    known = max((attempt.attempt for attempt in before.status.history), default=-1)
    for past in after.status.history:
        if past.attempt > known and past.reason not in _ORDINARY_ENDS:
            yield _end(past, after, others)


def _end(past: PastAttempt, workload: Workload, others: Mapping[str, Workload]) -> Line:
    who, where = workload.metadata.name, " and ".join(past.clusters)
    lost = f", {_span(past.lost_seconds)} of work lost" if past.lost_seconds else ""
    if past.started_at is not None and not lost:
        lost = ", no work lost"
    if workload.spec.mode == "Divided":
        lost = ""  # a service has no progress to lose
    by = past.preempted_by
    if by is not None:
        other = _mention(by, others)
        name = other.metadata.name if other is not None else by.name or "another"
        return Line("preempted", who, f"in {where} for {name}{_why(past, workload, other)}{lost}")
    if past.reason == Code.CLUSTER_LOST.value:
        return Line("moves", who, f"away from {where}, which is lost{lost}")
    code = f", exit code {past.exit_code}" if past.exit_code else ""
    return Line("ended", who, f"in {where}: {past.reason}{code}{lost}")


def _mention(mention: WorkloadMention, others: Mapping[str, Workload]) -> Workload | None:
    """The workload that another one refers to, possibly by UID only."""
    if mention.name:
        return others.get(f"{mention.namespace}/{mention.name}")
    return next(
        (workload for workload in others.values() if workload.metadata.uid == mention.uid), None
    )


def _why(past: PastAttempt, workload: Workload, other: Workload | None) -> str:
    if past.reason == Code.PREEMPTED_WITHIN_QUEUE.value and other is not None:
        return f" (priority {other.spec.priority or 0} > {workload.spec.priority or 0})"
    queue = other.spec.queue if other is not None else "its queue"
    if past.reason == Code.PREEMPTED_TO_RECLAIM.value:
        return f" ({queue} takes back what it owns)"
    if past.reason == Code.PREEMPTED_FOR_FAIR_SHARE.value:
        return f" ({queue} has the smaller share)"
    return ""


_PHASES = {
    "Unready": Line("silent", "", "gets no new work until it is heard again"),
    "Lost": Line("lost", "", "is silent for too long; what runs there moves once it surely ended"),
}

_RETURNS = {"Unready": "is heard again", "Lost": "is heard again", "Held": "is used again"}


def of_cluster(before: Cluster | None, after: Cluster) -> Iterator[Line]:
    """What happened to a cluster."""
    if before is None:
        return
    who, was, is_ = after.metadata.name, before.status.phase, after.status.phase
    if was != is_ and is_ in _PHASES:
        yield Line(_PHASES[is_].verb, who, _PHASES[is_].text)
    if was != is_ and is_ == "Ready":
        gpus = after.status.allocatable.get("nvidia.com/gpu")
        text = _RETURNS.get(was, "joined the fleet")
        yield Line("ready", who, text + (f", {gpus} GPUs" if gpus else ""))
    pools = {pool.name: pool.nodes for pool in before.status.elastic_pools}
    for pool in after.status.elastic_pools:
        more = pool.nodes - pools.get(pool.name, 0)
        if more:
            verb = "got" if more > 0 else "gave back"
            nodes = f"{abs(more)} node{'s' if abs(more) != 1 else ''} of {pool.name}"
            yield Line("nodes", who, f"{verb} {nodes}")


def of_rollout(before: Rollout | None, after: Rollout) -> Iterator[Line]:
    """Progress of a rollout: each batch as it begins, and its end."""
    if before is None or before.status.revision == 0:
        return
    who, was, is_ = after.metadata.name, before.status, after.status
    goes_out = is_.phase in ("Progressing", "Soaking")
    if goes_out and (was.revision, was.current_batch) != (is_.revision, is_.current_batch):
        new = [cluster.cluster for cluster in is_.clusters if cluster.revision == is_.revision]
        batch = f"batch {is_.current_batch + 1} of {is_.batches}"
        yield Line("updates", who, f"to revision {is_.revision}, {batch}: {', '.join(new)}")
    if was.phase != is_.phase and is_.phase == "Completed":
        yield Line("updated", who, f"to revision {is_.revision}, everywhere")
    if was.phase != is_.phase and is_.phase == "RolledBack":
        yield Line("updated", who, f"back to revision {is_.stable_revision}: {is_.reason}")


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
