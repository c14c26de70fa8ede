"""Who leads, on every store: one at a time, and whoever led before does no harm.

Replicas are real control planes with a store between them. A replica that is paused sends nothing
and hears nothing; what it was about to send is sent when it goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.api import codec
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.app import prepare_store
from fairway.app.agents import make_agents
from fairway.clock import Clock, SystemClock, VirtualClock
from fairway.controllers.cache import CLUSTERS, QUEUES, WORKLOADS, WORKS
from fairway.controllers.plane import ControlPlane, PlaneOptions, run_all
from fairway.controllers.terms import NotLeader, Settings, Terms
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kinds.registry import built_in
from fairway.loops import end
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Store, Write
from fairway.store.kubernetes.store import KubernetesStore
from tests.kubernetes.sweeping import sweep

WRITE = Write(user="ada", manager="test")
LEASE_SECONDS = 6.0  # that a busy machine may need in real time
JOBS = 6


class Times(Protocol):
    """A clock for replicas, and a way to wait for what they do."""

    clock: Clock

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None: ...


class VirtualTimes:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        for _ in range(1_000):
            if await holds():
                return
            await self.clock.advance(0.1)
        raise AssertionError(f"waited in vain until {what}")


class RealTimes:
    def __init__(self) -> None:
        self.clock = SystemClock()

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(180):
                while not await holds():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"waited in vain until {what}") from None


@pytest.fixture
async def times(store: Store, virtual: VirtualClock) -> AsyncIterator[Times]:
    """The store as a hub has it, and the time of its replicas."""
    if isinstance(store, EmbeddedStore):
        await prepare_store(store)
        yield VirtualTimes(virtual)
        return
    assert isinstance(store, KubernetesStore)
    await prepare_kubernetes(store, SystemClock())
    await sweep(store)
    yield RealTimes()
    await sweep(store)


def terms(store: Store, times: Times, identity: str, **more: Any) -> Terms:
    settings = Settings(identity=identity, duration_seconds=LEASE_SECONDS, **more)
    return Terms(store, times.clock, settings)


async def test_of_several_who_ask_at_once_one_leads(store: Store, times: Times) -> None:
    every = [terms(store, times, f"replica-{number}") for number in range(5)]
    asking = [asyncio.ensure_future(item.campaign()) for item in every]

    async def somebody_leads() -> bool:
        return any(item.is_leader for item in every)

    await times.until(somebody_leads, "somebody leads")
    assert sum(item.is_leader for item in every) == 1
    for item in asking:
        item.cancel()


async def test_every_batch_has_a_higher_term(store: Store, times: Times) -> None:
    one = terms(store, times, "one")
    await one.campaign()
    assert [await one.advance() for _ in range(3)] == [2, 3, 4]


async def test_a_leader_that_another_took_over_from_decides_nothing_more(
    store: Store, times: Times
) -> None:
    one, two = terms(store, times, "one"), terms(store, times, "two", takes_over_at_once=True)
    await one.campaign()
    await two.campaign()
    assert one.is_leader  # it cannot know yet
    with pytest.raises(NotLeader):
        await one.advance()
    assert not one.is_leader
    assert await two.advance() > one.term


async def test_another_takes_over_once_the_lease_is_not_renewed(store: Store, times: Times) -> None:
    one, two = terms(store, times, "one"), terms(store, times, "two")
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    waiting = asyncio.ensure_future(two.campaign())
    until = times.clock.now() + 2 * LEASE_SECONDS

    async def is_later() -> bool:
        assert one.is_leader
        return times.clock.now() > until

    await times.until(is_later, "two leases long have passed")
    assert not waiting.done()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)

    async def is_taken() -> bool:
        return two.is_leader

    await times.until(is_taken, "the other leads")
    assert not one.is_leader
    assert two.term > one.term
    waiting.cancel()


async def test_a_leader_that_ends_in_order_lets_another_lead_at_once(
    store: Store, times: Times
) -> None:
    one, two = terms(store, times, "one"), terms(store, times, "two")
    await one.campaign()
    keeping = asyncio.ensure_future(one.keep())
    waiting = asyncio.ensure_future(two.campaign())

    async def was_seen() -> bool:
        return two._lease is not None

    await times.until(was_seen, "the other has seen who leads")
    await one.release()  # it leads, and so releases nothing
    assert one.is_leader
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    ended = times.clock.now()
    await one.release()

    async def is_taken() -> bool:
        return two.is_leader

    await times.until(is_taken, "the other leads")
    assert times.clock.now() - ended < LEASE_SECONDS / 2
    assert two.term > one.term
    with pytest.raises(NotLeader):
        await one.advance()
    await end([waiting])


class Pausable:
    """The store as a replica reaches it, which can be held up before it writes a kind."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self.pauses_before = ""  # the plural of the next write that holds everything up
        self.is_paused = False
        self.held = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        async def carried(kind: Any, *arguments: Any, **options: Any) -> Any:
            is_write = name in ("create", "update", "patch", "delete")
            if is_write and kind.plural == self.pauses_before:
                self.pauses_before, self.is_paused = "", True
                self._goes_on.clear()
            if not self._goes_on.is_set():
                self.held += is_write
                await self._goes_on.wait()
            answer = await call(kind, *arguments, **options)
            await self._goes_on.wait()  # nor does it hear anything
            return answer

        return carried

    def go_on(self) -> None:
        self._goes_on.set()
        self.is_paused = False


