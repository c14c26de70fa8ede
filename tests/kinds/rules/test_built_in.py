"""What the rules that come with Fairway say of their kinds, beyond what all kinds promise."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from fairway.api.amounts import Quantity
from fairway.api.meta import Toleration
from fairway.kinds.decision import Change, decorate
from fairway.kinds.interface import Pod
from fairway.kinds.rules import RuleKind, built_in_kinds
from tests.kinds.recorded import samples

KINDS: dict[str, RuleKind] = {kind.name: kind for kind in built_in_kinds()}
# The first sample of each kind.
SAMPLES: dict[str, dict[str, Any]] = {
    other.manifest["kind"]: other.manifest
    for other in reversed(samples())
    if other.manifest["kind"] in KINDS
}


def sample(kind: str) -> dict[str, Any]:
    return copy.deepcopy(SAMPLES[kind])


def pods(manifest: dict[str, Any]) -> dict[str, Pod]:
    return {pod.name: pod for pod in KINDS[manifest["kind"]].pods(manifest)}


def variables(pod: Pod) -> dict[str, str]:
    return {
        variable["name"]: variable.get("value", "")
        for variable in pod.spec["containers"][0].get("env", [])
    }


def requests(manifest: dict[str, Any]) -> dict[str, dict[str, str]]:
    found = KINDS[manifest["kind"]].pod_sets(manifest)
    return {
        item.name: {name: str(amount) for name, amount in item.requests.items()} for item in found
    }


ENVIRONMENT: dict[str, tuple[str, str, dict[str, str]]] = {
    "a PyTorch worker comes after the master": (
        "PyTorchJob",
        "sample-worker-1",
        {
            "MASTER_ADDR": "sample-master-0",
            "MASTER_PORT": "23456",
            "PET_MASTER_ADDR": "sample-master-0",
            "PET_MASTER_PORT": "23456",
            "WORLD_SIZE": "32",
            "RANK": "2",
            "PET_NODE_RANK": "2",
            "PET_NNODES": "4",
            "PET_NPROC_PER_NODE": "8",
            "PYTHONUNBUFFERED": "1",
        },
    ),
    "an XGBoost worker knows the master and all workers": (
        "XGBoostJob",
        "sample-worker-1",
        {
            "MASTER_ADDR": "sample-master-0",
            "MASTER_PORT": "9999",
            "WORLD_SIZE": "3",
            "RANK": "2",
            "WORKER_PORT": "9999",
            "WORKER_ADDRS": "sample-worker-0,sample-worker-1",
            "PYTHONUNBUFFERED": "1",
        },
    ),
    "Paddle's first worker is the master where there is none": (
        "PaddleJob",
        "sample-worker-1",
        {
            "PADDLE_JOB_ID": "sample",
            "PADDLE_NNODES": "2",
            "PADDLE_MASTER": "sample-worker-0:36543",
            "PYTHONUNBUFFERED": "1",
        },
    ),
    "JAX's first worker coordinates": (
        "JAXJob",
        "sample-worker-3",
        {
            "COORDINATOR_ADDRESS": "sample-worker-0",
            "COORDINATOR_PORT": "6666",
            "NUM_PROCESSES": "4",
            "PROCESS_ID": "3",
            "PYTHONUNBUFFERED": "1",
        },
    ),
    "a node of a TrainJob is told what torchrun asks for": (
        "TrainJob",
        "sample-node-0-2",
        {
            "EPOCHS": "3",
            "PET_NNODES": "4",
            "PET_NPROC_PER_NODE": "8",
            "PET_NODE_RANK": "2",
            "PET_MASTER_ADDR": "sample-node-0-0.sample",
            "PET_MASTER_PORT": "29400",
            "JOB_COMPLETION_INDEX": "2",
        },
    ),
    "a Ray worker finds the head by its service": (
        "RayCluster",
        "sample-gpu-group-worker-3",
        {
            "RAY_CLUSTER_NAME": "sample",
            "RAY_IP": "sample-head-svc",
            "FQ_RAY_IP": "sample-head-svc.team-a.svc.cluster.local",
            "RAY_PORT": "6379",
            "RAY_ADDRESS": "sample-head-svc.team-a.svc.cluster.local:6379",
            "RAY_USAGE_STATS_KUBERAY_IN_USE": "1",
        },
    ),
}


@pytest.mark.parametrize(("kind", "pod", "expected"), ENVIRONMENT.values(), ids=ENVIRONMENT)
def test_the_environment_of(kind: str, pod: str, expected: dict[str, str]) -> None:
    assert variables(pods(sample(kind))[pod]) == expected


def test_tensorflow_is_told_its_cluster_and_its_task() -> None:
    told = json.loads(variables(pods(sample("TFJob"))["sample-worker-2"])["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 2}
    assert told["environment"] == "cloud"
    assert sorted(told["cluster"]) == ["chief", "ps", "worker"]
    assert told["cluster"]["ps"] == [
        "sample-ps-0.team-a.svc:2222",
        "sample-ps-1.team-a.svc:2222",
    ]


def test_tensorflow_alone_needs_no_cluster() -> None:
    manifest = sample("TFJob")
    roles = manifest["spec"]["tfReplicaSpecs"]
    manifest["spec"]["tfReplicaSpecs"] = {"Worker": {**roles["Worker"], "replicas": 1}}
    assert variables(pods(manifest)["sample-worker-0"]) == {}


def test_mpirun_is_told_its_hosts_in_a_file() -> None:
    launcher = pods(sample("MPIJob"))["sample-launcher-0"]
    assert variables(launcher)["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
    assert json.loads(launcher.annotations["fairway.dev/files"]) == {
        "/etc/mpi/hostfile": "sample-worker-0.sample.team-a.svc slots=4\n"
        "sample-worker-1.sample.team-a.svc slots=4\n"
    }
    worker = pods(sample("MPIJob"))["sample-worker-1"]
    assert "fairway.dev/files" not in worker.annotations
    assert (worker.spec["hostname"], worker.spec["subdomain"]) == ("sample-worker-1", "sample")


def test_an_elastic_pytorch_job_meets_at_its_first_worker() -> None:
    manifest = sample("PyTorchJob")
    del manifest["spec"]["pytorchReplicaSpecs"]["Master"]
    manifest["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 3, "rdzvBackend": "c10d"}
    (worker,) = KINDS["PyTorchJob"].pod_sets(manifest)
    assert (worker.count, worker.least_count) == (3, 2)
    told = variables(pods(manifest)["sample-worker-1"])
    assert told["PET_RDZV_ENDPOINT"] == "sample-worker-0:23456"
    assert told["PET_NNODES"] == "2:3"
    assert "MASTER_ADDR" not in told
    assert "PET_NODE_RANK" not in told


def test_a_port_that_the_master_names_is_told_to_all() -> None:
    manifest = sample("PyTorchJob")
    master = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    ports = [{"name": "metrics", "containerPort": 1}]
    ports += [{"name": "pytorchjob-port", "containerPort": 29500}]
    master["containers"][0]["ports"] = ports
    assert variables(pods(manifest)["sample-worker-0"])["MASTER_PORT"] == "29500"


RESTARTS = {"OnFailure": "OnFailure", "Never": "Never", "ExitCode": "Never", "Always": "Always"}


@pytest.mark.parametrize(("policy", "expected"), RESTARTS.items())
def test_the_policy_of_a_role_becomes_that_of_its_pods(policy: str, expected: str) -> None:
    manifest = sample("PyTorchJob")
    manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    assert pods(manifest)["sample-worker-0"].spec["restartPolicy"] == expected


MEMORY: dict[str, tuple[dict[str, str], str, str]] = {
    "a tenth is beside the heap of a Java program": ({"memory": "10g"}, "Java", "11Gi"),
    "more is beside it of a Python program": ({"memory": "10g"}, "Python", "14Gi"),
    "never less than 384 MiB": ({"memory": "1g"}, "Scala", "1408Mi"),
    "what is given counts": ({"memory": "10g", "memoryOverhead": "2g"}, "Python", "12Gi"),
    "MiB where no unit is given": ({"memory": "512m", "memoryOverhead": "512"}, "Java", "1Gi"),
    "longer units are read too": ({"memory": "1GiB", "memoryOverhead": "1024MB"}, "Java", "2Gi"),
}


@pytest.mark.parametrize(("given", "language", "expected"), MEMORY.values(), ids=MEMORY)
def test_memory_of_a_spark_executor(given: dict[str, str], language: str, expected: str) -> None:
    manifest = sample("SparkApplication")
    executor = manifest["spec"]["executor"]
    for key in ("memory", "memoryOverhead"):
        executor.pop(key, None)
    executor.update(given)
    manifest["spec"]["type"] = language
    (found,) = [
        pod_set.requests["memory"].nanos
        for pod_set in KINDS["SparkApplication"].pod_sets(manifest)
        if pod_set.name == "executor"
    ]
    assert found == Quantity.of(expected).nanos


def test_steps_of_a_workflow_ask_for_the_largest_of_each_resource() -> None:
    assert requests(sample("Workflow")) == {
        "step": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    }


def test_a_multi_host_ray_group_stays_whole() -> None:
    sets = {pod_set.name: pod_set for pod_set in KINDS["RayCluster"].pod_sets(sample("RayCluster"))}
    group = sets["gpu-group"]
    assert (group.count, group.least_count, group.member_size) == (4, 2, 2)
    fewer = KINDS["RayCluster"].with_counts(sample("RayCluster"), {"gpu-group": 2})
    assert fewer["spec"]["workerGroupSpecs"][0]["replicas"] == 1
    assert (
        fewer["spec"]["workerGroupSpecs"][1] == sample("RayCluster")["spec"]["workerGroupSpecs"][1]
    )


def test_without_its_autoscaler_a_ray_cluster_needs_all_its_workers() -> None:
    manifest = sample("RayCluster")
    manifest["spec"]["enableInTreeAutoscaling"] = False
    assert [pod_set.least_count for pod_set in KINDS["RayCluster"].pod_sets(manifest)] == [None] * 3


def test_a_ray_job_that_is_submitted_over_http_has_no_submitter() -> None:
    manifest = sample("RayJob")
    manifest["spec"]["submissionMode"] = "HTTPMode"
    names = [pod_set.name for pod_set in KINDS["RayJob"].pod_sets(manifest)]
    assert names == ["head", "gpu-group", "cpu-group"]


CHANGE = Change(
    node_selector={"fairway.dev/flavor": "h100"},
    labels={"fairway.dev/work": "w"},
    tolerations=(Toleration(key="gpu", operator="Exists"),),
)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_decision_reaches_the_pods_of_every_kind(kind: RuleKind) -> None:
    manifest = sample(kind.name)
    sets = kind.pod_sets(manifest)
    decided = decorate(kind, manifest, {set_.name: CHANGE for set_ in sets})
    for pod_set in kind.pod_sets(decided):
        assert pod_set.node_selector["fairway.dev/flavor"] == "h100"
        assert pod_set.tolerations
    for pod in kind.pods(decided):
        assert pod.labels["fairway.dev/work"] == "w"
        assert pod.spec["nodeSelector"]["fairway.dev/flavor"] == "h100"
    assert requests(decided) == requests(manifest)


def test_the_decision_on_a_train_job_is_a_patch_of_its_runtime() -> None:
    decided = decorate(KINDS["TrainJob"], sample("TrainJob"), {"node": CHANGE})
    (patch,) = decided["spec"]["runtimePatches"]
    assert patch["manager"] == "fairway.dev/agent"
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    pod = job["template"]["spec"]["template"]
    assert pod["metadata"]["labels"] == {"fairway.dev/work": "w"}
    assert pod["spec"]["nodeSelector"] == {"fairway.dev/flavor": "h100"}


def test_the_submitter_of_a_ray_job_gets_the_template_that_its_controller_would_use() -> None:
    decided = decorate(KINDS["RayJob"], sample("RayJob"), {"submitter": CHANGE})
    template = decided["spec"]["submitterPodTemplate"]
    assert template["spec"]["containers"][0]["image"] == "example.com/ray/ray:2.46.0"
    assert template["spec"]["nodeSelector"] == {"fairway.dev/flavor": "h100"}


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a job without roles": ("JAXJob", {"jaxReplicaSpecs": {}}, "spec.jaxReplicaSpecs: at least"),
    "a number that is none": (
        "JAXJob",
        {"jaxReplicaSpecs": {"Worker": {"replicas": -1, "template": {}}}},
        "spec.jaxReplicaSpecs.Worker.replicas: must be a whole number",
    ),
    "no containers": (
        "JAXJob",
        {"jaxReplicaSpecs": {"Worker": {"template": {"spec": {}}}}},
        "spec.jaxReplicaSpecs.Worker.template.spec.containers: a pod needs",
    ),
    "a cluster without a head": ("RayCluster", {}, "spec.headGroupSpec: is required"),
    "a job in somebody's cluster": (
        "RayJob",
        {**SAMPLES["RayJob"]["spec"], "clusterSelector": {"ray.io/cluster": "shared"}},
        "spec.clusterSelector: a job in a cluster that is there already",
    ),
    "an unknown runtime": ("TrainJob", {"trainer": {}}, "spec.runtimeRef.name: the runtime"),
    "steps that are elsewhere": (
        "Workflow",
        {"workflowTemplateRef": {"name": "pipeline"}},
        "spec.workflowTemplateRef: a workflow from a template",
    ),
    "memory that cannot be read": (
        "SparkApplication",
        {"driver": {"memory": "much"}, "executor": {}},
        "spec.podSets[0].pod.spec.containers",
    ),
}


@pytest.mark.parametrize(("kind", "spec", "said"), FAULTS.values(), ids=FAULTS)
def test_a_manifest_that_cannot_be_run_says_why(kind: str, spec: dict[str, Any], said: str) -> None:
    (fault, *_) = KINDS[kind].faults({**sample(kind), "spec": spec})
    assert fault.startswith(said)


def test_ready_copies_of_an_inference_service_add_up() -> None:
    kind, manifest = KINDS["InferenceService"], sample("InferenceService")
    part = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "modelStatus": {"copies": {"totalCopies": 2, "failedCopies": 0}},
    }
    merged = kind.merge(manifest, {"east": part, "west": part})
    assert kind.read({**manifest, "status": merged}).ready == 4


def test_what_only_its_controller_can_run_says_so() -> None:
    told = {
        kind.name
        for kind in KINDS.values()
        for pod in kind.pods(sample(kind.name))
        if "fairway.dev/needs-controller" in pod.annotations
    }
    assert told == {
        "InferenceService", "MPIJob", "RayCluster", "RayJob", "RayService",
        "SparkApplication", "Workflow",
    }  # fmt: skip
