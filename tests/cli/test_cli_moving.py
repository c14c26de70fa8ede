"""A fleet that moves: what one hub exports, applied on another, with real processes on both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway
from conftest import _caller as caller
from manifests_for_tests import MACHINE, job

from fairway.app import Hub
from fairway.client import Client, Scope
from fairway.client.wire import Object
from tests.hubs import running_hub
from tests.waiting import seen_at_last

QUEUED = "{name: %s, labels: {fairway.dev/queue: research}}"


@pytest.fixture
def next_hub(tmp_path: Path, pods_folder: Path) -> Iterator[Hub]:
    """Another hub that decides."""
    yield from running_hub(tmp_path / "next", has_controllers=True, folders=(pods_folder,))


def native(name: str, command: str) -> str:
    return job(name, command).replace(f"{{name: {name}}}", QUEUED % name, 1)


def workloads(client: Client, namespace: str) -> dict[str, Object]:
    items = client.list("workloads.fairway.dev", scope=Scope(namespace=namespace)).items
    return {item["metadata"]["name"]: item for item in items}


def phase(client: Client, namespace: str, name: str) -> str:
    status = workloads(client, namespace).get(name, {}).get("status", {})
    return str(status.get("phase"))


def test_nothing_that_is_over_runs_again_where_an_export_is_applied(
    busy: Fairway,
    busy_client: Client,
    next_hub: Hub,
    tmp_path: Path,
    pods_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran = pods_folder / tmp_path.name
    ran.touch()
    ran.chmod(0o666)  # pods that name a working directory may be of another user than others
    count = f"echo $HOSTNAME >> {ran}"
    busy("apply", "-f", "-", stdin=native("done", count) + "---" + native("stopped", "sleep 600"))
    busy("run", "-q", "research", "--name=own", "--quiet", "--", "sh", "-c", count)
    later = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "later"},
        "spec": {
            "queue": "research",
            "hold": "Hold",
            "template": {"manifests": [yaml.safe_load(job("later", count))]},
        },
    }
    busy("apply", "-f", "-", stdin=json.dumps(later))
    home = json.loads(busy("get", "jobs", "-o", "json").out)["items"][0]["metadata"]["namespace"]
    seen_at_last(
        lambda: phase(busy_client, home, "job-done"), lambda word: word == "Succeeded", "its end"
    )
    busy("cancel", "job-stopped")
    seen_at_last(
        lambda: phase(busy_client, home, "job-stopped"),
        lambda word: word == "Cancelled",
        "its cancellation",
    )
    seen_at_last(
        lambda: [
            item["metadata"].get("annotations", {}).get("fairway.dev/finished")
            for item in json.loads(busy("get", "jobs", "-o", "json").out)["items"]
        ],
        lambda ends: ends == ["Succeeded", "Cancelled"],
        "what the jobs remember",
    )
    exported = busy("export")
    assert "note: 1 finished workloads left out" in exported.err
    assert {(obj["kind"], obj["metadata"]["name"]) for obj in yaml.safe_load_all(exported.out)} == {
        ("Job", "done"),
        ("Job", "stopped"),
        ("Workload", "later"),
    }
    assert ran.read_text().count("\n") == 2
    there = caller(next_hub, home, monkeypatch, capsys)
    there("apply", "-f", "-", stdin=MACHINE)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}
    there("apply", "-f", "-", stdin=json.dumps(space))
    assert there("apply", "-f", "-", stdin=exported.out).code == 0
    there("release", "workload/later")
    with Client.connect(str(next_hub.kubeconfig)) as client:
        seen_at_last(
            lambda: phase(client, home, "later"), lambda word: word == "Succeeded", "the held one"
        )
        assert list(workloads(client, home)) == ["later"]
    assert ran.read_text().count("\n") == 3
