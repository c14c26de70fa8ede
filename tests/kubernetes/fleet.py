"""A hub and three members on loopback, each a real control plane with an etcd of its own.

Members have all controllers, the scheduler and nodes with GPUs (see `node_agent`), so that pods are
truly scheduled there, run and end. Everything lives in one folder and ends with it. Each starts
when it is first asked for, those that are asked for together at the same time: all take some ten
seconds on two cores and about two GiB.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairway.api.errors import ApiError, Forbidden, NotFound
from fairway.client import Client, Scope
from fairway.client.catalogue import Served
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.node_agent import SILENT
from tests.waiting import seen_at_last

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
        """Objects as given, also where an agent of an earlier test wrote its own."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(bodies)}
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self.kubectl(*words, given=json.dumps(listed))

    def remove(self, *made: str) -> None:
        """Deletes objects that may be there, such as `namespace/team`, and waits until they are
        gone. Namespaces are emptied here: their own controller would wait for five seconds first.
        """
        self.kubectl("delete", *made, "--ignore-not-found", "--wait=false")
        self.client.asynchronous.discovery.forget()
        kinds = [
            item
            for item in self.client.catalogue().preferred()
            if item.namespaced and "deletecollection" in item.verbs
        ]
        for item in made:
            kind, _, name = item.partition("/")
            if kind == "namespace":
                with contextlib.suppress(NotFound):
                    self._empty(name, kinds)

    def _empty(self, namespace: str, kinds: Sequence[Served]) -> None:
        """Deletes all that is in a namespace that is on its way out, and lets it go."""
        body = self.client.get("namespaces", namespace)
        left = [
            kind for kind in kinds if self.client.delete(kind, "", namespace=namespace).get("items")
        ]
        seen_at_last(
            lambda: [
                item
                for item in left
                if self.client.list(item, scope=Scope(namespace=namespace)).items
            ],
            lambda found: not found,
            f"the end of all in {namespace}",
        )
        body["spec"]["finalizers"] = []
        self.client.replace(body, subresource="finalize")
        self.kubectl("wait", f"namespace/{namespace}", "--for=delete", "--timeout=60s")
        seen_at_last(
            lambda: self._is_forgotten(namespace),
            lambda is_so: is_so,
            f"admission that knows that {namespace} is gone",
        )

    def _is_forgotten(self, namespace: str) -> bool:
        """Whether admission, which reads namespaces from a cache, knows that one is gone."""
        probe = {"name": "probe", "namespace": namespace}
        try:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": probe}
            self.client.create(body, dry_run=True)
        except NotFound:
            return True
        except Forbidden:
            return False
        return False

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()


class Fleet:
    """A hub and its members, each from the moment at which somebody asks for it."""

    def __init__(self, folder: Path, say: binaries.Say, stack: contextlib.ExitStack) -> None:
        self._root = folder
        self._runs = 0
        self._say = say
        self._started = stack.enter_context(contextlib.ExitStack())
        # Threads stay until all has ended: what they started would end with them.
        self._threads = stack.enter_context(ThreadPoolExecutor(1 + len(MEMBERS)))
        self._hub: control_plane.ControlPlane | None = None
        self._members: dict[str, Member] = {}
        self.members = Members(self)

    @property
    def _folder(self) -> Path:
        return self._root / str(self._runs)

    @property
    def hub(self) -> control_plane.ControlPlane:
        self.start()
        assert self._hub is not None
        return self._hub

    def member(self, name: str) -> Member:
        self.start(name, has_hub=False)
        return self._members[name]

    def start(self, *names: str, has_hub: bool = True) -> None:
        """Starts what is not there yet, all at once."""
        own = self._folder / "hub"
        self._folder.mkdir(exist_ok=True)
        hub = None
        if has_hub and self._hub is None:
            own.mkdir()
            hub = self._threads.submit(_opened, control_plane.running(own, self._say))
        started = {
            name: self._threads.submit(_opened, member(self._folder, name, nodes, self._say))
            for name, nodes in MEMBERS.items()
            if name in names and name not in self._members
        }
        for name, value in started.items():
            self._members[name] = _kept(self._started, value.result())
        if hub is not None:
            self._hub = _kept(self._started, hub.result())

    def stop(self) -> None:
        """Ends all that runs; who asks again has it started anew, with nothing in it."""
        self._started.close()
        self._hub = None
        self._members.clear()
        self._runs += 1


class Members(Mapping[str, Member]):
    """The members of a fleet by name; whoever looks one up has it started."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def __getitem__(self, name: str) -> Member:
        return self._fleet.member(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MEMBERS)

    def __len__(self) -> int:
        return len(MEMBERS)


@contextlib.contextmanager
def running(folder: Path, say: binaries.Say = binaries.silent) -> Iterator[Fleet]:
    """A fleet of which nothing runs before it is asked for."""
    for name in binaries.WHOLE_PROGRAMS:
        binaries.program(name, say)
    with contextlib.ExitStack() as stack:
        yield Fleet(folder, say, stack)


@contextlib.contextmanager
def member(
    folder: Path, name: str, nodes: Sequence[Json], say: binaries.Say = binaries.silent
) -> Iterator[Member]:
    """One cluster with its nodes."""
    own = folder / name
    own.mkdir()
    with control_plane.running(own, say, is_whole=True, has_accounts=True) as plane:
        start_nodes(plane, nodes)
        found = Member(name=name, plane=plane, nodes=[node["name"] for node in nodes])
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
            logs = [path.read_text()[-1500:] for path in found.plane.folder.glob("*.log")]
            raise RuntimeError(f"{found.name} has no ready nodes:\n" + "\n".join(logs))
        time.sleep(0.1)


def _is_ready(found: Member) -> bool:
    """Whether the scheduler would use every node, and pods would get a service account."""
    try:
        found.client.get("serviceaccounts", "default", namespace="default")
    except (NotFound, ApiError):
        return False
    nodes = found.client.list("nodes", scope=Scope()).items
    taints = [taint for node in nodes for taint in node["spec"].get("taints", ())]
    return len(nodes) == len(found.nodes) and not any(
        taint["key"].startswith("node.kubernetes.io/") for taint in taints
    )
