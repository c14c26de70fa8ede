"""Native objects that name a queue are workloads by themselves."""

from __future__ import annotations

import pytest

from fairway.view.objects import Objects

NOW = 1_800_000_000.0
CONTAINER = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 2}}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "vision",
        "labels": {"fairway.dev/queue": "research"},
    },
    "spec": {
        "parallelism": 4,
        "template": {"spec": {"priorityClassName": "high", "containers": [CONTAINER]}},
    },
}
SERVICE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"kueue.x-k8s.io/queue-name": "serving"}},
    "spec": {"replicas": 3, "template": {"spec": {"containers": [CONTAINER]}}},
}


def workload(*plain: dict):
    facts = Objects.of(plain).facts(NOW)
    (found,) = facts.workloads.values()
    return found


def test_a_job_is_a_gang_of_its_pods_with_the_priority_of_its_class() -> None:
    classes = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    found = workload(classes, JOB)
    (pods,) = found.forms[0].pod_sets
    assert (found.key, found.queue, found.mode) == ("vision/train", "research", "Gang")
    assert (pods.count, pods.shape.requests) == (4, (("nvidia.com/gpu", 2000),))
    assert found.priority == 1000
    assert found.kinds == ("batch/v1/Job",)


def test_a_deployment_is_divided_by_its_replicas() -> None:
    found = workload(SERVICE)
    (pods,) = found.forms[0].pod_sets
    assert (found.key, found.queue, found.mode) == ("default/web", "serving", "Divided")
    assert (found.replicas, pods.count) == (3, 1)


@pytest.mark.parametrize(
    "plain",
    [
        {**JOB, "metadata": {"name": "train"}},
        {**JOB, "apiVersion": "batch/v2"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    ],
    ids=["without a queue", "of a kind not known", "that runs nothing"],
)
def test_an_object_is_no_workload(plain: dict) -> None:
    assert Objects.of([plain]).facts(NOW).workloads == {}


def test_init_containers_and_sidecars_count_as_kubernetes_counts_them() -> None:
    pod = {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "init", "resources": {"requests": {"cpu": "3"}}},
        ],
        "overhead": {"cpu": "250m"},
    }
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"fairway.dev/queue": "q"}},
        "spec": pod,
    }
    (pods,) = workload(plain).forms[0].pod_sets
    assert pods.shape.requests == (("cpu", 4250),)


def test_an_object_and_the_workload_that_stands_for_it_count_once() -> None:
    source = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "namespace": "vision"}
    own = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "vision"},
        "spec": {"queue": "research", "source": source, "template": {"manifests": [JOB]}},
    }
    for order in ((own, JOB), (JOB, own)):
        assert list(Objects.of(order).facts(NOW).workloads) == ["vision/job-train"]
