"""A hub in this process, over real HTTP, shared by all tests of the client."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairway.app import Hub, HubOptions, open_hub
from fairway.client import Access, AsyncClient, load_access
from fairway.client.synchronous import LoopThread

_numbers = itertools.count()


async def _running(data: Path) -> AsyncGenerator[Hub, None]:
    async with open_hub(HubOptions(data=data, port=0)) as hub:
        yield hub


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    loop = LoopThread()
    yield from loop.iterate(_running(tmp_path_factory.mktemp("hub")))
    loop.stop()


@pytest.fixture(scope="session")
def access(hub: Hub) -> Access:
    return load_access(str(hub.kubeconfig))


@pytest.fixture
async def client(access: Access) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(access) as client:
        yield client


@pytest.fixture
async def namespace(client: AsyncClient) -> str:
    """A namespace of the test's own."""
    name = f"client-{next(_numbers)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
