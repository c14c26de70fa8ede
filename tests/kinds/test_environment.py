"""Pods as the kinds' own controllers make them: names, hosts, variables, labels."""

from __future__ import annotations

from hashlib import sha1

from fairway.kinds.interface import Pod
from fairway.kinds.registry import built_in
from tests.kinds.recorded import samples

SAMPLES = {sample.name: sample.manifest for sample in samples()}


def pods(sample: str) -> list[Pod]:
    kind = built_in().of(SAMPLES[sample])
    assert kind is not None
    return list(kind.pods(SAMPLES[sample]))


def variables(pod: Pod) -> dict[str, str]:
    return {
        variable["name"]: variable.get("value", "")
        for variable in pod.spec["containers"][0].get("env", [])
    }


def test_an_indexed_job_tells_each_pod_its_index_and_gives_it_a_host_name() -> None:
    made = pods("job-train")
    assert [item.name for item in made] == ["train-0", "train-1", "train-2", "train-3"]
    last = made[-1]
    assert variables(last)["JOB_COMPLETION_INDEX"] == "3"
    assert last.spec["hostname"] == "train-3"
    assert last.labels["batch.kubernetes.io/job-completion-index"] == "3"
    assert last.annotations["batch.kubernetes.io/job-completion-index"] == "3"
    assert last.labels["job-name"] == "train"
    assert last.retries == 0


def test_a_job_makes_a_pod_for_each_completion() -> None:
    made = pods("job-pi")
    assert len(made) == 5
    assert "JOB_COMPLETION_INDEX" not in variables(made[0])
    assert made[0].retries == 6


def test_a_job_set_names_its_pods_within_its_service_and_marks_them() -> None:
    made = {pod.name: pod for pod in pods("jobset-pytorch")}
    assert len(made) == 9
    pod = made["pytorch-workers-1-2"]
    assert (pod.pod_set, pod.index) == ("workers", 6)
    assert (pod.spec["hostname"], pod.spec["subdomain"]) == ("pytorch-workers-1-2", "mesh")
    marks = {
        key.removeprefix("jobset.sigs.k8s.io/"): value
        for key, value in pod.labels.items()
        if key.startswith("jobset.sigs.k8s.io/")
    }
    assert marks == {
        "jobset-name": "pytorch",
        "replicatedjob-name": "workers",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "2",
        "job-key": sha1(b"vision/pytorch-workers-1").hexdigest(),
        "restart-attempt": "0",
        "coordinator": "pytorch-driver-0-0.mesh",
    }
    assert pod.annotations["jobset.sigs.k8s.io/restart-attempt"] == "0"
    assert pod.labels["batch.kubernetes.io/job-name"] == "pytorch-workers-1"


def test_a_job_set_without_a_subdomain_uses_its_own_name() -> None:
    (server, *_) = pods("jobset-parameters")
    assert server.spec["subdomain"] == "parameters"
    assert server.spec["restartPolicy"] == "OnFailure"


def test_a_stateful_set_counts_from_its_first_ordinal() -> None:
    made = pods("statefulset-store")
    assert [item.name for item in made] == ["store-1", "store-2", "store-3"]
    assert made[0].spec["subdomain"] == "store-peers"
    assert made[0].labels["apps.kubernetes.io/pod-index"] == "1"
    assert made[0].spec["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-store-1"}}
    ]


def test_a_leader_worker_set_tells_each_pod_its_leader() -> None:
    made = {pod.name: pod for pod in pods("leaderworkerset-vllm")}
    assert sorted(made) == sorted(
        ["vllm-0", "vllm-0-1", "vllm-0-2", "vllm-0-3", "vllm-1", "vllm-1-1", "vllm-1-2", "vllm-1-3"]
    )
    worker = made["vllm-1-2"]
    assert (worker.pod_set, worker.index) == ("worker", 4)
    assert variables(worker) == {
        "LWS_LEADER_ADDRESS": "vllm-1.vllm.serving",
        "LWS_GROUP_SIZE": "4",
        "LWS_WORKER_INDEX": "2",
    }
    assert worker.annotations["leaderworkerset.sigs.k8s.io/leader-name"] == "vllm-1"
    assert made["vllm-1"].labels["role"] == "leader"
    assert (made["vllm-1"].pod_set, made["vllm-1"].index) == ("leader", 1)


def test_volcano_tells_each_pod_of_the_others() -> None:
    made = {pod.name: pod for pod in pods("volcano-job-distributed")}
    worker = made["distributed-worker-2"]
    assert variables(worker) == {
        "VK_TASK_INDEX": "2",
        "VC_TASK_INDEX": "2",
        "VC_MASTER_HOSTS": "distributed-master-0.distributed",
        "VC_MASTER_NUM": "1",
        "VC_WORKER_HOSTS": ",".join(f"distributed-worker-{i}.distributed" for i in range(4)),
        "VC_WORKER_NUM": "4",
        "MASTER_ADDR": "distributed-master-0.distributed",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "5",
        "RANK": "3",
    }
    assert worker.spec["schedulerName"] == "volcano"
    assert worker.labels["volcano.sh/task-spec"] == "worker"
    assert variables(made["distributed-master-0"])["RANK"] == "0"


def test_volcano_gives_the_master_of_an_mpi_job_its_workers_and_every_pod_its_volumes() -> None:
    made = {pod.name: pod for pod in pods("volcano-job-mpi")}
    hosts = "mpi-mpiworker-0.mpi,mpi-mpiworker-1.mpi"
    assert variables(made["mpi-mpimaster-0"]) == {"MPI_HOST": hosts}
    assert variables(made["mpi-mpiworker-0"]) == {}
    (volume,) = made["mpi-mpiworker-0"].spec["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "shared-data"}
    (mount,) = made["mpi-mpiworker-0"].spec["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/data"
