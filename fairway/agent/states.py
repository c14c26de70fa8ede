"""The state of a work, from what its driver sees of it.

Readiness lasts: a gang whose pods were all ready once is running until it ends, even if a pod
restarts. Of several failed pods, the first to fail shows the cause; the others often follow from
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.agent.drivers.interface import PodSeen, WorkSeen
from fairway.agent.duties import HUB_SILENT, has_live_pods
from fairway.agent.memory import Kept
from fairway.api.meta import JsonObject
from fairway.api.reasons import Code
from fairway.api.report import WorkState
from fairway.api.work import PodSetStatus, RevisionPods, WorkPhase, WorkSpec
from fairway.kinds import tasks
from fairway.kinds.interface import Kind, Observed

FindKind = Callable[[JsonObject], Kind | None]

OVER: tuple[WorkPhase, ...] = ("Succeeded", "Failed", "Gone")
_LIVE = ("Pending", "Bound", "Ready")
_REVISIONS_MOST = 16
_TEXT_MOST = 1024
_CODE_MOST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The last state of a work that the agent reported, and the last fault of its driver."""

    state: WorkState | None = None
    fault: str = ""


def state_of(
    kept: Kept, seen: WorkSeen | None, told_state: Told, *, find_kind: FindKind, now: float
) -> WorkState:
    """The state of a work."""
    spec, name = kept.work.spec, kept.work.metadata.name
    earlier = [pod.attempt for pod in seen.pods if pod.attempt < spec.attempt] if seen else []
    if earlier and seen is not None:
        # The pods of an earlier attempt must be gone before anything else is reported.
        left = _pod_sets(seen.pods)
        return WorkState(work=name, attempt=max(earlier), phase="Stopping", pods=left)
    pods = tuple(pod for pod in seen.pods if pod.attempt == spec.attempt) if seen else ()
    counts = _pod_sets(pods)
    if kept.ended is not None and not (spec.tombstone and kept.ended.phase != "Gone"):
        if kept.ended.reason == HUB_SILENT and has_live_pods(seen):
            return WorkState(
                work=name,
                attempt=spec.attempt,
                phase="Stopping",
                reason=HUB_SILENT,
                pods=counts,
            )
        return kept.ended
    if spec.tombstone or spec.desired == "Stop":
        is_stopping = spec.tombstone or bool(pods)
        phase: WorkPhase = "Stopping" if is_stopping else "Held"
        return WorkState(work=name, attempt=spec.attempt, phase=phase, pods=counts)
    previous = (
        told_state.state if told_state.state and told_state.state.attempt == spec.attempt else None
    )
    state = _running(kept, seen, pods, previous, find_kind, now)
    state = replace(state, pods=counts)
    return state if state.phase in OVER else _with_trouble(state, pods, seen, told_state)


def _running(
    kept: Kept,
    seen: WorkSeen | None,
    pods: Sequence[PodSeen],
    previous: WorkState | None,
    find_kind: FindKind,
    now: float,
) -> WorkState:
    """The state of a work that is to run or to reserve its place."""
    spec = kept.work.spec
    state = WorkState(work=kept.work.metadata.name, attempt=spec.attempt, phase="Pending")
    if seen is None:
        return state
    if spec.desired == "Reserve":
        is_held = bool(pods) and all(pod.phase in ("Bound", "Ready") for pod in pods)
        return replace(state, phase="Reserved" if is_held else "Pending")
    parts = list(_parts(spec, seen, find_kind))
    done, lost = tasks.outcomes(body for _, body, _ in parts) if spec.tasks else ("", "")
    state = replace(
        state,
        started_at=_moment(min((pod.started_at for pod in pods if pod.started_at), default=None)),
        ready_at=previous.ready_at if previous else None,
        succeeded_tasks=done,
        failed_tasks=lost,
    )
    if state.ready_at is not None and not (pods or seen.objects or seen.faults):
        # What ran was removed from outside; the hub decides whether it runs again.
        message = "its objects were removed in the cluster"
        finished = _moment(now)
        return replace(
            state, phase="Failed", reason="Vanished", message=message, finished_at=finished
        )
    ended = _end(state, parts, pods, spec, now)
    if ended is not None:
        return ended
    if not spec.pod_sets and not parts and _is_applied(spec, seen):
        return replace(state, phase="Succeeded", message="applied", finished_at=_moment(now))
    if state.ready_at is None and _is_ready(parts, pods, spec):
        ready = max((pod.since for pod in pods if pod.phase == "Ready"), default=now)
        state = replace(state, ready_at=_moment(ready))
    return replace(state, phase="Running") if state.ready_at is not None else state


