"""The scheduler where its store fails it, late or by half: nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairway.api.errors import Conflict, Invalid, Timeout, Unavailable
from fairway.api.fleet import FleetSpec
from fairway.api.meta import JsonObject
from fairway.clock import VirtualClock
from fairway.controllers.scheduling.claims import Batch
from fairway.controllers.scheduling.commit import FINALIZER, Committer
from fairway.controllers.scheduling.planner_state import Planned
from fairway.core.plan import Admit
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Stored, Watch, WatchEvent, Write
from fairway.store.keys import WORKLOADS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, SERVICE, job


class FaultyStore:
    """A store that fails at chosen writes, and whose news of workloads can be held back."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self.open = asyncio.Event()
        self.open.set()
        self.before: Callable[[JsonObject], None] = lambda _: None  # a status of a workload
        self.after: Callable[[JsonObject], None] = lambda _: None
        self.reading: Callable[[str], None] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored:
        if kind == WORKLOADS:
            self.reading(name)
        return await self._store.get(kind, name, namespace)

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        is_told = kind == WORKLOADS and write.manager == "fairway-scheduler"
        if is_told:
            self.before(body)
        stored = await self._store.update(
            kind, body, namespace=namespace, subresource=subresource, write=write
        )
        if is_told:
            self.after(body)
        return stored

    async def watch(self, kind: ResourceKey, *arguments: Any) -> Watch:
        found = await self._store.watch(kind, *arguments)
        return HeldBack(found, self.open) if kind == WORKLOADS else found


class HeldBack:
    """A watch that tells only while it may."""

    def __init__(self, watch: Watch, is_open: asyncio.Event) -> None:
        self._watch = watch
        self._open = is_open

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch, name)

    async def batch(self) -> list[WatchEvent]:
        events = await self._watch.batch()
        await self._open.wait()
        return events


def claims(body: JsonObject) -> bool:
    return bool(body["status"].get("claim"))


def decided_in(fleet: Fleet) -> list[str]:
    """The workloads for which a claim is decided from now on, each time it is."""
    found: list[str] = []
    fleet.plane.scheduler.observers.append(
        lambda planned, _outcome, _term: found.extend(
            step.workload for step in planned.steps if isinstance(step, Admit)
        )
    )
    return found


async def test_a_claim_whose_answer_was_lost_counts_and_is_not_decided_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)

    def lose_answer(body: JsonObject) -> None:
        faulty.before = faulty.after = lambda _: None
        raise Timeout("no answer in time")

    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await clock.advance(30)
        decided = decided_in(fleet)
        faulty.before, faulty.after = lambda body: faulty.open.clear(), lose_answer
        await fleet.apply(job("a"))
        await clock.advance(5)
        assert decided == ["default/a"]
        faulty.open.set()
        await fleet.until("a", "Succeeded")
        assert decided == ["default/a"]


async def test_nobody_takes_what_a_service_gives_up_before_that_is_written(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(SERVICE)
        await fleet.until("chat", lambda item: item.status.pods.ready == 2, 60)
        await fleet.apply(job("a"))
        await clock.advance(5)
    stored = {
        name: await store.get(WORKLOADS, name, "default") for name in ("a", "chat")
    }  # the service holds its claim, and leaves nothing
    committer = Committer(
        store, lambda name: stored[name[1]], lambda: True, tell=lambda _workload, _status: None
    )
    step = Admit(workload="default/a", placed=(), waits_for=("default/chat",))
    version = stored["a"].object()["metadata"]["resourceVersion"]
    planned = Planned(now=clock.now(), steps=(step,), versions={"default/a": version})
    outcome = await committer.commit(planned, Batch(now=clock.now(), term=9, fleet=FleetSpec()))
    assert (outcome.written, list(outcome.refused)) == ([], ["default/a"])


async def test_a_claim_that_was_never_written_is_decided_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)

    def lose_call(body: JsonObject) -> None:
        faulty.before = lambda _: None
        raise ConnectionResetError

    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await clock.advance(30)
        decided = decided_in(fleet)
        faulty.before = lose_call
        await fleet.apply(job("a"))
        await fleet.until("a", "Succeeded")
        assert decided == ["default/a", "default/a"]


