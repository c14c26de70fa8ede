"""The controller of the fleet's metrics: follows workloads, looks periodically, hands numbers over.

Every replica follows workloads, so that a new leader knows at once what a change means. Only while
it leads does it hand anything over. Gauges are handed over with each sample of the history, and
taken back when there is none for a while. Expected starts are asked for only while workloads wait
that have none yet, and rarely.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.fleet_metrics import Metric
from fairway.controllers.clusters.controller import Clusters
from fairway.controllers.context import Context
from fairway.controllers.fleet_metrics.numbers import (
    NO_FLAVOR,
    UNKNOWN,
    Facts,
    Numbers,
    Waiting,
    numbers,
)
from fairway.controllers.fleet_metrics.turns import Seen, Turn, decided, seen_of, turns
from fairway.controllers.glance import glance
from fairway.controllers.history.sampler import History
from fairway.controllers.scheduling.commit import Outcome
from fairway.controllers.scheduling.planner_state import Planned
from fairway.controllers.scheduling.questions import Extents
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.timeline.timeline import Timeline
from fairway.core.explain.samples import Gauges
from fairway.loops import Alarm, in_slices
from fairway.store.interface import Stored
from fairway.store.keys import CLUSTERS, FLAVORS, QUEUES, WORKLOADS
from fairway.store.mirrors import Name

_log = logging.getLogger(__name__)

_STALE_SECONDS = 60.0  # after which gauges without a new sample are taken back
_FORECAST_SECONDS = 60.0  # least time between questions for expected starts
_FORECASTS_MOST = 10_000  # workloads whose expected start is kept


class Display(Protocol):
    """What serves metrics. It bounds their labels."""

    def set(self, metric: Metric, values: Mapping[tuple[str, ...], float]) -> None: ...

    def add(self, metric: Metric, labels: tuple[str, ...], amount: float) -> None: ...

    def observe(self, metric: Metric, labels: tuple[str, ...], value: float) -> None: ...

    def keep(self, label: str, names: Collection[str]) -> None: ...

    def clear(self) -> None: ...


class FleetMetrics:
    """The controller."""

    def __init__(
        self,
        context: Context,
        *,
        display: Display,
        scheduler: Scheduler,
        clusters: Clusters,
        history: History,
        timeline: Timeline,
    ) -> None:
        self._cache = context.cache
        self._clock = context.clock
        self._shared = context.shared
        self._display = display
        self._scheduler = scheduler
        self._clusters = clusters
        self._timeline = timeline
        self._is_counting = False
        self._seen: dict[Name, Seen] = {}
        self._forecasts: dict[Name, float] = {}  # the first one of each that waits
        self._forecast_due = float("-inf")
        self._gauges: Gauges | None = None
        self._sampled = Alarm(context.clock)
        self._workloads = context.cache.mirror(WORKLOADS)
        self._workloads.followers.append(self._follow)
        history.observers.append(self._take_sample)
        scheduler.observers.append(self._take_steps)

    async def run(self) -> None:
        """Hands numbers over until cancelled, then takes all of them back."""
        self._is_counting = True
        self._gauges = None  # a sample from before may be old
        try:
            shown_at = self._clock.now()
            while True:
                await self._sampled.wait(shown_at + _STALE_SECONDS)
                if await self._look():
                    shown_at = self._clock.now()
                elif self._clock.now() >= shown_at + _STALE_SECONDS:
                    self._show(UNKNOWN)
                    shown_at = self._clock.now()
        finally:
            self._is_counting = False
            self._display.clear()

    def _take_sample(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._sampled.mark()

    async def _look(self) -> bool:
        """Hands over the gauges of the latest sample, if there is a new one."""
        gauges, self._gauges = self._gauges, None
        if gauges is None:
            return False
        try:
            await self._forecast()
            extent = await self._scheduler.ask(Extents())
        except ApiError as fault:
            _log.info("the metrics of the fleet are not known: %s", fault)
            return False
        waiting = Waiting()
        async for seen in in_slices(list(self._seen.values())):
            waiting.add(seen)
        fleet, now = self._cache.fleet().spec, self._clock.now()
        phases = {item.metadata.name: item.status.phase for item in self._cache.all(Cluster)}
        heard = {name: self._clusters.beats.of(name) for name in phases}
        facts = Facts(
            now=now,
            gauges=gauges,
            extent=extent,
            waiting=waiting,
            phases=phases,
            silent_seconds={name: beat.silent_seconds for name, beat in heard.items() if beat},
            breakers=self._shared.breakers.status(fleet.breakers, now),
            is_paused=fleet.paused,
        )
        self._show(numbers(facts))
        return True

    def _show(self, shown: Numbers) -> None:
        for labels, kind in ((("queue", "parent"), QUEUES), (("cluster",), CLUSTERS)):
            for label in labels:
                self._display.keep(label, {name for _, name in self._cache.names(kind)})
        flavors = {name for _, name in self._cache.names(FLAVORS)}
        self._display.keep("flavor", flavors | {NO_FLAVOR})
        for metric, values in shown.items():
            self._display.set(metric, values)

    async def _forecast(self) -> None:
        """Keeps the first expected start of each workload that waits."""
        now = self._clock.monotonic()
        waits = (name for name, seen in self._seen.items() if seen.waits_for is not None)
        if now < self._forecast_due or all(name in self._forecasts for name in waits):
            return
        self._forecast_due = now + _FORECAST_SECONDS
        for expected in await self._timeline.ahead():
            namespace, _, name = expected.workload.partition("/")
            seen = self._seen.get((namespace, name))
            if expected.start is None or seen is None or seen.waits_for is None:
                continue
            if len(self._forecasts) < _FORECASTS_MOST:
                self._forecasts.setdefault((namespace, name), expected.start)

    # What happens to workloads.

    def _follow(self, name: Name, stored: Stored | None) -> None:
        after = glance(stored) if stored is not None else None
        if stored is not None and after is None:
            return
        before = self._seen.pop(name, None)
        if after is None:
            self._forecasts.pop(name, None)
            return
        seen = seen_of(after)
        if seen is not None:
            self._seen[name] = seen
        if before is None and (seen is None or not self._workloads.is_complete.is_set()):
            return  # it was over already, or it is one of those that were there before
        if before is None or before.uid != after.metadata.uid:
            before = Seen()
        if self._is_counting:
            self._count(turns(before, after, self._forecasts.get(name)))
        if seen is None or seen.ready_at is not None:
            self._forecasts.pop(name, None)

    def _take_steps(self, planned: Planned, outcome: Outcome, _term: int) -> None:
        if self._is_counting:
            self._count(decided(outcome.written, planned.queues))

    def _count(self, counted: Iterable[Turn]) -> None:
        for turn in counted:
            if turn.metric.type == "histogram":
                self._display.observe(turn.metric, turn.labels, turn.value)
            else:
                self._display.add(turn.metric, turn.labels, turn.value)
