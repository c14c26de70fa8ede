"""The Kubernetes driver, as an agent calls it.

It does at once what can be done at once; what must wait until pods are gone continues in the
background. It remembers nothing that is not in the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from math import inf

from fairway.agent.drivers.interface import (
    CommandQuery,
    DriverFault,
    LogQuery,
    Observation,
    PortQuery,
)
from fairway.agent.drivers.kubernetes.open_driver import KeepAccess, Opened
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.work import Stop, Work
from fairway.clock import Clock
from fairway.kinds.permitted import FindKind
from fairway.kubeapi import Access
from fairway.metrics.interface import PodUsage
from fairway.streams.requests import Exchange

# How to reach the cluster; called each time the driver opens, since credentials change.
FindAccess = Callable[[], Awaitable[Access]]


class KubernetesDriver:
    """A connection to one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        find_kind: FindKind,
        clock: Clock,
        *,
        find_access: FindAccess,
        keep_access: KeepAccess | None = None,
    ) -> None:
        settings = cluster.spec.kubernetes
        if settings is None:
            raise ValueError(f"the cluster {cluster.metadata.name} is not a Kubernetes one")
        self._cluster = cluster
        self._settings = settings
        self._find_kind = find_kind
        self._find_access = find_access
        self._keep_access = keep_access
        self._clock = clock
        self._news = asyncio.Event()
        self._open: Opened | None = None

    async def open(self) -> None:
        try:
            self._open = Opened(
                self._cluster,
                self._find_kind,
                self._clock,
                access=await self._find_access(),
                keep_access=self._keep_access,
                changed=self._news.set,
            )
            await self._open.begin()
        except (ApiError, OSError) as fault:
            await self.close()
            raise DriverFault(f"the cluster cannot be reached: {fault}") from fault
        except BaseException:
            await self.close()
            raise
        self._news.set()

    async def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.end()

    def silent_seconds(self) -> float:
        return inf if self._open is None else self._open.silent_seconds()

    async def observe(self) -> Observation:
        self._news.clear()
        return self._require_open().observation()

    async def wait_for_change(self) -> None:
        await self._news.wait()

    async def apply(self, work: Work) -> None:
        await self._require_open().apply(work)

    async def stop(self, name: str, how: Stop) -> None:
        await self._require_open().stop(name, how)

    async def remove(self, name: str) -> None:
        await self._require_open().remove(name)

    async def release(self, nodes: Sequence[str]) -> None:
        await self._require_open().release(nodes)

    async def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        async with aclosing(self._require_open().streaming.logs(query)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        return await self._require_open().streaming.execute(query, exchange)

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        await self._require_open().streaming.forward(query, exchange)

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        return await self._require_open().metering.usage(work)

    def _require_open(self) -> Opened:
        if self._open is None:
            raise DriverFault("the driver is not open")
        return self._open
