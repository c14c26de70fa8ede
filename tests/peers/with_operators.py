"""Kinds of other projects run in a member under their real controllers, and are understood.

Nothing here writes a status: what the fleet knows of a PyTorchJob is what the Kubeflow training
operator writes in the member's own API server. `make peers` runs this file; what these controllers
write is recorded in tests/kinds/statuses, and read from there by every run of the tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway.kinds.registry import built_in
from tests.kinds import operators
from tests.kinds.operators_recorded import LATER_JOBSET
from tests.kubernetes.demand import demand
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet
from tests.kubernetes.hubs import HubRig, basics, gang, hub_of

pytestmark = IN_THE_FLEET
Json = dict[str, Any]


def training(name: str, *command: str, workers: int = 2, **role: str) -> Json:
    """A workload of a master and workers, with a GPU each."""
    pod = {
        "containers": [
            {
                "name": "pytorch",
                "image": "registry.example/train:1",
                "command": list(command),
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            }
        ]
    }
    roles = {
        kind: {"replicas": count, "restartPolicy": "Never", "template": {"spec": pod}, **role}
        for kind, count in (("Master", 1), ("Worker", workers))
    }
    made = gang(name)
    made["spec"]["template"]["manifests"] = [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name},
            "spec": {"runPolicy": {"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": roles},
        }
    ]
    return made


@pytest.fixture
def operated(fleet: Fleet, request: pytest.FixtureRequest) -> Fleet:
    """The fleet, with the training operator in one member."""
    member = fleet.members["berlin"]
    demand(
        lambda _: operators.start(member.plane, member.client, operators.TRAINING), request.config
    )
    return fleet


async def found(hub: HubRig, name: str) -> Json:
    words = ("get", "pytorchjob", name, "--namespace=team", "-o", "json", "--show-managed-fields")
    told = await hub.kubectl("berlin", *words)
    body: Json = json.loads(told)
    return body


async def test_a_training_is_run_by_its_own_controller_and_its_status_is_read(
    operated: Fleet, tmp_path: Path
) -> None:
    async with hub_of(operated, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        await hub.apply(training("train", "sleep", "2"))
        await hub.until("train", "Running")
        words = ("get", "pods", "--namespace=team", "-o", "json")
        words += ("--selector=training.kubeflow.org/job-name=train",)
        pods = json.loads(await hub.kubectl("berlin", *words))["items"]
        assert sorted(pod["metadata"]["name"] for pod in pods) == [
            "train-master-0",
            "train-worker-0",
            "train-worker-1",
        ]
        assert all(pod["spec"]["nodeName"].startswith("a100-") for pod in pods)
        await hub.until("train", "Succeeded")
        body = await found(hub, "train")
        writers = [
            managed_field["manager"]
            for managed_field in body["metadata"]["managedFields"]
            if managed_field.get("subresource") == "status"
        ]
        assert writers == ["training-operator-v1.8.1"]
        kind = built_in().of(body)
        assert kind is not None
        assert kind.read(body).phase == "Succeeded"


async def test_a_training_that_fails_tells_the_controllers_own_reason(
    operated: Fleet, tmp_path: Path
) -> None:
    async with hub_of(operated, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        failing = training("fails", "sh", "-c", "sleep 0.2; exit 3")
        failing["spec"]["retry"] = {"limit": 0}
        await hub.apply(failing)
        failed = await hub.until("fails", "Failed")
        assert failed.status.history[-1].reason
        assert "PyTorchJob" in json.dumps((await found(hub, "fails"))["status"]["conditions"])


async def test_a_training_that_makes_way_is_stopped_and_begun_again_by_its_controller(
    operated: Fleet, tmp_path: Path
) -> None:
    async with hub_of(operated, tmp_path, "berlin", objects=basics(h100=0, l4=0, a100=3)) as hub:
        await hub.apply(training("first", "sleep", "600"))
        await hub.until("first", "Running")
        second = training("second", "sleep", "0.5")
        second["spec"]["priority"] = 100
        await hub.apply(second)  # takes the place of the first, whose pods its controller stops
        await hub.until("second", "Succeeded")
        await hub.until("first", "Running")


async def test_a_job_set_is_run_by_its_own_controller(
    fleet: Fleet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    member = fleet.members["berlin"]
    demand(lambda _: operators.start(member.plane, member.client, LATER_JOBSET), request.config)
    template = gang("any", "sleep", "1")["spec"]["template"]["manifests"][0]["spec"]
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "several"},
        "spec": {
            "replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": template}}]
        },
    }
    several = gang("several")
    several["spec"]["template"]["manifests"] = [job_set]
    async with hub_of(fleet, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        await hub.apply(several)
        await hub.until("several", "Running")
        words = ("get", "pods", "--namespace=team", "-o", "json")
        words += ("--selector=jobset.sigs.k8s.io/jobset-name=several",)
        pods = json.loads(await hub.kubectl("berlin", *words))["items"]
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["a100-0", "a100-1"]
        await hub.until("several", "Succeeded")
