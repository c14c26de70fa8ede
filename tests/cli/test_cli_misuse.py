"""Every failure is a readable line, an exit code, and never a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_outcome import Fairway, Outcome

from fairway.app import Hub
from fairway.cli.main import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["get"], "error: Say which kind", id="no kind"),
        pytest.param(
            ["get", "workload", "-o", "xml"], "'xml' is not one of table, wide", id="a wrong form"
        ),
        pytest.param(["git"], "no command 'git'. Did you mean 'get'?", id="a wrong command"),
        pytest.param(["get", "--fast"], "No such option", id="a wrong option"),
        pytest.param(
            ["get", "workloda"],
            'the server doesn\'t have a resource type "workloda" (did you mean "workload"?)',
            id="a wrong kind",
        ),
        pytest.param(["get", "cm,", "-A"], "a kind is missing", id="a comma too many"),
        pytest.param(["get", "cm/a", "b"], "KIND/NAME", id="two ways of naming mixed"),
        pytest.param(["get", "cm", "a", "-A"], "every namespace", id="a name everywhere"),
        pytest.param(["get", "cm", "-l", "a in"], "(BadRequest)", id="a broken selector"),
        pytest.param(["get", "cm", "-o", "jsonpath={.a"], "brace", id="a broken template"),
        pytest.param(["get", "cm,pods", "-w"], "one kind", id="a watch of two kinds"),
        pytest.param(["apply"], "-f FILE", id="nothing to apply"),
        pytest.param(["apply", "-f", "/no/such"], "does not exist", id="no such file"),
        pytest.param(["wait", "cm/a"], "Missing option '--for'", id="nothing to wait for"),
        pytest.param(["scale", "cm/a", "--replicas=1"], "cannot be scaled", id="not scalable"),
        pytest.param(["label", "cm", "a"], "KEY=VALUE", id="no label"),
        pytest.param(["patch", "cm", "a", "-p", "["], "neither JSON nor YAML", id="a broken patch"),
        pytest.param(["delete", "cm"], "--all", id="a delete of what"),
        pytest.param(["explain", "configmap.datum"], 'did you mean "data"', id="a wrong field"),
        pytest.param(["get", "cm", "-v", "loud"], "not a number", id="a wrong level"),
        pytest.param(["get", "cm", "--context", "z"], 'no context "z"', id="a wrong context"),
        pytest.param(["get", "cm", "--token", "z"], "(Unauthorized)", id="a wrong token"),
    ],
)
def test_a_mistake_is_explained_in_one_line(fairway: Fairway, words: list[str], said: str) -> None:
    outcome = fairway(*words)
    assert (outcome.code, outcome.out) == (1, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: [", "standard input:", id="not YAML"),
        pytest.param("[1]", "an object is expected", id="not an object"),
        pytest.param("{kind: ConfigMap}", "no apiVersion", id="no version"),
        pytest.param("{apiVersion: v1, kind: ConfigMap}", "no metadata.name", id="no name"),
        pytest.param("", "no objects in the files", id="nothing at all"),
        pytest.param(
            "{apiVersion: v1, kind: ConfgMap, metadata: {name: a}}",
            'did you mean "ConfigMap"',
            id="no such kind",
        ),
        pytest.param(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}",
            'does not match the namespace "',
            id="two namespaces",
        ),
    ],
)
def test_a_broken_manifest_is_explained_in_one_line(fairway: Fairway, text: str, said: str) -> None:
    outcome = fairway("apply", "-f", "-", stdin=text)
    assert (outcome.code, outcome.out) == (1, "")
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_server_that_is_not_there_is_named_with_advice(fairway: Fairway) -> None:
    with socket.socket() as taken:  # nobody else can listen there
        taken.bind(("127.0.0.1", 0))
        address = f"https://127.0.0.1:{taken.getsockname()[1]}"
        outcome = fairway("get", "cm", "--server", address)
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        f"error: cannot reach the server at {address}: connection refused",
        "Is the hub running? Start it with `fairway up`, or choose another with --context.",
    ]


def test_a_hub_that_is_not_running_is_named_with_its_file(
    fairway: Fairway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "current-context: c\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert f"({file} names it.)" in fairway("get", "cm").err


def test_without_any_configuration_the_way_to_a_hub_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "XDG_DATA_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert run(["get", "cm"]) == 1
    assert "fairway up" in capsys.readouterr().err
    file = tmp_path / "objects.yaml"
    one = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n"
    file.write_text(f"{one % 'a'}---\n{one % 'b'}")
    assert run(["apply", "-f", str(file)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_reader_that_has_enough_causes_no_complaint(hub: Hub) -> None:
    command = f"{sys.executable} -m fairway.cli.main get clusterroles | head -1"
    environment = {**os.environ, "KUBECONFIG": str(hub.kubeconfig)}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("NAME")
    assert done.stderr == ""


def test_requests_are_shown_on_demand_without_the_token(fairway: Fairway, hub: Hub) -> None:
    outcome: Outcome = fairway("get", "namespaces", "-v=6")
    assert "GET" not in outcome.out
    assert "GET https://" in outcome.err
    assert hub.token not in outcome.err


def test_requests_of_the_next_command_are_not_shown(
    fairway: Fairway, caplog: pytest.LogCaptureFixture
) -> None:
    fairway("get", "namespaces", "-v=6")
    caplog.clear()
    fairway("get", "namespaces")
    assert [message for message in caplog.messages if message.startswith("GET")] == []
