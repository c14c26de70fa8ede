"""A small kubelet as a process of its own: the nodes of one member, on which pods truly "run".

    python -m tests.kubernetes.node_agent KUBECONFIG NODES CERTIFICATE KEY

It does what only a kubelet does, in the form that it writes: nodes and their leases, the statuses
of pods that a real scheduler bound to its nodes, their end, and their output, commands in them and
ports of them when a real API server asks (see `node_streams`). All else (which pods, which node,
what becomes of a Job) is left to the real programs.

No container is started; what a pod does is read from its command, as a shell would say it:
`sleep 5` runs for five seconds, `exit 3` ends with that code, `oom` is killed for its memory,
`echo words` writes a line. An image whose name holds `absent` cannot be pulled. A node with the
annotation `silent` is heard of no more, nor is one that was removed, until it is made again.

What truly ran, and from when to when, is written down beside the list of nodes (see `lives`): it is
known here even while the control plane is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from aiohttp import web

from fairway.api.errors import ApiError
from fairway.client import AsyncClient, ClientError, PatchType
from tests.kubernetes import lives
from tests.kubernetes.node_streams import serve_command, serve_port

Json = dict[str, Any]
SILENT = "tests.fairway.dev/silent"
RENEWAL_SECONDS = 4.0
START_SECONDS = 0.05
_NAP = re.compile(r"\bsleep (\d+(?:\.\d+)?)")
_EXIT = re.compile(r"\bexit (\d+)")
_ECHO = re.compile(r"\becho ([^;&|]+)")
_UNREADABLE = re.compile(r"\boom\b")


def now(*, has_fractions: bool = False) -> str:
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if has_fractions else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.now(UTC).strftime(form)


@dataclass(kw_only=True)
class Life:
    """A pod on one of our nodes."""

    pod: Json
    started_at: str = ""
    restarts: int = 0
    last: Json = field(default_factory=dict)
    output: list[bytes] = field(default_factory=list)
    is_over: bool = False
    is_ending: bool = False
    is_running: bool = False
    task: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def place(self) -> tuple[str, str]:
        metadata = self.pod["metadata"]
        return metadata["namespace"], metadata["name"]

    def write(self, line: str) -> None:
        self.output.append(line.encode() + b"\n")
        self.news.set()


class NodeAgent:
    """The nodes of one cluster, and the pods on them."""

    def __init__(self, client: AsyncClient, nodes: list[Json], written: TextIO) -> None:
        self._client = client
        self._written = written
        self._nodes = {node["name"]: node for node in nodes}
        self._silent: set[str] = set()
        self._lives: dict[str, Life] = {}  # by uid
        self._port = 0

    async def run(self, certificate: Path, key: Path) -> None:
        self._port = await self._serve(certificate, key)
        for node in self._nodes.values():
            await self._register(node)
        print("ready", flush=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            tasks.create_task(_for_ever(self._follow_nodes))
            tasks.create_task(_for_ever(lambda: self._follow_pods(tasks)))

    # Nodes.

    async def _register(self, node: Json) -> None:
        name = node["name"]
        labels = {"kubernetes.io/hostname": name, **node.get("labels", {})}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        if node.get("taints"):
            body["spec"] = {"taints": node["taints"]}
        with contextlib.suppress(ApiError):
            await self._client.create(body)
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            # Without a first renewal the node's controller would heed none of the later ones.
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 40,
                "renewTime": now(has_fractions=True),
            },
        }
        with contextlib.suppress(ApiError):
            await self._client.create(lease)
        await self._tell_node(node)

    async def _tell_node(self, node: Json) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        }
        status = {
            "capacity": node["allocatable"],
            "allocatable": node["allocatable"],
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            # Servers that know of it pass the channels of commands on as they are.
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        }
        await self._patch("nodes", node["name"], {"status": status}, subresource="status")

    async def _renew(self) -> None:
        while True:
            for name in [node for node in self._nodes if node not in self._silent]:
                renewal = {"spec": {"renewTime": now(has_fractions=True)}}
                with contextlib.suppress(ApiError, ClientError, OSError):
                    await self._client.patch("leases", name, renewal, namespace="kube-node-lease")
            await asyncio.sleep(RENEWAL_SECONDS)

    async def _follow_nodes(self) -> None:
        async for event in self._client.watch("nodes"):
            name = event.object.get("metadata", {}).get("name", "")
            if name not in self._nodes or event.type == "BOOKMARK":
                continue
            annotations = event.object["metadata"].get("annotations", {})
            if SILENT in annotations or event.type == "DELETED":
                self._silent.add(name)
            elif name in self._silent:
                self._silent.discard(name)
                await self._register(self._nodes[name])
            elif not _is_ready(event.object):
                await self._tell_node(self._nodes[name])  # it was given up, and is there

    # Pods.

    async def _follow_pods(self, tasks: asyncio.TaskGroup) -> None:
        async for event in self._client.watch("pods"):
            pod = event.object
            if pod.get("spec", {}).get("nodeName") not in self._nodes:
                continue
            uid = pod["metadata"]["uid"]
            life = self._lives.get(uid)
            if event.type == "DELETED":
                if life is not None:
                    self._write_down(life, is_running=False)
                    life.is_over = True
                    life.news.set()
                    if life.task is not None:
                        life.task.cancel()
                self._lives.pop(uid, None)
                continue
            if life is None:
                life = self._lives[uid] = Life(pod=pod)
            life.pod = pod
            is_over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if "deletionTimestamp" in pod["metadata"]:
                if not life.is_ending:
                    life.is_ending = True
                    tasks.create_task(_gently(self._end(life)))
            elif not is_over and life.task is None:
                life.task = tasks.create_task(_gently(self._live(life)))

    async def _live(self, life: Life) -> None:
        """A pod from its binding to its end."""
        containers = life.pod["spec"]["containers"]
        if any("absent" in container["image"] for container in containers):
            waiting = {"reason": "ErrImagePull", "message": "the registry has no such image"}
            await self._tell(life, "Pending", {"waiting": waiting})
            return
        program = " ".join((*containers[0].get("command", ()), *containers[0].get("args", ())))
        naps = [float(match) for match in _NAP.findall(program)]
        code = next((int(match) for match in _EXIT.findall(program)), 0)
        is_greedy = _UNREADABLE.search(program) is not None
        while True:
            await asyncio.sleep(START_SECONDS)
            await self._until_heard(life)
            life.started_at = now()
            self._write_down(life, is_running=True)
            await self._tell(life, "Running", {"running": {"startedAt": life.started_at}})
            life.write(f"{life.place[1]} started on {life.pod['spec']['nodeName']}")
            for line in _ECHO.findall(program):
                life.write(line.strip())
            await asyncio.sleep(sum(naps) if naps or code or is_greedy else 3600.0)
            await self._until_heard(life)
            reason = "OOMKilled" if is_greedy else ("Error" if code else "Completed")
            ended = {
                "exitCode": 137 if is_greedy else code,
                "reason": reason,
                "startedAt": life.started_at,
                "finishedAt": now(),
            }
            self._write_down(life, is_running=False, code=ended["exitCode"])
            policy = life.pod["spec"].get("restartPolicy", "Always")
            if policy == "Always" or (policy == "OnFailure" and ended["exitCode"]):
                life.restarts += 1
                life.last = {"terminated": ended}
                continue
            life.is_over = True
            life.write(f"{life.place[1]} ended")
            phase = "Failed" if ended["exitCode"] else "Succeeded"
            await self._tell(life, phase, {"terminated": ended})
            return

    async def _end(self, life: Life) -> None:
        """A pod that is deleted: it is asked to end, ends, and is then gone."""
        await self._until_heard(life)
        if life.task is not None:
            life.task.cancel()
        self._write_down(life, is_running=False)
        namespace, name = life.place
        status = life.pod.get("status", {})
        if status.get("phase") not in ("Succeeded", "Failed") and life.started_at:
            ended = {
                "exitCode": 143,
                "reason": "Error",
                "startedAt": life.started_at,
                "finishedAt": now(),
            }
            with contextlib.suppress(ApiError):
                await self._tell(life, "Failed", {"terminated": ended})
        life.is_over = True
        life.news.set()
        options = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": life.pod["metadata"]["uid"]},
        }
        await self._client.delete("pods", name, namespace=namespace, options=options)

    def _write_down(self, life: Life, *, is_running: bool, code: int | None = None) -> None:
        """Notes that the pod runs from now on, or no more."""
        if life.is_running == is_running:
            return
        life.is_running = is_running
        metadata = life.pod["metadata"]
        note = {
            "at": time.time(),
            "isRunning": is_running,
            "uid": metadata["uid"],
            "pod": metadata["name"],
            "labels": metadata.get("labels", {}),
            "code": code,
        }
        self._written.write(json.dumps(note) + "\n")

    async def _until_heard(self, life: Life) -> None:
        while life.pod["spec"]["nodeName"] in self._silent:
            await asyncio.sleep(0.1)

    async def _tell(self, life: Life, phase: str, state: Json) -> None:
        is_ready = phase == "Running"
        why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
        status = {
            "phase": phase,
            "startTime": life.pod.get("status", {}).get("startTime") or now(),
            "hostIP": "127.0.0.1",
            "podIP": "10.244.0.5",
            "conditions": [
                _condition("Initialized", True),
                _condition("Ready", is_ready, "" if is_ready else why),
                _condition("ContainersReady", is_ready, "" if is_ready else why),
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": is_ready,
                    "started": is_ready,
                    "restartCount": life.restarts,
                    "lastState": life.last,
                    "state": state,
                }
                for container in life.pod["spec"]["containers"]
            ],
        }
        namespace, name = life.place
        await self._patch("pods", name, {"status": status}, namespace, subresource="status")

    async def _patch(
        self, kind: str, name: str, patch: Json, namespace: str | None = None, **options: str
    ) -> None:
        await self._client.patch(
            kind, name, patch, type=PatchType.STRATEGIC, namespace=namespace, manager="kubelet",
            **options,
        )  # fmt: skip

    # Output.

    async def _serve(self, certificate: Path, key: Path) -> int:
        application = web.Application()
        routes = application.router
        routes.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        routes.add_get("/exec/{namespace}/{pod}/{container}", self._inside(serve_command))
        routes.add_get("/portForward/{namespace}/{pod}", self._inside(serve_port))
        runner = web.AppRunner(application)
        await runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        return int(runner.addresses[0][1])

    def _inside(
        self, serve: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Serves what is asked of a pod that runs."""

        async def answer(request: web.Request) -> web.StreamResponse:
            if self._life(request).is_over:
                raise web.HTTPNotFound(text="container not running")
            return await serve(request)

        return answer

    def _life(self, request: web.Request) -> Life:
        place = (request.match_info["namespace"], request.match_info["pod"])
        for life in self._lives.values():
            if life.place == place:
                return life
        raise web.HTTPNotFound(text=f"pod {place[1]} is not here")

    async def _log(self, request: web.Request) -> web.StreamResponse:
        life = self._life(request)
        response = web.StreamResponse()
        await response.prepare(request)
        tail = request.query.get("tailLines")
        told = max(0, len(life.output) - int(tail)) if tail else 0
        while True:
            life.news.clear()
            for line in life.output[told:]:
                await response.write(line)
            told = max(told, len(life.output))
            if request.query.get("follow") != "true" or life.is_over:
                return response
            await life.news.wait()


def _is_ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _condition(kind: str, holds: bool, reason: str = "") -> Json:
    told = {"reason": reason} if reason else {}
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "lastTransitionTime": now(), **told}


async def _for_ever(follow: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Follows again whenever the server was away."""
    while True:
        await _gently(follow())
        await asyncio.sleep(0.2)


async def _gently(call: Coroutine[Any, Any, None]) -> None:
    """Another writer may be quicker, or the server away: then what comes next decides."""
    with contextlib.suppress(ApiError, ClientError, OSError):
        await call


async def main(kubeconfig: str, nodes: str, certificate: str, key: str) -> None:
    listed = json.loads(Path(nodes).read_text())
    with lives.file_of(Path(nodes).parent).open("a", buffering=1) as written:
        await _run(kubeconfig, listed, written, certificate, key)


async def _run(
    kubeconfig: str, nodes: list[Json], written: TextIO, certificate: str, key: str
) -> None:
    async with AsyncClient.connect(kubeconfig) as client:
        agent = NodeAgent(client, nodes, written)
        await agent.run(Path(certificate), Path(key))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
