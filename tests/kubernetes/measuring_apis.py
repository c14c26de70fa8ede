"""Kubernetes' metrics APIs, served to a real API server by a script of values.

metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io are answered by one HTTPS server,
which the API server reaches through APIServices. Every question is written down, with the moment,
what was answered, and what the asker's target was just then.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fairway.clock import timestamp
from fairway.kubeapi import KubeApi
from fairway.store.interface import ResourceKey, Write

Json = dict[str, Any]
# What is answered at a step: a total, or what each pod has; in thousandths.
Values = int | dict[str, int]
GROUPS = {
    "metrics.k8s.io": "v1beta1",
    "custom.metrics.k8s.io": "v1beta2",
    "external.metrics.k8s.io": "v1beta1",
}
API_SERVICES = ResourceKey("apiregistration.k8s.io", "v1", "apiservices")
SERVICES = ResourceKey("", "v1", "services")
NAMESPACE = "default"
WINDOW_SECONDS = 30
_WRITE = Write(manager="tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, and what was known when it came."""

    at: float
    values: Values
    wanted: int  # of the target, before the decision that follows
    placed: int  # as the target's status said when the asker looked at it


# What a target wants and has, by the target's name; called at every question.
Look = Callable[[str], Awaitable[tuple[int, int]]]


@dataclass
class MeasuringApis:
    """Answers each target's metric by its script, step by step; the last value stays."""

    scripts: dict[str, list[Values]]
    look: Look
    asked: dict[str, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    advanced: asyncio.Event = field(default_factory=asyncio.Event)

    async def _next(self, name: str) -> Values:
        """The next value of a script, told to whoever reads the record afterwards."""
        at = time.time()
        script, record = self.scripts[name], self.asked[name]
        values = script[min(len(record), len(script) - 1)]
        wanted, placed = await self.look(name)
        record.append(Asked(at=at, values=values, wanted=wanted, placed=placed))
        self.advanced.set()
        return values

    async def external(self, request: web.Request) -> web.Response:
        name = request.match_info["metric"]
        value = await self._next(name)
        item = {
            "metricName": name,
            "metricLabels": {},
            "timestamp": timestamp(time.time()),
            "value": f"{value}m",
        }
        return _listed("external.metrics.k8s.io/v1beta1", "ExternalMetricValueList", [item])

    async def custom(self, request: web.Request) -> web.Response:
        name = request.match_info["metric"]
        values = await self._next(name)
        assert isinstance(values, dict)
        items = [
            {
                "describedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": pod},
                "metric": {"name": name},
                "timestamp": timestamp(time.time()),
                "windowSeconds": WINDOW_SECONDS,
                "value": f"{value}m",
            }
            for pod, value in values.items()
        ]
        return _listed("custom.metrics.k8s.io/v1beta2", "MetricValueList", items)

    async def resource(self, request: web.Request) -> web.Response:
        name = request.query["labelSelector"].rpartition("=")[2]
        values = await self._next(name)
        assert isinstance(values, dict)
        items = [
            {
                "metadata": {"name": pod, "namespace": NAMESPACE},
                "timestamp": timestamp(time.time()),
                "window": f"{WINDOW_SECONDS}s",
                "containers": [{"name": "main", "usage": {"cpu": f"{value}m"}}],
            }
            for pod, value in values.items()
        ]
        return _listed("metrics.k8s.io/v1beta1", "PodMetricsList", items)

    async def discovery(self, request: web.Request) -> web.Response:
        version = f"{request.match_info['group']}/{request.match_info['version']}"
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
        return web.json_response({**body, "resources": []})


def _listed(version: str, kind: str, items: list[Json]) -> web.Response:
    return web.json_response({"kind": kind, "apiVersion": version, "metadata": {}, "items": items})


@asynccontextmanager
async def serving(apis: MeasuringApis, api: KubeApi, folder: Path) -> AsyncIterator[None]:
    """Serves the APIs, and has the API server know of them, for as long as the context lasts."""
    application = web.Application()
    inside = f"/apis/{{group}}/{{version}}/namespaces/{NAMESPACE}"
    routes = application.router
    routes.add_get("/apis/{group}/{version}", apis.discovery)
    routes.add_get(inside.replace("{group}", "metrics.k8s.io") + "/pods", apis.resource)
    custom = inside.replace("{group}", "custom.metrics.k8s.io")
    routes.add_get(custom + "/pods/*/{metric}", apis.custom)
    external = inside.replace("{group}", "external.metrics.k8s.io")
    routes.add_get(external + "/{metric}", apis.external)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "serving.crt", folder / "serving.key")
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "measuring"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    await api.create(SERVICES, service, namespace=NAMESPACE, write=_WRITE)
    for group, version in GROUPS.items():
        await api.create(API_SERVICES, _api_service(group, version, port), write=_WRITE)
    try:
        yield
    finally:
        for group, version in GROUPS.items():
            await api.delete(API_SERVICES, f"{version}.{group}")
        await api.delete(SERVICES, "measuring", namespace=NAMESPACE)
        await runner.cleanup()


def _api_service(group: str, version: str, port: int) -> Json:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": NAMESPACE, "name": "measuring", "port": port},
        },
    }
