"""A federation of Flower: a SuperLink in one cluster, SuperNodes in two others, and their run.

Each part is a workload of its own, submitted by its user and placed by a policy. The sites hold the
numbers 4 and 8; after two rounds that each go half the way, the model is 3/4 of their mean of 6.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.environment import FOLDERS, Json, python, submit
from tests.endtoend.hubs import ROOT, HubProcess, hub_process
from tests.endtoend.test_real_processes import job
from tests.ports import own_ports

RUN_SECONDS_MAX = 900.0
APP = ROOT / "tests" / "e2e" / "app"
SITES = {"site-a": 4, "site-b": 8}


def cluster(name: str) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"local": {"capacity": {"cpu": "4", "memory": "4Gi"}, "stopSeconds": 5}},
    }


def policy(name: str) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"names": [name]}},
    }


def part(name: str, where: str, home: Path, program: str, *arguments: str) -> Json:
    """A process of Flower as a workload that runs in one cluster."""
    made = job(name, [str(Path(python()).with_name(program)), *arguments], policy=where)
    container = made["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]["containers"][
        0
    ]
    path = f"{Path(python()).parent}:/usr/local/bin:/usr/bin:/bin"
    container["env"] = [
        {"name": "PATH", "value": path},  # it starts other programs of its own
        {"name": "FLWR_HOME", "value": str(home)},
        {"name": "FLWR_TELEMETRY_ENABLED", "value": "0"},
    ]
    return made


@asynccontextmanager
async def federation(folder: Path) -> AsyncIterator[tuple[HubProcess, str]]:
    """A hub with three clusters, on which the parts of a federation run."""
    link, *nodes = own_ports(1 + len(SITES))
    address = f"127.0.0.1:{link}"
    async with hub_process(folder, folders=FOLDERS) as hub:
        for name in SITES:
            await submit(hub, cluster(name))
        await submit(hub, *(policy(name) for name in ("here", *SITES)))
        await submit(
            hub,
            part(
                "link", "here", hub.shared / "link", "flower-superlink", "--insecure",
                "--host", "127.0.0.1", "--port", str(link),
                "--disable-runtime-dependency-installation",
            ),
            *(
                part(
                    f"node-{name}", name, hub.shared / name, "flower-supernode", "--insecure",
                    "--superlink", address, "--host", "127.0.0.1", "--port", str(port),
                    "--node-config", f"number={number}",
                )
                for (name, number), port in zip(SITES.items(), nodes, strict=True)
            ),
        )  # fmt: skip
        yield hub, address


async def until_open(address: str) -> None:
    """A process runs for a while before it answers."""
    host, port = address.split(":")
    async with asyncio.timeout(RUN_SECONDS_MAX):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                await asyncio.sleep(0.5)
            else:
                writer.close()
                return


async def ended(hub: HubProcess, name: str) -> str:
    """The phase of a workload that is over."""
    async with asyncio.timeout(RUN_SECONDS_MAX):
        while True:
            found = await hub.client.get("workloads.fairway.dev", name, namespace="default")
            phase = str(found["status"].get("phase"))
            if phase in ("Succeeded", "Failed"):
                return phase
            await asyncio.sleep(1.0)


async def test_sites_train_together_and_none_shows_its_number(tmp_path: Path) -> None:
    async with federation(tmp_path) as (hub, address):
        for name in ("link", *(f"node-{site}" for site in SITES)):
            await hub.until(name, "Running")
        await until_open(address)
        home = hub.shared / "user"
        home.mkdir()
        home.chmod(0o777)
        (home / "config.toml").write_text(
            f'[superlink.ours]\naddress = "{address}"\ninsecure = true\n'
        )
        await submit(hub, part("train", "here", home, "flwr", "run", str(APP), "ours", "--stream"))
        phase = await ended(hub, "train")
        told = await hub.log("train")
        assert phase == "Succeeded", told
        assert "the model is 4.5" in told
        placed = {}
        for name in ("link", *(f"node-{site}" for site in SITES)):
            found = await hub.client.get("workloads.fairway.dev", name, namespace="default")
            assert found["status"]["phase"] == "Running", json.dumps(found["status"])
            placed[name] = found["status"]["claim"]["placements"][0]["cluster"]
        assert placed == {"link": "here", "node-site-a": "site-a", "node-site-b": "site-b"}
