"""A hub in this process, over real HTTP, shared by all tests of the client."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from fairway.app import Hub
from fairway.client import Access, AsyncClient, load_access
from tests.hubs import running_hub

_numbers = itertools.count()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    yield from running_hub(tmp_path_factory.mktemp("hub"))


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