_Part = tuple[Kind, JsonObject, Observed]


def _parts(spec: WorkSpec, seen: WorkSeen, find_kind: FindKind) -> Iterator[_Part]:
    """The objects that run pods, with what their kind reads from their status."""
    objects = seen.objects_of(spec.manifests)
    for position, manifest in enumerate(spec.manifests):
        body = objects.get(position)
        kind = find_kind(manifest.object)
        if body is not None and kind is not None and manifest.update != "ReadOnly":
            yield kind, body, kind.read(body)


def _end(
    state: WorkState,
    parts: Sequence[_Part],
    pods: Sequence[PodSeen],
    spec: WorkSpec,
    now: float,
) -> WorkState | None:
    """The final state of a work, by the rules of its kinds; None if the work is not over.

    Tasks are independent: all of them are tried, even if others fail.
    """
    is_whole = len(parts) == _expected_parts(spec, parts)
    failed = [said for _, _, said in parts if said.phase == "Failed"]
    all_over = is_whole and all(said.phase in ("Succeeded", "Failed") for _, _, said in parts)
    if not parts or not (all_over or (failed and not spec.tasks)):
        return None
    finished = max((pod.finished_at for pod in pods if pod.finished_at), default=now)
    state = replace(state, finished_at=_moment(finished))
    if not failed:
        return replace(state, phase="Succeeded", message=_text(parts[0][2].progress))
    worst = _worst(pods)
    said = failed[0]
    if worst is None:
        return replace(
            state, phase="Failed", reason=_code(said.reason), message=_text(said.message)
        )
    return replace(
        state,
        phase="Failed",
        reason=_code(worst.reason or said.reason),
        message=_text(_told_of(worst) or said.message),
        exit_code=worst.exit_code,
        node=worst.node,
    )


def _is_applied(spec: WorkSpec, seen: WorkSeen) -> bool:
    """Whether all objects of a work are there as they should be."""
    return not seen.faults and len(seen.objects_of(spec.manifests)) == len(spec.manifests)


def _expected_parts(spec: WorkSpec, parts: Sequence[_Part]) -> int:
    """How many objects must be over: all manifests of the kinds that are seen to run."""
    kinds = {(body.get("apiVersion"), body.get("kind")) for _, body, _ in parts}
    return sum(
        (manifest.object.get("apiVersion"), manifest.object.get("kind")) in kinds
        for manifest in spec.manifests
        if manifest.update != "ReadOnly"
    )


def _is_ready(parts: Sequence[_Part], pods: Sequence[PodSeen], spec: WorkSpec) -> bool:
    """Whether a work is ready: all pods of a gang, one pod of anything else."""
    if not parts:
        return False
    ready = sum(pod.phase in ("Ready", "Succeeded") for pod in pods)
    if not pods:
        # A driver may not see the pods of every kind; then the status of the object counts.
        return all(said.phase == "Running" for _, _, said in parts)
    is_gang = not spec.tasks and all(kind.mode(body) == "Gang" for kind, body, _ in parts)
    wanted = sum(pod_set.count for pod_set in spec.pod_sets) or len(pods)
    return ready >= wanted if is_gang else ready > 0


def _worst(pods: Sequence[PodSeen]) -> PodSeen | None:
    """The pod that explains a failure: the first to fail; on a tie, the one with more details."""
    failed = [pod for pod in pods if pod.phase == "Failed"]
    return min(
        failed,
        key=lambda pod: (
            pod.finished_at if pod.finished_at is not None else pod.since,
            not pod.reason,
            not pod.exit_code,
            pod.name,
        ),
        default=None,
    )


