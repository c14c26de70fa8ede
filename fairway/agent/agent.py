"""An agent: manages one cluster on behalf of its hub.

Its loops share what is remembered, seen and reported. Some watch the hub, others observe the
cluster, reconcile works, and report to the hub. No loop waits for another: a hub that does not
answer does not keep works from being stopped, and a slow cluster does not delay heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fairway.agent import cluster_status
from fairway.agent.answers import answer, answer_measurement
from fairway.agent.cluster_status import AgentFacts
from fairway.agent.drivers.interface import Driver, DriverFault
from fairway.agent.hub import Hub
from fairway.agent.inventory.interface import Inventory
from fairway.agent.inventory.listed import Listed
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.agent.sight import Sight
from fairway.agent.states import FindKind
from fairway.agent.teller import Teller
from fairway.agent.tender import Tender
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.api.names import work_namespace
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.governance.cluster_selectors import facts_of
from fairway.loops import Alarm, Loop
from fairway.metrics.interface import NoSources, Sources
from fairway.store.interface import Selection, Store, Stored
from fairway.store.keys import CLUSTERS, WORKS
from fairway.store.mirrors import Mirror, Name
from fairway.streams.requests import MEASURE, Ask, Exchange, Outcome

_log = logging.getLogger(__name__)

_BACK_OFF_SECONDS = 0.1
_BACK_OFF_SECONDS_MAX = 10.0
_HEARTBEATS_OF_SILENCE = 1.5  # after which an agent reports that its cluster does not answer
_LOOK_REST = 4  # the pause after a look, in multiples of the time the look took
_LOOK_SECONDS_LEAST = 0.01
_REPORT_REST = 4  # the pause after a report, in multiples of the time it took to write
_REPORT_SECONDS_MOST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What an agent asks besides its driver."""

    inventory: Inventory = field(default_factory=Listed)
    sources: Sources = field(default_factory=NoSources)  # of metrics, as reached from here


