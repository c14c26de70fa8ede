"""Kueue: its manager with its webhooks on a real control plane, and what it decides on Jobs.

No controller of Jobs and no kubelet run: quota alone decides, a Job that is suspended has stopped
at once, and one ends when it is deleted.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairway.client import Client, Scope
from tests.kinds import operators
from tests.kinds.operators import Operator
from tests.kubernetes import binaries, control_plane
from tests.peers import recording
from tests.peers.kueue_scenarios import API, NAMESPACE, PRIORITIES, SCENARIOS, Json, Scenario, Wave

# Inadmissible workloads are looked at again once a second.
QUIET_SECONDS = 3.0
SETTLE_SECONDS_MAX = 90.0
APART_SECONDS = 1.1


def operator(*, is_fair: bool) -> Operator:
    settings: Json = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {"port": "{port}", "host": "127.0.0.1", "certDir": "{folder}/certificates"},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},
    }
    if is_fair:
        settings["fairSharing"] = {
            "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        }
    return Operator(
        name="kueue",
        package="./cmd/kueue",
        arguments=("--config={folder}/settings.yaml",),
        webhooks="config/components/webhook/manifests.yaml",
        called="kueue-x-k8s-io|batch-v1-job",
        asks={"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "asks"}},
        settings=settings,
        certificates_below_etc="kueue/metrics/certs",
    )


def record(words: Sequence[str] = ()) -> list[str]:
    """Plays the scenarios and writes what was decided; the names of those that were."""
    played = []
    for is_fair in (False, True):
        chosen = [
            scenario
            for scenario in SCENARIOS
            if scenario.is_fair is is_fair
            and (not words or any(word in scenario.name for word in words))
        ]
        if not chosen:
            continue
        with running(is_fair=is_fair) as client:
            for scenario in chosen:
                _record(client, scenario, operator(is_fair=is_fair).source)
                played.append(scenario.name)
                print(f"kueue: {scenario.name}", flush=True)
    return played


@contextlib.contextmanager
def running(*, is_fair: bool) -> Iterator[Client]:
    """A control plane with Kueue, and a client of it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane.running(Path(folder), print) as plane,
    ):
        with Client.connect(str(plane.kubeconfig)) as client:
            operators.start(plane, client, operator(is_fair=is_fair))
        with Client.connect(str(plane.kubeconfig)) as client:
            namespace = {"name": NAMESPACE}
            client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
            for name, value in PRIORITIES.items():
                client.create(
                    {
                        "apiVersion": API,
                        "kind": "WorkloadPriorityClass",
                        "metadata": {"name": name},
                        "value": value,
                    }
                )
            yield client


def _record(client: Client, scenario: Scenario, source: str) -> None:
    for object_ in scenario.objects:
        client.apply(object_, force=True)
        if object_["kind"] == "ClusterQueue":
            client.create(_local_queue(object_["metadata"]["name"]))
    _settle(client)
    steps = []
    for wave in scenario.waves:
        _play(client, wave)
        steps.append({"arrive": wave.arrive, "end": wave.end, "statuses": _settle(client)})
    recording.write(
        "kueue",
        scenario.name,
        f"{source} on Kubernetes {binaries.VERSION}",
        {
            "fairSharing": scenario.is_fair,
            "priorities": PRIORITIES,
            "objects": scenario.objects,
            "steps": steps,
        },
    )
    _clear(client, scenario)


def _local_queue(name: str) -> Json:
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterQueue": name},
    }


def _play(client: Client, wave: Wave) -> None:
    for item in wave.arrive:
        client.create(item)
        time.sleep(APART_SECONDS)
    for name in wave.end:
        _delete(client, "jobs.batch", name, NAMESPACE)


def _delete(client: Client, kind: str, name: str, namespace: str | None = None) -> None:
    options = {"propagationPolicy": "Background"}
    client.delete(kind, name, namespace=namespace, options=options)


def _settle(client: Client) -> Json:
    """The statuses of all workloads, by the name of their Job, once none changes any more."""
    until = time.monotonic() + SETTLE_SECONDS_MAX
    found, since = _statuses(client), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        if time.monotonic() > until:
            raise TimeoutError(f"Kueue does not settle: {found}")
        time.sleep(0.25)
        now = _statuses(client)
        if now != found:
            found, since = now, time.monotonic()
    return found


def _statuses(client: Client) -> Json:
    listed = client.list(f"workloads.{API.partition('/')[0]}", scope=Scope(namespace=NAMESPACE))
    return {
        item["metadata"]["ownerReferences"][0]["name"]: recording.lasting(item.get("status", {}))
        for item in sorted(
            listed.items, key=lambda entry: str(entry["metadata"]["creationTimestamp"])
        )
        if "deletionTimestamp" not in item["metadata"]
    }


def _clear(client: Client, scenario: Scenario) -> None:
    """Removes all that was made, Jobs first: a queue in use does not go."""
    for job in client.list("jobs.batch", scope=Scope(namespace=NAMESPACE)).items:
        _delete(client, "jobs.batch", job["metadata"]["name"], NAMESPACE)
    for object_ in scenario.objects:
        if object_["kind"] == "ClusterQueue":
            _delete(client, "localqueues.kueue.x-k8s.io", object_["metadata"]["name"], NAMESPACE)
    for kind in ("ClusterQueue", "Cohort"):
        for other in scenario.objects:
            if other["kind"] == kind:
                _delete(client, f"{kind.lower()}s.kueue.x-k8s.io", other["metadata"]["name"])
    until = time.monotonic() + SETTLE_SECONDS_MAX
    while client.list("clusterqueues.kueue.x-k8s.io").items or _statuses(client):
        if time.monotonic() > until:
            raise TimeoutError("queues of the last scenario do not go")
        time.sleep(0.25)
