"""A tenant runs a pod on the hub's own machine, and wants the hub's token."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from fairway.agent.drivers.local.supervisor.processes import descendants
from fairway.api.names import OVER
from tests.agent.local.machines import supervisor
from tests.attack import thief
from tests.attack.test_machines_that_cannot_isolate import ALICE, binding
from tests.endtoend.hubs import HubProcess, hub_process
from tests.endtoend.test_real_processes import job
from tests.streams.talking import run

SECRET = "the-secret-of-the-other-pod"
OF_THE_HUB = "a-password-in-the-environment-of-the-hub"
NOTHING = {
    "files": [],
    "data": [],
    "processes": [],
    "environment": [],
    "traced": [],
    "killed": [],
    "namespaces": [],
    "writable": [],
    "unmounted": [],
}

pytestmark = pytest.mark.usefixtures("isolated")


def other_pod() -> dict[str, object]:
    """A pod of somebody else, with a secret in a variable, in its home and in its /tmp."""
    script = f"echo {SECRET} | tee note /tmp/note; exec sleep 3600"
    body = job("other", ["sh", "-c", script])
    template = body["spec"]["template"]["manifests"][0]["spec"]["template"]
    template["spec"]["containers"][0]["env"].append({"name": "PASSWORD", "value": SECRET})
    return body


def admin_token(hub: HubProcess) -> str:
    with (hub.data / "tokens.csv").open() as file:
        return next(csv.reader(file))[0]


async def test_neither_a_pod_nor_a_command_beside_it_gets_anything_of_the_hub_or_of_other_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_PASSWORD", OF_THE_HUB)
    async with hub_process(tmp_path) as hub:
        await hub.client.create(other_pod())
        await hub.until("other", "Running")
        assert await hub.line_of("other", "", SECRET) == SECRET
        pods = hub.data / "clusters" / "here" / "pods"
        above = supervisor(pods, "default.other")
        pids = [hub.pid, above, *descendants(above)]
        script = shutil.copy(thief.__file__, hub.shared)
        wanted = ([admin_token(hub), SECRET, OF_THE_HUB], str(hub.data), pids)
        command = [sys.executable, "-S", script, *map(json.dumps, wanted)]
        await hub.client.create(job("thief", command))
        await hub.until("thief", lambda one: one.status.phase in OVER, "the end of the thief")
        assert json.loads(await hub.log("thief")) == NOTHING
        assert [pid for pid in pids if not Path(f"/proc/{pid}").exists()] == []
        script = f"cat note; cat {hub.data}/tokens.csv; ls /proc | grep -c '^[0-9]'; id -u"
        heard = await run(hub.client, "other", "sh", "-c", script, namespace="default")
        note, count, user = heard.output.split()
        assert note == SECRET
        assert int(count) < 10  # bubblewrap, the pod's own process, and those of this command
        assert "No such file" in heard.by_channel[2].decode()
        assert user != "0" or os.geteuid() != 0


async def test_a_folder_of_the_machine_is_a_working_directory_only_without_tenants(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes").write_text("of the machine")

    async def output(hub: HubProcess, name: str) -> str:
        body = job(name, ["cat", "notes"])
        template = body["spec"]["template"]["manifests"][0]["spec"]["template"]
        template["spec"]["containers"][0]["workingDir"] = str(project)
        await hub.client.create(body)
        await hub.until(name, lambda one: one.status.phase in OVER, f"the end of {name}")
        return await hub.log(name)

    async with hub_process(tmp_path) as hub:
        assert await output(hub, "alone") == "of the machine"
        await hub.client.create(binding(ALICE))
        told = await output(hub, "shared")
        assert told.startswith(f"fairway: this pod does not see {project} and runs in its home;")
        assert "of the machine" not in told
