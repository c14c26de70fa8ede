"""A hub in this process whose clusters are real members, and what a user does with it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.workload import Workload
from fairway.app import HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Scope
from tests.kubernetes.fleet import A100, H100, L4, Fleet, Member

PATIENCE_SECONDS = 90.0
Json = dict[str, Any]
OURS = "fairway.dev/cluster"
PRODUCTS = {"h100": H100, "a100": A100, "l4": L4}


def basics(**quotas: int) -> list[Json]:
    """A fleet that does not wait for long, a flavor for each model of GPU, and one queue."""
    flavors = [
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Flavor",
            "metadata": {"name": name},
            "spec": {"nodeLabels": {"nvidia.com/gpu.product": product}},
        }
        for name, product in PRODUCTS.items()
    ]
    quota = {"h100": 32, "a100": 16, "l4": 4, **quotas}
    groups = [
        {
            "resources": ["nvidia.com/gpu"],
            "flavors": [
                {"name": name, "quotas": [{"resource": "nvidia.com/gpu", "nominal": count}]}
                for name, count in quota.items()
                if count
            ],
        }
    ]
    health = {"heartbeatSeconds": 2, "unreadySeconds": 10, "lostSeconds": 30, "skewSeconds": 1}
    return [
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Fleet",
            "metadata": {"name": "fleet"},
            "spec": {
                "defaults": {"retry": {"limit": 3, "backoffSeconds": 1}},
                "health": health,
            },
        },
        *flavors,
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": "research"},
            "spec": {
                "resourceGroups": groups,
                "preemption": {"withinQueue": "LowerPriority"},
            },
        },
    ]


def secret_of(member: Member) -> Json:
    """The kubeconfig of a member as the hub keeps it: all in one text."""
    config = yaml.safe_load(member.plane.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = Path(cluster.pop("certificate-authority")).read_bytes()
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    text = base64.b64encode(yaml.safe_dump(config).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": member.name, "namespace": "default"},
        "data": {"kubeconfig": text},
    }


def cluster_of(member: Member, **settings: Any) -> Json:
    kubeconfig = {"namespace": "default", "name": member.name, "key": "kubeconfig"}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": member.name},
        "spec": {
            "kubernetes": {"kubeconfig": kubeconfig, "requestsPerSecond": 500, **settings},
            "topology": [
                {"name": "rack", "nodeLabel": "rack"},
                {"name": "node", "nodeLabel": "kubernetes.io/hostname"},
            ],
        },
    }


def gang(
    name: str,
    *command: str,
    pods: int = 1,
    gpus: int = 8,
    rack: bool = False,
    namespace: str = "team",
    pod: Json | None = None,
    **spec: Any,
) -> Json:
    """A workload of one Job whose pods run a command."""
    container = {
        "name": "main",
        "image": "training",
        "command": list(command) or ["sleep", "3600"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    annotations = {"fairway.dev/required-topology": "rack"} if rack else {}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": template,
        },
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": "research", "template": {"manifests": [job]}, **spec},
    }


class HubRig:
    """A hub and some members."""

    def __init__(self, client: AsyncClient, members: dict[str, Member]) -> None:
        self.client = client
        self.members = members

    async def apply(self, *bodies: Json) -> None:
        for body in bodies:
            await self.client.apply(body)

    async def until(
        self, name: str, is_so: Callable[[Workload], bool] | str, what: str = ""
    ) -> Workload:
        """Follows a workload until it is so."""
        wanted = (lambda one: one.status.phase == is_so) if isinstance(is_so, str) else is_so
        scope = Scope(namespace="team", fields=f"metadata.name={name}")
        last: Workload | None = None
        try:
            async with (
                asyncio.timeout(PATIENCE_SECONDS),
                aclosing(self.client.watch(WORKLOADS, scope=scope)) as events,
            ):
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED"):
                        last = decode(event.object, Workload)
                        if wanted(last):
                            return last
        except TimeoutError:
            status = None if last is None else last.status
            raise AssertionError(f"waited in vain for {what or is_so}: {status}") from None
        raise AssertionError("a watch never ends")

    async def phase(self, name: str) -> str:
        found = await self.client.get(WORKLOADS, name, namespace="team")
        return str(found.get("status", {}).get("phase"))

    async def until_ready(self) -> None:
        """Waits until all members have told what they have."""

        def is_ready(found: Json) -> bool:
            cluster = decode(found, Cluster)
            return cluster.status.phase == "Ready" and cluster.status.ready_nodes > 0

        for name in self.members:
            await self.until_so(
                lambda name=name: self.client.get("clusters.fairway.dev", name),
                is_ready,
                f"{name} to be ready",
            )

    async def until_so(
        self, look: Callable[[], Any], is_so: Callable[[Any], bool], what: str
    ) -> Any:
        """Looks, again and again, until it is so."""
        found: Any = None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not is_so(found := await look()):
                    await asyncio.sleep(0.1)
                return found
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}: {found}") from None

    async def pods(self, member: str, name: str, namespace: str = "team") -> list[Json]:
        """The pods of a Job in a member, as it has them."""
        words = ("get", "pods", f"--namespace={namespace}", f"--selector=job-name={name}")
        told = await asyncio.to_thread(self.members[member].kubectl, *words, "-o", "json")
        found: list[Json] = json.loads(told)["items"]
        return found

    async def kubectl(self, member: str, *words: str, given: str = "") -> str:
        return await asyncio.to_thread(self.members[member].kubectl, *words, given=given)


@asynccontextmanager
async def hub_of(
    fleet: Fleet, folder: Path, *names: str, objects: list[Json] | None = None, **settings: Any
) -> AsyncIterator[HubRig]:
    """A hub that has some members of the fleet; what it leaves there is removed after it."""
    members = {name: fleet.members[name] for name in names}
    try:
        async with (
            open_hub(HubOptions(data=folder, port=0)) as hub,
            AsyncClient.connect(str(hub.kubeconfig)) as client,
        ):
            rig = HubRig(client, members)
            team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
            await rig.apply(team, *(objects if objects is not None else basics()))
            for one in members.values():
                await rig.apply(secret_of(one), cluster_of(one, **settings))
            await rig.until_ready()
            yield rig
    finally:
        for one in members.values():
            await asyncio.to_thread(clear, one)


def clear(member: Member) -> None:
    """Removes all that a hub had in a member, and opens its nodes again."""
    words = ("--all-namespaces", f"--selector={OURS}", "--wait=true", "--timeout=60s")
    kinds = ["jobs", "deployments", "configmaps", "secrets", "pods"]
    served = member.kubectl("api-resources", "-o", "name")
    kinds = [*(one for one in ("jobsets", "pytorchjobs") if one in served), *kinds]
    member.kubectl("delete", ",".join(kinds), *words)
    for node in member.nodes:
        member.kubectl("uncordon", node)
