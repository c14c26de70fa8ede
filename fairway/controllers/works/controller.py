"""The works controller: writes the derived works; stops works at a limited rate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace as with_fields
from typing import Any

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.errors import Forbidden, NotFound
from fairway.api.flavor import Flavor
from fairway.api.governance import FleetPolicy, FleetPolicySpec
from fairway.api.meta import JsonObject
from fairway.api.names import OVER, work_name
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.adoption import hides, is_adopted, is_later, is_own, refusal_of
from fairway.controllers.context import Context
from fairway.controllers.governance import policies_for
from fairway.controllers.lifecycle import inputs
from fairway.controllers.rollouts.register import Register, Stage, stages_of
from fairway.controllers.shared_state import TemplateRefusal
from fairway.controllers.terms import NotLeader
from fairway.controllers.works.closed_places import CLOSED_SECONDS, closed_places
from fairway.controllers.works.derive import (
    Create,
    Delete,
    Derived,
    Known,
    Update,
    WorkWrite,
    derive,
)
from fairway.controllers.works.manifests import dependencies_of
from fairway.controllers.works.revisions import Stages, templates_in_use, with_template
from fairway.controllers.works.strangers import BRING_BACK_SECONDS, NEVER, stays_until
from fairway.controllers.works.verdicts import is_outdated, is_past, is_refused
from fairway.controllers.works.victims import Incarnations, mention, settled_at
from fairway.loops import Alarm, Loop, in_slices
from fairway.store.interface import Deletion, Stored, Write
from fairway.store.keys import CLUSTERS, FLEET_POLICIES, FLEETS, WORKLOADS, WORKS, resource_of
from fairway.store.mirrors import Name
from fairway.view.workloads import last_attempt

_WRITE = Write(user="system:fairway", manager="fairway-works")
# A workload without any of these gets no works.
_TELLING = (b'"claim"', b'"releasing"', b'"deletionTimestamp"')
_BREAKER_SECONDS = 60.0
_AWAIT_SECONDS = 0.2
_RISE_MOST = 1 << 24  # weeks of decisions


class Works:
    """Writes works."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._terms = context.terms
        self._proofs = context.proofs
        self._kinds = context.kinds
        self._clock = context.clock
        self._notes = context.notes
        self._shared = context.shared
        self._roster = context.roster
        self._register = context.cache.index(Register)
        self._incarnations = context.cache.index(Incarnations)
        self._loop: Loop[Name] = Loop("works", self._reconcile, clock=context.clock, forgets=True)
        self._all_wanted = Alarm(context.clock)
        self._waiting_for: dict[Name, dict[Name, None]] = {}  # by victim: the waiting workloads
        self._held_back: dict[str, Name] = {}  # by work: workload that waits until it is forgotten
        self._fleet = context.cache.fleet().spec
        self._policies: dict[str, FleetPolicySpec] = {}  # all fleet policies, as last seen
        self._risen: dict[str, int] = {}  # by cluster: how far its agent made us raise our term
        self._awaited: dict[str, float] = {}  # by cluster: since when its agent is to bring back
        self._settled: dict[Name, Any] = {}  # what the works of a workload were derived from
        self._stopped: dict[str, tuple[int, int]] = {}  # by cluster: (second, stopped in it)
        context.cache.mirror(WORKLOADS).followers.append(self._workload_changed)
        context.cache.mirror(CLUSTERS).followers.append(self._cluster_changed)
        context.cache.mirror(FLEETS).followers.append(self._fleet_changed)
        context.cache.mirror(FLEET_POLICIES).followers.append(self._fleet_policy_changed)
        context.states.followers.append(self._state_changed)
        context.kinds.followers.append(self._kinds_changed)
        self._roster.followers.append(self._loop.mark)
        self._register.followers.append(self._loop.mark)

    async def run(self) -> None:
        """Reconciles all workloads that may have works, then changed ones, until cancelled."""
        self._settled.clear()
        self._waiting_for.clear()
        self._held_back.clear()
        self._all_wanted.mark()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run())
            tasks.create_task(self._look_at_all())
            while self._shared.awaits_clusters():
                await self._clock.sleep(_AWAIT_SECONDS)
            self._all_wanted.mark()

    async def _look_at_all(self) -> None:
        """Marks all workloads that have works or may get some, whenever all may be concerned."""
        while True:
            await self._all_wanted.wait()
            async for name, stored in in_slices(list(self._cache.mirror(WORKLOADS).items())):
                if self._may_have_works(name, stored):
                    self._loop.mark(name)
            # Works of removed workloads.
            async for _, work in in_slices(self._cache.names(WORKS)):
                workload = self._roster.workload_of(work)
                if workload is not None:
                    self._loop.mark(workload)

    # What changed.

    def _may_have_works(self, name: Name, stored: Stored) -> bool:
        raw = stored.raw
        for chunk in _TELLING:
            if chunk in raw:
                return True
        return self._roster.has(name)

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        if stored is None or self._may_have_works(name, stored):
            self._loop.mark(name)
        # Workloads that still wait for it register again when they are reconciled.
        for other in self._waiting_for.pop(name, ()):
            self._loop.mark(other)

    def _state_changed(self, cluster: str, work: str) -> None:
        workload = self._roster.workload_of(work) or self._held_back.pop(work, None)
        # Settled works do not depend on their reported states.
        if workload is not None and self._settled.get(workload) is None:
            self._loop.mark(workload)

    def _cluster_changed(self, name: Name, stored: Stored | None) -> None:
        """Only the removal of a cluster matters: works stay as they were decided."""
        if stored is None:
            self._all_wanted.mark()

    def _fleet_changed(self, name: Name, stored: Stored | None) -> None:
        """Works depend on the spec of the fleet, not on its status."""
        spec = self._cache.fleet().spec
        if spec != self._fleet:
            self._fleet = spec
            self._settled.clear()
            self._all_wanted.mark()

    def _fleet_policy_changed(self, name: Name, stored: Stored | None) -> None:
        """A change that a policy forbade may be allowed now; its status does not matter."""
        policy = self._cache.get(FleetPolicy, name[1]) if stored else None
        spec = policy.spec if policy else None
        if spec != self._policies.pop(name[1], None):
            self._settled.clear()
            self._all_wanted.mark()
        if spec is not None:
            self._policies[name[1]] = spec

    def _kinds_changed(self) -> None:
        self._settled.clear()
        self._all_wanted.mark()

    # What is done.

    async def _reconcile(self, name: Name) -> float | None:
        if self._cache.fleet().spec.paused:
            return None  # the end of the pause is an event
        if self._shared.awaits_clusters():
            await self._make_way(name)
            return None
        moments = [await self._clear_strangers(name), await self._send(name)]
        return min((moment for moment in moments if moment is not None), default=None)

    async def _clear_strangers(self, name: Name) -> float | None:
        """Deletes works that the hub did not decide, once nothing runs of them."""
        again = []
        for cluster, work in self._roster.strangers(name).items():
            state = self._states.get(cluster, work.metadata.name)
            due = stays_until(work, state)
            if due <= self._clock.now():
                await self._carry_out(Delete(work=work))
            elif due < NEVER:
                again.append(due)
        return min(again, default=None)

    async def _send(self, name: Name) -> float | None:
        """Writes the works of a workload; returns when to look again."""
        workload = self._cache.get(Workload, name[1], name[0])
        works = self._roster.works(name)
        if workload is None and not works:
            self._settled.pop(name, None)
            return None
        if workload is not None and self._is_overtaken(workload, works):
            return None  # its claim is about to be restored, which is an event
        held_until = self._held_until(name, workload, works)
        if held_until > self._clock.now():
            return held_until
        inputs = self._inputs(name, workload, works)
        if inputs is not None and self._settled.get(name) == inputs:
            return None
        self._settled.pop(name, None)
        if not await self._may_speak(works) or self._is_at_rest(name, workload, works):
            return None
        return await self._write(name, workload, works, is_comparable=inputs is not None)

    async def _make_way(self, name: Name) -> None:
        """Deletes works that agents refuse or have outlived; what runs of them, they bring back.

        Nothing else is written until all clusters have been heard: an outdated claim must not be
        sent to a cluster that its workload has left.
        """
        workload = self._cache.get(Workload, name[1], name[0])
        for work in self._roster.strangers(name).values():
            if refusal_of(work):
                await self._carry_out(Delete(work=work))
        for cluster, work in self._roster.works(name).items():
            if is_past(work, self._states.get(cluster, work.metadata.name), workload):
                await self._carry_out(Delete(work=work))

    async def _write(
        self, name: Name, workload: Workload | None, works: dict[str, Work], *, is_comparable: bool
    ) -> float | None:
        """Writes what is derived; returns when to derive it again."""
        stored = self._cache.mirror(WORKLOADS).get(name)
        known = await self._known(name, workload, works)
        derived = derive(known)
        self._shared.refuse(name, _refusal(workload, derived))
        said = "; ".join((*derived.faults, *derived.withheld))
        if stored is not None and said:
            await self._notes.warn(stored.object(), "ManifestRefused", said)
        again = list(self._look_again(workload))
        if known.closed:
            again.append(self._clock.now() + CLOSED_SECONDS)
        for write in derived.writes:
            wait = self._wait(write)
            if wait:
                again.append(self._clock.now() + wait)
            elif (written := await self._carry_out(write)) is not None:
                works = {**works, written.spec.cluster: written}
        if derived.is_held_back:
            self._held_back[work_name(*name)] = name
        elif is_comparable and not again and not said:
            # Derivation is idempotent: nothing is left to write.
            self._settled[name] = self._inputs(name, workload, works)
        return min(again, default=None)

    def _look_again(self, workload: Workload | None) -> Iterator[float]:
        """When time alone lets a claim start that waits for others."""
        claim = workload.status.claim if workload is not None else None
        if claim is not None and claim.waits_for and self._clock.now() < settled_at(claim):
            yield settled_at(claim)

    async def _may_speak(self, works: dict[str, Work]) -> bool:
        """Raises our term to that of all works, if needed; False if we do not lead.

        A restored hub is behind its agents, but not by so much that one of them could use up terms.
        """
        for cluster, work in works.items():
            heard = max(work.spec.term, work.status.term)
            risen = self._risen.get(cluster, 0) + heard - self._terms.term
            if heard <= self._terms.term or risen > _RISE_MOST:
                continue
            self._risen[cluster] = risen
            try:
                await self._terms.rise_above(heard)
            except NotLeader:
                return False
        return True

    def _is_at_rest(self, name: Name, workload: Workload | None, works: dict[str, Work]) -> bool:
        """Whether a workload and all its works are over; its works stay for their logs."""
        status = workload.status if workload is not None else None
        if workload is None or status is None or status.phase not in OVER:
            return False
        if status.claim or status.releasing:
            return False
        seen = inputs.states_of(self._states, name, set(works))
        return workload.metadata.deletion_timestamp is None and all(
            is_own(work, workload, self._kinds)
            and not work.spec.tombstone
            and self._cache.get(Cluster, cluster) is not None
            and cluster in seen
            and seen[cluster].is_over
            and seen[cluster].attempt >= work.spec.attempt
            for cluster, work in works.items()
        )

    def _is_overtaken(self, workload: Workload, works: dict[str, Work]) -> bool:
        """Whether a later attempt was brought back than this hub knows, which was restored."""
        for cluster, work in works.items():
            if is_adopted(work) and work.spec.attempt >= last_attempt(workload.status):
                self._awaited.pop(cluster, None)  # its agent keeps its word
        return workload.status.claim is not None and any(
            is_later(work, workload, self._kinds) for work in works.values()
        )

    def _held_until(self, name: Name, workload: Workload | None, works: dict[str, Work]) -> float:
        """Until when nothing is sent, because an agent reports a later attempt; 0: no longer.

        The agent is to bring back the work of that attempt. Each agent is waited for once.
        """
        if workload is None or workload.status.claim is None:
            return 0.0
        last, strangers = last_attempt(workload.status), self._roster.strangers(name)
        return max(
            (
                self._awaited.setdefault(cluster, self._clock.now()) + BRING_BACK_SECONDS
                for cluster, state in self._states.of_work(work_name(*name)).items()
                if cluster not in works
                and (cluster not in strangers or hides(strangers[cluster], state))
                and self._cache.get(Cluster, cluster) is not None
                and state.attempt > last
                and not inputs.seen_of(state).is_over
            ),
            default=0.0,
        )

    def _inputs(self, name: Name, workload: Workload | None, works: dict[str, Work]) -> Any:
        """The changing inputs of a derivation, for comparison; None if it depends on more.

        Most events on a workload do not change its works, and derivation is expensive.
        """
        if workload is None or any(
            work.spec.desired != "Run"
            or work.spec.tombstone
            or is_refused(work)
            or is_outdated(work)
            for work in works.values()
        ):
            return None
        claim, metadata = workload.status.claim, workload.metadata
        if claim is None or claim.waits_for:
            return None
        clusters = [
            placement.cluster for placement in (*claim.placements, *workload.status.releasing)
        ]
        return (
            metadata.uid,
            metadata.generation,
            metadata.deletion_timestamp,
            (claim.attempt, claim.alternative, claim.placements, workload.status.releasing),
            sorted(
                (key, work.metadata.uid, work.metadata.generation) for key, work in works.items()
            ),
            self._stages(workload),
            [self._cache.get(Cluster, cluster) is not None for cluster in clusters],
        )

    async def _known(self, name: Name, workload: Workload | None, works: dict[str, Work]) -> Known:
        strangers = self._roster.strangers(name)
        clusters = {*works, *strangers}
        if workload is not None:
            claim = workload.status.claim
            placed = (*(claim.placements if claim else ()), *workload.status.releasing)
            clusters |= {placement.cluster for placement in placed if placement.cluster}
        fleet = self._cache.fleet().spec
        result = {cluster: self._cache.get(Cluster, cluster) for cluster in clusters}
        known = Known(
            workload=workload,
            now=self._clock.now(),
            term=self._terms.term,
            proofs=self._proofs,
            works=works,
            strangers=strangers,
            seen=inputs.states_of(self._states, name, clusters),
            clusters={name: cluster for name, cluster in result.items() if cluster is not None},
            kinds=self._kinds,
        )
        if workload is None:
            return known
        stages = self._stages(workload)
        return with_fields(
            known,
            flavors=self._flavors(workload),
            victims=self._victims(name, workload),
            stages=stages,
            closed=closed_places(self._cache, workload, works),
            objects=await self._objects(workload, stages) if workload.status.claim else (),
            settings=inputs.settings(self._cache, workload, fleet),
            policies={
                name: spec
                for name, spec in policies_for(self._cache, workload.metadata.namespace).items()
                if spec.enforcement == "Enforce"
            },
        )

    def _stages(self, workload: Workload) -> dict[str, Stage] | None:
        """The revision of each cluster, for a service that has a Rollout."""
        rollout = self._register.of(workload)
        return stages_of(self._cache, rollout, workload, self._kinds) if rollout else None

    def _flavors(self, workload: Workload) -> dict[str, Flavor]:
        """The flavors of all its placements; released ones may keep running for a while."""
        claim, left = workload.status.claim, workload.status.releasing
        names = {
            flavor
            for placement in (*(claim.placements if claim else ()), *left)
            for pods in placement.pod_sets
            for flavor in pods.flavors.values()
        }
        return {name: it for name in names if (it := self._cache.get(Flavor, name)) is not None}

    def _victims(self, name: Name, workload: Workload) -> dict[str, Workload]:
        claim = workload.status.claim
        victims = {}
        for wait in claim.waits_for if claim else ():
            if wait.workload is None:
                continue
            victim = self._incarnations.name(wait.workload)
            other = self._cache.get(Workload, victim[1], victim[0]) if victim else None
            if victim is not None and other is not None:
                self._waiting_for.setdefault(victim, {})[name] = None
                victims[mention(wait.workload)] = other
        return victims

    async def _objects(self, workload: Workload, stages: Stages) -> list[JsonObject]:
        """The dependencies that the hub has; the others may be in the cluster already."""
        objects = []
        templates = templates_in_use(workload, stages)
        revisions = [with_template(workload, template) for template in templates] or [workload]
        needed = {
            dependency: None
            for each in revisions
            for dependency in dependencies_of(each, self._kinds)
        }
        for reference in needed:
            kind = resource_of(reference.api_version, reference.kind)
            try:
                stored = await self._store.get(kind, reference.name, workload.metadata.namespace)
            except NotFound:
                continue
            except Forbidden:
                # Without it the pods would fail for a reason that their owner cannot see.
                message = (
                    f"the hub may not read {reference.kind} {reference.name}, which its pods need"
                )
                await self._notes.warn(codec.to_plain(workload), "DependencyForbidden", message)
                raise
            objects.append(
                {"apiVersion": reference.api_version, "kind": reference.kind, **stored.object()}
            )
        return objects

    def _wait(self, write: WorkWrite) -> float:
        """Seconds until one more work may be stopped in the cluster; 0: now."""
        if not isinstance(write, Update | Create) or not write.work.spec.tombstone:
            return 0.0
        fleet = self._cache.fleet().spec
        if self._shared.is_open("Deletions", fleet):
            return _BREAKER_SECONDS
        now = self._clock.now()
        cluster = write.work.spec.cluster
        second, count = self._stopped.get(cluster, (0, 0))
        if second != int(now):
            second, count = int(now), 0
        if count >= fleet.health.deletions_per_second:
            return second + 1 - now
        self._stopped[cluster] = (second, count + 1)
        self._shared.count("Deletions")
        return 0.0

    async def _carry_out(self, write: WorkWrite) -> Work | None:
        """Writes a change; returns the work as stored, None if deleted."""
        metadata = write.work.metadata
        match write:
            case Create():
                body = codec.to_plain(write.work)
                stored = await self._store.create(
                    WORKS, body, namespace=metadata.namespace, write=_WRITE
                )
            case Update():
                body = codec.to_plain(write.work)
                stored = await self._store.update(
                    WORKS, body, namespace=metadata.namespace, write=_WRITE
                )
            case Delete():
                how = Deletion(uid=metadata.uid, version=metadata.resource_version)
                with suppress(NotFound):  # already deleted
                    await self._store.delete(
                        WORKS, metadata.name, namespace=metadata.namespace, how=how, write=_WRITE
                    )
                return None
        return codec.decode(stored.raw, Work)


def _refusal(workload: Workload | None, derived: Derived) -> TemplateRefusal | None:
    """Why the works of a claim cannot be sent, for the lifecycle to end the attempt."""
    claim = workload.status.claim if workload is not None else None
    if claim is None or not derived.faults:
        return None
    return TemplateRefusal(
        attempt=claim.attempt, message="; ".join(derived.faults), clusters=derived.refused_in
    )
