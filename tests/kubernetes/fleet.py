"""A hub and three members on loopback, each a real control plane with an etcd of its own.

Members have all controllers, the scheduler and nodes with GPUs (see `node_agent`), so that pods are
truly scheduled there, run and end. Everything lives in one folder and ends with it. All start at
the same time, which takes some ten seconds on two cores and about two GiB.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairway.api.errors import ApiError, NotFound
from fairway.client import Client, Scope
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.node_agent import SILENT

Json = dict[str, Any]
READY_SECONDS_MAX = 240
_SERVERS = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
ROOT = Path(__file__).parents[2]


def gpu_node(name: str, *, product: str, gpus: int = 8, **labels: str) -> Json:
    """A node as NVIDIA's feature discovery labels it."""
    return {
        "name": name,
        "labels": {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.memory": "81559",
            "node.kubernetes.io/instance-type": "gpu-8",
            **labels,
        },
        "allocatable": {
            "cpu": "64",
            "memory": "512Gi",
            "pods": "110",
            "ephemeral-storage": "1Ti",
            "nvidia.com/gpu": str(gpus),
        },
    }


def plain_node(name: str) -> Json:
    return {"name": name, "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}


H100, A100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4"
MEMBERS: dict[str, list[Json]] = {
    "hangzhou": [
        *(gpu_node(f"h100-{at}", product=H100, rack=f"r{at // 2}") for at in range(4)),
        plain_node("plain-0"),
    ],
    "berlin": [
        *(gpu_node(f"a100-{at}", product=A100) for at in range(2)),
        plain_node("plain-0"),
    ],
    "edge": [*(gpu_node(f"l4-{at}", product=L4, gpus=2) for at in range(2)), plain_node("plain-0")],
}


@dataclass(kw_only=True)
class Member:
    """A cluster whose pods run."""

    name: str
    plane: control_plane.ControlPlane
    nodes: Sequence[str] = ()
    prepared: set[str] = field(default_factory=set)  # namespaces
    _clients: list[Client] = field(default_factory=list)

    @property
    def client(self) -> Client:
        """An administrator's calls."""
        if not self._clients:
            self._clients.append(Client.connect(str(self.plane.kubeconfig)))
        return self._clients[0]

    def silence(self, node: str, *, is_silent: bool = True) -> None:
        """A node is heard of no more, or again."""
        value = "true" if is_silent else None
        self.client.patch("nodes", node, {"metadata": {"annotations": {SILENT: value}}})

    def kill(self) -> None:
        """The whole control plane is gone, but for what it wrote; nodes go on."""
        for name in _SERVERS:
            self.plane.kill(name)

    def bring_back(self) -> None:
        """The control plane is there again, with all that it had written."""
        for name in reversed(_SERVERS):
            control_plane.start(self.plane, name, self.plane.commands[name])
            if name == "kube-apiserver":
                self.plane.wait_until_ready()

    def kubectl(self, *words: str, given: str = "") -> str:
        """What an administrator would type."""
        done = self._call(words, given)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def asked(self, *words: str) -> str:
        """What kubectl answers to a question, which may be no."""
        return self._call(words).stdout

    def _call(self, words: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(binaries.program("kubectl")), f"--kubeconfig={self.plane.kubeconfig}"]
        return subprocess.run(
            [*command, *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def apply(self, *bodies: Json) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(bodies)}
        self.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(listed))

    def close(self) -> None:
        for one in self._clients:
            one.close()
        self._clients.clear()


@dataclass(kw_only=True)
class Fleet:
    """A hub and its members."""

    hub: control_plane.ControlPlane
    members: dict[str, Member]


@contextlib.contextmanager
def running(folder: Path, say: binaries.Say = binaries.silent) -> Iterator[Fleet]:
    """Starts everything at once, and yields it when pods can run in each member."""
    for name in binaries.WHOLE_PROGRAMS:
        binaries.program(name, say)
    with contextlib.ExitStack() as stack:
        # Threads stay until all has ended: what they started would end with them.
        threads = stack.enter_context(ThreadPoolExecutor(1 + len(MEMBERS)))
        own = folder / "hub"
        own.mkdir()
        hub = threads.submit(_opened, control_plane.running(own, say))
        started = {
            name: threads.submit(_opened, member(folder, name, nodes, say))
            for name, nodes in MEMBERS.items()
        }
        opened = {name: _kept(stack, one.result()) for name, one in started.items()}
        yield Fleet(hub=_kept(stack, hub.result()), members=opened)


@contextlib.contextmanager
def member(
    folder: Path, name: str, nodes: Sequence[Json], say: binaries.Say = binaries.silent
) -> Iterator[Member]:
    """One cluster with its nodes."""
    own = folder / name
    own.mkdir()
    with control_plane.running(own, say, is_whole=True, has_accounts=True) as plane:
        start_nodes(plane, nodes)
        found = Member(name=name, plane=plane, nodes=[one["name"] for one in nodes])
        try:
            _wait_for_nodes(found)
            yield found
        finally:
            found.close()


def start_nodes(plane: control_plane.ControlPlane, nodes: Sequence[Json]) -> None:
    """The process that stands for the kubelets of a member; it dies with the plane."""
    listed = plane.folder / "nodes.json"
    listed.write_text(json.dumps(list(nodes)))
    command = [sys.executable, "-m", "tests.kubernetes.node_agent"]
    command += [str(plane.kubeconfig), str(listed)]
    command += [str(plane.folder / "serving.crt"), str(plane.folder / "serving.key")]
    control_plane.start(plane, "node-agent", command, {"PYTHONPATH": str(ROOT)})


def _opened(context: Any) -> tuple[Any, Any]:
    return context, context.__enter__()


def _kept(stack: contextlib.ExitStack, opened: tuple[Any, Any]) -> Any:
    stack.push(opened[0].__exit__)
    return opened[1]


def _wait_for_nodes(found: Member) -> None:
    until = time.monotonic() + READY_SECONDS_MAX
    while not _is_ready(found):
        if time.monotonic() > until:
            logs = [one.read_text()[-1500:] for one in found.plane.folder.glob("*.log")]
            raise RuntimeError(f"{found.name} has no ready nodes:\n" + "\n".join(logs))
        time.sleep(0.1)


def _is_ready(found: Member) -> bool:
    """Whether the scheduler would use every node, and pods would get a service account."""
    try:
        found.client.get("serviceaccounts", "default", namespace="default")
    except (NotFound, ApiError):
        return False
    nodes = found.client.list("nodes", scope=Scope()).items
    taints = [taint for one in nodes for taint in one["spec"].get("taints", ())]
    return len(nodes) == len(found.nodes) and not any(
        one["key"].startswith("node.kubernetes.io/") for one in taints
    )
