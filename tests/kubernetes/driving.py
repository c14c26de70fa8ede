"""A member of the fleet under its driver, as the contract of drivers needs it.

Time is real here, since the cluster is. No test sleeps: it says what it waits for and fails with
that after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fairway.agent.drivers.interface import Observation
from fairway.agent.drivers.kubernetes import rights
from fairway.agent.drivers.kubernetes.driver import KubernetesDriver
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.work import Stop
from fairway.clock import SystemClock
from fairway.kinds.registry import built_in
from fairway.kubeapi import Access, load_access
from tests.kubernetes.fleet import Member
from tests.waiting import observed

# What tenants of tests may make.
TENANT_KINDS = [
    *((group, plural) for group, plural in (("batch", "jobs"), ("apps", "deployments"))),
    *(("", plural) for plural in ("configmaps", "pods", "secrets", "services", "serviceaccounts")),
    ("apps", "statefulsets"),
    ("", "persistentvolumeclaims"),
]


def cluster(name: str = "here", spec: Any = None, **settings: Any) -> Cluster:
    return decode(
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name, "uid": "1"},
            "spec": {"kubernetes": settings, **(spec or {})},
        },
        Cluster,
    )


class KubernetesRig:
    """A cluster under test."""

    quick_seconds = 0.3

    def __init__(self, member: Member, kubeconfig: str = "", **settings: Any) -> None:
        """`kubeconfig` is an administrator's, unless another is given."""
        self.member = member
        self.settings = {"requestsPerSecond": 500, **settings}
        self.kubeconfig = kubeconfig or str(member.plane.kubeconfig)
        self.driver = self._new()

    def _new(self) -> KubernetesDriver:
        async def access() -> Access:
            return load_access(self.kubeconfig)

        return KubernetesDriver(
            cluster(**self.settings), built_in().of, SystemClock(), find_access=access
        )

    async def until(self, holds: Callable[[Observation], bool], what: str) -> Observation:
        return await observed(self.driver, holds, what)

    async def restart(self) -> None:
        await self.driver.close()
        self.driver = self._new()
        await self.driver.open()


def prepare(member: Member, namespace: str = "default") -> None:
    """Lets tenants of a namespace make what workloads are made of."""
    if namespace not in member.prepared:
        several = (
            rights.tenant_role(TENANT_KINDS),
            rights.tenant_account(namespace),
            rights.tenant_binding(namespace),
        )
        member.apply(*several)
        member.prepared.add(namespace)


@asynccontextmanager
async def driven(member: Member, **settings: Any) -> AsyncIterator[KubernetesRig]:
    """A member with a driver; whatever a test leaves there is removed after it."""
    await asyncio.to_thread(prepare, member)
    rig = KubernetesRig(member, **settings)
    await rig.driver.open()
    try:
        yield rig
    finally:
        for name in (await rig.driver.observe()).works:
            await rig.driver.stop(name, Stop(grace_seconds=0))
            await rig.driver.remove(name)
        await rig.until(lambda item: not item.works, "everything removed")
        await rig.driver.close()
