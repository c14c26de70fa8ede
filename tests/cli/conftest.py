"""The command line, run in this process against a hub in this process, over real HTTP."""

from __future__ import annotations

import io
import itertools
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway, Outcome
from manifests_for_tests import MACHINE

from fairway.api.names import OVER
from fairway.app import Hub
from fairway.cli.main import run
from fairway.client import Client, Scope
from fairway.client.wire import Object
from tests.agent.local.machines import shared
from tests.hubs import running_hub
from tests.waiting import seen_at_last

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def the_log_of_tests() -> Iterator[None]:
    """Commands that go on for long set up the log of their process; this one has its own."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in list(root.handlers):
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
    root.setLevel(level)


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
    return _caller(hub, namespace, monkeypatch, capsys)


@pytest.fixture(scope="session")
def pods_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pods and tests both use."""
    return shared(tmp_path_factory.mktemp("of-pods"))


@pytest.fixture(scope="session")
def busy_hub(tmp_path_factory: pytest.TempPathFactory, pods_folder: Path) -> Iterator[Hub]:
    """A hub that decides, with this machine as its only cluster."""
    data = tmp_path_factory.mktemp("busy")
    yield from running_hub(data, has_controllers=True, folders=(pods_folder,))


@pytest.fixture(scope="session")
def busy_client(busy_hub: Hub) -> Iterator[Client]:
    with Client.connect(str(busy_hub.kubeconfig)) as client:
        for document in yaml.safe_load_all(MACHINE):
            client.create(document)
        seen_at_last(
            lambda: client.get("clusters.fairway.dev", "here").get("status", {}).get("phase"),
            lambda phase: phase == "Ready",
            "the cluster to be ready",
        )
        yield client


@pytest.fixture
def busy(
    busy_hub: Hub,
    busy_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Fairway]:
    """Runs `fairway` against the hub that decides, in a namespace of the test's own."""
    name = f"busy-{next(_numbers)}"
    busy_client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield _caller(busy_hub, name, monkeypatch, capsys)
    # What a test leaves would take the room of the next, and be counted with it.
    for workload in _workloads(busy_client, name):
        patch = {"spec": {"cancelled": True}}
        busy_client.patch(
            "workloads.fairway.dev", workload["metadata"]["name"], patch, namespace=name
        )
    seen_at_last(
        lambda: [
            workload.get("status", {}).get("phase") for workload in _workloads(busy_client, name)
        ],
        lambda phases: all(phase in OVER for phase in phases),
        "the end of what the test left",
    )


def _workloads(client: Client, namespace: str) -> list[Object]:
    return client.list("workloads.fairway.dev", scope=Scope(namespace=namespace)).items


def _caller(
    hub: Hub,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Fairway:
    monkeypatch.setenv("KUBECONFIG", str(hub.kubeconfig))

    def call(*words: str, stdin: str = "", home: str | None = namespace) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run([*(["-n", home] if home else []), *words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
