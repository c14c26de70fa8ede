"""The lifecycle controller: reconciles each workload when something about it changed."""

from __future__ import annotations

import asyncio
from typing import Any

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.errors import NotFound
from fairway.api.fleet import Fleet
from fairway.api.governance import FleetPolicy
from fairway.api.meta import JsonObject
from fairway.api.names import FINALIZER, work_name, work_namespace
from fairway.api.queue import Queue, QueueSpec
from fairway.api.workload import Workload
from fairway.controllers.adoption import is_adopted, is_own
from fairway.controllers.clusters import health
from fairway.controllers.clusters.health import NodeAside
from fairway.controllers.clusters.heartbeats import LOOK_SECONDS, Heartbeats
from fairway.controllers.context import Context
from fairway.controllers.governance import NEVER, breaches
from fairway.controllers.lifecycle import inputs
from fairway.controllers.lifecycle.case import Change, LifecycleCase
from fairway.controllers.lifecycle.next_status import next_status
from fairway.controllers.lifecycle.policy_conditions import news
from fairway.controllers.native_ends import remember_end
from fairway.controllers.scheduling.commit import head_of, write_status
from fairway.governance.cluster_selectors import facts_of
from fairway.loops import Alarm, Loop, in_slices
from fairway.store.interface import Deletion, Patch, Stored, Write
from fairway.store.keys import (
    CLUSTERS,
    FLEET_POLICIES,
    FLEETS,
    LEASES,
    NAMESPACES,
    POLICIES,
    QUEUES,
    WORKLOADS,
    WORKS,
)
from fairway.store.mirrors import Name

_WRITE = Write(user="system:fairway", manager="fairway-lifecycle")
_AWAIT_SECONDS = 1.0
_COUNTS_SECONDS = 5.0  # least time between writes of counts alone
# A workload without any of these is pending and unchanged since it was created: skip it.
_TELLING = (b'"phase"', b'"cancelled"', b'"deletionTimestamp"')
_REFUSED = b'"PolicyViolated"'
_HOLD, _NO_HOLD = b'"hold"', b'"hold":"None"'


