"""Committing: what was planned is written, each decision against the version that it saw.

A batch first advances the leader's term. Victims go before those for whom they yield: a claim that
waits for victims is written only when all of them are. What cannot be written, because somebody
else was first, is left out and planned again from what is there now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import fields

from fairway.api import codec
from fairway.api.errors import ApiError, Conflict, NotFound
from fairway.api.meta import JsonObject
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.cache import WORKLOADS, Cache
from fairway.controllers.scheduling import claims
from fairway.controllers.scheduling.claims import Context
from fairway.controllers.scheduling.planning import Planned
from fairway.core.steps import Admit, Move, Preempt, Provision, Reservation, Step
from fairway.store.interface import Patch, Store, Write

FINALIZER = "fairway.dev/works"

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-scheduler")
_WIDTH = 64  # writes under way at a time
_TRIES_MOST = 3
_STATUS_FIELDS = frozenset(one.encode_name for one in fields(WorkloadStatus))

MakeStatus = Callable[[Workload], WorkloadStatus]


@dataclass(slots=True)
class Outcome:
    """What became of a batch."""

    written: list[Step] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # workload -> why


class Committer:
    """Writes plans."""

    def __init__(self, store: Store, cache: Cache) -> None:
        self._store = store
        self._cache = cache
        self._width = asyncio.Semaphore(_WIDTH)

    async def commit(self, planned: Planned, context: Context) -> Outcome:
        """Writes what still holds; the rest is refused, with reasons."""
        outcome = Outcome()
        async with asyncio.TaskGroup() as tasks:
            for deal in _deals(planned.steps):
                tasks.create_task(self._commit_deal(deal, planned, context, outcome))
            for key, reservation in planned.reservations.items():
                make = _reserving(reservation, context)
                tasks.create_task(self._commit_one(key, make, planned, outcome))
        return outcome

    async def _commit_deal(
        self, deal: Sequence[Step], planned: Planned, context: Context, outcome: Outcome
    ) -> None:
        """All steps for one workload: victims first, then itself."""
        provisions = [step for step in deal if isinstance(step, Provision)]
        for step in deal:
            make: MakeStatus
            match step:
                case Preempt():
                    is_written = await self._preempt(step, context, outcome)
                case Admit():
                    make = _admitting(step, provisions, context)
                    is_written = await self._commit_one(step.workload, make, planned, outcome)
                case Move():
                    make = _moving(step, context)
                    is_written = await self._commit_one(step.workload, make, planned, outcome)
                case Provision():
                    continue  # part of the claim that follows
            if not is_written:
                for one in deal:
                    outcome.refused.setdefault(one.workload, "what it hangs on was not written")
                return
            outcome.written.append(step)

    async def _commit_one(
        self, key: str, make: MakeStatus, planned: Planned, outcome: Outcome
    ) -> bool:
        """Writes one workload's status, if it is still the one that was seen."""
        namespace, _, name = key.partition("/")
        stored = self._cache.mirror(WORKLOADS).get((namespace, name))
        body = stored.object() if stored else None
        if body is None or body["metadata"]["resourceVersion"] != planned.versions.get(key):
            outcome.refused[key] = "it changed meanwhile"
            return False
        try:
            await self._write(body, make)
        except (ApiError, OSError) as fault:
            outcome.refused[key] = str(fault)
            return False
        return True

    async def _preempt(self, step: Preempt, context: Context, outcome: Outcome) -> bool:
        """Takes a victim's claim; tried again if only its status moved on meanwhile."""
        namespace, _, name = step.workload.partition("/")
        stored = self._cache.mirror(WORKLOADS).get((namespace, name))
        body = stored.object() if stored else None
        attempt = _attempt(body)
        for _ in range(_TRIES_MOST):
            if body is None or attempt is None or _attempt(body) != attempt:
                outcome.refused[step.workload] = "it holds its claim no more"
                return False
            try:
                await self._write(body, lambda workload: claims.preempted(workload, step, context))
            except Conflict:
                body = await self._read(namespace, name)
            except (ApiError, OSError) as fault:
                outcome.refused[step.workload] = str(fault)
                return False
            else:
                return True
        outcome.refused[step.workload] = "it changes too quickly"
        return False

    async def _read(self, namespace: str, name: str) -> JsonObject | None:
        try:
            return (await self._store.get(WORKLOADS, name, namespace)).object()
        except NotFound:
            return None

    async def _write(self, body: JsonObject, make: MakeStatus) -> None:
        async with self._width:
            body = await self._with_finalizer(body)
            status = make(codec.decode(body, Workload))
            await write_status(self._store, body, status, _WRITE)

    async def _with_finalizer(self, body: JsonObject) -> JsonObject:
        """A workload that was made without it, by hand, gets the finalizer before a claim."""
        metadata = body["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER in finalizers or metadata.get("deletionTimestamp"):
            return body
        change = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*finalizers, FINALIZER],
            }
        }
        stored, _ = await self._store.patch(
            WORKLOADS,
            metadata["name"],
            Patch(type="merge", body=change),
            namespace=metadata["namespace"],
            write=_WRITE,
        )
        return stored.object()


async def write_status(
    store: Store, body: JsonObject, status: WorkloadStatus, write: Write
) -> JsonObject:
    """Writes a workload's status; what a newer version of the hub keeps there stays."""
    unknown = {
        key: value for key, value in (body.get("status") or {}).items() if key not in _STATUS_FIELDS
    }
    changed = {**body, "status": {**unknown, **codec.to_plain(status)}}
    stored = await store.update(
        WORKLOADS,
        changed,
        namespace=body["metadata"]["namespace"],
        subresource="status",
        write=write,
    )
    return stored.object()


def _deals(steps: Sequence[Step]) -> list[list[Step]]:
    """Steps that belong together: those that serve one workload, in their order."""
    deals: dict[str, list[Step]] = {}
    for step in steps:
        served = step.for_ if isinstance(step, Preempt) else step.workload
        deals.setdefault(served, []).append(step)
    return list(deals.values())


def _admitting(step: Admit, provisions: list[Provision], context: Context) -> MakeStatus:
    return lambda workload: claims.claimed(workload, step, provisions, context)


def _moving(step: Move, context: Context) -> MakeStatus:
    return lambda workload: claims.moved(workload, step, context)


def _reserving(reservation: Reservation | None, context: Context) -> MakeStatus:
    return lambda workload: claims.reserved(workload, reservation, context)


def _attempt(body: JsonObject | None) -> int | None:
    claim = ((body or {}).get("status") or {}).get("claim")
    return claim["attempt"] if claim else None
