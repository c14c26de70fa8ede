"""Committing: what was planned is written, each decision against the version that it saw.

A batch first advances the leader's term. All victims go before any claim: not only those for whom
they yield count on what they leave, but whoever was decided after. So a hub that crashes amid a
batch has never claimed what nobody gives up. What cannot be written, because somebody else was
first, is left out, with all that may count on it, and planned again from what is there now.
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
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.scheduling import claims
from fairway.controllers.scheduling.claims import Context
from fairway.controllers.scheduling.planner_state import Planned
from fairway.core.plan import Admit, Move, Preempt, Provision, Reservation, Step
from fairway.store.interface import Patch, Store, Stored, Write
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name

_log = logging.getLogger(__name__)

BY_SCHEDULER = Write(user="system:fairway", manager="fairway-scheduler")
_WIDTH = 64  # writes under way at a time
_TRIES_MOST = 3
_STATUS_FIELDS = frozenset(other.encode_name for other in fields(WorkloadStatus))

MakeStatus = Callable[[Workload], WorkloadStatus]


@dataclass(slots=True)
class Outcome:
    """What became of a batch.

    Of those refused, some were changed, and are heard of in a moment. Where a write failed, only
    the store can tell whether it was carried out: the answer alone may have been lost.
    """

    written: list[Step] = field(default_factory=list)
    stored: dict[Name, Stored] = field(default_factory=dict)  # workloads as they were written
    refused: dict[str, str] = field(default_factory=dict)  # workload -> why
    awaited: set[str] = field(default_factory=set)
    unsure: dict[str, str] = field(default_factory=dict)  # workload -> version that was seen


class Committer:
    """Writes plans."""

    def __init__(
        self,
        store: Store,
        latest: Callable[[Name], Stored | None],
        is_leader: Callable[[], bool],
    ) -> None:
        """`latest` finds a workload as it was told of, or written since."""
        self._store = store
        self._latest = latest
        self._is_leader = is_leader
        self._width = asyncio.Semaphore(_WIDTH)

    async def commit(self, planned: Planned, context: Context) -> Outcome:
        """Writes what still holds; the rest is refused, with reasons."""
        outcome = Outcome()
        deals = await self._with_finalizers(deals_of(planned.steps), planned, outcome)
        deals = await self._with_victims_gone(deals, context, outcome)
        async with asyncio.TaskGroup() as tasks:
            for deal in deals:
                tasks.create_task(self._commit_deal(deal, planned, context, outcome))
            for key, reservation in planned.reservations.items():
                make = _reserve(reservation, context)
                tasks.create_task(self._commit_one(key, make, planned, outcome))
        return outcome

    async def _with_finalizers(
        self, deals: Sequence[Sequence[Step]], planned: Planned, outcome: Outcome
    ) -> Sequence[Sequence[Step]]:
        """The deals whose workloads have the finalizer; others get it, and a claim next time.

        A claim must be the very next version after the one that was seen: were there one between
        them, who plans would for a moment see a workload that holds nothing.
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
        """The workload that is to be claimed for, if it could vanish while it holds something."""
        for step in deal:
            if isinstance(step, Admit):
                stored = self._latest(namespace_and_name(step.workload))
                if stored is None or FINALIZER.encode() in stored.raw:
                    return None
                body = self._seen(step.workload, planned)
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
        self, deals: Sequence[Sequence[Step]], context: Context, outcome: Outcome
    ) -> Sequence[Sequence[Step]]:
        """Writes all victims; the deals up to the first that misses one of its own."""
        async with asyncio.TaskGroup() as tasks:
            written = [
                [
                    tasks.create_task(self._preempt(step, context, outcome))
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
        self, deal: Sequence[Step], planned: Planned, context: Context, outcome: Outcome
    ) -> None:
        """All steps for one workload, whose victims have been told to go."""
        provisions = [step for step in deal if isinstance(step, Provision)]
        moves = [step for step in deal if isinstance(step, Move)]
        for step in deal:
            make: MakeStatus
            match step:
                case Admit():
                    make = _admit(step, provisions, context, self._leaving(step, outcome))
                case Move() if step is moves[0]:
                    make = _move(moves, context)
                case Move():
                    outcome.written.append(step)  # with the first
                    continue
                case Preempt() | Provision():
                    continue  # done before, and part of the claim that follows
            if not await self._commit_one(step.workload, make, planned, outcome):
                _refuse(deal, outcome)
                return
            outcome.written.append(step)

    def _leaving(self, step: Admit, outcome: Outcome) -> dict[str, claims.Leaving]:
        """Those that must be gone before a claim can run."""
        result: dict[str, claims.Leaving] = {}
        for key in step.waits_for:
            name = namespace_and_name(key)
            stored = outcome.stored.get(name) or self._latest(name)
            body = stored.object() if stored is not None else {}
            leaving = (body.get("status") or {}).get("releasing") or ()
            attempts = [item.get("attempt", 0) for item in leaving]
            if attempts:
                uid = body["metadata"].get("uid", "")
                result[key] = claims.Leaving(uid=uid, attempt=max(attempts))
        return result

    async def _commit_one(
        self, key: str, make: MakeStatus, planned: Planned, outcome: Outcome
    ) -> bool:
        """Writes one workload's status, if it is still the one that was seen."""
        body = self._seen(key, planned)
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

    def _seen(self, key: str, planned: Planned) -> JsonObject | None:
        """A workload, if it is still the one that was seen when it was decided on."""
        stored = self._latest(namespace_and_name(key))
        body = stored.object() if stored else None
        if body is None or body["metadata"]["resourceVersion"] != planned.versions.get(key):
            return None
        return body

    async def _preempt(self, step: Preempt, context: Context, outcome: Outcome) -> bool:
        """Takes a victim's claim; tried again if only its status moved on meanwhile."""
        name = namespace_and_name(step.workload)
        stored = self._latest(name)
        body = stored.object() if stored else None
        attempt = _attempt(body)
        for _ in range(_TRIES_MOST):
            if body is None or attempt is None or _attempt(body) != attempt:
                outcome.refused[step.workload] = "it holds its claim no more"
                return False
            try:
                if await self._is_preempted(body, step, context, outcome):
                    outcome.written.append(step)
                    return True
                body = await self._read(name)
            except (ApiError, OSError) as fault:
                outcome.refused[step.workload] = str(fault) or type(fault).__name__
                return False
        outcome.refused[step.workload] = "it changes too quickly"
        return False

    async def _is_preempted(
        self, body: JsonObject, step: Preempt, context: Context, outcome: Outcome
    ) -> bool:
        """Takes a victim's claim, unless somebody else has changed it."""
        by = self._latest(namespace_and_name(step.for_))
        uid = _decode_head(by.raw).metadata.uid if by is not None else ""

        def make(workload: Workload) -> WorkloadStatus:
            return claims.preempt(workload, step, context, by_uid=uid)

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
            if not self._is_leader():  # it may have stood still since the batch began
                raise Unavailable("another replica may lead by now")
            status = make(codec.decode(body, Workload))
            stored = await write_status(self._store, body, status, BY_SCHEDULER)
        metadata = body["metadata"]
        outcome.stored[metadata["namespace"], metadata["name"]] = stored

    async def _with_finalizer(self, body: JsonObject) -> None:
        """A workload that was made without it, by hand, gets the finalizer before a claim."""
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
    """As much of a workload as writing its status takes: which one it is, at which version, and
    what of its status this hub does not know."""
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
    """Writes a workload's status; what a newer version of the hub keeps there stays."""
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
    """Steps that belong together: those that serve one workload, in their order."""
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
    context: Context,
    leaving: Mapping[str, claims.Leaving],
) -> MakeStatus:
    return lambda workload: claims.take_claim(workload, step, provisions, context, leaving)


def _move(moves: Sequence[Move], context: Context) -> MakeStatus:
    """All moves of a workload, one after the other, in one write."""

    def make(workload: Workload) -> WorkloadStatus:
        for step in moves:
            workload = replace(workload, status=claims.move(workload, step, context))
        return workload.status

    return make


def _reserve(reservation: Reservation | None, context: Context) -> MakeStatus:
    return lambda workload: claims.reserve(workload, reservation, context)


def _attempt(body: JsonObject | None) -> int | None:
    claim = ((body or {}).get("status") or {}).get("claim")
    return claim["attempt"] if claim else None
