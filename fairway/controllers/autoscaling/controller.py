"""One look at one autoscaler: read its state, decide, and set the count if it differs.

Each autoscaler is looked at every 15 seconds, when it or its workload's count changes, and when a
schedule is due. The leader keeps the memory of earlier looks, and the status keeps part of it. A
look whose count could not be written is forgotten and made again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace

from fairway.api import codec
from fairway.api.autoscaler import FleetAutoscaler, FleetAutoscalerStatus, Metric
from fairway.api.errors import ApiError, Conflict
from fairway.api.meta import JsonObject
from fairway.api.workload import Workload
from fairway.controllers.autoscaling import autoscaler_status, other_autoscalers, pods
from fairway.controllers.autoscaling.adopted import is_adopted
from fairway.controllers.autoscaling.bounds import BadSchedule, Bounds, bounds_of, limits_of
from fairway.controllers.autoscaling.readings import Reader, metrics_of, needs_usage
from fairway.controllers.autoscaling.services import (
    NotScalable,
    Service,
    service_of,
    set_replicas,
    workload_of,
)
from fairway.controllers.context import Context
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.statuses import with_status
from fairway.loops import Loop
from fairway.serving.scaling.decide import decide
from fairway.serving.scaling.model import Memory, ScaleDecision, ServiceObservation
from fairway.store.interface import Stored, Write
from fairway.store.keys import AUTOSCALERS, WORKLOADS
from fairway.store.mirrors import Name

PERIOD_SECONDS = 15.0
_ALONE_SECONDS = 60.0
_WRITE = Write(user="system:fairway", manager="fairway-autoscaling")

_log = logging.getLogger(__name__)


class Autoscaling:
    """The controller of autoscalers."""

    def __init__(self, context: Context, *, measuring: Measuring, is_alone: bool = True) -> None:
        self._is_alone = is_alone  # no controller beside the hub acts on HorizontalPodAutoscalers
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._kinds = context.kinds
        self._measuring = measuring
        self._clock = context.clock
        self._notes = context.notes
        self._loop: Loop[Name] = Loop(
            "autoscaling", self._reconcile, clock=context.clock, forgets=True
        )
        self._memories: dict[Name, Memory] = {}
        self._about: dict[Name, set[Name]] = defaultdict(set)  # autoscalers, by their workload
        self._targets: dict[Name, Name] = {}
        self._generations: dict[Name, int] = {}  # last generation seen
        self._counts: dict[Name, int | None] = {}  # of workloads, as last seen or set
        self._scaled_at: dict[Name, float] = {}
        self._alone: dict[Name, tuple[int, float]] = {}  # generation, and time of the last check
        context.cache.mirror(AUTOSCALERS).followers.append(self._autoscaler_changed)
        context.cache.mirror(WORKLOADS).followers.append(self._workload_changed)

    async def run(self) -> None:
        """Looks at each autoscaler when it is due, until cancelled."""
        for kept in (self._memories, self._scaled_at, self._alone):
            kept.clear()  # another replica may have led meanwhile
        await self._loop.run(self._cache.names(AUTOSCALERS))

    def _autoscaler_changed(self, name: Name, stored: Stored | None) -> None:
        autoscaler = self._cache.get(FleetAutoscaler, name[1], name[0]) if stored else None
        target = (name[0], workload_of(autoscaler.spec.target)) if autoscaler else None
        before = self._targets.pop(name, None)
        if before is not None and before != target:
            self._about[before].discard(name)
            for pair in self._about[before]:
                self._loop.mark(pair)  # it may be next in line
            if not self._about[before]:
                del self._about[before]
                self._counts.pop(before, None)
        if autoscaler is None or target is None:
            for kept in (self._memories, self._generations, self._scaled_at, self._alone):
                kept.pop(name, None)
            return
        self._targets[name] = target
        self._about[target].add(name)
        if self._generations.get(name) != autoscaler.metadata.generation:
            self._generations[name] = autoscaler.metadata.generation
            self._scaled_at.pop(name, None)
            self._loop.mark(name)

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        """Marks autoscalers at once if another client set the count, but not after our own change.

        Otherwise each step of a rate would be followed by the next at once.
        """
        if name not in self._about:
            return
        workload = self._cache.get(Workload, name[1], name[0]) if stored else None
        count = workload.spec.replicas if workload is not None else None
        if name not in self._counts or self._counts[name] != count:
            self._counts[name] = count
            for pair in self._about[name]:
                self._loop.mark(pair)

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._cache.mirror(AUTOSCALERS).get(name)
        if stored is None:
            return None
        body = stored.object()
        autoscaler = codec.decode(body, FleetAutoscaler)
        if autoscaler.metadata.deletion_timestamp is not None:
            return None
        now = self._clock.now()
        rests_until = self._scaled_at.get(name, now - PERIOD_SECONDS) + PERIOD_SECONDS
        if now < rests_until:
            return rests_until  # the last change must take effect before the next
        try:
            bounds = bounds_of(autoscaler.spec, now)
            service = await self._service(autoscaler)
            status = await self._decide(name, autoscaler, service, bounds)
        except BadSchedule as fault:
            status = autoscaler_status.status_of_refusal(
                autoscaler, "InvalidSchedule", str(fault), now
            )
            bounds = Bounds(least=0, most=0)
        except NotScalable as fault:
            status = autoscaler_status.status_of_refusal(autoscaler, fault.reason, str(fault), now)
        await self._write(body, autoscaler, status)
        again = now + PERIOD_SECONDS
        return again if bounds.until is None else min(again, bounds.until)

    async def _service(self, autoscaler: FleetAutoscaler) -> Service:
        """The service of an autoscaler, once nothing else sets its count."""
        name, namespace = autoscaler.metadata.name, autoscaler.metadata.namespace
        target = autoscaler.spec.target
        rivals = [
            rival
            for rival in self._about.get((namespace, workload_of(target)), ())
            if not (autoscaler.spec.take_over and self._is_adopted(rival))
        ]
        first = min(rivals, key=self._age, default=(namespace, name))
        if first != (namespace, name):
            raise NotScalable("OtherAutoscaler", f"FleetAutoscaler {first[1]} was there first")
        if self._cache.fleet().spec.paused:
            raise NotScalable("FleetPaused", "the fleet is paused")
        service = await service_of(
            target, namespace, store=self._store, cache=self._cache, kinds=self._kinds
        )
        await self._be_alone(autoscaler, service)
        return service

    async def _be_alone(self, autoscaler: FleetAutoscaler, service: Service) -> None:
        """Makes sure that nothing else sets the count: periodically, and after changes."""
        name = (autoscaler.metadata.namespace, autoscaler.metadata.name)
        generation, now = autoscaler.metadata.generation, self._clock.now()
        known, since = self._alone.get(name, (-1, now))
        if known == generation and now - since < _ALONE_SECONDS:
            return
        # Alone, a HorizontalPodAutoscaler acts by the FleetAutoscaler that it has adopted.
        looks = autoscaler.spec.take_over or not self._is_alone
        others = await other_autoscalers.others_of(service, store=self._store, looks_on_hub=looks)
        for other in others:
            if not (autoscaler.spec.take_over and other.gives_way):
                raise NotScalable(
                    "OtherAutoscaler", f"its count is set by {other.name} already; {other.advice}"
                )
            await other_autoscalers.send_away(other, service, store=self._store)
            await self._notes.say(service.target, "AutoscalerTakenOver", f"{other.name} gave way")
            raise Conflict(f"{other.name} gave way; the object is read again")
        self._alone[name] = (generation, now)

    def _is_adopted(self, name: Name) -> bool:
        rival = self._cache.get(FleetAutoscaler, name[1], name[0])
        return rival is not None and is_adopted(rival)

    def _age(self, name: Name) -> tuple[float, str]:
        fleet_autoscaler = self._cache.get(FleetAutoscaler, name[1], name[0])
        created = (
            fleet_autoscaler.metadata.creation_timestamp if fleet_autoscaler is not None else None
        )
        return (created.timestamp() if created is not None else 0.0, name[1])

    async def _decide(
        self, name: Name, autoscaler: FleetAutoscaler, service: Service, bounds: Bounds
    ) -> FleetAutoscalerStatus:
        """Decides, carries out, and returns the new status."""
        limits = limits_of(autoscaler.spec, bounds, pods_per_replica=service.pods_per_replica)
        memory = self._memories.get(name) or autoscaler_status.read_memory(autoscaler.status)
        metrics = metrics_of(autoscaler)
        seen_pods = await self._pods(service, metrics)
        now = self._clock.now()
        reader = Reader(
            autoscaler=autoscaler,
            service=service,
            pods=seen_pods,
            measuring=self._measuring,
            now=now,
        )
        read = await reader.all()
        seen = ServiceObservation(
            now=now,
            wanted=service.wanted,
            placed=service.placed,
            pods=seen_pods.facts,
            metrics=read,
        )
        verdict = decide(seen, limits, memory)
        if verdict.replicas != service.wanted:
            refusal = await self._carry_out(service, verdict)
            if refusal:
                return autoscaler_status.status_of_refusal(
                    autoscaler, "FailedUpdateScale", refusal, now
                )
            self._scaled_at[name] = now
        self._memories[name] = verdict.memory
        return autoscaler_status.status_of_decision(
            autoscaler,
            verdict,
            bounds,
            metrics=tuple(zip(metrics, read, strict=True)),
            before=service.wanted,
            now=now,
        )

    async def _pods(self, service: Service, metrics: tuple[Metric, ...]) -> pods.Pods:
        """The pods, one by one if metrics are per pod, and if their clusters report them."""
        known = pods.count_pods(service, cache=self._cache, states=self._states)
        if not needs_usage(metrics) or not known.facts:
            return known
        result = await pods.measure_pods(service, cache=self._cache, meter=self._measuring.meter)
        return result if result.is_named else replace(known, fault=result.fault)

    async def _carry_out(self, service: Service, verdict: ScaleDecision) -> str:
        """Sets the count; returns why not, if it was refused for good."""
        metadata = service.workload.metadata
        self._counts[metadata.namespace, metadata.name] = verdict.replicas
        try:
            await set_replicas(service, verdict.replicas, store=self._store)
        except Conflict:
            raise  # another client changed it first: look again
        except ApiError as fault:
            return str(fault)
        _log.info(
            "%s %s/%s: from %d to %d replicas: %s",
            service.target["kind"],
            service.namespace,
            service.target["metadata"]["name"],
            service.wanted,
            verdict.replicas,
            verdict.why,
        )
        return ""

    async def _write(
        self, body: JsonObject, autoscaler: FleetAutoscaler, status: FleetAutoscalerStatus
    ) -> None:
        """Writes the status if it changed.

        A failed write is not retried by another look: that would be one decision too many. The next
        look writes it.
        """
        if status == autoscaler.status:
            return
        metadata = autoscaler.metadata
        try:
            try:
                await self._update(with_status(body, status))
            except Conflict:  # the rest of it was changed; the status is ours alone
                stored = await self._store.get(AUTOSCALERS, metadata.name, metadata.namespace)
                await self._update(with_status(stored.object(), status))
        except (ApiError, OSError) as fault:
            _log.info("the status of autoscaler %s was not written: %s", metadata.name, fault)

    async def _update(self, body: JsonObject) -> None:
        await self._store.update(
            AUTOSCALERS,
            body,
            namespace=body["metadata"]["namespace"],
            subresource="status",
            write=_WRITE,
        )
