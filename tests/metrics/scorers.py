"""A scorer as teams write them for OCM's dynamic scoring framework, and a Prometheus it scores."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Scorer:
    """Scores the mean of each series; any of its answers may be replaced."""

    source: dict[str, Any] | None = None  # of its configuration
    instead: dict[str, Handler] = field(default_factory=dict)  # by path
    asked: list[tuple[str, Any, str]] = field(default_factory=list)  # path, body, authorization
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.content_type == "application/json" else None
        self.asked.append((request.path, body, request.headers.get("Authorization", "")))
        if request.path in self.instead:
            return await self.instead[request.path](request)
        match request.path:
            case "/healthz":
                return web.json_response({"status": "ok"})
            case "/config":
                return web.json_response(self._config())
            case "/scoring":
                return web.json_response({"results": [_mean(each) for each in body["data"] or ()]})
            case "/api/v1/query_range":
                return await self._series(request)
        raise web.HTTPNotFound

    def _config(self) -> dict[str, Any]:
        scoring = {"path": "/scoring", "params": {"name": "load", "interval": 30}}
        return {
            "name": "load",
            "description": "mean load",
            "source": self.source or {"type": "None"},
            "scoring": scoring,
        }

    async def _series(self, request: web.Request) -> web.Response:
        form = await request.post()
        start, end, step = (float(str(form[key])) for key in ("start", "end", "step"))
        moments = [start + step * at for at in range(int((end - start) // step) + 1)]
        rows = [
            {"metric": {"cluster": name}, "values": [[moment, str(load)] for moment in moments]}
            for name, load in (("oslo", 10.0), ("berlin", 70.0))
        ]
        data = {"resultType": "matrix", "result": rows}
        return web.json_response({"status": "success", "data": data})


def _mean(series: dict[str, Any]) -> dict[str, Any]:
    values = [float(value) for _, value in series["values"]]
    return {"metric": series["metric"], "score": math.fsum(values) / len(values)}


@asynccontextmanager
async def scorer_server(**settings: Any) -> AsyncIterator[Scorer]:
    scorer = Scorer(**settings)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scorer.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scorer.port = runner.addresses[0][1]
    try:
        yield scorer
    finally:
        await runner.cleanup()


def says(body: Any, *, status: int = 200) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise web.HTTPNotFound


async def floods(request: web.Request) -> web.StreamResponse:
    """Answers without an end."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b'{"results": [' + b" " * 65536)
