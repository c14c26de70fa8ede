"""A hub in a thread of this process, called over real HTTPS."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest
from hub_calls import Caller, calling, fresh

from fairway.app import Hub, HubOptions, open_hub
from fairway.client.synchronous import LoopThread


async def _running(data: Path) -> AsyncGenerator[Hub, None]:
    async with open_hub(HubOptions(data=data, port=0, has_controllers=False)) as hub:
        yield hub


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    loop = LoopThread()
    yield from loop.iterate(_running(tmp_path_factory.mktemp("hub")))
    loop.stop()


@pytest.fixture
async def call(hub: Hub) -> AsyncIterator[Caller]:
    """Calls as the administrator."""
    async with calling(hub.kubeconfig) as caller:
        yield caller


@pytest.fixture
async def namespace(call: Caller) -> str:
    """A namespace of the test's own."""
    name = fresh("room")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert (await call("POST", "/api/v1/namespaces", body)).status == 201
    return name