@asynccontextmanager
async def replica(store: Any, times: Times, identity: str) -> AsyncIterator[ControlPlane]:
    settings = Settings(identity=identity, duration_seconds=LEASE_SECONDS)
    plane = ControlPlane(
        store=store,
        clock=times.clock,
        kinds=built_in(),
        options=PlaneOptions(terms=settings, secret=b"of all replicas"),
    )
    running = asyncio.ensure_future(plane.run())
    try:
        yield plane
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await plane.close()


def job(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "training", "resources": {"requests": {"cpu": "1"}}}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "finalizers": ["fairway.dev/works"]},
        "spec": {
            "queue": "research",
            "runSeconds": {"estimate": 2},
            "template": {"manifests": [manifest]},
        },
    }


async def submit(store: Store) -> None:
    shape = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    pool = {"name": "node", "count": 2, "shape": shape}
    ours = {"apiVersion": "fairway.dev/v1alpha1"}
    cluster = {"metadata": {"name": "here"}, "spec": {"simulated": {"nodePools": [pool]}}}
    await store.create(CLUSTERS, {**ours, "kind": "Cluster", **cluster}, write=WRITE)
    queue = {
        **ours,
        "kind": "Queue",
        "metadata": {"name": "research"},
        "spec": {"uncovered": "Unlimited"},
    }
    await store.create(QUEUES, queue, write=WRITE)
    for number in range(JOBS):
        await store.create(WORKLOADS, job(f"train-{number}"), namespace="default", write=WRITE)


async def workloads(store: Store) -> list[Workload]:
    return [codec.decode(item.raw, Workload) for item in (await store.list(WORKLOADS)).items]


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("workloads", id="before it writes its first decision"),
        pytest.param("works", id="before it writes its first work"),
        pytest.param("leases", id="before it renews its lease"),
    ],
)
async def test_a_leader_that_is_paused_loses_nothing_and_does_nothing_twice(
    store: Store, times: Times, tmp_path: Path, moment: str
) -> None:
    worlds = Worlds(built_in().of, times.clock)
    agents = make_agents(
        store,
        tmp_path / "clusters",
        kinds=built_in(),
        clock=times.clock,
        worlds=worlds,
        is_inline=True,
    )
    tending = asyncio.ensure_future(run_all([agents.run()]))
    first, second = Pausable(store), Pausable(store)
    attempts: set[int] = set()
    try:
        async with replica(first, times, "one") as one, replica(second, times, "two") as two:

            async def somebody_leads() -> bool:
                return one.terms.is_leader or two.terms.is_leader

            await times.until(somebody_leads, "somebody leads")
            leader, other = (one, two) if one.terms.is_leader else (two, one)
            face = first if leader is one else second
            face.pauses_before = moment
            await submit(store)

            async def is_paused() -> bool:
                return face.is_paused

            async def has_changed() -> bool:
                return other.terms.is_leader

            async def is_over() -> bool:
                for stored in (await store.list(WORKS)).items:
                    attempts.add(codec.decode(stored.raw, Work).spec.attempt)
                found = await workloads(store)
                return len(found) == JOBS and all(w.status.phase == "Succeeded" for w in found)

            await times.until(is_paused, "the leader is paused")
            before = leader.terms.term
            await times.until(has_changed, "the other leads")
            face.go_on()
            await times.until(is_over, "all have succeeded")
            assert not leader.terms.is_leader or leader.terms.term > other.terms.term
            assert other.terms.term > before
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)
    assert attempts == {1}
    for workload in await workloads(store):
        assert [past.attempt for past in workload.status.history] == [1], "it ran once"
