"""The status that a kind's own controller would write for pods in given states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fairway.api.kindrule import PlayRule
from fairway.api.meta import JsonObject
from fairway.kinds.conditions import moment
from fairway.kinds.interface import Announcement, PodState
from fairway.kinds.plain import child, name_of
from fairway.kinds.rules.expressions import PLAY, TALLIES, Bindings, Compiler, Expression
from fairway.kinds.rules.roles import Role

Outcome = Literal["Suspended", "Pending", "Running", "Succeeded", "Failed"]
_COUNTED = ("count", "pending", "active", "ready", "succeeded", "failed", "restarts")
_STARTED = ("Running", "Ready", "Succeeded", "Failed")


class CompiledPlay:
    """A rule's status for clusters without the kind's controller, compiled."""

    def __init__(self, rule: PlayRule, compiler: Compiler) -> None:
        where = "spec.play"
        self._succeeded = compiler.expression(rule.succeeded, f"{where}.succeeded", TALLIES)
        self._failed = compiler.expression(rule.failed, f"{where}.failed", TALLIES)
        self._running = compiler.expression(rule.running, f"{where}.running", TALLIES)
        self._status = compiler.template(rule.status, f"{where}.status", PLAY)

    def status(
        self,
        manifest: JsonObject,
        roles: Sequence[Role],
        pods: Sequence[PodState],
        *,
        is_held: bool,
        replicas: int,
        now: float,
        said: Announcement | None = None,
    ) -> JsonObject:
        """The status for pods in these states, or as announced if no cluster has any."""
        tallies = {role.name: _tally(role, pods) for role in roles}
        counts = {role.name: role.count for role in roles}
        bindings: dict[str, Any] = {
            "object": manifest,
            "spec": child(manifest, "spec"),
            "metadata": child(manifest, "metadata"),
            "name": name_of(manifest),
            "pods": [_plain(pod) for pod in pods],
            "podPhases": {
                role.name: {pod.name: pod.phase for pod in pods if pod.pod_set == role.name}
                for role in roles
            },
            "tally": _sum(list(tallies.values())),
            "tallies": tallies,
            "roles": {role.key or role.name: tallies[role.name] for role in roles},
            "counts": counts,
            "total": sum(counts.values()),
            "replicas": replicas,
        }
        outcome = said.phase if said else self._outcome(bindings, pods, is_held=is_held)
        is_over = outcome in ("Succeeded", "Failed")
        started = [pod.started_at for pod in pods if pod.started_at is not None]
        finished = [pod.finished_at for pod in pods if pod.finished_at is not None]
        status = self._status(
            {
                **bindings,
                "outcome": outcome,
                "startedAt": moment(min(started)) if started else None,
                "finishedAt": moment(max(finished, default=now)) if is_over else None,
                "now": moment(now),
                "reason": said.reason if said else "",
                "message": said.message if said else "",
            }
        )
        return status if isinstance(status, dict) else {}

    def _outcome(self, bindings: Bindings, pods: Sequence[PodState], *, is_held: bool) -> Outcome:
        if is_held:
            return "Suspended"
        if _says(self._failed, bindings, any(pod.phase == "Failed" for pod in pods)):
            return "Failed"
        are_done = bool(pods) and all(pod.phase == "Succeeded" for pod in pods)
        if pods and _says(self._succeeded, bindings, are_done):
            return "Succeeded"
        has_started = any(pod.phase in _STARTED for pod in pods)
        if pods and _says(self._running, bindings, has_started):
            return "Running"
        return "Pending"


def _says(expression: Expression | None, bindings: Bindings, otherwise: bool) -> bool:
    return otherwise if expression is None else expression.value(bindings) is True


def _sum(tallies: Sequence[JsonObject]) -> JsonObject:
    return {key: sum(tally[key] for tally in tallies) for key in _COUNTED}


def _tally(role: Role, pods: Sequence[PodState]) -> JsonObject:
    """Pods of a role by state; active are those that run, ready or not."""
    own = [pod.phase for pod in pods if pod.pod_set == role.name]
    first = (pod.phase for pod in pods if pod.pod_set == role.name and pod.index == 0)
    return {
        "first": next(first, "Pending"),
        "count": role.count,
        "pending": own.count("Pending"),
        "active": own.count("Running") + own.count("Ready"),
        "ready": own.count("Ready"),
        "succeeded": own.count("Succeeded"),
        "failed": own.count("Failed"),
        "restarts": sum(pod.restarts for pod in pods if pod.pod_set == role.name),
    }


def _plain(pod: PodState) -> JsonObject:
    return {
        "name": pod.name,
        "podSet": pod.pod_set,
        "index": pod.index,
        "phase": pod.phase,
        "restarts": pod.restarts,
        "exitCode": pod.exit_code,
        "startedAt": None if pod.started_at is None else moment(pod.started_at),
        "finishedAt": None if pod.finished_at is None else moment(pod.finished_at),
    }