class Agent:
    """The agent of one cluster. `run` it until it is cancelled."""

    def __init__(
        self,
        cluster: str,
        *,
        store: Store,
        driver: Driver,
        memory: Memory,
        find_kind: FindKind,
        clock: Clock,
        settings: AgentSettings | None = None,
        beside: Beside | None = None,
    ) -> None:
        self.cluster = cluster
        self._store = store
        self._driver = driver
        self._memory = memory
        self._find_kind = find_kind
        self._clock = clock
        self._settings = settings or AgentSettings()
        self._sight = Sight(clock)
        self._looked = asyncio.Event()
        self._mode_changed = Alarm(clock)
        self._mode = ""
        self._told_cluster: JsonObject = {}
        self._doubts_reports = False  # whether the hub may not have what was last reported
        self._doubts_status = False  # the same of the cluster's status
        self._leaving: tuple[str, ...] = ()  # nodes that may go
        self._to_release = Alarm(clock)
        self._beside = beside or Beside()
        self._parts: _Parts | None = None

    def use(self, settings: AgentSettings) -> None:
        """Uses these settings from now on."""
        self._settings = settings
        if self._parts is not None:
            self._parts.tender.settings = settings
            self._parts.teller.settings = settings

    async def reseal(self) -> None:
        """Writes what it remembers again, with the key that is now the current one."""
        await self._memory.reseal()

    async def answer(self, ask: Ask, exchange: Exchange) -> Outcome:
        """Answers a request about pods of this cluster, or measures for a scorer."""
        if ask.kind == MEASURE:
            sources = self._beside.sources
            return await answer_measurement(ask, exchange, sources=sources, clock=self._clock)
        return await answer(self.cluster, self._driver, ask, exchange, self._sight.work(ask.work))

    async def run(self) -> None:
        """Manages the cluster until cancelled; the pods of works keep running."""
        self._memory.open()
        self._mode = self._memory.mode
        parts = self._parts = self._assemble()
        try:
            await self._open(parts)
            self._sight.wanted.mark()
            async with asyncio.TaskGroup() as tasks:
                for work in self._loops(parts):
                    tasks.create_task(work)
        finally:
            await self._driver.close()
            await self._memory.close()

    async def _open(self, parts: _Parts) -> None:
        try:
            await self._driver.open()
        except DriverFault:
            with suppress(ApiError, OSError):
                await parts.hub.tell_cut_off()
                await self._memory.hear(parts.hub.heard_at)
            raise

    def _assemble(self) -> _Parts:
        hub = Hub(
            self._store,
            self.cluster,
            clock=self._clock,
            epoch=self._memory.epoch,
            heard_at=self._memory.heard_at,
        )
        teller = Teller(
            self._memory,
            self._sight,
            hub,
            find_kind=self._find_kind,
            clock=self._clock,
            settings=self._settings,
        )
        tender = Tender(
            self._memory,
            self._sight,
            self._driver,
            hub,
            teller,
            find_kind=self._find_kind,
            clock=self._clock,
            settings=self._settings,
        )
        works = Mirror(
            self._store,
            WORKS,
            clock=self._clock,
            selection=Selection(namespace=work_namespace(self.cluster)),
        )
        clusters = Mirror(
            self._store,
            CLUSTERS,
            clock=self._clock,
            selection=Selection(fields=f"metadata.name={self.cluster}"),
        )
        works.followers.append(self._hear_work)
        clusters.followers.append(self._hear_cluster)
        parts = _Parts(hub, teller, tender, works, clusters, self._clock, self._settings.width)
        works.listed.append(lambda: self._list(parts))
        works.resumed.append(lambda: self._doubt_reports(parts))
        return parts

    def _loops(self, parts: _Parts) -> tuple[Coroutine[Any, Any, None], ...]:
        return (
            parts.clusters.run(),
            parts.works.run(),
            parts.tending.run(),
            parts.teller.statuses.run(),
            self._follow_mode(parts),
            self._begin(parts),
            self._listen(),
            self._look(parts),
            self._report(parts),
            self._tell_cluster(parts),
            self._beat(parts),
            self._release(),
            self._beside.inventory.run(self._sight.wanted.mark),
        )

    # Input from the hub.

    def _hear_work(self, name: Name, stored: Stored | None) -> None:
        parts, own = self._running(), name[1]
        try:
            work = decode(stored.raw, Work) if stored is not None else None
        except ApiError as fault:
            _log.warning("%s: the work %s cannot be read: %s", self.cluster, own, fault)
            return
        parts.tender.offer(own, work, is_deleted=not parts.works.is_listing)
        parts.teller.offer(own, work)
        parts.tending.mark(own)

    def _hear_cluster(self, _name: Name, stored: Stored | None) -> None:
        if stored is not None:
            cluster = decode(stored.raw, Cluster)
            self._running().tender.cluster = facts_of(cluster)
            self._mode = cluster.spec.mode
            self._mode_changed.mark()
            leaving = tuple(node.name for node in cluster.status.leaving_nodes if node.may_go)
            if leaving != self._leaving:
                self._leaving = leaving
                self._to_release.mark()

    async def _follow_mode(self, parts: _Parts) -> None:
        while True:
            await self._mode_changed.wait()
            if self._mode != self._memory.mode:
                await self._memory.begin_mode(self._mode)
                self._mark_all(parts)

    async def _release(self) -> None:
        """Releases nodes that the hub does not need, if the hub manages the cluster."""
        while True:
            await self._to_release.wait()
            if not self._leaving or self._mode != "Manage":
                continue
            try:
                await self._driver.release(self._leaving)
            except DriverFault as fault:
                _log.warning("%s: nodes cannot be given back: %s", self.cluster, fault)
                await self._clock.sleep(_BACK_OFF_SECONDS_MAX)
                self._to_release.mark()

    async def _begin(self, parts: _Parts) -> None:
        """After the first complete list of works, those missing from the hub can be recognized."""
        await parts.works.is_complete.wait()
        parts.tender.knows_hub = True
        self._mark_all(parts)

    def _list(self, parts: _Parts) -> None:
        """Reports everything again after a relist: the hub may have been restored."""
        if parts.tender.knows_hub:
            self._doubts_status = True
            parts.teller.reports.tell_all()
            parts.teller.to_report.mark()
            self._mark_all(parts)

    def _doubt_reports(self, parts: _Parts) -> None:
        """Has its reports and status on the hub read again: it may have been restored to earlier.

        The watch goes on only if no work has changed since that time.
        """
        self._doubts_reports = self._doubts_status = True
        parts.teller.to_report.mark()

    def _mark_all(self, parts: _Parts) -> None:
        seen = self._sight.observation.works if self._sight.observation is not None else {}
        for name in dict.fromkeys((*self._memory.works, *parts.tender.offered, *seen)):
            parts.tending.mark(name)

    # Observing the cluster.

    async def _listen(self) -> None:
        """Requests a look when the driver signals a change, once for each look."""
        while True:
            await self._driver.wait_for_change()
            self._looked.clear()
            self._sight.wanted.mark()
            await self._looked.wait()

    async def _look(self, parts: _Parts) -> None:
        back_off = _BACK_OFF_SECONDS
        while True:
            await self._sight.wanted.wait()
            began = self._clock.now()
            number = self._sight.begin()
            try:
                observation = self._beside.inventory.merge(await self._driver.observe())
            except DriverFault as fault:
                _log.warning("%s: cannot look at the cluster: %s", self.cluster, fault)
                await self._clock.sleep(back_off)
                back_off = min(2 * back_off, _BACK_OFF_SECONDS_MAX)
                self._sight.wanted.mark()
                continue
            back_off = _BACK_OFF_SECONDS
            self._looked.set()
            is_first = self._sight.observation is None
            changed = self._sight.take(observation, number)
            names = dict.fromkeys((*changed, *self._memory.works)) if is_first else changed
            for name in parts.teller.look(names):
                parts.tending.mark(name)
            for name in names:
                if parts.tender.needs(name):
                    parts.tending.mark(name)
            # Reports already have their own pause; a second one of that length would only add
            # delay, unless looking is slow.
            rest = max(_LOOK_SECONDS_LEAST, _LOOK_REST * (self._clock.now() - began))
            await self._clock.sleep(min(rest, self._settings.report_seconds))

    # Reporting to the hub.

    async def _report(self, parts: _Parts) -> None:
        back_off = _BACK_OFF_SECONDS
        reports = parts.teller.reports
        while True:
            await parts.teller.to_report.wait()
            began = self._clock.now()
            await self._find_reports(parts)
            while (report := reports.next(self._clock.now())) is not None:
                try:
                    await parts.hub.write_report(report)
                except (ApiError, OSError) as fault:
                    reports.mark_unsure(report)
                    parts.teller.to_report.mark()
                    _log.warning("%s: cannot report: %s", self.cluster, fault)
                    await self._clock.sleep(back_off)
                    back_off = min(2 * back_off, _BACK_OFF_SECONDS_MAX)
                    break
                reports.confirm(report)
                back_off = _BACK_OFF_SECONDS
            # When writes are slow, write less often: more changes then share a report.
            took = min(self._clock.now() - began, _REPORT_SECONDS_MOST)
            await self._clock.sleep(max(self._settings.report_seconds, _REPORT_REST * took))

    async def _find_reports(self, parts: _Parts) -> None:
        """Reports everything again if the hub does not have what was last reported."""
        reports = parts.teller.reports
        try:
            if self._doubts_reports and await parts.hub.has_lost_reports(reports.chunks):
                reports.tell_all()
            self._doubts_reports = False
        except (ApiError, OSError) as fault:
            _log.warning("%s: cannot read its reports: %s", self.cluster, fault)
            parts.teller.to_report.mark()

    async def _tell_cluster(self, parts: _Parts) -> None:
        """Writes the cluster's status when it changed, at a limited rate."""
        connected_at = self._clock.now()
        looked_at: tuple[object, object] | None = None
        part: JsonObject = {}
        while True:
            observation = self._sight.observation
            if observation is None:
                await self._looked.wait()
                await self._clock.sleep(self._settings.report_seconds)
                continue
            requests = {
                (name, pod.pod_set): parts.teller.requests(name, pod.pod_set)
                for name, seen in observation.works.items()
                for pod in seen.pods
            }
            if looked_at is None or looked_at[0] is not observation or looked_at[1] != requests:
                has, free = cluster_status.totals(observation, requests)
                part = cluster_status.agent_part(observation, has=has, free=free)
                looked_at = observation, requests
            if part != self._told_cluster or self._doubts_status:
                facts = AgentFacts(
                    epoch=self._memory.epoch,
                    connected_at=connected_at,
                    report_sequence=parts.teller.reports.sequence,
                )
                try:
                    await self._write_status(parts, part, facts)
                except (ApiError, OSError) as fault:
                    self._doubts_status = True
                    _log.warning("%s: cannot tell its status: %s", self.cluster, fault)
            await self._clock.sleep(self._settings.cluster_seconds)

    async def _write_status(self, parts: _Parts, part: JsonObject, facts: AgentFacts) -> None:
        if self._doubts_status:
            self._doubts_status = False
            self._told_cluster = await parts.hub.read_cluster_status()
        patch = cluster_status.patch_from(self._told_cluster, part)
        patch["agent"] = cluster_status.agent_facts(facts, now=self._clock.now())
        await parts.hub.write_cluster_status(patch)
        self._told_cluster = part

    async def _beat(self, parts: _Parts) -> None:
        back_off = _BACK_OFF_SECONDS
        while True:
            period = self._settings.heartbeat_seconds
            try:
                if self._driver.silent_seconds() >= _HEARTBEATS_OF_SILENCE * period:
                    _log.warning("%s: the cluster does not answer", self.cluster)
                    await parts.hub.tell_cut_off()
                else:
                    await parts.hub.beat(period)
                await self._memory.hear(parts.hub.heard_at)
                back_off = _BACK_OFF_SECONDS
                await self._clock.sleep(period)
            except (ApiError, OSError) as fault:
                _log.warning("%s: the hub does not answer: %s", self.cluster, fault)
                await self._clock.sleep(min(back_off, period))
                back_off = min(2 * back_off, _BACK_OFF_SECONDS_MAX)

    def _running(self) -> _Parts:
        assert self._parts is not None, "the agent runs"
        return self._parts


class _Parts:
    """The parts of a running agent."""

    __slots__ = ("clusters", "hub", "teller", "tender", "tending", "works")

    def __init__(
        self,
        hub: Hub,
        teller: Teller,
        tender: Tender,
        works: Mirror,
        clusters: Mirror,
        clock: Clock,
        width: int,
    ) -> None:
        self.hub = hub
        self.teller = teller
        self.tender = tender
        self.works = works
        self.clusters = clusters
        self.tending: Loop[str] = Loop("works", tender.tend, clock=clock, width=width)
