"""A fleet that two teams share, one of which must stay unknown to the other.

All that is theirs has the word `zebra` in its name: their namespace, their workloads, their user.
Both teams get in each other's way as much as they can, so that there is something to tell: one
preempts the other and waits for it to go, and is preempted; they wait behind each other in a line.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairway.app import Hub, HubOptions, open_hub
from fairway.client import Client, load_access
from tests.builders import H100, cluster, flavor, fleet, queue, workload
from tests.waiting import seen_at_last

OURS, THEIRS = "ours", "zebra-team"
WORD = "zebra"
MEMBER_TOKEN = "token-of-somebody-of-our-team"
_THEIR_TOKEN = "token-of-somebody-of-the-other-team"
_WORKLOADS = "workloads.fairway.dev"
_RBAC = "rbac.authorization.k8s.io"
_STOP_SECONDS = 3600  # whoever is preempted takes long to go
Json = dict[str, Any]


async def running(data: Path) -> AsyncGenerator[Hub, None]:
    """A hub that knows the people of both teams."""
    path = data / "tokens.csv"
    path.touch(mode=0o600)
    path.write_text(
        "token-of-the-administrator,admin,admin,system:masters\n"
        f"{MEMBER_TOKEN},member,member,our-people\n"
        f"{_THEIR_TOKEN},zebra-user,zebra-user,zebra-people\n"
    )
    async with open_hub(HubOptions(data=data, port=0)) as hub:
        yield hub


def fill(hub: Hub) -> None:
    """The fleet, the teams and their rights, and what they run; until all is as it stays."""
    with Client.connect(str(hub.kubeconfig)) as admin, their(hub) as zoe:
        for right in (*_fleet(), *_rights()):
            admin.create(right)
        _run(zoe, _gang("zebra-runs", THEIRS, on="h100"), "Running")
        _run(admin, _gang("mine-runs", OURS, on="l4"), "Running")
        _run(admin, _gang("mine-urgent", OURS, on="h100", priority=10), "Claimed")
        _run(zoe, _gang("zebra-urgent", THEIRS, on="l4", priority=10), "Claimed")
        _run(zoe, _gang("zebra-waits", THEIRS, on="h100", priority=5), "Waiting")
        _run(admin, _gang("mine-waits", OURS, on="h100", priority=5), "Waiting")
        _run(zoe, _service("zebra-serves", THEIRS), "Running")
        _run(admin, _service("mine-serves", OURS), "Running")


@contextmanager
def their(hub: Hub) -> Iterator[Client]:
    """Acts as somebody of the other team."""
    with Client(replace(load_access(str(hub.kubeconfig)), token=_THEIR_TOKEN)) as client:
        yield client


def _run(client: Client, body: Json, phase: str) -> None:
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    client.create(body)
    seen_at_last(
        lambda: client.get(_WORKLOADS, name, namespace=namespace).get("status", {}).get("phase"),
        lambda found: found == phase,
        f"{name} to be {phase}",
    )


def _fleet() -> list[Json]:
    owned = {"h100": 8, "l4": 8, "cpu": 0}
    clusters = [cluster("west", 8), cluster("east", 8, model="l4"), cluster("north", 0)]
    for other in clusters:
        other["spec"]["simulated"] |= {"startSeconds": 0, "stopSeconds": _STOP_SECONDS}
    shared = queue("shared", quotas=owned, preemption={"withinQueue": "LowerPriority"})
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (OURS, THEIRS)
    ]
    shown = [fleet(), H100, flavor("l4"), flavor("cpu")]
    return [*namespaces, *shown, shared, queue("serving"), *clusters]


def _rights() -> list[Json]:
    return [
        _bound("ClusterRoleBinding", "fairway-fleet-viewer", "our-people"),
        _bound("RoleBinding", "admin", "our-people", OURS),
        _bound("RoleBinding", "admin", "zebra-people", THEIRS),
    ]


def _bound(kind: str, role: str, group: str, namespace: str = "") -> Json:
    within = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": f"{group}-{role}", **within},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
    }


def _gang(name: str, namespace: str, *, on: str, priority: int = 0) -> Json:
    saves = {"graceSeconds": _STOP_SECONDS}
    made = workload(name, "shared", gpus=8, flavors=[on], priority=priority, checkpoint=saves)
    return _in(namespace, made)


def _service(name: str, namespace: str) -> Json:
    pods = [{"name": "server", "count": 1, "requests": {"cpu": "1"}}]
    return _in(namespace, workload(name, "serving", pod_sets=pods, mode="Divided", replicas=2))


def _in(namespace: str, body: Json) -> Json:
    return {**body, "metadata": {"name": body["metadata"]["name"], "namespace": namespace}}
