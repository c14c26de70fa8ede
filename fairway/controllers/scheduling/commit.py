"""Commits a plan: writes each decision against the version of the workload that it saw.

The leader's term advances before each batch. All victims are written before any claim, since every
later decision of the plan may use the room that they leave. So a hub that crashes within a batch
never leaves a claim on room that no victim gives up. A decision that conflicts with another write
is dropped, with all that may depend on it, and planned again from the current state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import fields, replace

from fairway.api import codec
from fairway.api.errors import ApiError, Conflict, NotFound, Unavailable
from fairway.api.meta import JsonObject
from fairway.api.names import FINALIZER, namespace_and_name
from fairway.api.reasons import Reason
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.scheduling import claims
from fairway.controllers.scheduling.claims import Batch
from fairway.controllers.scheduling.never_starts import refuse
from fairway.controllers.scheduling.planner_state import Planned
from fairway.core.plan import Admit, Move, Preempt, Provision, Reservation, Step
from fairway.store.interface import Patch, Store, Stored, Write
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name

_log = logging.getLogger(__name__)

BY_SCHEDULER = Write(user="system:fairway", manager="fairway-scheduler")
_WIDTH = 64  # concurrent writes
_TRIES_MOST = 3
_STATUS_FIELDS = frozenset(other.encode_name for other in fields(WorkloadStatus))

MakeStatus = Callable[[Workload], WorkloadStatus]


@dataclass(slots=True)
class Outcome:
    """The result of a batch.

    Of the refused workloads, those in `awaited` have changed: the watch will deliver them soon. For
    those in `unsure` the write failed and only the store knows whether it took effect, since just
    the answer may have been lost.
    """

    written: list[Step] = field(default_factory=list)
    stored: dict[Name, Stored] = field(default_factory=dict)  # workloads as they were written
    refused: dict[str, str] = field(default_factory=dict)  # workload -> why
    awaited: set[str] = field(default_factory=set)
    unsure: dict[str, str] = field(default_factory=dict)  # workload -> version seen


class Committer:
    """Writes plans."""

    def __init__(
        self,
        store: Store,
        latest: Callable[[Name], Stored | None],
        is_leader: Callable[[], bool],
        *,
        tell: Callable[[Workload, WorkloadStatus], None],
    ) -> None:
        """`latest` returns a workload as the watch delivered it, or as it was written since.

        `tell` is called with each status that was written, and the workload before it.
        """
        self._store = store
        self._tell = tell
        self._latest = latest
        self._is_leader = is_leader
        self._width = asyncio.Semaphore(_WIDTH)

    async def commit(self, planned: Planned, batch: Batch) -> Outcome:
        """Writes the decisions that still hold; refuses the others, with reasons."""
        outcome = Outcome()
        deals = await self._with_finalizers(deals_of(planned.steps), planned, outcome)
        deals = await self._with_victims_gone(deals, batch, outcome)
        async with asyncio.TaskGroup() as tasks:
            for deal in deals:
                tasks.create_task(self._commit_deal(deal, planned, batch, outcome))
            for key, reservation in planned.reservations.items():
                make = _reserve(reservation, batch)
                tasks.create_task(self._commit_one(key, make, planned, outcome))
            for key, never in planned.refused.items():
                make = _fail(never, batch)
                tasks.create_task(self._commit_one(key, make, planned, outcome))
        return outcome

    async def _with_finalizers(
        self, deals: Sequence[Sequence[Step]], planned: Planned, outcome: Outcome
    ) -> Sequence[Sequence[Step]]:
        """The deals whose workloads have the finalizer; the others get it now, and a claim later.

        A claim must be the very next version after the one seen. With a version between them, the
        planner would for a moment see a workload that holds nothing.
        """
        missing = {
            position: body
            for position, deal in enumerate(deals)
            if (body := self._unkept(deal, planned)) is not None
        }
        if not missing:
            return deals
        async with asyncio.TaskGroup() as tasks:
            for body in missing.values():
                tasks.create_task(self._give_finalizer(body, planned, outcome))
        kept = []
        for position, deal in enumerate(deals):
            if position not in missing:
                kept.append(deal)
                continue
            _refuse(deal, outcome)
            if any(isinstance(step, Preempt) for step in deal):
                for other in deals[position + 1 :]:
                    _refuse(other, outcome)
                break
        return kept

    def _unkept(self, deal: Sequence[Step], planned: Planned) -> JsonObject | None:
        """The workload that a deal admits, if it lacks the finalizer and so could vanish."""
        for step in deal:
            if isinstance(step, Admit):
                stored = self._latest(namespace_and_name(step.workload))
                if stored is None or FINALIZER.encode() in stored.raw:
                    return None
                body = self._if_unchanged(step.workload, planned)
                return body if body and "deletionTimestamp" not in body["metadata"] else None
        return None

    async def _give_finalizer(self, body: JsonObject, planned: Planned, outcome: Outcome) -> None:
        metadata = body["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        try:
            async with self._width:
                await self._with_finalizer(body)
        except (ApiError, OSError) as fault:
            outcome.refused[key] = str(fault) or type(fault).__name__
            outcome.unsure[key] = planned.versions[key]
        else:
            outcome.refused[key] = "it was given its finalizer first"
            outcome.awaited.add(key)

    async def _with_victims_gone(
        self, deals: Sequence[Sequence[Step]], batch: Batch, outcome: Outcome
    ) -> Sequence[Sequence[Step]]:
        """Writes all victims; returns the deals before the first one that misses a victim."""
        async with asyncio.TaskGroup() as tasks:
            written = [
                [
                    tasks.create_task(self._preempt(step, batch, outcome))
                    for step in deal
                    if isinstance(step, Preempt)
                ]
                for deal in deals
            ]
        for position, answers in enumerate(written):
            if not all(answer.result() for answer in answers):
                for deal in deals[position:]:
                    _refuse(deal, outcome)
                return deals[:position]
        return deals

    async def _commit_deal(
        self, deal: Sequence[Step], planned: Planned, batch: Batch, outcome: Outcome
    ) -> None:
        """Writes all steps for one workload; its victims are already preempted."""
        provisions = [step for step in deal if isinstance(step, Provision)]
        moves = [step for step in deal if isinstance(step, Move)]
        for step in deal:
            make: MakeStatus
            match step:
                case Admit():
                    leaving = self._victims_of(step, outcome)
                    if leaving is None:
                        _refuse(deal, outcome)
                        return
                    make = _admit(step, provisions, batch, leaving)
                case Move() if step is moves[0]:
                    make = _move(moves, batch)
                case Move():
                    outcome.written.append(step)  # written with the first
                    continue
                case Preempt() | Provision():
                    continue  # victims are written, and provisions are part of the claim
            if not await self._commit_one(step.workload, make, planned, outcome):
                _refuse(deal, outcome)
                return
            outcome.written.append(step)

    def _victims_of(self, step: Admit, outcome: Outcome) -> dict[str, claims.Leaving] | None:
        """The workloads that must be gone before a claim can run.

        None if one of them holds a claim, and nothing of it leaves: an earlier decision that it
        gives something up may not have been written.
        """
        result: dict[str, claims.Leaving] = {}
        for key in step.waits_for:
            name = namespace_and_name(key)
            stored = outcome.stored.get(name) or self._latest(name)
            victim = codec.decode(stored.raw, Workload) if stored is not None else None
            stopping = victim.status.stopping if victim is not None else ()
            if victim is not None and stopping:
                attempt = max(placement.attempt for placement in stopping)
                result[key] = claims.Leaving(uid=victim.metadata.uid, attempt=attempt)
            elif victim is not None and victim.status.claim is not None:
                return None
        return result

    async def _commit_one(
        self, key: str, make: MakeStatus, planned: Planned, outcome: Outcome
    ) -> bool:
        """Writes the status of one workload, if it is still at the version seen."""
        body = self._if_unchanged(key, planned)
        if body is None:
            outcome.refused[key] = "it changed meanwhile"
            outcome.awaited.add(key)
            return False
        try:
            await self._write(body, make, outcome)
        except (ApiError, OSError) as fault:
            outcome.refused[key] = str(fault) or type(fault).__name__
            outcome.unsure[key] = planned.versions[key]
            return False
        return True

    def _if_unchanged(self, key: str, planned: Planned) -> JsonObject | None:
        """A workload, if it is still at the version that the decision saw."""
        stored = self._latest(namespace_and_name(key))
        body = stored.object() if stored else None
        if body is None or body["metadata"]["resourceVersion"] != planned.versions.get(key):
            return None
        return body

    async def _preempt(self, step: Preempt, batch: Batch, outcome: Outcome) -> bool:
        """Takes the claim of a victim; retries on a conflict while it holds the same attempt."""
        name = namespace_and_name(step.workload)
        stored = self._latest(name)
        body = stored.object() if stored else None
        attempt = _attempt(body)
        for _ in range(_TRIES_MOST):
            if body is None or attempt is None or _attempt(body) != attempt:
                outcome.refused[step.workload] = "it holds its claim no more"
                return False
            try:
                if await self._is_preempted(body, step, batch, outcome):
                    outcome.written.append(step)
                    return True
                body = await self._read(name)
            except (ApiError, OSError) as fault:
                outcome.refused[step.workload] = str(fault) or type(fault).__name__
                return False
        outcome.refused[step.workload] = "it changes too quickly"
        return False

    async def _is_preempted(
        self, body: JsonObject, step: Preempt, batch: Batch, outcome: Outcome
    ) -> bool:
        """Takes the claim of a victim; False on a conflict."""
        by = self._latest(namespace_and_name(step.for_))
        uid = _decode_head(by.raw).metadata.uid if by is not None else ""

        def make(workload: Workload) -> WorkloadStatus:
            return claims.preempt(workload, step, batch, by_uid=uid)

        try:
            await self._write(body, make, outcome)
        except Conflict:
            return False
        return True

    async def _read(self, workload: Name) -> JsonObject | None:
        namespace, name = workload
        try:
            return (await self._store.get(WORKLOADS, name, namespace)).object()
        except NotFound:
            return None

    async def _write(self, body: JsonObject, make: MakeStatus, outcome: Outcome) -> None:
        async with self._width:
            if not self._is_leader():  # the process may have been paused since the batch began
                raise Unavailable("another replica may lead by now")
            workload = codec.decode(body, Workload)
            status = make(workload)
            stored = await write_status(self._store, body, status, BY_SCHEDULER)
        self._tell(workload, status)
        metadata = body["metadata"]
        outcome.stored[metadata["namespace"], metadata["name"]] = stored

    async def _with_finalizer(self, body: JsonObject) -> None:
        """Adds the finalizer to a workload that was created without it, before it gets a claim."""
        metadata = body["metadata"]
        change = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*(metadata.get("finalizers") or []), FINALIZER],
            }
        }
        await self._store.patch(
            WORKLOADS,
            metadata["name"],
            Patch(type="merge", body=change),
            namespace=metadata["namespace"],
            write=BY_SCHEDULER,
        )


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class _Head(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata
    status: dict[str, msgspec.Raw] = {}


_decode_head = msgspec.json.Decoder(_Head).decode


def head_of(stored: Stored) -> JsonObject:
    """What a status write needs: identity, version, and status fields unknown to this hub."""
    head = _decode_head(stored.raw)
    return {
        "apiVersion": head.api_version,
        "kind": head.kind,
        "metadata": {
            "name": head.metadata.name,
            "namespace": head.metadata.namespace,
            "uid": head.metadata.uid,
            "resourceVersion": head.metadata.resource_version,
        },
        "status": {
            key: msgspec.json.decode(value)
            for key, value in head.status.items()
            if key not in _STATUS_FIELDS
        },
    }


async def write_status(
    store: Store, body: JsonObject, status: WorkloadStatus, write: Write
) -> Stored:
    """Writes the status of a workload; keeps status fields of a newer version of the hub."""
    unknown = {
        key: value for key, value in (body.get("status") or {}).items() if key not in _STATUS_FIELDS
    }
    changed = {**body, "status": {**unknown, **codec.to_plain(status)}}
    return await store.update(
        WORKLOADS,
        changed,
        namespace=body["metadata"]["namespace"],
        subresource="status",
        write=write,
    )


def deals_of(steps: Sequence[Step]) -> list[list[Step]]:
    """Groups steps by the workload that they serve, in order; each group is a deal."""
    deals: dict[str, list[Step]] = {}
    for step in steps:
        served = step.for_ if isinstance(step, Preempt) else step.workload
        deals.setdefault(served, []).append(step)
    return list(deals.values())


def _refuse(deal: Sequence[Step], outcome: Outcome) -> None:
    for item in deal:
        outcome.refused.setdefault(item.workload, "what it hangs on was not written")


def _admit(
    step: Admit,
    provisions: list[Provision],
    batch: Batch,
    leaving: Mapping[str, claims.Leaving],
) -> MakeStatus:
    return lambda workload: claims.take_claim(workload, step, provisions, batch, leaving)


def _move(moves: Sequence[Move], batch: Batch) -> MakeStatus:
    """All moves of a workload, in order, in one write."""

    def make(workload: Workload) -> WorkloadStatus:
        for step in moves:
            workload = replace(workload, status=claims.move(workload, step, batch))
        return workload.status

    return make


def _reserve(reservation: Reservation | None, batch: Batch) -> MakeStatus:
    return lambda workload: claims.reserve(workload, reservation, batch)


def _fail(never: Reason, batch: Batch) -> MakeStatus:
    return lambda workload: refuse(workload, never, batch.moment)


def _attempt(body: JsonObject | None) -> int | None:
    claim = ((body or {}).get("status") or {}).get("claim")
    return claim["attempt"] if claim else None