class Lifecycle:
    """Writes the status of workloads."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._clock = context.clock
        self._notes = context.notes
        self._shared = context.shared
        self._kinds = context.kinds
        self._roster = context.roster
        self._proofs = context.proofs
        self._beats = Heartbeats(context.cache.mirror(LEASES), context.clock)
        self._loop: Loop[Name] = Loop(
            "lifecycle", self._reconcile, clock=context.clock, forgets=True
        )
        self._all_wanted = Alarm(context.clock)
        self._placed: dict[Name, set[str]] = {}  # clusters that each workload holds or releases
        self._written: dict[Name, float] = {}  # when each workload was last written
        self._matters: dict[tuple[str, Name], Any] = {}  # the relevant part of each object
        context.cache.mirror(WORKLOADS).followers.append(self._workload_changed)
        context.cache.mirror(CLUSTERS).followers.append(self._cluster_changed)
        context.cache.mirror(QUEUES).followers.append(self._queue_changed)
        context.cache.mirror(FLEETS).followers.append(self._fleet_changed)
        context.cache.mirror(POLICIES).followers.append(lambda name, stored: self._mark_placed())
        context.cache.mirror(FLEET_POLICIES).followers.append(self._fleet_policy_changed)
        context.cache.mirror(NAMESPACES).followers.append(self._namespace_changed)
        context.states.followers.append(self._state_changed)
        context.shared.on_refusal = self._loop.mark
        self._roster.followers.append(self._works_changed)

    async def run(self) -> None:
        """Reconciles every workload once, then those that change, until cancelled."""
        self._beats.forget()
        self._all_wanted.mark()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run())
            tasks.create_task(self._look_at_all())
            tasks.create_task(self._listen())
            tasks.create_task(self._await_clusters())

    async def _look_at_all(self) -> None:
        """Marks all workloads whenever something changed that may concern every one."""
        while True:
            await self._all_wanted.wait()
            workloads = list(self._cache.mirror(WORKLOADS).items())
            async for name, stored in in_slices(workloads):
                # An agent may have brought back a work of one that this hub never claimed.
                if _is_telling(stored) or self._roster.has(name):
                    self._loop.mark(name)

    async def _await_clusters(self) -> None:
        """Looks at all workloads again once a hub that has just started knows what runs."""
        if self._shared.awaits_clusters():
            while self._shared.awaits_clusters():
                await self._clock.sleep(_AWAIT_SECONDS)
            self._all_wanted.mark()

    async def _listen(self) -> None:
        """Marks the workloads of silent clusters regularly: silence grows without an event."""
        while True:
            clusters = [name for _, name in self._cache.names(CLUSTERS)]
            self._beats.look(clusters)
            for cluster in clusters:
                heard = self._beats.of(cluster)
                unready = self._cache.fleet().spec.health.unready_seconds
                if heard is not None and heard.silent_seconds >= unready:
                    self._mark_placed(cluster)
            await self._clock.sleep(LOOK_SECONDS)

    # What changed.

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        if stored is None:
            self._placed.pop(name, None)
            self._written.pop(name, None)
            self._shared.refuse(name, None)
        elif _is_telling(stored):
            self._loop.mark(name)

    def _state_changed(self, cluster: str, work: str) -> None:
        workload = self._roster.workload_of(work)
        if workload is not None:
            self._loop.mark(workload)

    def _works_changed(self, name: Name) -> None:
        """Ignores works that were sent but not reported yet: they do not change the status."""
        clusters = self._placed.get(name)
        work = work_name(*name)
        if (
            not clusters
            or any(self._states.get(cluster, work) for cluster in clusters)
            or any(self._is_refused(cluster, work) for cluster in clusters)
            or any(is_adopted(work) for work in self._roster.works(name).values())
        ):
            self._loop.mark(name)

    def _is_refused(self, cluster: str, work: str) -> bool:
        """Whether the agent may have refused a work because of a fleet policy."""
        stored = self._cache.mirror(WORKS).get((work_namespace(cluster), work))
        return stored is not None and _REFUSED in stored.raw

    def _cluster_changed(self, name: Name, stored: Stored | None) -> None:
        cluster = self._cache.get(Cluster, name[1]) if stored else None
        facts = (inputs.relevant(cluster), facts_of(cluster)) if cluster else None
        if self._is_news("cluster", name, facts):
            self._mark_placed(name[1])

    def _queue_changed(self, name: Name, stored: Stored | None) -> None:
        queue = self._cache.get(Queue, name[1]) if stored else None
        facts = _of_queue(queue.spec) if queue else None
        if self._is_news("queue", name, facts):
            self._mark_placed()

    def _fleet_policy_changed(self, name: Name, stored: Stored | None) -> None:
        policy = self._cache.get(FleetPolicy, name[1]) if stored else None
        if self._is_news("fleet policy", name, policy.spec if policy else None):
            self._mark_placed()

    def _namespace_changed(self, name: Name, stored: Stored | None) -> None:
        labels = stored.object()["metadata"].get("labels") if stored else None
        if self._is_news("namespace", name, labels) and len(self._cache.mirror(FLEET_POLICIES)):
            for workload in self._placed:
                if workload[0] == name[1]:
                    self._loop.mark(workload)

    def _fleet_changed(self, name: Name, stored: Stored | None) -> None:
        fleet = self._cache.get(Fleet, name[1]) if stored else None
        if self._is_news("fleet", name, fleet.spec if fleet else None):
            self._all_wanted.mark()  # the time that finished workloads are kept may have changed

    def _is_news(self, kind: str, name: Name, facts: Any) -> bool:
        before = self._matters.get((kind, name))
        if facts is None:
            self._matters.pop((kind, name), None)
        else:
            self._matters[kind, name] = facts
        return bool(before != facts)

    def _mark_placed(self, cluster: str = "") -> None:
        for name, clusters in self._placed.items():
            if not cluster or cluster in clusters:
                self._loop.mark(name)

    # What is done.

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._cache.mirror(WORKLOADS).get(name)
        if stored is None:
            return None
        workload = self._cache.get(Workload, name[1], name[0])
        assert workload is not None, "it is in the mirror"
        case = self._case(workload)
        change = next_status(case)
        if change.is_empty:
            return self._wake_at(name, case, change)
        await self._set_aside(change.nodes_aside)
        if change.status is not None:
            await write_status(self._store, head_of(stored), change.status, _WRITE)
            self._notes.tell(workload, change.status)
            self._written[name] = case.now
            for condition in news(workload.status, change.status):
                await self._notes.warn(stored.object(), condition.type, condition.message)
            self._shared.count("Moves", change.moves)
        elif change.delete or change.releases:
            if change.releases:
                await remember_end(self._store, workload)
            await self._remove(stored.object(), change)
        return self._wake_at(name, case, change)

    def _case(self, workload: Workload) -> LifecycleCase:
        name = (workload.metadata.namespace, workload.metadata.name)
        fleet = self._cache.fleet().spec
        status = workload.status
        placements = (*(status.claim.placements if status.claim else ()), *status.releasing)
        held = {placement.cluster for placement in placements if placement.cluster}
        if held:
            self._placed[name] = held
        else:
            self._placed.pop(name, None)
        sent = {
            cluster: work
            for cluster, work in self._roster.works(name).items()
            if is_own(work, workload, self._kinds)
        }
        brought_back = {cluster for cluster, work in sent.items() if is_adopted(work)}
        looked_at = {*held, *status.succeeded_clusters} & set(sent)
        now = self._clock.now()
        broken, due = breaches(self._cache, workload, now) if status.claim else ((), NEVER)
        return LifecycleCase(
            workload=workload,
            now=now,
            works=inputs.states_of(self._states, name, looked_at | brought_back),
            places={
                name: inputs.place_of(known, self._beats.of(name))
                for name in held
                if (known := self._cache.get(Cluster, name)) is not None
            },
            sent=sent,
            unproven=frozenset(
                cluster for cluster in brought_back if not self._proofs.holds(sent[cluster])
            ),
            refusal=self._shared.refusals.get(name),
            settings=inputs.settings(self._cache, workload, fleet),
            breaches=broken,
            breach_at=due,
            outside=inputs.outside(self._cache, workload, fleet, held),
            may_move=not fleet.paused and not self._shared.is_open("Moves", fleet),
            is_copied=inputs.is_copied(self._cache, workload, fleet, self._kinds),
            awaits_clusters=self._shared.awaits_clusters(),
            refreshes=now - self._written.get(name, 0.0) >= _COUNTS_SECONDS,
        )

    def _wake_at(self, name: Name, case: LifecycleCase, change: Change) -> float | None:
        due = [change.wake_at] if change.wake_at is not None else []
        if not case.refreshes and change.status is None:
            # It may have been removed meanwhile.
            due.append(self._written.get(name, case.now) + _COUNTS_SECONDS)
        if not case.may_move and name in self._placed:
            due.append(case.now + 60.0)  # the breaker counts over the past hour
        return min(due, default=None)

    async def _set_aside(self, nodes: tuple[NodeAside, ...]) -> None:
        """Sets nodes aside, before the status is written, which drops the cause; idempotent."""
        for cluster in sorted({node.cluster for node in nodes}):
            stored = self._cache.mirror(CLUSTERS).get(("", cluster))
            if stored is None:
                continue
            body = stored.object()
            before = codec.decode(body, Cluster).status.avoided_nodes
            mine = [node for node in nodes if node.cluster == cluster]
            after = health.aside(before, mine, self._clock.now())
            if after != before:
                plain = [codec.to_plain(node) for node in after]
                changed = {**body, "status": {**body.get("status", {}), "avoidedNodes": plain}}
                await self._store.update(CLUSTERS, changed, subresource="status", write=_WRITE)

    async def _remove(self, body: JsonObject, change: Change) -> None:
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        try:
            if change.delete:
                how = Deletion(uid=metadata["uid"])
                await self._store.delete(
                    WORKLOADS, name, namespace=namespace, how=how, write=_WRITE
                )
                return
            left = [
                finalizer for finalizer in metadata.get("finalizers", []) if finalizer != FINALIZER
            ]
            wanted = {"resourceVersion": metadata["resourceVersion"], "finalizers": left}
            patch = Patch(type="merge", body={"metadata": wanted})
            await self._store.patch(WORKLOADS, name, patch, namespace=namespace, write=_WRITE)
        except NotFound:
            return  # already removed


def _of_queue(spec: QueueSpec) -> tuple[object, ...]:
    return (spec.hold, spec.parent, spec.defaults, spec.clusters)


def _is_telling(stored: Stored) -> bool:
    raw = stored.raw
    for chunk in _TELLING:
        if chunk in raw:
            return True
    return raw.count(_HOLD) != raw.count(_NO_HOLD)
