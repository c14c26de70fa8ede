"""The mirrors that controllers share: one watch per kind, however many controllers use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from fairway.api import codec
from fairway.api.autoscaler import FleetAutoscaler
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.flavor import Flavor
from fairway.api.fleet import Fleet
from fairway.api.governance import FleetPolicy
from fairway.api.kindrule import KindRule
from fairway.api.meta import Object
from fairway.api.names import AGENT_LEASE
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.report import ClusterReport
from fairway.api.rollout import Revision, Rollout
from fairway.api.scores import ClusterScore, Scorer
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.clock import Clock
from fairway.controllers.own_reports import is_own_report
from fairway.kinds.native import DEFAULT_QUEUE
from fairway.store.interface import ResourceKey, Selection, Store
from fairway.store.keys import (
    AUTOSCALERS,
    CLUSTER_SCORES,
    CLUSTERS,
    DEVICE_CLAIM_TEMPLATES,
    DEVICE_CLAIMS,
    FLAVORS,
    FLEET_POLICIES,
    FLEETS,
    KIND_RULES,
    LEASES,
    NAMESPACES,
    POLICIES,
    PRIORITY_CLASSES,
    QUEUES,
    REPORTS,
    REVISIONS,
    ROLLOUTS,
    SCORERS,
    VOLUME_CLAIMS,
    WORKLOADS,
    WORKS,
)
from fairway.store.mirrors import Mirror, Name, complete, refresh

T = TypeVar("T", bound=Object)
Index = TypeVar("Index")


_KINDS: dict[type[Object], ResourceKey] = {
    Workload: WORKLOADS,
    Work: WORKS,
    Cluster: CLUSTERS,
    ClusterReport: REPORTS,
    Flavor: FLAVORS,
    Queue: QUEUES,
    PlacementPolicy: POLICIES,
    Fleet: FLEETS,
    FleetPolicy: FLEET_POLICIES,
    KindRule: KIND_RULES,
    Rollout: ROLLOUTS,
    Revision: REVISIONS,
    FleetAutoscaler: AUTOSCALERS,
    Scorer: SCORERS,
    ClusterScore: CLUSTER_SCORES,
}
_FLEET = ("", "fleet")
_DECODED_MOST = 8_192


class Cache:
    """The objects of the store, kept up to date by watches and read as typed objects."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._mirrors = {
            kind: Mirror(store, kind, clock=clock)
            for kind in (*_KINDS.values(), PRIORITY_CLASSES, NAMESPACES, VOLUME_CLAIMS)
        }
        self._mirrors[REPORTS] = Mirror(store, REPORTS, clock=clock, counts=is_own_report)
        # Kubernetes serves these kinds from 1.34 on; a hub needs a right for them.
        for kind in (DEVICE_CLAIMS, DEVICE_CLAIM_TEMPLATES):
            self._mirrors[kind] = Mirror(store, kind, clock=clock, may_be_missing=True)
        # On a Kubernetes hub every node renews its own lease several times a minute.
        beats = Selection(fields=f"metadata.name={AGENT_LEASE}")
        self._mirrors[LEASES] = Mirror(store, LEASES, clock=clock, selection=beats)
        self._typed = {kind: self._mirrors[key] for kind, key in _KINDS.items()}
        self._indexes: dict[Callable[[Cache], Any], Any] = {}

    def mirror(self, kind: ResourceKey) -> Mirror:
        return self._mirrors[kind]

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        """An object as last seen; None if there is none."""
        stored = self._typed[kind].get((namespace, name))
        return _read(stored.raw, kind) if stored is not None else None

    def all(self, kind: type[T]) -> Iterable[T]:
        """All readable objects of a kind; the planner reports the others."""
        for _, stored in self._mirrors[_KINDS[kind]].items():
            with suppress(ApiError):
                yield _read(stored.raw, kind)

    def index(self, kind: Callable[[Cache], Index]) -> Index:
        """An index of the cached objects, made on first use and shared by all callers."""
        if kind not in self._indexes:
            self._indexes[kind] = kind(self)
        result: Index = self._indexes[kind]
        return result

    def names(self, kind: ResourceKey) -> list[Name]:
        return self._mirrors[kind].names()

    def default_queue(self, namespace: str) -> str:
        """The queue of what is submitted in a namespace without one; empty: the fleet's."""
        stored = self._mirrors[NAMESPACES].get(("", namespace))
        labels = stored.object()["metadata"].get("labels") if stored is not None else None
        return str((labels or {}).get(DEFAULT_QUEUE, ""))

    def fleet(self) -> Fleet:
        return self.get(Fleet, _FLEET[1]) or Fleet()

    async def run(self) -> None:
        """Watches all kinds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors.values():
                tasks.create_task(mirror.run())

    async def complete(self) -> None:
        """Returns once everything has been read."""
        await complete(list(self._mirrors.values()))

    async def refresh(self) -> None:
        """Returns once everything written before this call has been read."""
        await refresh(list(self._mirrors.values()))


def _read(raw: bytes, kind: type[T]) -> T:
    """Reads an object; reports are large and change all the time, so they are not cached."""
    return codec.decode(raw, kind) if kind is ClusterReport else _decode(raw, kind)


@lru_cache(maxsize=_DECODED_MOST)
def _decode(raw: bytes, kind: type[T]) -> T:
    """Decodes an object once and caches it: objects are immutable."""
    return codec.decode(raw, kind)
