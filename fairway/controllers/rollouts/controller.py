"""The controller of rollouts: keeps revisions, asks for the next step, and writes it.

A revision is written before anything refers to it, and removed only once nothing does. A rollout
keeps all its memory in its status, so that stopping at any point is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace as with_fields
from datetime import UTC, datetime
from typing import Literal

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.errors import AlreadyExists, NotFound
from fairway.api.meta import Condition, ObjectMeta, OwnerReference
from fairway.api.names import revision_name
from fairway.api.rollout import Revision, RevisionSpec, Rollout, RolloutStatus
from fairway.api.serving import serving_api_version
from fairway.api.workload import Workload
from fairway.controllers.clusters.phases import Phases
from fairway.controllers.context import Context
from fairway.controllers.glance import glance
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.rollouts import gate_numbers
from fairway.controllers.rollouts.inputs import case_of
from fairway.controllers.rollouts.register import Register, workload_of
from fairway.controllers.scheduling.commit import head_of, write_status
from fairway.controllers.statuses import with_status
from fairway.kinds.decision import REVISION
from fairway.kinds.updates import mark_of
from fairway.loops import Loop
from fairway.serving.rollout import history
from fairway.serving.rollout.advance import Advanced, advance
from fairway.store.interface import Deletion, Stored, Write
from fairway.store.keys import REVISIONS, ROLLOUTS, WORKLOADS
from fairway.store.mirrors import Name

_WRITE = Write(user="system:fairway", manager="fairway-rollouts")
_CHANGE_CAUSE = "kubernetes.io/change-cause"
_COUNTS_SECONDS = 2.0  # counts alone are written no more often
_AT_REST = ("Completed", "RolledBack")
_FAULTS = {
    "WorkloadMissing": "there is no such workload",
    "NotDivided": "only a Divided workload with a template has revisions that are staged",
    "AnotherRollout": "an older Rollout is for the same workload, and that one counts",
}


class Rollouts:
    """Writes the status of Rollouts, and keeps revisions."""

    def __init__(self, context: Context, *, measuring: Measuring) -> None:
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._kinds = context.kinds
        self._clock = context.clock
        self._notes = context.notes
        self._measuring = measuring
        self._register = context.cache.index(Register)
        self._roster = context.roster
        self._loop: Loop[Name] = Loop(
            "rollouts", self._reconcile, clock=context.clock, forgets=True
        )
        self._written: dict[Name, float] = {}
        self._tidied: dict[Name, set[str]] = {}  # marks that were kept at the last cleanup
        context.cache.mirror(ROLLOUTS).followers.append(self._rollout_changed)
        context.cache.mirror(WORKLOADS).followers.append(lambda name, stored: self._concerns(name))
        # Rollouts do not wait for silent clusters.
        context.cache.index(Phases).followers.append(self._mark_all)
        self._register.followers.append(self._concerns)
        context.states.followers.append(self._state_changed)

    async def run(self) -> None:
        """Looks at every Rollout once, then at what changes, until cancelled."""
        surged = {
            name[0] for name, stored in self._cache.mirror(WORKLOADS).items() if _has_surge(stored)
        }
        forgotten = [(namespace, "") for namespace in sorted(surged)]
        await self._loop.run([*self._cache.names(ROLLOUTS), *forgotten])

    def _rollout_changed(self, name: Name, stored: Stored | None) -> None:
        if stored is None:
            self._written.pop(name, None)
            self._tidied.pop(name, None)
        self._loop.mark(name)

    def _concerns(self, workload: Name) -> None:
        for name in self._register.rollouts_of(workload):
            self._loop.mark(name)

    def _mark_all(self) -> None:
        for name in self._cache.names(ROLLOUTS):
            self._loop.mark(name)

    def _state_changed(self, cluster: str, work: str) -> None:
        workload = self._roster.workload_of(work)
        if workload is not None:
            self._concerns(workload)

    # What is done.

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._cache.mirror(ROLLOUTS).get(name)
        rollout = self._cache.get(Rollout, name[1], name[0])
        if stored is None or rollout is None or rollout.metadata.deletion_timestamp is not None:
            await self._release(name[0])
            return None
        if self._cache.fleet().spec.paused:
            return self._clock.now() + 60.0
        namespace, wanted = workload_of(rollout)
        workload = self._cache.get(Workload, wanted, namespace)
        fault = self._fault(rollout, workload)
        if fault or workload is None:
            await self._refuse(stored, rollout, fault)
            return None
        return await self._advance(stored, rollout, workload)

    def _fault(self, rollout: Rollout, workload: Workload | None) -> str:
        if workload is None:
            return "WorkloadMissing"
        counts = self._register.of(workload)
        if counts is None:
            return "NotDivided"
        is_first = counts.metadata.name == rollout.metadata.name
        return "" if is_first else "AnotherRollout"

    async def _refuse(self, stored: Stored, rollout: Rollout, fault: str) -> None:
        status = replace(rollout.status, reason=fault, message=_FAULTS[fault])
        await self._write(stored, rollout, status, fault)

    async def _advance(self, stored: Stored, rollout: Rollout, workload: Workload) -> float | None:
        now = self._clock.now()
        status = await self._note(rollout, workload, now)
        case = with_fields(case_of(self._cache, self._states, rollout, workload, status), now=now)
        result = advance(case)
        due = gate_numbers.due(rollout, result.status, now)
        if due:
            answers = [
                await gate_numbers.ask(self._measuring, rollout, result.status, gate, now=now)
                for gate in due
            ]
            result = advance(with_fields(case, status=result.status, answers=tuple(answers)))
        kept = history.prune_history(
            result.status.history,
            limit=rollout.spec.revision_history_limit,
            in_use=history.marks_in_use(result.status),
        )
        result = with_fields(result, status=replace(result.status, history=kept))
        await self._surge(rollout, workload, result.status)
        again = await self._keep(stored, rollout, result)
        await self._tidy(rollout, {revision.mark for revision in kept})
        return again

    async def _note(self, rollout: Rollout, workload: Workload, now: float) -> RolloutStatus:
        """The status with the workload's template as its latest revision, which is stored first."""
        assert workload.spec.template is not None, "only such have Rollouts that count"
        before = rollout.status
        mark = mark_of(workload.spec.template.manifests, self._kinds)
        after = history.note_revision(
            before.history,
            mark,
            now=now,
            cause=workload.metadata.annotations.get(_CHANGE_CAUSE, ""),
            is_unmarked=not before.history and not self._is_marked(workload, mark),
        )
        name = revision_name(rollout.metadata.name, mark)
        if self._cache.get(Revision, name, rollout.metadata.namespace) is None:
            await self._create(rollout, workload, name, mark)
        generation = workload.metadata.generation
        return replace(before, history=after, workload_generation=generation)

    def _is_marked(self, workload: Workload, mark: str) -> bool:
        """Whether its pods carry the mark already, from a deleted Rollout; or there are none."""
        works = self._roster.works((workload.metadata.namespace, workload.metadata.name))
        return all(work.metadata.annotations.get(REVISION) == mark for work in works.values())

    async def _create(self, rollout: Rollout, workload: Workload, name: str, mark: str) -> None:
        metadata = rollout.metadata
        assert workload.spec.template is not None, "only such have Rollouts that count"
        owner = OwnerReference(
            api_version=serving_api_version(),
            kind="Rollout",
            name=metadata.name,
            uid=metadata.uid,
            controller=True,
        )
        revision = Revision(
            metadata=ObjectMeta(name=name, namespace=metadata.namespace, owner_references=(owner,)),
            spec=RevisionSpec(
                workload=workload.metadata.name, mark=mark, template=workload.spec.template
            ),
        )
        with suppress(AlreadyExists):  # the mirror will see it in a moment
            body = codec.to_plain(revision)
            await self._store.create(REVISIONS, body, namespace=metadata.namespace, write=_WRITE)

    async def _release(self, namespace: str) -> None:
        """Removes the surge replicas of services whose Rollout is gone."""
        for name, stored in list(self._cache.mirror(WORKLOADS).items()):
            if name[0] != namespace or not _has_surge(stored):
                continue
            workload = self._cache.get(Workload, name[1], name[0])
            if workload is not None and self._register.of(workload) is None:
                changed = replace(workload.status, surge_replicas=0)
                await write_status(self._store, head_of(stored), changed, _WRITE)

    async def _surge(self, rollout: Rollout, workload: Workload, status: RolloutStatus) -> None:
        """Asks for surge replicas during a rollout; the scheduler claims them."""
        wanted = 0 if status.phase in _AT_REST else rollout.spec.strategy.max_surge
        if workload.status.surge_replicas == wanted or workload.status.claim is None:
            return
        name = (workload.metadata.namespace, workload.metadata.name)
        stored = self._cache.mirror(WORKLOADS).get(name)
        if stored is None:
            return
        changed = replace(workload.status, surge_replicas=wanted)
        if wanted > workload.status.surge_replicas:
            moment = datetime.fromtimestamp(self._clock.now(), UTC)
            changed = replace(changed, increased_at=moment)
        await write_status(self._store, head_of(stored), changed, _WRITE)

    async def _keep(self, stored: Stored, rollout: Rollout, advance: Advanced) -> float | None:
        """Writes the next status, unless counts alone changed and were written just now."""
        name = (rollout.metadata.namespace, rollout.metadata.name)
        now, last = self._clock.now(), self._written.get(name, 0.0)
        is_told = _without_counts(advance.status) == _without_counts(rollout.status)
        if is_told and now - last < _COUNTS_SECONDS and advance.status != rollout.status:
            due = last + _COUNTS_SECONDS
            return due if advance.wake_at is None else min(due, advance.wake_at)
        if await self._write(stored, rollout, advance.status):
            self._written[name] = now
        return advance.wake_at

    async def _write(
        self, stored: Stored, rollout: Rollout, status: RolloutStatus, fault: str = ""
    ) -> bool:
        generation = rollout.metadata.generation
        status = replace(
            status,
            observed_generation=generation,
            conditions=conditions_of(
                status, fault=fault, now=self._clock.now(), generation=generation
            ),
        )
        if status == rollout.status:
            return False
        body = stored.object()
        await self._store.update(
            ROLLOUTS,
            with_status(body, status),
            namespace=rollout.metadata.namespace,
            subresource="status",
            write=_WRITE,
        )
        before = rollout.status
        if (status.phase, status.reason) != (before.phase, before.reason):
            await self._tell(stored, status)
        return True

    async def _tell(self, stored: Stored, status: RolloutStatus) -> None:
        is_bad = bool(status.failure) or status.reason in _FAULTS
        say = self._notes.warn if is_bad else self._notes.say
        phase = status.phase or status.reason
        message = f"revision {status.revision}: {status.message or status.reason or phase}"
        await say(stored.object(), phase, message)

    async def _tidy(self, rollout: Rollout, kept: set[str]) -> None:
        """Deletes revisions that nothing refers to, neither now nor in the last written status."""
        kept = kept | {revision.mark for revision in rollout.status.history}
        name = (rollout.metadata.namespace, rollout.metadata.name)
        if self._tidied.get(name) == kept:
            return
        self._tidied[name] = kept
        for revision in self._revisions(rollout):
            if revision.spec.mark not in kept:
                metadata = revision.metadata
                with suppress(NotFound):  # already deleted
                    await self._store.delete(
                        REVISIONS,
                        metadata.name,
                        namespace=metadata.namespace,
                        how=Deletion(uid=metadata.uid),
                        write=_WRITE,
                    )

    def _revisions(self, rollout: Rollout) -> Iterable[Revision]:
        for namespace, name in self._cache.names(REVISIONS):
            if namespace != rollout.metadata.namespace:
                continue
            revision = self._cache.get(Revision, name, namespace)
            if revision is not None and any(
                owner.uid == rollout.metadata.uid for owner in revision.metadata.owner_references
            ):
                yield revision


