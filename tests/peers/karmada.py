"""Karmada's scheduler on a real control plane, and how it divides replicas.

The scheduler alone runs. A binding is what Karmada's controllers make of a Deployment and its
PropagationPolicy; clusters say how many GPUs they have and, as their agents would, how many are in
use once replicas were assigned. Karmada serves clusters by an API server of its own; here a custom
resource definition stands for it.
"""

from __future__ import annotations

import contextlib
import datetime
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairway.client import Client
from tests.kinds import operators
from tests.kinds.operators import Operator
from tests.kubernetes import binaries, control_plane
from tests.peers import recording
from tests.peers.karmada_scenarios import GPU, SCENARIOS, Json, Scenario, Step

DECIDE_SECONDS_MAX = 60.0
_CLUSTER_API = "cluster.karmada.io"
_CLUSTERS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"clusters.{_CLUSTER_API}"},
    "spec": {
        "group": _CLUSTER_API,
        "names": {
            "kind": "Cluster",
            "listKind": "ClusterList",
            "plural": "clusters",
            "singular": "cluster",
        },
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
KARMADA = Operator(
    name="karmada",
    package="./cmd/scheduler",
    arguments=(
        "--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--enable-scheduler-estimator=false",
    ),
    needs=(_CLUSTERS,),
)


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
            print(f"karmada: {scenario.name}", flush=True)
    return [item.name for item in chosen]


@contextlib.contextmanager
def running() -> Iterator[Client]:
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane.running(Path(folder), print) as plane,
    ):
        with Client.connect(str(plane.kubeconfig)) as client:
            operators.start(plane, client, KARMADA)
        operators.wait_until_listed(plane, _CLUSTERS["metadata"]["name"])
        with Client.connect(str(plane.kubeconfig)) as client:
            namespace = {"name": "team"}
            client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
            yield client


def _record(client: Client, scenario: Scenario) -> None:
    sizes = dict(scenario.gpus)
    for name in sizes:
        client.create(_cluster(name, scenario.regions.get(name, "")))
    _report(client, sizes, {})
    binding = _binding(scenario)
    made = client.create(binding)
    steps, assigned = [], dict[str, int]()
    for number, step in enumerate(scenario.steps):
        sizes.update(step.gpus)
        _report(client, sizes, assigned)
        if number:
            made = client.patch(
                "resourcebindings.work.karmada.io", "web", {"spec": _change(step)}, namespace="team"
            )
        found = _decided(client, made["metadata"]["generation"])
        clusters = found["spec"].get("clusters", [])
        assigned = {cluster["name"]: cluster.get("replicas", 0) for cluster in clusters}
        steps.append(
            {
                "replicas": step.replicas,
                "isFresh": step.is_fresh,
                "gpus": dict(sizes),
                "clusters": clusters,
                "status": found["status"],
            }
        )
    recording.write(
        "karmada",
        scenario.name,
        f"{KARMADA.source} on Kubernetes {binaries.VERSION}",
        {"binding": binding, "regions": dict(scenario.regions), "steps": steps},
    )
    client.delete("resourcebindings.work.karmada.io", "web", namespace="team")
    for name in sizes:
        client.delete(f"clusters.{_CLUSTER_API}", name)


def _cluster(name: str, region: str) -> Json:
    return {
        "apiVersion": f"{_CLUSTER_API}/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push", **({"region": region} if region else {})},
    }


def _binding(scenario: Scenario) -> Json:
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": "web",
            "namespace": "team",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "policy"},
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": "team",
                "name": "web",
                "uid": scenario.uid,
            },
            "placement": scenario.placement,
            "replicas": scenario.steps[0].replicas,
            "replicaRequirements": {"resourceRequest": {GPU: "1"}},
            "schedulerName": "default-scheduler",
        },
    }


def _change(step: Step) -> Json:
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
    fresh = {"rescheduleTriggeredAt": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"replicas": step.replicas, **(fresh if step.is_fresh else {})}


def _report(client: Client, sizes: Mapping[str, int], assigned: Mapping[str, int]) -> None:
    """What the agents of the clusters would say."""
    for name, gpus in sizes.items():
        status = {
            "apiEnablements": [
                {
                    "groupVersion": "apps/v1",
                    "resources": [{"name": "deployments", "kind": "Deployment"}],
                }
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "ClusterReady",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "resourceSummary": {
                "allocatable": {GPU: str(gpus), "pods": "1000"},
                "allocated": {GPU: str(assigned.get(name, 0)), "pods": str(assigned.get(name, 0))},
            },
        }
        client.patch(f"clusters.{_CLUSTER_API}", name, {"status": status}, subresource="status")
    # The scheduler reads clusters from a watch of its own.
    time.sleep(1.0)


def _decided(client: Client, generation: int) -> Json:
    """The binding once the scheduler has seen this generation of it, or has given it up."""
    until = time.monotonic() + DECIDE_SECONDS_MAX
    while time.monotonic() < until:
        found = client.get("resourcebindings.work.karmada.io", "web", namespace="team")
        status = found.get("status", {})
        scheduled = next(
            (
                condition
                for condition in status.get("conditions", [])
                if condition["type"] == "Scheduled"
            ),
            None,
        )
        is_seen = status.get("schedulerObservedGeneration", 0) >= generation
        if scheduled and (is_seen or scheduled["status"] == "False"):
            return found
        time.sleep(0.2)
    raise TimeoutError(f"Karmada does not decide: {found}")
