"""A small kubelet for recordings: nodes that are kept alive, and pods that run when told to.

What only a kubelet does is done here, in the form that it writes: leases, the statuses of pods, and
the end of pods that are deleted. All else (which node, which pods, what a controller says of them)
is left to the real programs. Threads renew leases and end pods that are deleted; `start`, `ready`,
`wait` and `end` are asked for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fairway.api.errors import ApiError
from fairway.client import Client, ClientError, PatchType, Scope

Pod = dict[str, Any]
ROUND_SECONDS = 0.3
RENEWAL_SECONDS = 2.0
ADDRESS = "10.244.0.5"  # of every pod
ALLOCATABLE = {
    "cpu": "512",
    "memory": "8Ti",
    "ephemeral-storage": "9Ti",
    "pods": "500",
    "nvidia.com/gpu": "64",
}


def now(*, has_fractions: bool = False) -> str:
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if has_fractions else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.now(UTC).strftime(form)


def condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Pod:
    """A condition; what it no longer says is taken out of the one before."""
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastProbeTime": None,
        "lastTransitionTime": now(),
        "reason": reason or None,
        "message": message or None,
    }


class Kubelet:
    """Nodes of one cluster, and the pods on them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.nodes: list[str] = []
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=item, daemon=True)
            for item in ((self._look_around, ROUND_SECONDS), (self._renew, RENEWAL_SECONDS))
        ]

    def __enter__(self) -> Kubelet:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def add_node(self, name: str, **labels: str) -> None:
        """A node with plenty of everything."""
        labels = {"kubernetes.io/hostname": name, **labels}
        self.client.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        )
        ready = condition("Ready", True, "KubeletReady", "kubelet is posting ready status")
        status = {"capacity": ALLOCATABLE, "allocatable": ALLOCATABLE, "conditions": [ready]}
        self._patch("nodes", name, status)
        self.client.create(
            {
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
        )
        self.nodes.append(name)

    def fall_silent(self, node: str) -> None:
        """The node is heard of no more, and does nothing more for its pods."""
        self.nodes.remove(node)

    def start(self, pod: Pod, address: str = ADDRESS) -> None:
        """Containers run; those without a readiness probe are ready at once."""
        state = {"running": {"startedAt": now()}}
        probed = {
            container["name"]
            for container in pod["spec"]["containers"]
            if "readinessProbe" in container
        }
        self._tell(pod, "Running", state, ready=not probed, told={"podIP": address})

    def ready(self, pod: Pod) -> None:
        self._tell(pod, "Running", pod["status"]["containerStatuses"][0]["state"], ready=True)

    def wait(self, pod: Pod, reason: str, message: str = "") -> None:
        """Containers do not start, such as for an image that cannot be pulled."""
        waiting = {"reason": reason, **({"message": message} if message else {})}
        self._tell(pod, "Pending", {"waiting": waiting})

    def end(self, pod: Pod, exit_code: int = 0, **told: str) -> None:
        """Containers end by themselves."""
        reason = "Completed" if exit_code == 0 else "Error"
        ended = {"exitCode": exit_code, "reason": reason, "startedAt": _started(pod)}
        state = {"terminated": {**ended, "finishedAt": now(), **told}}
        self._tell(pod, "Succeeded" if exit_code == 0 else "Failed", state)

    def evict(self, pod: Pod) -> None:
        """The node lacks memory; it ends the pod."""
        ended = {"exitCode": 137, "reason": "Error", "startedAt": _started(pod)}
        why = {"reason": "Evicted", "message": "The node was low on resource: memory. "}
        self._tell(pod, "Failed", {"terminated": {**ended, "finishedAt": now()}}, told=why)

    def _tell(
        self, pod: Pod, phase: str, state: Pod, *, ready: bool = False, told: Pod | None = None
    ) -> None:
        over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
        lacks = "" if ready else over
        own = pod["status"].get("podIP", ADDRESS)
        address = {"hostIP": "10.4.0.17", "podIP": own} if phase != "Pending" else {}
        status = {
            "phase": phase,
            "startTime": pod["status"].get("startTime", now()),
            **address,
            **(told or {}),
            "conditions": [
                condition("PodReadyToStartContainers", phase == "Running"),
                condition("Initialized", True, lacks if phase == "Succeeded" else ""),
                condition("Ready", ready, lacks),
                condition("ContainersReady", ready, lacks),
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": f"{container['image'].split(':')[0]}@sha256:0f3c" if address else "",
                    **({"containerID": "containerd://8c8d1b5a"} if address else {}),
                    "ready": ready,
                    "started": "running" in state,
                    "restartCount": 0,
                    "lastState": {},
                    "state": state,
                }
                for container in pod["spec"]["containers"]
            ],
        }
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._patch("pods", name, status, namespace)

    def _patch(self, kind: str, name: str, status: Pod, namespace: str | None = None) -> None:
        self.client.patch(
            kind, name, {"status": status}, type=PatchType.STRATEGIC, namespace=namespace,
            subresource="status", manager="kubelet",
        )  # fmt: skip

    def _repeat(self, does: Callable[[], None], seconds: float) -> None:
        while not self._ended.wait(seconds):
            with contextlib.suppress(ClientError, ApiError):
                does()

    def _look_around(self) -> None:
        for pod in self.client.list("pods", scope=Scope()).items:
            if pod["spec"].get("nodeName") in self.nodes:
                # Another writer may be quicker; the next round sees what became of it.
                with contextlib.suppress(ClientError, ApiError):
                    self._look_after(pod)

    def _renew(self) -> None:
        for name in tuple(self.nodes):
            renewal = {"spec": {"renewTime": now(has_fractions=True)}}
            self.client.patch("leases", name, renewal, namespace="kube-node-lease")

    def _look_after(self, pod: Pod) -> None:
        metadata, status = pod["metadata"], pod["status"]
        is_over = status["phase"] in ("Succeeded", "Failed")
        if "deletionTimestamp" in metadata:
            if not is_over and "containerStatuses" in status:
                self.end(pod, exit_code=143)
            self.client.delete(
                "pods", metadata["name"], namespace=metadata["namespace"],
                options={"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}},
            )  # fmt: skip
        elif "containerStatuses" not in status and not is_over:
            self.wait(pod, "ContainerCreating")


def _started(pod: Pod) -> str:
    state = pod["status"].get("containerStatuses", [{}])[0].get("state", {})
    return str(state.get("running", {}).get("startedAt") or now())
