"""A hub with a cluster that it cannot reach: the agent of that cluster calls it, as agents do.

The agent has the credential that joining gives it and nothing else, and runs pods as processes of
this machine, so that all there is of a real agent is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairway.agent.agent import Agent
from fairway.agent.call_home import Caller
from fairway.agent.drivers.local.driver import LocalDriver
from fairway.agent.drivers.local.plans import Limits
from fairway.agent.fleet import Agents
from fairway.agent.join import hub_side, rights
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.api.names import work_namespace
from fairway.app import Hub, HubOptions, open_hub
from fairway.client import AsyncClient, Scope
from fairway.client.access import Access
from fairway.client.asynchronous import WORKLOADS
from fairway.client.kubeconfig import load_access
from fairway.clock import SystemClock
from fairway.kinds.registry import built_in
from fairway.kubeapi import KubeApi
from fairway.loops import end
from fairway.store.kubernetes.store import KubernetesStore
from tests.agent.local.machines import cluster as machine
from tests.agent.local.machines import isolation, shared

CLOCK = SystemClock()
PATIENCE_SECONDS = 60.0
Json = dict[str, Any]


def fairway(kind: str, name: str, **spec: Any) -> Json:
    identity = {"apiVersion": "fairway.dev/v1alpha1", "kind": kind}
    return {**identity, "metadata": {"name": name}, "spec": spec}


def workload(name: str, script: str) -> Json:
    """One that runs a shell's script."""
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "completionMode": "Indexed",
            "completions": 1,
            "parallelism": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    made = fairway("Workload", name, queue="research", template={"manifests": [job]})
    made["metadata"]["namespace"] = "team"
    return made


@dataclass(kw_only=True)
class Rig:
    """A hub, and whoever uses it."""

    hub: Hub
    client: AsyncClient
    access: Access
    folder: Path

    async def start(self, name: str, script: str, phase: str = "Running") -> None:
        """Submits a script, and waits until it is so far."""
        await self.client.apply(workload(name, script))
        scope = Scope(namespace="team", fields=f"metadata.name={name}")
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(self.client.watch(WORKLOADS, scope=scope)) as events,
        ):
            async for event in events:
                if event.object.get("status", {}).get("phase") == phase:
                    return

    async def log(self, name: str, **query: str) -> str:
        """Output, once it can be had."""
        parts = [part async for part in self.client.log(name, namespace="team", query=query)]
        return b"".join(parts).decode()

    async def credential(self, cluster: str) -> Access:
        """The hub as the accepted agent of a cluster sees it."""
        api = KubeApi(self.access, CLOCK)
        try:
            found = await self.client.get("clusters.fairway.dev", cluster)
            await hub_side.make_namespace(api, work_namespace(cluster))
            await hub_side.apply_all(api, rights.agent_objects(cluster, rights.owner_of(found)))
            given = await hub_side.token_of(api, work_namespace(cluster), rights.AGENT, 3600)
        finally:
            await api.close()
        return replace(self.access, token=given.token, certificate=b"", key=b"")

    async def somebody(self, *roles: str) -> AsyncClient:
        """A client of somebody who has some roles in the namespace."""
        name = f"somebody-{'-'.join(roles) or 'else'}"
        account = {"apiVersion": "v1", "kind": "ServiceAccount"}
        await self.client.apply({**account, "metadata": {"name": name, "namespace": "team"}})
        for role in roles:
            rbac = "rbac.authorization.k8s.io"
            subject = {"kind": "ServiceAccount", "name": name, "namespace": "team"}
            await self.client.apply(
                {
                    "apiVersion": f"{rbac}/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": f"{name}-{role}", "namespace": "team"},
                    "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                    "subjects": [subject],
                }
            )
        api = KubeApi(self.access, CLOCK)
        try:
            given = await hub_side.token_of(api, "team", name, 3600)
        finally:
            await api.close()
        access = replace(self.access, token=given.token, certificate=b"", key=b"")
        return AsyncClient(access)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                await asyncio.sleep(0.01)

    @property
    def lines(self) -> Json:
        """The lines of agents that called, by cluster."""
        reach: Any = self.hub.api.talks.reach
        found: Json = reach._called
        return found

    @asynccontextmanager
    async def agent(self, cluster: str) -> AsyncIterator[asyncio.Task[None]]:
        """The agent of a cluster elsewhere; gives the task that keeps its stream."""
        api = KubeApi(await self.credential(cluster), CLOCK)
        store = KubernetesStore(api)
        kinds = built_in()

        def make(described: Cluster, settings: AgentSettings) -> Agent:
            place = machine({"cpu": "8", "memory": "8Gi"})
            folder = self.folder / "agents" / cluster
            return Agent(
                cluster,
                store=store,
                driver=LocalDriver(
                    place,
                    kinds.of,
                    CLOCK,
                    folder=folder / "pods",
                    isolation=isolation(),
                    limits=Limits(host_roots=(shared(self.folder),)),
                ),
                memory=Memory(folder / "works"),
                find_kind=kinds.of,
                clock=CLOCK,
                settings=settings,
            )

        agents = Agents(store, make, clock=CLOCK, only=cluster)
        caller = asyncio.ensure_future(Caller(api, cluster, agents, CLOCK).run())
        looking = asyncio.ensure_future(agents.run())
        try:
            await self.until(lambda: cluster in self.lines)
            yield caller
        finally:
            await end((caller, looking))
            await store.close()


@asynccontextmanager
async def rig(folder: Path, *objects: Json) -> AsyncIterator[Rig]:
    """A hub with a queue, a namespace and some clusters."""
    async with (
        open_hub(HubOptions(data=folder / "hub", port=0)) as hub,
        AsyncClient.connect(str(hub.kubeconfig)) as client,
    ):
        team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        for object_ in (team, fairway("Queue", "research", uncovered="Unlimited"), *objects):
            await client.apply(object_)
        access = load_access(str(hub.kubeconfig))
        yield Rig(hub=hub, client=client, access=access, folder=folder)


def elsewhere(name: str) -> Json:
    return fairway("Cluster", name, kubernetes={"connection": "Pull"})


def here(name: str = "here") -> Json:
    local = {"capacity": {"cpu": "8", "memory": "8Gi"}, "stopSeconds": 1}
    return fairway("Cluster", name, local=local)