def _with_trouble(
    state: WorkState, pods: Sequence[PodSeen], seen: WorkSeen | None, told_state: Told
) -> WorkState:
    """The state, with the reason why the work makes no progress."""
    if told_state.fault:
        return replace(state, reason="DriverFault", message=_text(told_state.fault))
    if seen is not None and seen.faults:
        position = min(seen.refused & set(seen.faults) or seen.faults)
        message = f"manifest {position}: {seen.faults[position]}"
        reason = Code.TEMPLATE_REFUSED.value if seen.refused else "ManifestRefused"
        return replace(state, reason=reason, message=_text(message))
    waiting = [pod for pod in pods if pod.phase in ("Pending", "Bound") and pod.reason]
    if state.phase == "Running" or not waiting:
        return state
    worst = min(waiting, key=lambda pod: (pod.since, pod.name))
    return replace(
        state, reason=_code(worst.reason), message=_text(_told_of(worst)), node=worst.node
    )


def _told_of(pod: PodSeen) -> str:
    where = f" on {pod.node}" if pod.node else ""
    code = f" with code {pod.exit_code}" if pod.exit_code is not None else ""
    said = pod.message or (f"{pod.reason}{code}" if pod.reason else f"it ended{code}")
    return f"pod {pod.name}{where}: {said}"


def _pod_sets(pods: Sequence[PodSeen]) -> tuple[PodSetStatus, ...]:
    by_set: dict[str, list[PodSeen]] = {}
    for pod in pods:
        by_set.setdefault(pod.pod_set, []).append(pod)
    return tuple(_pod_set(name, by_set[name]) for name in sorted(by_set))


def _pod_set(name: str, pods: Sequence[PodSeen]) -> PodSetStatus:
    counts: dict[str, int] = {}
    for pod in pods:
        phase = pod.phase.lower()
        counts[phase] = counts.get(phase, 0) + 1
    since = {
        phase: min((pod.since for pod in pods if pod.phase == phase), default=None)
        for phase in ("Pending", "Bound")
    }
    return PodSetStatus(
        name=name,
        pending=counts.get("pending", 0),
        bound=counts.get("bound", 0),
        ready=counts.get("ready", 0),
        succeeded=counts.get("succeeded", 0),
        failed=counts.get("failed", 0),
        terminating=counts.get("terminating", 0),
        pending_since=_moment(since["Pending"]),
        unready_since=_moment(since["Bound"]),
        beside=sum(pod.is_beside and pod.phase in _LIVE for pod in pods),
        revisions=_revisions(pods),
    )


def _revisions(pods: Sequence[PodSeen]) -> tuple[RevisionPods, ...]:
    """Live pods by revision mark; only the first marks by name, if there are too many."""
    live = [pod for pod in pods if pod.revision and pod.phase in _LIVE]
    marks = sorted({pod.revision for pod in live})[:_REVISIONS_MOST]
    return tuple(
        RevisionPods(
            mark=mark,
            pods=sum(pod.revision == mark for pod in live),
            ready=sum(pod.revision == mark and pod.phase == "Ready" for pod in live),
        )
        for mark in marks
    )


def gone_state(kept: Kept) -> WorkState:
    """The state of a work that has nothing left in the cluster."""
    return WorkState(work=kept.work.metadata.name, attempt=kept.work.spec.attempt, phase="Gone")


def silenced_state(kept: Kept, *, seconds: float, now: float) -> WorkState:
    """The state of a work that its agent stopped because the hub was silent."""
    return WorkState(
        work=kept.work.metadata.name,
        attempt=kept.work.spec.attempt,
        phase="Failed",
        reason=HUB_SILENT,
        message=f"the hub was silent for {seconds:.0f} s, so the agent stopped it",
        finished_at=_moment(now),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _text(said: str) -> str:
    return said if len(said) <= _TEXT_MOST else said[: _TEXT_MOST - 3] + "..."


def _code(said: str) -> str:
    """A code from the cluster, without characters that codes cannot have."""
    return "".join(name for name in said if name.isascii() and name.isalnum())[:_CODE_MOST]
