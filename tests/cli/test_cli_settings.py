"""Help, completion, versions, contexts, and what needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway
from click.shell_completion import ShellComplete

from fairway import __version__
from fairway.api.kinds import KINDS
from fairway.app import Hub
from fairway.cli.commands import SECTIONS
from fairway.cli.main import root

COMMANDS = [name for section in SECTIONS.values() for name in section]


def test_the_overview_names_every_command_and_shows_examples(fairway: Fairway) -> None:
    shown = fairway("--help", home=None)
    assert shown.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in shown.out
    assert "fairway up --demo" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_within_a_terminal(fairway: Fairway, name: str) -> None:
    shown = fairway(name, "--help", home=None)
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: fairway {name}")
    assert max(map(len, shown.out.splitlines())) <= 100


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(fairway: Fairway, shell: str) -> None:
    assert "_FAIRWAY_COMPLETE" in fairway("completion", shell, home=None).out


def completed(arguments: list[str], text: str) -> list[str]:
    shell = ShellComplete(root, {}, "fairway", "_FAIRWAY_COMPLETE")
    return [item.value for item in shell.get_completions(arguments, text)]


def test_the_shell_completes_commands_kinds_and_names(fairway: Fairway, hub: Hub) -> None:
    assert completed([], "des") == ["describe"]
    assert completed(["get"], "workl") == ["workloads"]
    assert completed(["get"], "pods,workl") == ["pods,workloads"]
    assert completed(["get", "namespaces"], "kube-s") == ["kube-system"]
    assert completed(["get"], "ns/kube-s") == ["ns/kube-system"]
    assert completed(["get", "pods", "-n"], "kube-s") == ["kube-system"]


def test_completion_is_silent_when_there_is_no_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert completed(["get"], "workl") == []


def test_versions_of_both_sides_are_shown(fairway: Fairway) -> None:
    assert fairway("version", "--client", home=None).out == f"Client Version: {__version__}\n"
    assert "Server Version: v1." in fairway("version", home=None).out
    assert fairway("--version", home=None).out == f"fairway {__version__}\n"


def test_our_kinds_are_printed_as_definitions_without_a_server(
    fairway: Fairway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    printed = list(yaml.safe_load_all(fairway("crds", home=None).out))
    assert {item["spec"]["names"]["plural"] for item in printed} == {kind.plural for kind in KINDS}


def test_the_servers_kinds_are_listed(fairway: Fairway) -> None:
    listed = fairway("api-resources", "--api-group", "fairway.dev").out.splitlines()
    assert listed[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    rows = {line.split()[0]: line.split()[1:] for line in listed[1:]}
    assert rows["workloads"] == ["wl", "fairway.dev/v1alpha1", "true", "Workload"]
    names = fairway("api-resources", "--categories=fairway", "--namespaced=false", "-o", "name")
    assert "queues.fairway.dev" in names.out.splitlines()
    assert "workloads.fairway.dev" not in names.out


def test_contexts_are_listed_and_chosen(fairway: Fairway, tmp_path: Path) -> None:
    file = tmp_path / "config"
    contexts = [{"name": name, "context": {"cluster": "c"}} for name in ("one", "two")]
    clusters = [{"name": "c", "cluster": {"server": "https://c"}}]
    whole = {"contexts": contexts, "clusters": clusters, "current-context": "one"}
    file.write_text(yaml.safe_dump(whole))

    def config(*words: str) -> str:
        return fairway("config", *words, "--kubeconfig", str(file), home=None).out

    assert config("current-context") == "one\n"
    assert config("use-context", "two") == 'Switched to context "two".\n'
    assert config("get-contexts") == (
        "CURRENT   NAME   CLUSTER   USER   NAMESPACE\n          one    c\n*         two    c\n"
    )


def test_the_token_of_the_context_is_printed_alone(fairway: Fairway, hub: Hub) -> None:
    assert fairway("token").out == f"{hub.token}\n"
