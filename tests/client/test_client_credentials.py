"""Who the client says it is, and how that changes while it lives."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_server import says, serving

from fairway import __version__
from fairway.api.errors import Unauthorized
from fairway.client import AsyncClient, ConfigError, ExecPlugin

POD = {"metadata": {"name": "a"}}


def plugin_in(folder: Path, script: str) -> ExecPlugin:
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(command=str(file), environment=(("WORD", "secret"),))


async def test_the_token_and_the_version_are_shown_with_every_request() -> None:
    async with serving(says(POD)) as script:
        async with AsyncClient(replace(script.access, token="abc")) as client:
            await client.get("pods", "a")
        headers = script.seen[0].headers
    assert headers["Authorization"] == "Bearer abc"
    assert headers["User-Agent"] == f"fairway/{__version__}"


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    async with serving(says(POD), says(POD)) as script:
        async with AsyncClient(replace(script.access, token_file=file)) as client:
            await client.get("pods", "a")
            file.write_text("second\n")
            os.utime(file, ns=(1, 1))
            await client.get("pods", "a")
        shown = [request.headers["Authorization"] for request in script.seen]
    assert shown == ["Bearer first", "Bearer second"]


async def test_a_plugin_is_asked_once_and_again_when_its_token_is_refused(tmp_path: Path) -> None:
    status = json.dumps({"status": {"token": "$WORD-$(wc -l < count)"}}).replace('"', '\\"')
    plugin = plugin_in(tmp_path, f'cd {tmp_path}; echo >> count; echo "{status}"')
    answers = [says(POD), says(POD), says({}, status=401), says(POD)]
    async with serving(*answers) as script:
        async with AsyncClient(replace(script.access, exec_plugin=plugin)) as client:
            for _ in range(3):
                await client.get("pods", "a")
        shown = [request.headers["Authorization"] for request in script.seen]
    assert shown == ["Bearer secret-1", "Bearer secret-1", "Bearer secret-1", "Bearer secret-2"]


async def test_a_refused_token_that_cannot_change_is_an_error() -> None:
    async with (
        serving(says({"reason": "Unauthorized"}, status=401)) as script,
        AsyncClient(replace(script.access, token="abc")) as client,
    ):
        with pytest.raises(Unauthorized):
            await client.get("pods", "a")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("exit 3", "exit code 3", id="a plug-in that fails"),
        pytest.param("echo hello", "no valid ExecCredential", id="a plug-in that says nonsense"),
    ],
)
async def test_a_plugin_that_does_not_work_is_named(tmp_path: Path, script: str, said: str) -> None:
    plugin = plugin_in(tmp_path, script)
    async with (
        serving() as server,
        AsyncClient(replace(server.access, exec_plugin=plugin)) as client,
    ):
        with pytest.raises(ConfigError, match=said):
            await client.get("pods", "a")


async def test_a_plugin_that_is_not_there_is_named_with_its_hint() -> None:
    plugin = ExecPlugin(command="no-such-plugin", install_hint="Install it so.")
    async with (
        serving() as server,
        AsyncClient(replace(server.access, exec_plugin=plugin)) as client,
    ):
        with pytest.raises(ConfigError, match=r"no-such-plugin.*\nInstall it so"):
            await client.get("pods", "a")
