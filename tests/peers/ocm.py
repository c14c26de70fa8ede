"""The placement controller of Open Cluster Management on a real control plane.

The controller alone runs. Clusters, their claims, sizes and scores are written as the agents and
controllers beside it would write them.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairway.api.errors import ApiError
from fairway.client import Client, Scope
from tests.kinds import operators
from tests.kinds.operators import Operator
from tests.kubernetes import binaries, control_plane
from tests.peers import recording
from tests.peers.ocm_scenarios import ADD_ON, SCENARIOS, Json, Member, Scenario, Step

SETTLE_SECONDS_MAX = 60.0
QUIET_SECONDS = 2.0
GROUP = "cluster.open-cluster-management.io"
_EXPIRED, _VALID = "2020-01-01T00:00:00Z", "2120-01-01T00:00:00Z"
OCM = Operator(
    name="ocm",
    package="./cmd/placement",
    arguments=(
        "controller",
        "--kubeconfig={kubeconfig}",
        "--namespace=default",
        "--disable-leader-election",
        "--listen=127.0.0.1:{port}",
    ),
)
EVERYTHING: Json = {
    "apiVersion": f"{GROUP}/v1beta2",
    "kind": "ManagedClusterSet",
    "metadata": {"name": "global"},
    "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
}
BINDING: Json = {
    "apiVersion": f"{GROUP}/v1beta2",
    "kind": "ManagedClusterSetBinding",
    "metadata": {"name": "global", "namespace": "team"},
    "spec": {"clusterSet": "global"},
}


def record(words: Sequence[str] = ()) -> list[str]:
    """Plays the scenarios and writes what was decided; the names of those that were."""
    chosen = [
        scenario
        for scenario in SCENARIOS
        if not words or any(word in scenario.name for word in words)
    ]
    with running() as client:
        for scenario in chosen:
            _record(client, scenario)
            print(f"ocm: {scenario.name}", flush=True)
    return [item.name for item in chosen]


@contextlib.contextmanager
def running() -> Iterator[Client]:
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane.running(Path(folder), print) as plane,
    ):
        with Client.connect(str(plane.kubeconfig)) as client:
            operators.start(plane, client, OCM)
        with Client.connect(str(plane.kubeconfig)) as client:
            client.create(_namespace("team"))
            client.create(EVERYTHING)
            client.create(BINDING)
            condition = _condition("Bound", "ClusterSetBound")
            _write_status(client, f"managedclustersetbindings.{GROUP}", "global", "team", condition)
            yield client


def _record(client: Client, scenario: Scenario) -> None:
    steps = []
    for step in scenario.steps:
        for member in step.members:
            _write(client, member)
        placement = _placement(step)
        client.apply(placement, force=True)
        decisions = _settle(client)
        steps.append(
            {
                "placement": placement,
                "members": [_plain(member) for member in step.members],
                "decisions": decisions,
            }
        )
    source = f"{OCM.source} on Kubernetes {binaries.VERSION}"
    recording.write("ocm", scenario.name, source, {"steps": steps})
    for name in {step.name for step in scenario.steps}:
        client.delete(f"placements.{GROUP}", name, namespace="team")
    for name in {member.name for step in scenario.steps for member in step.members}:
        client.delete(f"managedclusters.{GROUP}", name)
        with contextlib.suppress(ApiError):  # not every cluster has scores
            client.delete(f"addonplacementscores.{GROUP}", ADD_ON, namespace=name)
    _settle(client, is_empty=True)


def _plain(member: Member) -> Json:
    return {
        "name": member.name,
        "labels": dict(member.labels),
        "claims": dict(member.claims),
        "taints": list(member.taints),
        "cpus": member.cpus,
        "scores": dict(member.scores),
        "isExpired": member.is_expired,
    }


def _write(client: Client, member: Member) -> None:
    """A cluster as it is now, with the scores of its add-on."""
    moment = "2026-01-01T00:00:00Z"
    taints = [{**taint, "timeAdded": moment} for taint in member.taints]
    body: Json = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": member.name, "labels": dict(member.labels)},
        "spec": {"hubAcceptsClient": True, "taints": taints},
    }
    client.apply(body, force=True)
    size = {"cpu": str(member.cpus)}
    status = {
        **_condition("ManagedClusterConditionAvailable", "ManagedClusterAvailable"),
        "clusterClaims": [{"name": key, "value": value} for key, value in member.claims.items()],
        **({"allocatable": size, "capacity": size} if member.cpus else {}),
    }
    _write_status(client, f"managedclusters.{GROUP}", member.name, None, status)
    if not member.scores:
        return
    client.apply(_namespace(member.name), force=True)
    scores: Json = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"name": ADD_ON, "namespace": member.name},
    }
    client.apply(scores, force=True)
    told = {
        "scores": [{"name": key, "value": value} for key, value in member.scores.items()],
        "validUntil": _EXPIRED if member.is_expired else _VALID,
    }
    _write_status(client, f"addonplacementscores.{GROUP}", ADD_ON, member.name, told)


def _namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _condition(kind: str, reason: str) -> Json:
    return {
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    }


def _write_status(
    client: Client, kind: str, name: str, namespace: str | None, status: Json
) -> None:
    client.patch(kind, name, {"status": status}, namespace=namespace, subresource="status")


def _placement(step: Step) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": step.name, "namespace": "team"},
        "spec": step.spec,
    }


def _settle(client: Client, *, is_empty: bool = False) -> Json:
    """Clusters decided on by placement, once that does not change any more."""
    until = time.monotonic() + SETTLE_SECONDS_MAX
    found, since = _decisions(client), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS or (is_empty == bool(found)):
        if time.monotonic() > until:
            raise TimeoutError(f"OCM does not settle: {found}")
        time.sleep(0.2)
        now = _decisions(client)
        if now != found:
            found, since = now, time.monotonic()
    return found


def _decisions(client: Client) -> Json:
    found: dict[str, list[str]] = {}
    listed = client.list(f"placementdecisions.{GROUP}", scope=Scope(namespace="team")).items
    for item in listed:
        name = item["metadata"]["labels"][f"{GROUP}/placement"]
        rows = item.get("status", {}).get("decisions", [])
        found.setdefault(name, []).extend(row["clusterName"] for row in rows)
    return {name: sorted(clusters) for name, clusters in sorted(found.items())}
