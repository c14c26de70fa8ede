"""The controller of traffic: writes weights that have changed by enough."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from fairway.api.errors import Invalid, NotFound
from fairway.api.meta import JsonObject
from fairway.api.workload import Workload
from fairway.controllers.clusters.phases import Phases
from fairway.controllers.context import Context
from fairway.controllers.glance import glance
from fairway.controllers.scheduling.commit import head_of, write_status
from fairway.controllers.traffic import routes
from fairway.controllers.traffic.weights import traffic_of
from fairway.kinds.plain import child, maps_at
from fairway.loops import Alarm, Loop
from fairway.serving.traffic import differs
from fairway.store.interface import Patch, Stored, Write
from fairway.store.keys import CLUSTERS, DEFINITIONS, FLAVORS, HTTP_ROUTES, WORKLOADS
from fairway.store.mirrors import Mirror, Name

_WRITE = Write(user="system:fairway", manager="fairway-traffic")
_LEAST = 10  # thousandths by which a weight must change before it is written
_AGAIN_SECONDS = 5.0  # between two writes of one service
_CONTESTED_SECONDS_MAX = 600.0
_DEFINITION = ("", "httproutes.gateway.networking.k8s.io")


@dataclass(slots=True)
class _Route:
    """What was written to a route."""

    written_at: float = 0.0
    weights: tuple[int, ...] = ()  # as we left them
    contested: int = 0  # how often in a row another client wrote others


class Traffic:
    """Publishes how the traffic of services should be shared."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._clock = context.clock
        self._notes = context.notes
        self._roster = context.roster
        self._loop: Loop[Name] = Loop("traffic", self._reconcile, clock=context.clock, forgets=True)
        self._services: dict[Name, None] = {}
        self._written: dict[Name, float] = {}
        self._routes: dict[Name, _Route] = {}
        self._definitions = Mirror(context.store, DEFINITIONS, clock=context.clock)
        self._mirror = Mirror(context.store, HTTP_ROUTES, clock=context.clock)
        self._served = Alarm(context.clock)
        self._definitions.followers.append(lambda name, stored: self._served.mark())
        self._mirror.followers.append(self._route_changed)
        context.cache.mirror(WORKLOADS).followers.append(self._workload_changed)
        context.cache.index(Phases).followers.append(self._mark_all)
        context.cache.mirror(FLAVORS).followers.append(lambda name, stored: self._mark_all())
        context.states.followers.append(self._state_changed)

    async def run(self) -> None:
        """Looks at every service once, then at changed ones, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run(list(self._services)))
            tasks.create_task(self._definitions.run())
            while not self._are_routes_served():
                await self._served.wait()
            tasks.create_task(self._mirror.run())

    def _are_routes_served(self) -> bool:
        stored = self._definitions.get(_DEFINITION)
        versions = maps_at(stored.object(), "spec", "versions") if stored is not None else []
        return any(version.get("name") == "v1" and version.get("served") for version in versions)

    # What changed.

    def _mark_all(self) -> None:
        for name in self._services:
            self._loop.mark(name)

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        seen = glance(stored) if stored is not None else None
        if stored is None:
            self._written.pop(name, None)
        if seen is not None and seen.is_service:
            self._services[name] = None
            self._loop.mark(name)
        else:
            self._services.pop(name, None)

    def _state_changed(self, cluster: str, work: str) -> None:
        workload = self._roster.workload_of(work)
        if workload is not None and workload in self._services:
            self._loop.mark(workload)

    def _route_changed(self, name: Name, stored: Stored | None) -> None:
        if stored is None:
            self._routes.pop(name, None)
            return
        workload = routes.workload_of(stored.object())
        if workload:
            self._loop.mark((name[0], workload))

    # What is done.

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._cache.mirror(WORKLOADS).get(name)
        workload = self._cache.get(Workload, name[1], name[0])
        if stored is None or workload is None or workload.spec.mode != "Divided":
            return None
        wanted = traffic_of(self._cache, self._states, workload)
        after = {weight.cluster: weight.weight for weight in wanted}
        clusters = [cluster for _, cluster in self._cache.mirror(CLUSTERS).names()]
        due = [await self._tell_routes(name, {**dict.fromkeys(clusters, 0), **after})]
        before = {weight.cluster: weight.weight for weight in workload.status.traffic}
        if differs(before, after, least=_LEAST):
            next_at = self._written.get(name, 0.0) + _AGAIN_SECONDS
            is_left = any(before[name] and not after.get(name) for name in before)
            if self._clock.now() < next_at and not is_left:
                due.append(next_at)
            else:
                self._written[name] = self._clock.now()
                status = replace(workload.status, traffic=wanted)
                await write_status(self._store, head_of(stored), status, _WRITE)
        return min((number for number in due if number is not None), default=None)

    async def _tell_routes(self, workload: Name, weights: dict[str, int]) -> float | None:
        """Writes the weights to the routes of a workload; returns when to look again."""
        due = []
        for name, stored in list(self._mirror.items()):
            if name[0] != workload[0]:
                continue
            route = stored.object()
            if routes.workload_of(route) == workload[1]:
                due.append(await self._tell_route(name, route, weights))
        return min((number for number in due if number is not None), default=None)

    async def _tell_route(
        self, name: Name, route: JsonObject, weights: dict[str, int]
    ) -> float | None:
        operations = routes.changes(route, weights, least=_LEAST)
        known = self._routes.setdefault(name, _Route())
        if not operations:
            return None
        now, there = self._clock.now(), tuple(routes.weights_in(route))
        wait = min(_AGAIN_SECONDS * (1 << min(known.contested, 10)), _CONTESTED_SECONDS_MAX)
        # A cluster that has nothing left to answer with gets no weight at once.
        is_left = known.weights == there and any(not each.get("value", 1) for each in operations)
        if now < known.written_at + wait and not is_left:
            return known.written_at + wait
        known.contested = known.contested + 1 if known.weights and known.weights != there else 0
        if known.contested > 1:
            await self._notes.warn(_about(route), "WeightsContested", _CONTESTED)
        try:
            written, _ = await self._store.patch(
                HTTP_ROUTES,
                name[1],
                Patch(type="json", body=operations),
                namespace=name[0],
                write=_WRITE,
            )
        except (Invalid, NotFound) as fault:
            await self._notes.warn(_about(route), "WeightsRefused", str(fault))
            return now + _CONTESTED_SECONDS_MAX
        known.weights, known.written_at = tuple(routes.weights_in(written.object())), now
        return None

    def feed(self, namespace: str = "", name: str = "") -> JsonObject:
        """How traffic should be shared now, for all services or for one."""
        services: list[dict[str, Any]] = []
        for key in sorted(self._services):
            if (namespace and key[0] != namespace) or (name and key[1] != name):
                continue
            workload = self._cache.get(Workload, key[1], key[0])
            if workload is None or workload.spec.mode != "Divided":
                continue
            clusters = [
                {"cluster": weight.cluster, "weight": weight.weight, "ready": weight.ready}
                for weight in traffic_of(self._cache, self._states, workload)
            ]
            services.append({"namespace": key[0], "name": key[1], "clusters": clusters})
        return {"now": self._clock.now(), "services": services}


_CONTESTED = (
    "another client also writes the weights of its backends; have it ignore"
    " .spec.rules[].backendRefs[].weight"
)


def _about(route: JsonObject) -> JsonObject:
    return {
        "apiVersion": f"{HTTP_ROUTES.group}/{HTTP_ROUTES.version}",
        "kind": "HTTPRoute",
        "metadata": child(route, "metadata"),
    }