def _without_counts(status: RolloutStatus) -> RolloutStatus:
    """The part of a status that is worth a write by itself."""
    clusters = tuple(
        replace(cluster, replicas=0, updated=0, ready=0, available=0) for cluster in status.clusters
    )
    return replace(
        status,
        clusters=clusters,
        message="",
        replicas=0,
        updated=0,
        ready=0,
        progress=0,
        progressed_at=None,
    )


def conditions_of(
    status: RolloutStatus, *, fault: str, now: float, generation: int
) -> tuple[Condition, ...]:
    """Progressing, Completed and Failed, derived from the rest of a status."""
    is_moving = status.phase in ("Progressing", "Soaking", "RollingBack")
    wanted = {
        "Progressing": is_moving and not fault,
        "Completed": status.phase == "Completed" and not fault,
        "Failed": bool(status.failure or fault),
    }
    before = {condition.type: condition for condition in status.conditions}
    made = []
    for name, holds in wanted.items():
        word: Literal["True", "False"] = "True" if holds else "False"
        old = before.get(name)
        moment = datetime.fromtimestamp(int(now), UTC)
        made.append(
            Condition(
                type=name,
                status=word,
                reason=fault or status.failure or str(status.phase or ""),
                message=status.message if name == "Failed" and holds else "",
                last_transition_time=(
                    old.last_transition_time if old and old.status == word else moment
                ),
                observed_generation=generation,
            )
        )
    return tuple(made)


def _has_surge(stored: Stored) -> bool:
    seen = glance(stored)
    return seen is not None and seen.status.surge_replicas > 0
