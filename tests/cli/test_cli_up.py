"""`fairway up` as a process: it says where it is, serves, stops in order, and starts again."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from cli_outcome import Outcome

from fairway.app import Hub
from fairway.client import Client, load_access
from tests.waiting import PATIENCE_SECONDS


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fairway.cli.main", "up", *words]


def start(*words: str) -> Outcome:
    """A hub that is not expected to start."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=120, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextmanager
def running(data: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A hub that has said where it is."""
    process = subprocess.Popen(
        command("--data", str(data), "--port", "0", *words),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("Stop with"):
                break
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_hub_serves_stops_when_told_and_keeps_everything(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
    with running(data) as process:
        with Client.connect(str(data / "kubeconfig")) as client:
            made = client.create(config_map)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    with running(data), Client.connect(str(data / "kubeconfig")) as client:
        assert client.get("configmaps", "kept")["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_demo_tells_what_happens_and_ends_when_interrupted(tmp_path: Path) -> None:
    with running(tmp_path / "hub", "--demo") as process:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if "spread     assistant over onprem-hangzhou (6)" in line:
                break
        process.send_signal(signal.SIGINT)
        rest, faults = process.communicate(timeout=PATIENCE_SECONDS)
    assert "submitted  assistant to serving: 6 replicas" in told
    assert (process.returncode, "Traceback" in told + rest + faults) == (0, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--address", "192.0.2.1"], "not an address of this machine", id="address"),
        pytest.param(["--tls-cert", __file__], "belong together", id="half a certificate"),
        pytest.param(
            ["--tls-cert", __file__, "--tls-key", __file__], "cannot be used", id="no certificate"
        ),
        pytest.param(["--port", "70000"], "not in the range", id="no port"),
    ],
)
def test_a_hub_that_cannot_start_says_why(tmp_path: Path, words: list[str], said: str) -> None:
    outcome = start("--data", str(tmp_path / "hub"), "--port", "0", *words)
    assert (outcome.code, outcome.out) == (1, "")
    assert said in outcome.err
    assert "fault in fairway" not in outcome.err


def test_a_port_or_folder_in_use_is_named(tmp_path: Path, hub: Hub) -> None:
    port = hub.url.rpartition(":")[2]
    taken = start("--data", str(tmp_path / "hub"), "--port", port)
    assert f"port {port} of 127.0.0.1 is taken" in taken.err
    shared = start("--data", str(hub.kubeconfig.parent), "--port", "0")
    assert "error: another hub is using the data" in shared.err


def test_a_provider_that_is_away_keeps_no_hub_from_starting(tmp_path: Path) -> None:
    words = ("--oidc-issuer-url=https://127.0.0.1:1", "--oidc-client-id=fairway")
    data = tmp_path / "hub"
    with running(data, *words, "--oidc-provider-name=Example", "--page-read-only"):
        access = load_access(str(data / "kubeconfig"))
        trusted = ssl.create_default_context(cadata=access.authority.decode())
        with urlopen(f"{access.server}/page/settings.json", context=trusted) as answer:
            assert json.load(answer) == {"oidc": {"name": "Example"}, "readOnly": True}
        with Client.connect(str(data / "kubeconfig")) as client:
            client.list("workloads.fairway.dev")


def test_a_provider_that_cannot_be_meant_is_refused_at_once(tmp_path: Path) -> None:
    found = start("--data", str(tmp_path), "--oidc-issuer-url=http://id.example.com")
    assert found.code == 1
    assert "--oidc-issuer-url" in found.err
