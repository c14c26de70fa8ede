"""The control plane: all controllers of one replica, and which replica may act.

Every replica watches the store and keeps its planner fed; only the leader decides and writes. When
a replica loses the leadership, what its controllers had under way is dropped; the next leader looks
at everything once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from fairway.api.discretion import MayLook, discreet_explanation, within
from fairway.clock import Clock
from fairway.controllers.accounting.controller import Accounting
from fairway.controllers.autoscaling.adopted import AdoptedAutoscalers
from fairway.controllers.autoscaling.controller import Autoscaling
from fairway.controllers.cache import Cache
from fairway.controllers.clusters.controller import Clusters
from fairway.controllers.clusters.heartbeats import LOOK_SECONDS
from fairway.controllers.context import Context
from fairway.controllers.flavors import Flavors
from fairway.controllers.fleet_metrics.controller import Display, FleetMetrics
from fairway.controllers.fleet_policies import FleetPolicies
from fairway.controllers.glance import glance
from fairway.controllers.history.book_lines import Keeper, NoKeeper
from fairway.controllers.history.sampler import History
from fairway.controllers.inventory.controller import Inventory
from fairway.controllers.kept_lines import LineKeeper, NoLineKeeper
from fairway.controllers.kind_rules import KindRules
from fairway.controllers.lifecycle.controller import Lifecycle
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.migrations import Migrations
from fairway.controllers.moments import Moments
from fairway.controllers.native_objects import Natives
from fairway.controllers.object_events import Notes
from fairway.controllers.policies import Policies
from fairway.controllers.proofs import Proofs
from fairway.controllers.queues import Queues
from fairway.controllers.rollouts.controller import Rollouts
from fairway.controllers.scheduling.planner import InlinePlanner, Planner
from fairway.controllers.scheduling.questions import Explain, Standings
from fairway.controllers.scheduling.record import NoSink, RecordingPlanner, Sink
from fairway.controllers.scheduling.scheduler import FED, Scheduler
from fairway.controllers.scheduling.scheduler import Settings as SchedulerSettings
from fairway.controllers.scores.controller import Scores
from fairway.controllers.shadow import Shadows
from fairway.controllers.shared_state import SharedState
from fairway.controllers.terms import Settings, Terms
from fairway.controllers.timeline.outbox import Outbox
from fairway.controllers.timeline.timeline import Timeline
from fairway.controllers.timeline.traces import Traces
from fairway.controllers.traffic.controller import Traffic
from fairway.controllers.volume_claims import Volumes
from fairway.controllers.work_roster import Roster
from fairway.controllers.work_states import States
from fairway.controllers.works.controller import Works
from fairway.core.explain.samples import fair_of
from fairway.kinds.registry import KnownKinds, LiveKinds
from fairway.loops import end, in_slices
from fairway.metrics.interface import NoPodMeter, NoSources, PodMeter, Sources
from fairway.metrics.measurements import Measurer, NoMeasurer
from fairway.store.interface import Store
from fairway.store.keys import REPORTS, WORKLOADS

_log = logging.getLogger(__name__)

_RESTART_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneOptions:
    """What differs between a hub on a laptop, replicas on Kubernetes, and a simulation."""

    terms: Settings
    secret: bytes  # of the hub; its proofs are made with it, and replicas share it
    scheduling: SchedulerSettings = field(default_factory=SchedulerSettings)
    make_planner: Callable[[], Planner] = InlinePlanner
    sink: Sink = field(default_factory=NoSink)
    decisions: LineKeeper = field(default_factory=NoLineKeeper)  # where decisions are kept
    spans: LineKeeper = field(default_factory=NoLineKeeper)  # where ended spans are kept
    beside: Sequence[Controller] = ()  # what else only the leader may run, such as agents
    look_seconds: float = LOOK_SECONDS  # how often clusters, queues and pools are looked at
    sources: Sources = field(default_factory=NoSources)  # which sources to ask for metrics
    meter: PodMeter = field(default_factory=NoPodMeter)  # what to ask for the usage of pods
    measurer: Measurer = field(default_factory=NoMeasurer)  # what measures for scorers
    history: Keeper = field(default_factory=NoKeeper)  # where the last hours and days are kept
    outbox: Outbox | None = None  # of trace spans; None: no traces are made
    display: Display | None = None  # what serves metrics of the fleet
    is_alone: bool = True  # false: Kubernetes' own controllers see the objects too


class Controller(Protocol):
    """Something that runs while its replica leads."""

    async def run(self) -> None: ...


class ControlPlane:
    """One replica's controllers."""

    def __init__(
        self, *, store: Store, clock: Clock, kinds: KnownKinds, options: PlaneOptions
    ) -> None:
        # Other parts that must know the kinds described by rules share the holder with us.
        kinds = kinds if isinstance(kinds, LiveKinds) else LiveKinds(kinds)
        self.cache = Cache(store, clock=clock)
        proofs = Proofs(options.secret)
        roster = Roster(self.cache, proofs)
        self.terms = Terms(
            store, clock, options.terms, decided_under=lambda: _highest_term(self.cache, roster)
        )
        self.states = States(self.cache.mirror(REPORTS))
        context = Context(
            store=store,
            clock=clock,
            cache=self.cache,
            proofs=proofs,
            roster=roster,
            states=self.states,
            terms=self.terms,
            kinds=kinds,
            notes=Notes(store, clock),
            shared=SharedState(clock),
        )
        self.planner = RecordingPlanner(options.make_planner, options.sink)
        self.scheduler = Scheduler(
            context, planner=self.planner, settings=options.scheduling, keeper=options.decisions
        )
        self.traffic = Traffic(context)
        self.fleet_policies = FleetPolicies(
            context, scheduler=self.scheduler, look_seconds=options.look_seconds
        )
        self.timeline = Timeline(context, scheduler=self.scheduler, keeper=options.spans)
        self.history = History(context, scheduler=self.scheduler, keeper=options.history)
        measuring = Measuring(context, sources=options.sources, meter=options.meter)
        self.scores = Scores(
            context, scheduler=self.scheduler, measuring=measuring, measurer=options.measurer
        )
        if options.outbox is not None:
            Traces(context, options.outbox.put)
        self._clusters = Clusters(context, look_seconds=options.look_seconds)
        self._clock = clock
        self._is_alone = options.terms.takes_over_at_once
        self._led = self._controllers(context, options, measuring)

    def _controllers(
        self, context: Context, options: PlaneOptions, measuring: Measuring
    ) -> Sequence[Controller]:
        """All controllers that run while this replica leads."""
        scheduler, look_seconds = self.scheduler, options.look_seconds
        return (
            Lifecycle(context),
            Works(context),
            # These look periodically, whether or not anything happened.
            self._clusters,
            Queues(context, scheduler=scheduler, look_seconds=look_seconds),
            Flavors(context, scheduler=scheduler),
            Policies(context, scheduler=scheduler, look_seconds=look_seconds),
            self.fleet_policies,
            Inventory(context, scheduler=scheduler, look_seconds=look_seconds),
            Accounting(context, scheduler=scheduler),
            Shadows(context, scheduler=scheduler),
            # Objects that users bring.
            Natives(context, is_alone=options.is_alone),
            Volumes(context),
            self.scores,
            KindRules(context),
            Migrations(store=context.store, clock=context.clock),
            Moments(context),
            # Services: rollouts, traffic, and counts that follow the load.
            Rollouts(context, measuring=measuring),
            self.traffic,
            Autoscaling(context, measuring=measuring, is_alone=options.is_alone),
            *([AdoptedAutoscalers(context)] if options.is_alone else []),
            context.notes,
            *([options.outbox] if options.outbox is not None else []),
            *self._metrics(context, options),
            *options.beside,
        )

    def _metrics(self, context: Context, options: PlaneOptions) -> Sequence[Controller]:
        if options.display is None:
            return ()
        metrics = FleetMetrics(
            context,
            display=options.display,
            scheduler=self.scheduler,
            clusters=self._clusters,
            history=self.history,
            timeline=self.timeline,
        )
        return (metrics,)

    async def run(self) -> None:
        """Runs until cancelled; ends in order."""
        parts = (self.cache.run, self.scheduler.run, self._lead, self.history.run)
        await run_all([kept_up(part, self._clock) for part in parts])

    async def close(self) -> None:
        """Ends what `run` left, and lets another replica lead."""
        await self.terms.release()
        await self.scheduler.close()

    async def _lead(self) -> None:
        """Leads whenever it may, and acts only while it leads."""
        await self.cache.complete()
        while True:
            await self.terms.campaign()
            acting = asyncio.ensure_future(self._act())
            try:
                await self.terms.keep()
            finally:
                await end([acting])
            _log.warning("the leadership is lost")

    async def _act(self) -> None:
        """Reads everything that the last leader wrote, then acts; a watch may be far behind."""
        if not self._is_alone:
            await self.cache.refresh()
        self.scheduler.begin()
        try:
            await run_all([kept_up(controller.run, self._clock) for controller in self._led])
        finally:
            self.scheduler.cease()

    # Questions.

    async def explain(
        self, namespace: str, name: str, may: MayLook | None = None
    ) -> dict[str, Any] | None:
        """Why a workload waits; `may` says which namespaces the caller sees, None: only its own."""
        explanation = await self.scheduler.ask(Explain(f"{namespace}/{name}"))
        if explanation is None:
            return None
        return discreet_explanation(explanation, may or within(namespace)).render()

    async def decisions(self, workload: str, most: int) -> list[dict[str, Any]]:
        """Recent decisions on all workloads or on one, the latest last."""
        since = self._clock.now() - self.cache.fleet().spec.history_seconds
        return self.scheduler.decisions.latest(workload, most, since=since)

    async def standing(self) -> dict[str, Any]:
        standings = await self.scheduler.ask(Standings())
        fair = fair_of(standings)
        queues = [{**queue.render(), "fair": round(fair[queue.queue], 3)} for queue in standings]
        return {"now": self._clock.now(), "queues": queues}

    async def share(self, namespace: str, name: str) -> dict[str, Any]:
        """How traffic should be shared now, for one service or, without a name, for all."""
        return self.traffic.feed(namespace, name)

    async def snapshot(self) -> dict[str, Any]:
        """All objects that decisions depend on, as a list."""
        # Taken at one moment; processing may take longer.
        taken = [list(self.cache.mirror(kind).items()) for kind in FED]
        items = []
        for objects in taken:
            async for _, stored in in_slices(sorted(objects, key=itemgetter(0))):
                items.append(msgspec.Raw(stored.raw))
        return {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"annotations": {"fairway.dev/now": repr(self._clock.now())}},
            "items": items,
        }


def _highest_term(cache: Cache, roster: Roster) -> int:
    """The highest term under which anything in the store was decided."""
    highest = 0
    for _, stored in cache.mirror(WORKLOADS).items():
        workload = glance(stored)
        if workload is not None and workload.status.claim is not None:
            highest = max(highest, workload.status.claim.term)
    return max(highest, roster.highest_term())


async def run_all(parts: Sequence[Awaitable[None]]) -> None:
    """Runs parts side by side until cancelled, and ends them in order."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        # Not gather: it would cancel all at once, and each a second time while it ends.
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in ended:
            task.result()
    finally:
        await _end_in_order(tasks)


async def _end_in_order(tasks: Sequence[asyncio.Future[None]]) -> None:
    if tasks:
        try:
            await end(tasks[:1])
        finally:
            await _end_in_order(tasks[1:])


async def kept_up(run: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Runs a part; a part that fails is a fault of ours, and is started again."""
    while True:
        try:
            await run()
        except Exception:
            _log.exception("a part of the hub failed and is started again")
            await clock.sleep(_RESTART_SECONDS)
        else:
            return
