"""A hub whose objects and clusters are on real control planes, and what a user does with it.

After each hub it is looked up on the nodes what truly ran: no workload twice at the same time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.workload import Workload
from fairway.app import HubOptions, OnKubernetes, open_hub
from fairway.client import AsyncClient, Scope
from fairway.client.asynchronous import WORKLOADS
from fairway.client.errors import UnknownKind
from fairway.clock import SystemClock
from fairway.kubeapi import KubeApi, load_access
from fairway.store.kubernetes.store import KubernetesStore
from tests.endtoend.hubs import HubProcess
from tests.kubernetes import lives
from tests.kubernetes.fleet import A100, H100, L4, Fleet, Member
from tests.kubernetes.sweeping import sweep
from tests.waiting import followed, seen

Json = dict[str, Any]
OURS = "fairway.dev/cluster"
PRODUCTS = {"h100": H100, "a100": A100, "l4": L4}


def basics(**quotas: int) -> list[Json]:
    """A fleet that soon misses a member and gives none up, flavors by model, and one queue."""
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
    health = {"heartbeatSeconds": 2, "unreadySeconds": 10, "lostSeconds": 300, "skewSeconds": 1}
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
                "uncovered": "Unlimited",
                "resourceGroups": groups,
                "preemption": {"withinQueue": "LowerPriority"},
            },
        },
    ]


def secret_of(member: Member, url: str = "") -> Json:
    """The kubeconfig of a member as the hub keeps it: all in one text."""
    config = yaml.safe_load(member.plane.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    cluster["server"] = url or cluster["server"]
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
        self.since = time.time()

    async def begin(
        self,
        objects: list[Json] | None = None,
        urls: Mapping[str, str] = MappingProxyType({}),
        **settings: Any,
    ) -> None:
        """Gives the hub its members, queues and flavors; `urls` are other ways to members."""
        team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        await self.apply(team, *(objects if objects is not None else basics()))
        for member in self.members.values():
            secret = secret_of(member, urls.get(member.name, ""))
            await self.apply(secret, cluster_of(member, **settings))
        await self.until_ready()

    async def apply(self, *bodies: Json) -> None:
        for body in bodies:
            await self.client.apply(body)

    async def until(
        self, name: str, is_so: Callable[[Workload], bool] | str, what: str = ""
    ) -> Workload:
        return await followed(self.client, name, is_so, what, namespace="team")

    async def cancel(self, name: str) -> None:
        patch = {"spec": {"cancelled": True}}
        await self.client.patch(WORKLOADS, name, patch, namespace="team")

    async def phase(self, name: str) -> str:
        found = await self.client.get(WORKLOADS, name, namespace="team")
        return str(found.get("status", {}).get("phase"))

    async def until_ready(self) -> None:
        """Waits until all members have told what they have."""

        def is_ready(found: Json) -> bool:
            cluster = decode(found, Cluster)
            return cluster.status.phase == "Ready" and cluster.status.ready_nodes > 0

        for name in self.members:
            await seen(
                lambda name=name: self.client.get("clusters.fairway.dev", name),
                is_ready,
                f"{name} to be ready",
            )

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
    """A hub in this process that has some members of the fleet; what it leaves is removed."""
    async with clean(fleet, *names) as members:
        where = OnKubernetes(kubeconfig=str(fleet.hub.kubeconfig))
        async with (
            open_hub(HubOptions(data=folder, port=0, kubernetes=where)) as hub,
            AsyncClient.connect(str(hub.kubeconfig)) as client,
        ):
            rig = HubRig(client, members)
            await rig.begin(objects, **settings)
            yield rig


@asynccontextmanager
async def replicas_of(
    fleet: Fleet, folder: Path, *names: str, count: int = 2, objects: list[Json] | None = None
) -> AsyncIterator[tuple[HubRig, list[HubProcess]]]:
    """Processes of one hub, that may be killed; people talk to its kube-apiserver."""
    fleet.start(*names)
    words = ("--store", "kubernetes", "--kubeconfig", str(fleet.hub.kubeconfig))
    words += ("--lease-seconds=6",)
    replicas = [HubProcess(folder / str(at), *words) for at in range(count)]
    async with clean(fleet, *names) as members:
        try:
            await asyncio.gather(*(replica.start() for replica in replicas))
            async with AsyncClient.connect(str(fleet.hub.kubeconfig)) as client:
                rig = HubRig(client, members)
                await rig.begin(objects)
                yield rig, replicas
        finally:
            for replica in replicas:
                await replica.kill()


@asynccontextmanager
async def clean(fleet: Fleet, *names: str) -> AsyncIterator[dict[str, Member]]:
    """Members of the fleet, and a server for the hub, of which other tests left nothing."""
    fleet.start(*names)
    members = {name: fleet.members[name] for name in names}
    store = KubernetesStore(KubeApi(load_access(str(fleet.hub.kubeconfig)), SystemClock()))
    since = time.time()
    try:
        await sweep(store)
        yield members
        assert lives.twice(runs_in(members, since)) == []
    finally:
        await store.close()
        await asyncio.gather(*(asyncio.to_thread(clear, member) for member in members.values()))


def runs_in(members: dict[str, Member], since: float = 0.0) -> list[lives.Run]:
    """What truly ran, and from when to when."""
    return [
        run
        for name, member in members.items()
        for run in lives.read(member.plane.folder, name, since)
    ]


def clear(member: Member) -> None:
    """Removes all that a hub had in a member, and opens its nodes again.

    Processes are started for what there is to do alone: most tests leave little in most members.
    """
    left = [item for item in _LEFT if _has_ours(member, item)]
    if left:
        words = ("--all-namespaces", f"--selector={OURS}", "--wait=true", "--timeout=120s")
        member.kubectl("delete", ",".join(left), *words)
    nodes = member.client.list("nodes", scope=Scope()).items
    cordoned = [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]
    if cordoned:
        member.kubectl("uncordon", *cordoned)


_LEFT = ("jobsets", "pytorchjobs", "jobs", "deployments", "configmaps", "secrets", "pods")
_LEFT += ("resourceclaimtemplates", "resourceclaims")


def _has_ours(member: Member, kind: str) -> bool:
    try:
        return bool(member.client.list(kind, scope=Scope(labels=OURS)).items)
    except UnknownKind:
        return False
