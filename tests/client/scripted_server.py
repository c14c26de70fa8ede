"""A server that answers as it is told, for failures that a healthy hub does not show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from fairway.client import Access

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

PODS = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "pods",
                            "responseKind": {"kind": "Pod"},
                            "scope": "Namespaced",
                            "singularResource": "pod",
                            "verbs": ["get", "list", "watch"],
                        }
                    ],
                }
            ]
        }
    ],
}


@dataclass
class Script:
    """Answers still to be given, and the requests that came."""

    answers: list[Answer]
    seen: list[web.Request] = field(default_factory=list)
    access: Access = field(default_factory=lambda: Access(server=""))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api":
            return web.json_response(PODS)
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})
        self.seen.append(request)
        return await self.answers.pop(0)(request)


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Script]:
    """A server that gives these answers in turn."""
    script = Script(list(answers))
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", script.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    script.access = Access(server=f"http://127.0.0.1:{port}")
    try:
        yield script
    finally:
        await runner.cleanup()


def says(body: object, *, status: int = 200, **headers: str) -> Answer:
    """An answer with a JSON body."""

    async def answer(request: web.Request) -> web.StreamResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.json_response(body, status=status, headers=named)

    return answer


def streams(*chunks: bytes) -> Answer:
    """An answer that comes in these chunks, and ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
        return response

    return answer


def drops() -> Answer:
    """An answer that never comes: the connection is closed instead."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    return answer
