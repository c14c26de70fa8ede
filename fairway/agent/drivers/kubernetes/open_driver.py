"""The driver of a Kubernetes cluster while it is open: its parts, and what they do for a work.

What must wait until pods are gone continues in the background, work by work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from fairway.agent.drivers.interface import (
    DriverFault,
    Observation,
)
from fairway.agent.drivers.kubernetes import nodepools, provisioning_requests
from fairway.agent.drivers.kubernetes.accelerators import accelerators_of
from fairway.agent.drivers.kubernetes.elastic_pools import Offering
from fairway.agent.drivers.kubernetes.keys import key_of, key_of_kind
from fairway.agent.drivers.kubernetes.object_ends import Ending
from fairway.agent.drivers.kubernetes.objects import Making
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.placeholders import Reserving
from fairway.agent.drivers.kubernetes.pod_usage import Metering
from fairway.agent.drivers.kubernetes.provisioning_requests import Provisioning
from fairway.agent.drivers.kubernetes.scores import PREFIX, scores
from fairway.agent.drivers.kubernetes.streams import Streaming
from fairway.agent.drivers.kubernetes.watches import Following
from fairway.agent.drivers.kubernetes.works import Kept, Works
from fairway.agent.drivers.kubernetes.writes import Hands, Refused
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.work import Stop, Work
from fairway.client.catalogue import Served
from fairway.clock import Clock
from fairway.kinds.permitted import FindKind
from fairway.kubeapi import Access, KubeApi
from fairway.loops import Loop
from fairway.store.keys import NODES

_log = logging.getLogger(__name__)

# Renews the credentials of a connection while it is open.
KeepAccess = Callable[[KubeApi, Access], Coroutine[Any, Any, None]]

_PROBE_SECONDS = 5.0
_DISCOVERY_SECONDS = 60.0
_WORKS_AT_A_TIME = 8
_AGAIN_SECONDS = 2.0  # until a background step that failed is retried
_MODELS_MOST = 16
_CLAIM_MOST = 1024
_KUEUE = "kueue.x-k8s.io"


class Opened:
    """The driver while it is open."""

    def __init__(
        self,
        cluster: Cluster,
        find_kind: FindKind,
        clock: Clock,
        *,
        access: Access,
        keep_access: KeepAccess | None = None,
        changed: Callable[[], None],
    ) -> None:
        settings = cluster.spec.kubernetes
        assert settings is not None, "checked by the driver"
        name = cluster.metadata.name
        api = KubeApi(access, clock)
        self._keep_access = partial(keep_access, api, access) if keep_access is not None else None
        self._api = api.acting_as(settings.impersonate) if settings.impersonate else api
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        self._changed = changed
        self.picture = Picture(changed=changed, touched=self._touch)
        self.works = Works(self.picture, find_kind)
        self.following = Following(self._api, name, self.picture, clock)
        self.hands = Hands(self._api, name, settings, clock)
        self.making = Making(
            cluster=name,
            permits=settings.permits,
            hands=self.hands,
            discovery=api.discovery,
            following=self.following,
            picture=self.picture,
            find_kind=find_kind,
        )
        self.ending = Ending(
            hands=self.hands,
            making=self.making,
            picture=self.picture,
            works=self.works,
            find_kind=find_kind,
        )
        self.reserving = Reserving(
            cluster=name,
            hands=self.hands,
            ending=self.ending,
            picture=self.picture,
            find_kind=find_kind,
        )
        self.provisioning = Provisioning(
            cluster=name,
            api=self._api,
            hands=self.hands,
            find_kind=find_kind,
            clock=clock,
            answered=self._answer,
        )
        self.offering = Offering(cluster, self.picture, self.provisioning)
        self.streaming = Streaming(self._api, settings, self.works, self.picture)
        self.metering = Metering(self._api, self.works, self.picture)
        self.hands.find_tenant_kinds = self._tenant_kinds
        self._silent_since: float | None = None
        self._going_on: Loop[str] = Loop(
            "works that go on", self._go_on, clock=clock, width=_WORKS_AT_A_TIME
        )
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._kinds: list[Served] = []
        self._version = self._devices_version = ""
        self._groups: frozenset[str] = frozenset()
        self._names: tuple[str, ...] = ()  # of kinds
        self._claims: dict[str, str] = {}

    # Start and end.

    async def begin(self) -> None:
        """Reads everything that exists, and starts the background loops."""
        await self._discover()
        await self.following.open(
            [
                resource
                for resource in self._prefer()
                if (resource.group, resource.kind) != ("", "Secret")
            ],
            devices=self._devices_version,
        )
        self._sum_up()
        self._tasks = [
            asyncio.ensure_future(self._going_on.run()),
            asyncio.ensure_future(self._probe()),
        ]
        if self._keep_access is not None:
            self._tasks.append(asyncio.ensure_future(self._keep_access()))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.provisioning.close()
        await self.following.close()
        await self._api.close()

    async def _discover(self) -> None:
        version = msgspec.json.decode(await self._api.read("/version"))
        self._version = str(version.get("gitVersion", ""))[:64]
        self._kinds = await self.making.known_kinds()
        catalogue = await self._api.discovery.catalogue()
        self._groups = frozenset(resource.group for resource in catalogue.served)
        versions = (
            resource.version for resource in catalogue.served if resource.plural == "resourceslices"
        )
        self._devices_version = next(versions, "")
        self._names = tuple(sorted({f"{kind.api_version}/{kind.kind}" for kind in self._kinds}))
        requests = (
            resource
            for resource in catalogue.served
            if resource.group == provisioning_requests.GROUP
        )
        self.provisioning.serve(
            next(
                (
                    request.version
                    for request in requests
                    if request.plural == provisioning_requests.PLURAL
                ),
                "",
            )
        )
        inventory = self._cluster.spec.inventory
        if inventory is not None and inventory.node_pools:
            wanted = {
                (resource.group, resource.plural): resource
                for resource in reversed(catalogue.served)
            }
            self.following.follow_node_pools(
                [key_of_kind(wanted[key]) for key in nodepools.KINDS if key in wanted]
            )

    async def _tenant_kinds(self) -> list[tuple[str, str]]:
        return [(kind.group, kind.plural) for kind in await self.making.known_kinds()]

    def _prefer(self) -> list[Served]:
        return list({(kind.group, kind.plural): kind for kind in reversed(self._kinds)}.values())

    async def _probe(self) -> None:
        """Probes the cluster when its watches are quiet, and discovers what it serves.

        A network that drops packets breaks no connection, so a quiet cluster is probed. Once a
        silent cluster answers again, all connections from before are given up.
        """
        discovered_at = self._clock.now()
        while True:
            asked_at = self._clock.monotonic()
            await self._clock.sleep(_PROBE_SECONDS)
            self._sum_up()
            now = self._clock.now()
            is_due = now >= discovered_at + _DISCOVERY_SECONDS
            is_heard = self.following.fault is None and self.following.heard_at >= asked_at
            try:
                if not is_heard or self._silent_since is not None:
                    await self._api.answers(_PROBE_SECONDS)
                if self._silent_since is not None:
                    await self._api.reconnect()
                    self.following.hurry()
                self._silent_since = None
                if is_due:
                    self._api.discovery.forget()
                    await self._discover()
                    discovered_at = now
            except ApiError:
                self._silent_since = now if self._silent_since is None else self._silent_since

    # Observing.

    def silent_seconds(self) -> float:
        """How long the cluster has not answered, by probes."""
        return 0.0 if self._silent_since is None else self._clock.now() - self._silent_since

    def observation(self) -> Observation:
        match = self.offering.unlisted_pools()
        return Observation(
            nodes=self.picture.nodes_seen(),
            works=self.works.seen(),
            pools=self.offering.listed_pools(),
            namespaces=self.picture.namespaces.rules(),
            uncounted_rules=self.picture.namespaces.left_out(),
            offered=match.pools,
            quotas=match.quotas,
            kinds=self._names,
            version=self._version,
            claims=self._claims,
        )

    def _sum_up(self) -> None:
        """Computes the claims of the whole cluster; too costly for each observation."""
        nodes = self.picture.nodes_seen()
        result = scores(nodes, self.picture.usage())
        labels = {PREFIX + name: str(value) for name, value in result.items()}
        models = {
            has.model
            for node in nodes
            if (has := accelerators_of(node.labels, node.allocatable)) is not None and has.model
        }
        models |= self.picture.devices.models()
        if uncounted := "; ".join(self.picture.devices.faults()):
            labels["fairway.dev/uncounted-devices"] = uncounted[:_CLAIM_MOST]
        if models:
            labels["fairway.dev/accelerators"] = ",".join(sorted(models)[:_MODELS_MOST])
        if _KUEUE in self._groups:
            labels["fairway.dev/queued-by"] = _KUEUE
        if labels != self._claims:
            self._claims = labels
            self._changed()

    def _answer(self, work: str) -> None:
        """Continues a work whose request for nodes has a new outcome."""
        self._going_on.mark(work)
        self._changed()

    def _touch(self, label: str) -> None:
        kept = self.works.touch(label)
        if kept is not None and (kept.next is not None or kept.is_removed):
            self._going_on.mark(kept.name)

    # Acting.

    async def apply(self, work: Work) -> None:
        name = work.metadata.name
        async with self._alone(name):
            kept = self.works.keep(name)
            kept.is_stopped = kept.is_removed = False
            if self.works.earlier(kept, work.spec.attempt):
                kept.next = work
                kept.faults = {}
                await self._end_earlier(kept)
            else:
                kept.next = None
                await self._carry_out(kept, work)
        self._changed()

    async def stop(self, name: str, how: Stop) -> None:
        async with self._alone(name):
            kept = self.works.get(name)
            if kept is None:
                return
            kept.next, kept.is_stopped = None, True
            with _refusals_as_faults():
                await self.ending.hold(kept)
                await self.ending.end_pods(kept, grace_seconds=how.grace_seconds)

    async def remove(self, name: str) -> None:
        async with self._alone(name):
            kept = self.works.get(name)
            if kept is None:
                return
            kept.next, kept.is_removed = None, True
            with _refusals_as_faults():
                await self._remove(kept)
                await self.provisioning.forget(name)
        self.works.touch(kept.label)
        self._changed()

    async def _remove(self, kept: Kept) -> None:
        grace = kept.work.spec.stop.grace_seconds if kept.work is not None else None
        for key, body in list(self.picture.objects.get(kept.label, {}).items()):
            await self.ending.remove_object(kept, key, body)
        await self.ending.end_pods(kept, grace_seconds=grace)
        await self.ending.clear_pods(kept)

    async def release(self, nodes: Sequence[str]) -> None:
        """Deletes Karpenter nodes; Karpenter then terminates their machines."""
        used = {pod.seen.node for pods in self.picture.pods.values() for pod in pods.values()}
        for name in nodes:
            node = self.picture.nodes.get(name)
            if node is not None and name not in used and nodepools.NODE_POOL in node.labels:
                await self.hands.remove_own(NODES, name)

    async def _carry_out(self, kept: Kept, work: Work) -> None:
        """Makes the cluster match a work that has nothing left of earlier attempts."""
        self.works.begin(kept, work)
        refusals = self.making.refusals(work)
        kept.refused = set(refusals)
        if refusals:
            kept.faults = refusals
            self.works.touch(kept.label)
            return
        ready = await self._provision(kept, work)
        if ready is None:
            return
        work = ready
        if work.spec.desired == "Reserve":
            kept.faults = await self.reserving.hold(kept, work, self._clock.now())
        else:
            places = await self.reserving.give_up(kept)
            kept.faults = await self.making.make(kept, work, places)
            if not kept.faults:
                await self._remove_unlisted(kept, work)
        self.works.touch(kept.label)

    async def _provision(self, kept: Kept, work: Work) -> Work | None:
        """The work if its nodes are provisioned; None: it is applied once they are."""
        try:
            ready = await self.provisioning.ready(work, self.offering.pools())
        except Refused as refused:
            kept.faults = {0: str(refused)}
            return None
        kept.is_awaited = ready is None
        return ready

    async def _remove_unlisted(self, kept: Kept, work: Work) -> None:
        """Removes objects that are no longer among the manifests."""
        listed = {key_of(manifest.object) for manifest in work.spec.manifests}
        for key, body in list(self.picture.objects.get(kept.label, {}).items()):
            if key not in listed:
                with _refusals_as_faults():
                    await self.ending.remove_object(kept, key, body)

    async def _end_earlier(self, kept: Kept) -> None:
        assert kept.next is not None, "a later attempt waits"
        attempt, stop = kept.next.spec.attempt, kept.next.spec.stop
        with _refusals_as_faults():
            for key, body in self.works.running(kept):
                await self.ending.remove_object(kept, key, body)
            await self.ending.end_pods(
                kept,
                grace_seconds=stop.grace_seconds,
                which=lambda pod: pod.seen.attempt < attempt,
            )
            await self.ending.clear_pods(kept)

    async def _go_on(self, name: str) -> float | None:
        """Does what had to wait for a work."""
        async with self._alone(name):
            kept = self.works.get(name)
            if kept is None:
                return None
            try:
                await self._do_next(kept)
            except (DriverFault, Refused) as fault:
                _log.warning("%s: %s waits: %s", self._cluster.metadata.name, name, fault)
                return self._clock.now() + _AGAIN_SECONDS
        self._changed()
        return None

    async def _do_next(self, kept: Kept) -> None:
        following = kept.next
        if following is None:
            if kept.is_removed:
                await self.ending.clear_pods(kept)
            elif kept.is_awaited and kept.work is not None and not kept.is_stopped:
                await self._carry_out(kept, kept.work)
        elif self.works.earlier(kept, following.spec.attempt):
            await self.ending.clear_pods(kept)
        else:
            await self._carry_out(kept, following)
            kept.next = None

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Serializes operations on a work."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and self.works.get(name) is None:
                self._locks.pop(name, None)


class _refusals_as_faults:  # noqa: N801 - reads as a phrase
    """Turns a refusal while something is ended into a DriverFault, so that it is retried."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Refused):
            raise DriverFault(str(error)) from error
