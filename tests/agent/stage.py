"""A hub's store, a simulated cluster and its agent on virtual time, for tests of agents.

The test plays the hub: it writes works and reads what the agent tells. `is_hub_away` lets every
call of the agent fail; `crash` ends the agent without a word, and `start` begins it again with
what its folder holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from fairway.agent.agent import Agent
from fairway.agent.drivers.interface import Driver
from fairway.agent.drivers.simulated.driver import Worlds
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api import crds
from fairway.api.cluster import Cluster
from fairway.api.codec import decode, to_plain
from fairway.api.errors import NotFound, Unavailable
from fairway.api.report import ClusterReport, WorkState
from fairway.api.report_changes import apply_changes, fits
from fairway.api.work import Work
from fairway.clock import VirtualClock
from fairway.kinds.registry import built_in
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Selection, Write
from fairway.store.keys import CLUSTERS, LEASES, NAMESPACES, REPORTS, WORKS

NAMESPACE = "fairway-cluster-here"
HUB = Write(user="hub", manager="hub")
DEFINITIONS = ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions")
Plain = dict[str, Any]


def cluster(**simulated: Any) -> Plain:
    """The cluster `here`: three nodes; pods start at once and run as long as they say, or on."""
    spec = simulated.pop("spec", {})
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "here"},
        "spec": {
            "simulated": {
                "nodePools": [
                    {
                        "name": "node",
                        "count": 3,
                        "shape": {"cpu": "4", "memory": "8Gi", "pods": 110},
                    }
                ],
                "startSeconds": 0,
                "runSeconds": 0,
                **simulated,
            },
            **spec,
        },
    }


class AgentStore:
    """The store as the agent reaches it; it may be away, and it counts what is written."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self.is_away = False
        self._watches: list[Any] = []
        self.writes: list[tuple[str, str]] = []
        self.pause: Callable[[], Awaitable[None]] | None = None  # on the way to the hub

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        async def reached(kind: ResourceKey, *given: Any, **more: Any) -> Any:
            if self.pause is not None:
                await self.pause()
            if self.is_away:
                raise Unavailable("the hub is away")
            if name not in ("get", "list", "watch"):
                self.writes.append((name, kind.plural))
            answer = await call(kind, *given, **more)
            if name == "watch":
                self._watches.append(answer)
            return answer

        return reached

    async def go_away(self) -> None:
        """Every call fails from now on, and every watch ends."""
        self.is_away = True
        for watch in self._watches:
            await watch.close()
        self._watches.clear()

    def count(self, plural: str) -> int:
        return sum(write == plural for _, write in self.writes)


class Stage:
    """Everything that a test of an agent needs."""

    def __init__(self, folder: Path, described: Plain, settings: AgentSettings) -> None:
        self.clock = VirtualClock()
        self.store = EmbeddedStore(
            SqliteJournal(folder / "hub.db", is_inline=True),
            standard_catalogue(),
            clock=self.clock,
        )
        self.reached = AgentStore(self.store)
        self.worlds = Worlds(built_in().of, self.clock)
        self.settings = settings
        self.wrap: Callable[[Driver], Driver] = lambda driver: driver
        self._folder = folder
        self._described = described
        self._task: asyncio.Task[None] | None = None
        self.agent: Agent | None = None

    async def open(self) -> None:
        self.store.start()
        for definition in crds.definitions():
            await self.store.create(DEFINITIONS, definition, write=HUB)
        await self.store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}, write=HUB)
        await self.store.create(CLUSTERS, self._described, write=HUB)
        await self.start()

    async def close(self) -> None:
        await self.crash()
        await self.store.close()

    async def start(self) -> None:
        """Starts the agent, with what its folder holds."""
        stored = await self.store.get(CLUSTERS, "here")
        self.agent = Agent(
            "here",
            store=self.reached,  # type: ignore[arg-type]  # it passes on all calls
            driver=self.wrap(self.worlds.driver(decode(stored.raw, Cluster))),
            memory=Memory(self._folder / "agent", is_inline=True),
            find_kind=built_in().of,
            clock=self.clock,
            settings=self.settings,
        )
        self._task = asyncio.ensure_future(self.agent.run())

    async def crash(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def forget(self) -> None:
        """The agent's disk is lost."""
        for path in (self._folder / "agent").iterdir():
            path.unlink()

    # The hub's part.

    async def put(self, work: Work) -> None:
        """Makes a work, or changes the one that is there."""
        body = to_plain(work)
        name = work.metadata.name
        try:
            old = (await self.store.get(WORKS, name, NAMESPACE)).object()
        except NotFound:
            await self.store.create(WORKS, body, namespace=NAMESPACE, write=HUB)
            return
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        await self.store.update(WORKS, body, namespace=NAMESPACE, write=HUB)

    async def bury(self, work: Work) -> Work:
        """Puts a tombstone on a work."""
        buried = replace(work, spec=replace(work.spec, desired="Stop", tombstone=True))
        await self.put(buried)
        return buried

    async def delete(self, work: Work) -> None:
        await self.store.delete(WORKS, work.metadata.name, namespace=NAMESPACE, write=HUB)

    async def remove_reports(self) -> None:
        listing = await self.store.list(REPORTS)
        for item in listing.items:
            await self.store.delete(REPORTS, item.object()["metadata"]["name"], write=HUB)

    async def set_mode(self, mode: str) -> None:
        patch = Patch(type="merge", body={"spec": {"mode": mode}})
        await self.store.patch(CLUSTERS, "here", patch, write=HUB)

    async def change_status(self, status: Plain) -> None:
        patch = Patch(type="merge", body={"status": status})
        await self.store.patch(CLUSTERS, "here", patch, subresource="status", write=HUB)

    # What the agent told.

    async def work(self, work: Work) -> Work | None:
        try:
            stored = await self.store.get(WORKS, work.metadata.name, NAMESPACE)
        except NotFound:
            return None
        return decode(stored.raw, Work)

    async def lease(self) -> Plain:
        return (await self.store.get(LEASES, "fairway-agent", NAMESPACE)).object()

    async def cluster(self) -> Cluster:
        return decode((await self.store.get(CLUSTERS, "here")).raw, Cluster)

    async def reports(self) -> list[ClusterReport]:
        """The chunks as whoever reads them puts them together."""
        listing = await self.store.list(REPORTS, Selection(fields="spec.cluster=here"))
        found = [decode(item.raw, ClusterReport) for item in listing.items]
        wholes = [item for item in found if item.spec.since_sequence is None]
        return [
            apply_changes(item, next((other for other in found if fits(item, other)), None))
            for item in sorted(wholes, key=lambda entry: entry.spec.chunk)
        ]

    async def states(self) -> dict[str, WorkState]:
        return {
            state.work: state for report in await self.reports() for state in report.spec.states
        }

    async def state(self, work: Work) -> WorkState | None:
        return (await self.states()).get(work.metadata.name)

    # Time.

    async def passes(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def until(self, phase: str, work: Work, *, seconds: float = 120) -> WorkState:
        """Lets time pass until a work is told to be in a phase."""
        state = None
        for _ in range(int(seconds / 0.1)):
            state = await self.state(work)
            if state is not None and state.phase == phase:
                return state
            await self.clock.advance(0.1)
        raise AssertionError(f"after {seconds} s {work.metadata.name} is {state}")

    async def pods(self, work: Work) -> int:
        """Pods that live in the cluster itself."""
        found = self.worlds.world("here").pods(work.metadata.name)
        return sum(item.is_live for item in found or ())
