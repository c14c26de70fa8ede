"""Kubeconfig files, as people have them."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.client import ConfigError, load_access
from fairway.client.kubeconfig import (
    access_of_text,
    from_service_account,
    places,
    read,
    use_context,
)


def config(**parts: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443/"}}],
        "users": [{"name": "u", "user": {"token": "abc"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return {**whole, **parts}


def write(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and no settings from outside."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "XDG_DATA_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def test_the_current_context_gives_server_namespace_and_token(tmp_path: Path) -> None:
    access = load_access(write(tmp_path / "a", config()))
    assert (access.server, access.namespace, access.token) == ("https://c:6443", "default", "abc")


def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    contexts = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
    ]
    file = write(tmp_path / "a", config(contexts=contexts))
    assert load_access(file, context="y").namespace == "team"


def test_of_several_files_the_first_to_name_something_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "a", {"users": [{"name": "u", "user": {"token": "first"}}]})
    second = write(tmp_path / "b", config())
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([first, str(tmp_path / "gone"), second]))
    access = load_access()
    assert (access.server, access.token) == ("https://c:6443", "first")


def test_names_of_files_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    cluster = {"server": "https://c", "certificate-authority": "ca.pem"}
    user = {"client-certificate-data": base64.b64encode(b"mine").decode(), "tokenFile": "token"}
    file = write(
        tmp_path / "a",
        config(clusters=[{"name": "c", "cluster": cluster}], users=[{"name": "u", "user": user}]),
    )
    access = load_access(file)
    assert (access.authority, access.certificate) == (b"authority", b"mine")
    assert access.token_file == tmp_path / "token"


def test_a_plugin_keeps_its_arguments_and_environment(tmp_path: Path) -> None:
    plugin = {"command": "./give", "args": ["a"], "env": [{"name": "K", "value": "v"}]}
    file = write(tmp_path / "a", config(users=[{"name": "u", "user": {"exec": plugin}}]))
    found = load_access(file).exec_plugin
    assert found is not None
    assert (found.command, found.arguments) == (str(tmp_path / "give"), ("a",))
    assert found.environment == (("K", "v"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param({"current-context": "x"}, 'no context "x".*known: none', id="no context"),
        pytest.param(config(**{"current-context": ""}), "no current context", id="none current"),
        pytest.param(config(clusters=[]), "no cluster with a server", id="no cluster"),
        pytest.param(config(users=[]), "a user that is not there", id="no user"),
        pytest.param(["a"], "not a mapping", id="not a mapping"),
        pytest.param(
            config(users=[{"name": "u", "user": {"client-key-data": "&"}}]),
            "not base64",
            id="a broken key",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_access(write(tmp_path / "a", content))


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_access(str(tmp_path / "gone"))


def test_with_nothing_to_read_the_way_to_a_hub_is_shown() -> None:
    with pytest.raises(ConfigError, match="fairway up"):
        load_access()


def test_the_hub_of_this_machine_goes_before_the_home_folder(home: Path) -> None:
    hub = home / ".local" / "share" / "fairway" / "kubeconfig"
    write(home / ".kube" / "config", config())
    assert places() == [home / ".kube" / "config"]
    write(hub, config())
    assert places() == [hub]


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "t"), ("namespace", "team\n"), ("ca.crt", "authority")):
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = from_service_account(tmp_path, environment.get)
    assert access is not None
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "team")
    assert access.token_file == tmp_path / "token"
    assert from_service_account(tmp_path, {}.get) is None


def test_choosing_a_context_changes_the_file_that_names_one(tmp_path: Path) -> None:
    contexts = [{"name": "y", "context": {"cluster": "c", "user": "u"}}]
    first = Path(write(tmp_path / "a", {"contexts": contexts}))
    second = Path(write(tmp_path / "b", config()))
    assert use_context(read([first, second]), "y") == second
    assert read([first, second]).current_context == "y"
    with pytest.raises(ConfigError, match="z"):
        use_context(read([first, second]), "z")


def _written(cluster: dict[str, str], user: dict[str, object]) -> str:
    return yaml.safe_dump(
        {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "https://a.example", **cluster}}],
            "users": [{"name": "a", "user": user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    )


def test_a_kubeconfig_that_is_kept_as_text_says_how_to_reach_its_server() -> None:
    access = access_of_text(_written({}, {"token": "t"}), source="a Secret")
    assert (access.server, access.token) == ("https://a.example", "t")


@pytest.mark.parametrize(
    ("cluster", "user", "path"),
    [
        ({"certificate-authority": "/etc/ca.crt"}, {}, "clusters[a].certificate-authority"),
        ({}, {"tokenFile": "/etc/shadow"}, "users[a].tokenFile"),
        ({}, {"client-key": "id_rsa"}, "users[a].client-key"),
        ({}, {"exec": {"command": "sh"}}, "users[a].exec"),
    ],
    ids=["an authority's file", "a token's file", "a key's file", "a program"],
)
def test_a_kubeconfig_that_is_kept_as_text_reads_no_files_and_runs_nothing(
    cluster: dict[str, str], user: dict[str, object], path: str
) -> None:
    with pytest.raises(ConfigError, match="may not name a file or a program") as fault:
        access_of_text(_written(cluster, user), source="a Secret")
    assert path in str(fault.value)
