"""LeaderWorkerSet: groups of pods with a leader, divided by groups.

A replica is a group: one leader and its workers, which start together. Without a leader template
the leader equals a worker, and the group is one pod set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1

from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.kinds import pods
from fairway.kinds.conditions import condition, first_true
from fairway.kinds.conditions import find_condition as condition_of
from fairway.kinds.interface import Observed, Phase, Pod, PodState
from fairway.kinds.plain import child, name_of, namespace_of, number, text, texts
from fairway.kinds.replicated import Replicated, added_up, is_current, wanted_replicas

LEADER, WORKER = "leader", "worker"
_PREFIX = "leaderworkerset.sigs.k8s.io/"
_COUNTS = ("replicas", "readyReplicas", "updatedReplicas")


class LeaderWorkerSet(Replicated):
    """leaderworkerset.x-k8s.io LeaderWorkerSet."""

    api_versions: tuple[str, ...] = ("leaderworkerset.x-k8s.io/v1",)
    name: str = "LeaderWorkerSet"

    def faults(self, manifest: JsonObject) -> list[str]:
        return [
            fault
            for name, template in self.templates(manifest).items()
            for fault in pods.template_faults(template, f"spec.leaderWorkerTemplate.{name}Template")
        ]

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        size = group_size(manifest)
        templates = self.templates(manifest)
        counts = {LEADER: 1, WORKER: size - 1} if LEADER in templates else {WORKER: size}
        return tuple(
            pods.pod_set(name, templates[name], count) for name, count in counts.items() if count
        )

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        leader_worker_template = child(manifest, "spec", "leaderWorkerTemplate")
        templates = {WORKER: child(leader_worker_template, "workerTemplate")}
        if isinstance(leader_worker_template.get("leaderTemplate"), dict):
            return {LEADER: child(leader_worker_template, "leaderTemplate"), **templates}
        return templates

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        """Pods group by group; within a pod set, they are numbered across all groups."""
        templates = self.templates(manifest)
        size, made = group_size(manifest), []
        for group in range(wanted_replicas(manifest)):
            for worker in range(size):
                is_leader = worker == 0 and LEADER in templates
                pod_set = LEADER if is_leader else WORKER
                before = 1 if LEADER in templates and not is_leader else 0
                count = 1 if is_leader else size - before
                made.append(
                    _pod(
                        manifest,
                        templates[pod_set],
                        pod_set=pod_set,
                        index=group * count + worker - before,
                        group=group,
                        worker=worker,
                    )
                )
        return made

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        ready_groups = _whole_groups(self, manifest, pods)
        count = wanted_replicas(manifest)
        is_available = ready_groups >= count
        since = max((pod.started_at or now for pod in pods if pod.phase == "Ready"), default=now)
        status: JsonObject = {
            "observedGeneration": number(manifest, "metadata", "generation", default=1),
            "replicas": count,
            "updatedReplicas": count,
            "readyReplicas": ready_groups,
            "hpaPodSelector": f"{_PREFIX}name={name_of(manifest)},{_PREFIX}worker-index=0",
        }
        kinds = (
            ("Available", is_available, "AllGroupsReady", "All replicas are ready"),
            (
                "Progressing",
                not is_available,
                "GroupsProgressing",
                "Replicas are progressing",
            ),
        )
        status["conditions"] = [
            condition(kind, holds=holds, since=since, reason=reason, message=message)
            for kind, holds, reason, message in kinds
        ]
        return {key: value for key, value in status.items() if value != 0}

    def read(self, body: JsonObject) -> Observed:
        """Reads its status; a group is ready once its leader is ready and all its pods exist."""
        status = child(body, "status")
        count, ready = wanted_replicas(body), number(status, "readyReplicas")
        is_there = ready >= count and number(status, "updatedReplicas") >= count
        current = is_current(body) if "observedGeneration" in status else True
        phase: Phase = "Running" if ready or not count else "Pending"
        if self.is_held(body):
            phase = "Suspended"
        why = first_true(status, "UpdateInProgress") or first_true(status, "Progressing")
        available = condition_of(status, "Available")
        return Observed(
            phase=phase,
            reason="" if is_there else text(why or available, "reason"),
            message="" if is_there else text(why or available, "message"),
            ready=ready * group_size(body),
            progress=f"{ready}/{count} groups ready",
            is_healthy=is_there if current and status else None,
            is_current=current,
        )

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        whole = added_up(
            statuses, _COUNTS, {"Available": False, "Progressing": True, "UpdateInProgress": True}
        )
        if len(statuses) > 1:
            selectors = [text(status, "hpaPodSelector") for status in statuses.values()]
            whole["hpaPodSelector"] = next(filter(None, selectors), "")
        return whole


def group_size(manifest: JsonObject) -> int:
    """Pods per group, including the leader."""
    return max(1, number(manifest, "spec", "leaderWorkerTemplate", "size", default=1))


def _whole_groups(kind: LeaderWorkerSet, manifest: JsonObject, states: Sequence[PodState]) -> int:
    """Groups whose pods are all ready."""
    ready = {state.name for state in states if state.phase == "Ready"}
    size, made = group_size(manifest), kind.pods(manifest)
    groups = [made[first : first + size] for first in range(0, len(made), size)]
    return sum(all(pod.name in ready for pod in group) for group in groups)


def _pod(
    manifest: JsonObject,
    template: JsonObject,
    *,
    pod_set: str,
    index: int,
    group: int,
    worker: int,
) -> Pod:
    name, size = name_of(manifest), str(group_size(manifest))
    leader = f"{name}-{group}"
    policy = text(manifest, "spec", "networkConfig", "subdomainPolicy")
    service = leader if policy == "UniquePerReplica" else name
    variables = {
        "LWS_LEADER_ADDRESS": f"{leader}.{service}.{namespace_of(manifest)}",
        "LWS_GROUP_SIZE": size,
        "LWS_WORKER_INDEX": str(worker),
    }
    pod_name = f"{leader}-{worker}" if worker else leader
    spec = pods.with_environment(child(template, "spec"), variables, are_first=True)
    spec["hostname"], spec["subdomain"] = pod_name, service
    key = sha1(f"{namespace_of(manifest)}/{leader}".encode(), usedforsecurity=False).hexdigest()
    annotations = {_PREFIX + "size": size}
    if worker:
        annotations[_PREFIX + "leader-name"] = leader
    return Pod(
        name=pod_name,
        pod_set=pod_set,
        index=index,
        spec=spec,
        labels={
            **texts(template, "metadata", "labels"),
            _PREFIX + "name": name,
            _PREFIX + "group-index": str(group),
            _PREFIX + "worker-index": str(worker),
            _PREFIX + "group-key": key,
        },
        annotations={**texts(template, "metadata", "annotations"), **annotations},
        retries=None,
    )
