"""The command line, run in this process against a hub in this process, over real HTTP."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterator

import pytest
from cli_outcome import Fairway, Outcome

from fairway.app import Hub
from fairway.cli.main import run
from fairway.client import Client
from tests.hubs import running_hub

_numbers = itertools.count()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    yield from running_hub(tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="session")
def client(hub: Hub) -> Iterator[Client]:
    with Client.connect(str(hub.kubeconfig)) as client:
        yield client


@pytest.fixture
def namespace(client: Client) -> str:
    """A namespace of the test's own."""
    name = f"cli-{next(_numbers)}"
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def fairway(
    hub: Hub,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Fairway:
    """Runs `fairway` in the test's own namespace."""
    monkeypatch.setenv("KUBECONFIG", str(hub.kubeconfig))

    def call(*words: str, stdin: str = "", home: str | None = namespace) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run([*words, *(["-n", home] if home else [])])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
