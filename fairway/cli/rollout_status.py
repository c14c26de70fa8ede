"""Finds a Rollout, and shows its progress, in kubectl's words where there are any."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

from fairway.api.codec import decode
from fairway.api.errors import NotFound
from fairway.api.names import native_workload_name
from fairway.api.rollout import Rollout, RolloutStatus
from fairway.cli import terminal
from fairway.cli.session import Failure, Session
from fairway.client.asynchronous import WORKLOADS, AsyncClient
from fairway.client.wire import Object, Scope

ROLLOUTS = "rollouts.serving.fairway.dev"
REVISIONS = "revisions.serving.fairway.dev"
_OWN = ("rollout", "rollouts", "ro", ROLLOUTS, "rollout.serving.fairway.dev")
_WENT_WRONG = ("Paused", "RolledBack", "Failed", "RollingBack")


def find(session: Session, word: str) -> Rollout:
    """The Rollout with this name, or of the service with this name."""
    kind, slash, name = word.rpartition("/")
    if not slash or kind.lower() in _OWN:
        try:
            return _read(session.client.get(ROLLOUTS, name, namespace=session.namespace))
        except NotFound:
            if slash:
                raise
    scope = Scope(namespace=session.namespace)
    for body in session.client.list(ROLLOUTS, scope=scope).items:
        if _is_for(_read(body), session, kind, name):
            return _read(body)
    raise Failure(f"there is no Rollout for {word} in namespace {session.namespace}")


def _read(body: Object) -> Rollout:
    return decode(body, Rollout)


def _is_for(rollout: Rollout, session: Session, kind: str, name: str) -> bool:
    reference = rollout.spec.workload
    if not kind:
        return name in (reference.name, workload_of(rollout))
    wanted = session.client.resolve(kind).kind
    if wanted == "Workload":
        return name == workload_of(rollout)
    return (wanted, name) == (reference.kind, reference.name)


def workload_of(rollout: Rollout) -> str:
    """The name of the workload that is rolled out."""
    reference = rollout.spec.workload
    if reference.kind == "Workload":
        return reference.name
    return native_workload_name(reference.kind, reference.name)


def sentence(rollout: Rollout) -> str:
    """The progress of a Rollout, in one line."""
    status, name = rollout.status, rollout.metadata.name
    match status.phase:
        case None:
            return f'Waiting for rollout "{name}" to be looked at...'
        case "Completed":
            return f'rollout "{name}" successfully rolled out'
        case "RollingBack":
            return f'Waiting for rollout "{name}" to go back: {status.message}'
        case "RolledBack":
            back = status.stable_revision
            return f'rollout "{name}" went back to revision {back}: {_why(status)}'
        case "Failed":
            return f'rollout "{name}" failed: {_why(status)}'
        case "Paused" if status.failure:
            return f'rollout "{name}" stopped: {_why(status)}'
    where = f"batch {status.current_batch + 1} of {max(1, status.batches)}"
    count = f"{status.updated} of {status.replicas} updated replicas are ready"
    waits = f" ({status.phase}: {status.message})" if status.phase != "Progressing" else ""
    return f'Waiting for rollout "{name}" to finish: {where}, {count}{waits}...'


def _why(status: RolloutStatus) -> str:
    return f"{status.reason}: {status.message}" if status.message else status.reason


def outcome(rollout: Rollout, generation: int) -> int | None:
    """The exit code of a Rollout that is over or does not continue by itself; else None."""
    status = rollout.status
    is_old = status.observed_generation < rollout.metadata.generation
    if is_old or status.workload_generation < generation:
        return None
    if status.phase == "Completed":
        return 0
    has_failed = bool(status.failure) and status.phase in _WENT_WRONG
    return 1 if has_failed and status.phase != "RollingBack" else None


def follow(session: Session, rollout: Rollout, *, generation: int, seconds: float | None) -> int:
    """Shows progress until it is over; returns its exit code. TimeoutError if it takes too long."""
    client = session.client
    return client.loop.run(_follow(client.asynchronous, rollout, generation, seconds))


async def _follow(
    client: AsyncClient, rollout: Rollout, generation: int, seconds: float | None
) -> int:
    metadata, last_line = rollout.metadata, ""
    scope = Scope(namespace=metadata.namespace, fields=f"metadata.name={metadata.name}")
    async with asyncio.timeout(seconds), aclosing(client.watch(ROLLOUTS, scope=scope)) as events:
        async for event in events:
            if event.type == "DELETED":
                raise Failure(f'rollout "{metadata.name}" was deleted')
            if event.type == "BOOKMARK":
                continue
            result = _read(event.object)
            code = outcome(result, generation)
            line = sentence(result)
            if line != last_line and (code is not None or result.status.phase != "Completed"):
                terminal.write([line])
                last_line = line
            if code is not None:
                return code
    return 1


def generation_of(session: Session, rollout: Rollout) -> int:
    """The generation of the service, which a current status must have observed."""
    try:
        known = session.client.get(
            WORKLOADS, workload_of(rollout), namespace=rollout.metadata.namespace
        )
    except NotFound:
        return 0
    return int(known["metadata"].get("generation") or 0)


def rows(rollout: Rollout) -> Iterator[list[str]]:
    """The revision of each cluster, for people."""
    for cluster in rollout.status.clusters:
        share = cluster.replicas if cluster.share is None else cluster.share
        yield [
            cluster.cluster,
            cluster.group or "<none>",
            str(cluster.revision),
            f"{cluster.ready}/{share}",
            f"{cluster.available}/{cluster.replicas}",
        ]
