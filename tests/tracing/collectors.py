"""A collector on loopback that answers as it is told, and decodes what arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from fairway.controllers.timeline.outbox import Outbox
from fairway.tracing.interface import CollectorFault
from tests.tracing.decoding import Decoded, decode_request


@dataclass(kw_only=True)
class Served:
    """Requests that came, and answers still to be given; after them, all is taken."""

    url: str = ""
    answers: list[web.Response] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    taken: list[list[Decoded]] = field(default_factory=list)

    @property
    def spans(self) -> list[Decoded]:
        return [span for request in self.taken for span in request]

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else web.Response()
        if answer.status == 200:
            self.taken.append(decode_request(body))
        return answer


@asynccontextmanager
async def serving(*answers: web.Response) -> AsyncIterator[Served]:
    served = Served(answers=list(answers))
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/{path:.*}", served.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    try:
        yield served
    finally:
        await runner.cleanup()


@dataclass(kw_only=True)
class Recorder:
    """A collector in this process: faults in turn, then all is taken."""

    address: str = "here"
    faults: list[CollectorFault | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of requests, in spans
    spans: list[bytes] = field(default_factory=list)

    async def send(self, spans: Sequence[bytes]) -> None:
        self.sizes.append(len(spans))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.spans += spans


@asynccontextmanager
async def leading(outbox: Outbox) -> AsyncIterator[None]:
    """Lets an outbox send, as on the leader, for as long as the context lasts."""
    task = asyncio.ensure_future(outbox.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