async def test_who_stood_still_amid_a_batch_writes_no_more_of_it(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)
    terms: dict[str, int] = {}

    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await clock.advance(30)
        decided = decided_in(fleet)

        def lose_lead(body: JsonObject) -> None:
            if claims(body):
                terms.setdefault(body["metadata"]["name"], body["status"]["claim"]["term"])
            if len(terms) == 1:
                fleet.plane.terms.resign()

        faulty.before = lose_lead
        fleet.plane.scheduler.cease()
        await fleet.apply(job("a", gpus=1) + "---" + job("b", gpus=1))
        await clock.advance(1)
        fleet.plane.scheduler.begin()
        await fleet.until("a", "Succeeded")
        await fleet.until("b", "Succeeded")
        assert sorted(terms) == ["a", "b"]
        assert terms["a"] != terms["b"]
        assert sorted(decided) == ["default/a", "default/b", "default/b"]


async def test_a_planner_that_begins_anew_knows_claims_that_are_not_told_of_yet(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)
    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await clock.advance(30)
        decided = decided_in(fleet)
        faulty.before = lambda body: faulty.open.clear()
        await fleet.apply(job("a"))
        await clock.advance(1)
        await fleet.plane.scheduler._restart()
        fleet.plane.scheduler.begin()
        await clock.advance(5)
        assert decided == ["default/a"]
        faulty.open.set()
        await fleet.until("a", "Succeeded")


async def test_claims_that_are_refused_for_good_are_tried_ever_more_rarely(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)

    def refuse(body: JsonObject) -> None:
        if claims(body):
            raise Invalid("its status is refused")

    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await clock.advance(30)
        decided = decided_in(fleet)
        faulty.before = refuse
        await fleet.apply(job("a"))
        await clock.advance(60)
        assert 2 <= len(decided) <= 30
        faulty.before = lambda _: None
        await fleet.until("a", "Succeeded")


async def test_a_victim_that_cannot_be_read_again_leaves_the_scheduler_running(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = FaultyStore(store)

    def conflict(body: JsonObject) -> None:
        if body["metadata"]["name"] == "low" and not claims(body):
            faulty.before = lambda _: None
            faulty.reading = fail
            raise Conflict("somebody was first")

    def fail(name: str) -> None:
        faulty.reading = lambda _: None
        raise Unavailable("the server is overloaded")

    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        await fleet.apply(FLEET)
        await fleet.apply(job("low", pods=2, seconds=3_600))
        await fleet.until("low", "Running")
        faulty.before = conflict
        with caplog.at_level(logging.ERROR):
            await fleet.apply(job("high", pods=2, priority=10))
            await fleet.until("high", "Running")
        # Hubs that other tests share speak from threads of their own.
        assert not [record for record in caplog.records if record.thread == threading.get_ident()]


async def test_news_that_somebody_took_who_was_then_cancelled_still_reach_the_planner(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await clock.advance(30)
        async with fleet.plane.planner._calling:
            await fleet.apply(job("a"))
            await clock.advance(0.1)
            await fleet.apply(job("b"))
            await clock.advance(0.1)
            asking = asyncio.ensure_future(fleet.plane.explain("default", "b"))
            await clock.advance(0.1)
            asking.cancel()
            await clock.advance(0.1)
        await fleet.until("b", "Succeeded")


async def test_a_workload_made_without_the_finalizer_gets_it_before_its_claim(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    faulty = FaultyStore(store)
    kept: list[bool] = []
    async with running(faulty, clock, tmp_path) as fleet:  # type: ignore[arg-type]  # in its place
        faulty.before = lambda body: kept.append(
            FINALIZER in body["metadata"].get("finalizers", ())
        )
        await fleet.apply(FLEET)
        await fleet.apply(job("a").replace(", finalizers: [fairway.dev/works]", ""))
        found = await fleet.until("a", "Succeeded")
        assert all(kept)
        assert [item.attempt for item in found.status.history] == [1]
