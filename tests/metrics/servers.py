"""A real Prometheus, and a real server under load that it scrapes."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientSession, ClientTimeout, web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from fairway.clock import SystemClock
from fairway.metrics.interface import Address, MetricsFault
from fairway.metrics.prometheus import Prometheus
from tests.kubernetes.control_plane import bound_to_us
from tests.ports import own_ports
from tests.waiting import seen


@dataclass
class ModelServer:
    """A server that answers when it is let, and tells how many wait as vLLM does."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    port: int = 0

    def __post_init__(self) -> None:
        names = ["namespace", "pod", "model_name"]
        labels = {"namespace": "default", "pod": "chat-0", "model_name": "tiny"}
        self._waiting = Gauge(
            "vllm:num_requests_waiting", "Waiting.", names, registry=self.registry
        ).labels(**labels)
        self._tokens = Counter(
            "vllm:generation_tokens", "Generated.", names, registry=self.registry
        ).labels(**labels)
        self._lets = asyncio.Event()
        self._asking: list[asyncio.Future[None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def generate(self, request: web.Request) -> web.Response:
        with self._waiting.track_inprogress():
            await self._lets.wait()
        self._tokens.inc(16)
        return web.json_response({"text": "hello"})

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self.registry), content_type="text/plain")

    async def ask(self, count: int) -> None:
        """So many requests at once, as real clients send them."""

        async def one(session: ClientSession) -> None:
            async with session.post(f"{self.url}/generate") as answer:
                assert answer.status == 200

        async def all_of_them() -> None:
            async with ClientSession(timeout=ClientTimeout(total=None)) as session:
                await asyncio.gather(*(one(session) for _ in range(count)))

        self._asking.append(asyncio.ensure_future(all_of_them()))

    async def answer_all(self) -> None:
        """Lets everybody have their answer."""
        self._lets.set()
        await asyncio.gather(*self._asking)
        self._asking.clear()
        self._lets.clear()


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    application = web.Application()
    application.router.add_post("/generate", server.generate)
    application.router.add_get("/metrics", server.metrics)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await server.answer_all()
        await runner.cleanup()


@asynccontextmanager
async def prometheus_server(
    program: Path,
    folder: Path,
    targets: list[str],
    *,
    others: Sequence[dict[str, Any]] = (),
    rules: Sequence[Path] = (),
) -> AsyncIterator[str]:
    """A Prometheus that scrapes these every second; its address, once it answers.

    `others` are further scrape configurations.
    """
    (port,) = own_ports(1)
    load = {"job_name": "load", "honor_labels": True, "static_configs": [{"targets": targets}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [load, *others],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    command = [
        str(program),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(bound_to_us(command), stdout=log, stderr=log)
    try:
        await _ready(url)
        yield url
    finally:
        process.kill()
        process.wait()


async def _ready(url: str) -> None:
    source = Prometheus(Address(url=url), SystemClock())

    async def count() -> int:
        try:
            return len(await source.vector("up == 1"))
        except MetricsFault:
            return 0

    try:
        await seen(count, lambda found: found > 0, "a first scrape")
    finally:
        await source.close()
