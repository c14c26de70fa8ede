"""What is told of a work: its pods, and the statuses of its objects."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.agent.drivers.interface import PodSeen, WorkSeen
from fairway.agent.drivers.local.pods import LocalPod
from fairway.agent.drivers.local.works import FindKind, Kept, Waiting, owner_of
from fairway.api.meta import JsonObject
from fairway.kinds.decision import REVISION
from fairway.kinds.interface import PodState
from fairway.kinds.plain import listed, text


def seen(kept: Kept, find_kind: FindKind, *, node: str, now: float) -> WorkSeen:
    for pod in kept.pods.values():
        note_checkpoint(kept, pod)
    return WorkSeen(
        name=kept.name,
        attempt=kept.attempt,
        pods=(
            *(pod.seen(node) for pod in kept.pods.values()),
            *(_waits(name, one, kept.attempt) for name, one in kept.waiting.items()),
        ),
        objects={} if kept.is_removed else dict(_objects(kept, find_kind, now)),
        faults=dict(kept.faults),
        checkpointed_at=kept.checkpointed_at,
    )


def played(kept: Kept, owner: str) -> list[PodState]:
    """The pods of an object as its own controller would see them."""
    waiting = [
        PodState(
            name=one.pod.name,
            pod_set=one.pod.pod_set,
            index=one.pod.index,
            phase="Pending",
            restarts=one.remakes,
        )
        for one in kept.waiting.values()
        if one.owner == owner
    ]
    names = {one.name for one in waiting}
    made = [one.played() for one in kept.by_name(owner).values() if one.name not in names]
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
            status = kind.play(body, played(kept, owner), now=now)
        yield position, {**body, "status": status}


def _waits(name: str, one: Waiting, attempt: int) -> PodSeen:
    return PodSeen(
        name=name,
        pod_set=one.pod.pod_set,
        attempt=attempt,
        phase="Pending",
        since=one.since,
        restarts=one.remakes,
        reason="Unschedulable",
        message=one.message,
        revision=one.pod.labels.get(REVISION, ""),
        containers=tuple(text(each, "name") for each in listed(one.pod.spec, "containers")),
    )
