"""What is reported of a work: its pods, and the statuses of its objects."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.agent.drivers.interface import PodSeen, WorkSeen
from fairway.agent.drivers.local.pods import LocalPod
from fairway.agent.drivers.local.works import FindKind, Kept, Waiting, owner_of
from fairway.api.meta import JsonObject
from fairway.kinds.decision import PART, REVISION
from fairway.kinds.interface import PodState
from fairway.kinds.plain import maps_at, text


def see_work(kept: Kept, find_kind: FindKind, *, node: str, now: float) -> WorkSeen:
    for pod in kept.pods.values():
        note_checkpoint(kept, pod)
    return WorkSeen(
        name=kept.name,
        attempt=kept.attempt,
        pods=(
            *(pod.observe(node) for pod in kept.pods.values()),
            *(
                _waits(name, waiting_pod, kept.attempt)
                for name, waiting_pod in kept.waiting.items()
            ),
        ),
        objects={} if kept.is_removed else dict(_objects(kept, find_kind, now)),
        faults=dict(kept.faults),
        refused=frozenset(set(kept.faults) - set(kept.objects)),
        checkpointed_at=kept.checkpointed_at,
    )


def pods_of_object(kept: Kept, owner: str) -> list[PodState]:
    """The pods of an object as its controller would see them."""
    waiting = [
        PodState(
            name=waiting_pod.pod.name,
            pod_set=waiting_pod.pod.pod_set,
            index=waiting_pod.pod.index,
            phase="Pending",
            restarts=waiting_pod.remakes,
        )
        for waiting_pod in kept.waiting.values()
        if waiting_pod.owner == owner
    ]
    names = {pod.name for pod in waiting}
    made = [pod.pod_state() for pod in kept.by_name(owner).values() if pod.name not in names]
    return [*made, *waiting]


def note_checkpoint(kept: Kept, pod: LocalPod) -> None:
    saved = pod.checkpointed_at()
    if saved is not None:
        kept.checkpointed_at = max(saved, kept.checkpointed_at or saved)


def _objects(kept: Kept, find_kind: FindKind, now: float) -> Iterator[tuple[int, JsonObject]]:
    for position, body in kept.objects.items():
        kind = find_kind(body)
        if kind is None:
            yield position, body
            continue
        owner = owner_of(body)
        status = kept.finals.get(owner)
        if status is None:
            status = kind.play(body, pods_of_object(kept, owner), now=now)
        yield position, {**body, "status": status}


def _waits(name: str, waiting_pod: Waiting, attempt: int) -> PodSeen:
    return PodSeen(
        name=name,
        pod_set=waiting_pod.pod.pod_set,
        attempt=attempt,
        phase="Pending",
        since=waiting_pod.since,
        restarts=waiting_pod.remakes,
        reason="Unschedulable",
        message=waiting_pod.message,
        revision=waiting_pod.pod.labels.get(REVISION, ""),
        is_beside=PART in waiting_pod.pod.labels,
        containers=tuple(
            text(each, "name") for each in maps_at(waiting_pod.pod.spec, "containers")
        ),
    )
