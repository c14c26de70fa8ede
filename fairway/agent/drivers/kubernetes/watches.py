"""Watches nodes, pods, warnings, and objects of works for each kind in use.

A kind is watched from its first use on, and from the start if an object of a work exists. A kind
that cannot be watched for lack of rights is reported and retried.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.device_classes import read_class
from fairway.agent.drivers.kubernetes.devices import kinds_of, read_allocation, read_slice
from fairway.agent.drivers.kubernetes.keys import ObjectKey, key_of_kind
from fairway.agent.drivers.kubernetes.namespaces import LIMITS, QUOTAS, read_limits, read_quota
from fairway.agent.drivers.kubernetes.nodes import ReadNode
from fairway.agent.drivers.kubernetes.picture import Picture, Trouble
from fairway.agent.drivers.kubernetes.pods import ReadPod
from fairway.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from fairway.api.meta import JsonObject
from fairway.client.catalogue import Served
from fairway.clock import Clock
from fairway.kinds.native import is_owned
from fairway.kubeapi import Informer, KubeApi
from fairway.store.interface import Page, ResourceKey, Selection
from fairway.store.keys import EVENTS, NODES, PODS

_AT_A_TIME = 8  # concurrent lists when the driver opens
_MESSAGE_MOST = 1024
_AS_PODS_TELL = {"FailedScheduling": "Unschedulable"}  # event reasons to condition reasons
_decode = msgspec.json.Decoder().decode


class _About(msgspec.Struct, rename="camel"):
    uid: str = ""


class Warned(msgspec.Struct, rename="camel"):
    """The parts of an event that are read."""

    involved_object: _About
    reason: str = ""
    message: str = ""


def read_object(raw: bytes) -> JsonObject:
    """Parses an object, without its managed fields."""
    body: JsonObject = _decode(raw)
    body.get("metadata", {}).pop("managedFields", None)
    return body


def _read_own(raw: bytes) -> JsonObject:
    """An object of a work; objects that a controller made for it, with its labels, are dropped."""
    body = read_object(raw)
    return body if marks.is_made_by_us(body) and not is_owned(body) else _NOT_OURS


_NOT_OURS: JsonObject = {}


class _NothingKept:
    """The value kept for an event: nothing."""


class Following:
    """The watches of one cluster."""

    def __init__(self, api: KubeApi, cluster: str, picture: Picture, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._picture = picture
        self._selection = Selection(labels=marks.selector(cluster))
        self._kinds: dict[tuple[str, str], tuple[Informer[JsonObject], asyncio.Task[None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._pools: dict[tuple[str, str], asyncio.Task[None]] = {}  # of kinds of node pools
        self._devices: tuple[Informer[Any], ...] = ()
        self._nodes = Informer(api, NODES, read=ReadNode(), clock=clock)
        self._pods = Informer(api, PODS, read=ReadPod(marks.label(cluster)), clock=clock)
        self._events = Informer(
            api,
            EVENTS,
            read=self._hear,
            clock=clock,
            selection=Selection(fields="type=Warning"),
        )
        self._nodes.followers.append(lambda name, node: picture.take_node(name[1], node))
        self._pods.followers.append(picture.take_pod)
        self._quotas = Informer(api, QUOTAS, read=read_quota, clock=clock)
        self._quotas.followers.append(picture.namespaces.take_quota)
        self._limits = Informer(api, LIMITS, read=read_limits, clock=clock)
        self._limits.followers.append(picture.namespaces.take_limits)

    @property
    def fault(self) -> ApiError | None:
        """Why the state of the cluster may be stale."""
        return self._nodes.fault or self._pods.fault

    @property
    def heard_at(self) -> float:
        """When a watch last received anything, by the monotonic clock."""
        return max(self._nodes.heard_at, self._pods.heard_at, self._events.heard_at)

    def hurry(self) -> None:
        """Skips the backoff of all informers, since the cluster answers again."""
        informers: list[Informer[Any]] = [self._nodes, self._pods, self._events, *self._devices]
        informers += [self._quotas, self._limits]
        informers += [informer for informer, _ in self._kinds.values()]
        for informer in informers:
            informer.hurry()

    async def open(self, kinds: list[Served], devices: str = "") -> None:
        """Starts the watches; returns once all nodes, pods and objects of works are known.

        `devices` is the version in which the cluster serves resource slices, if it does.
        """
        self._tasks = [asyncio.ensure_future(self._nodes.run())]
        if devices:
            self._follow_devices(devices)
        at_a_time = asyncio.Semaphore(_AT_A_TIME)

        async def look(kind: Served) -> None:
            async with at_a_time:
                if await self._has_ours(kind):
                    await self.follow(kind)

        await asyncio.gather(*(look(kind) for kind in kinds))
        further = (self._pods, self._events, self._quotas, self._limits)
        self._tasks += [asyncio.ensure_future(item.run()) for item in further]
        await self._until(self._nodes)
        await self._until(self._pods)
        for informer in (self._quotas, self._limits):
            with suppress(ApiError):  # an agent may lack the right to see the rules of namespaces
                await self._until(informer)

    def _follow_devices(self, version: str) -> None:
        slices, claims, classes = kinds_of(version)
        published = Informer(self._api, slices, read=read_slice, clock=self._clock)
        published.followers.append(
            lambda name, follower: self._picture.take_slice(name[1], follower)
        )
        claimed = Informer(self._api, claims, read=read_allocation, clock=self._clock)
        claimed.followers.append(self._picture.take_claim)
        sorts = Informer(self._api, classes, read=read_class, clock=self._clock)
        sorts.followers.append(lambda name, read: self._picture.take_device_class(name[1], read))
        self._devices = (published, claimed, sorts)
        self._tasks += [asyncio.ensure_future(device.run()) for device in self._devices]

    def follow_node_pools(self, kinds: list[ResourceKey]) -> None:
        """Watches the node pools of the cluster's autoscalers from the first call on."""
        for kind in kinds:
            if (kind.group, kind.plural) in self._pools:
                continue
            informer = Informer(self._api, kind, read=read_object, clock=self._clock)
            informer.followers.append(partial(self._picture.take_node_pool, kind))
            self._pools[kind.group, kind.plural] = asyncio.ensure_future(informer.run())

    async def close(self) -> None:
        tasks = [*self._tasks, *self._pools.values()]
        self._pools.clear()
        tasks = [*tasks, *(task for _, task in self._kinds.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._kinds.clear()

    async def follow(self, kind: Served) -> None:
        """Watches a kind from now on; returns once all its objects of works are known."""
        key = key_of_kind(kind)
        known = self._kinds.get((kind.group, kind.plural))
        if known is not None and known[0].kind == key:
            await self._until(known[0])
            return
        informer = Informer(
            self._api, key, read=_read_own, clock=self._clock, selection=self._selection
        )
        informer.followers.append(
            lambda name, body: self._picture.take_object(
                ObjectKey(group=kind.group, kind=kind.kind, namespace=name[0], name=name[1]), body
            )
        )
        task = asyncio.ensure_future(informer.run())
        self._kinds[kind.group, kind.plural] = (informer, task)
        if known is not None:
            known[1].cancel()
        await self._until(informer)

    async def _until(self, informer: Informer[Any]) -> None:
        """Waits for the first list; raises the fault if it fails."""
        waiting = asyncio.ensure_future(informer.is_complete.wait())
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=0.1)
                if not waiting.done() and informer.fault is not None:
                    raise informer.fault
        finally:
            waiting.cancel()

    async def _has_ours(self, kind: Served) -> bool:
        key = key_of_kind(kind)
        try:
            page = await self._api.page(key, self._selection, Page(limit=1), read=len)
        except (Forbidden, NotFound, MethodNotAllowed):
            return False  # then this driver has never made an object of that kind
        return bool(page.items)

    def _hear(self, raw: bytes) -> _NothingKept:
        """Passes a warning on; none is kept here, since there may be very many."""
        event = msgspec.json.decode(raw, type=Warned)
        reason = _AS_PODS_TELL.get(event.reason, event.reason)
        trouble = Trouble(reason=reason, message=event.message[:_MESSAGE_MOST])
        self._picture.take_trouble(event.involved_object.uid, trouble)
        return _NOTHING


_NOTHING = _NothingKept()
