"""Controllers that statuses are recorded from or that `make peers` starts, and no other test."""

from __future__ import annotations

import dataclasses

from tests.kinds.operators import JOBSET, TRAINING, Json, Operator, configured

LWS = configured("lws", "lws.x-k8s.io", package="./cmd", webhooks="config/webhook/manifests.yaml")
MPI = Operator(
    name="mpi-operator",
    package="./cmd/mpi-operator",
    arguments=("-kubeConfig={kubeconfig}", "-lock-namespace=default", "-kube-api-qps=50"),
)
LATER_JOBSET = dataclasses.replace(JOBSET, name="jobset-later")
LATER_TRAINING = dataclasses.replace(TRAINING, name="training-operator-jax")
VOLCANO = Operator(
    name="volcano",
    package="./cmd/controller-manager",
    arguments=(
        "--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--logtostderr",
        "--controllers=+job-controller,+queue-controller,+pg-controller,+gc-controller",
    ),
    needs=(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "default"},
            "spec": {"weight": 1, "reclaimable": True},
        },
    ),
)


def _step(name: str, **spec: Json | int) -> Json:
    """A job of a runtime, whose pods play one step of a TrainJob."""
    container = {"name": name, "image": "registry.example/train:1"}
    step = "trainer" if name == "node" else name
    return {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}},
        "spec": {**spec, "template": {"spec": {"containers": [container]}}},
    }


TRAINER = Operator(
    name="trainer",
    package="./cmd/trainer-controller-manager",
    webhooks="manifests/base/webhook/manifests.yaml",
    asks={
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "asks"},
        "spec": {"template": {"spec": {}}},
    },
    arguments=("--health-probe-bind-address=0", "--webhook-server-port={port}"),
    certificates="k8s-webhook-server/serving-certs",
    is_mounted=True,
    beside=(JOBSET,),
    needs=(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow-system"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "kubeflow-trainer-webhook-cert", "namespace": "kubeflow-system"},
        },
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "torch-distributed"},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
                "template": {
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": "dataset-initializer",
                                "template": _step("dataset-initializer"),
                            },
                            {
                                "name": "node",
                                "dependsOn": [
                                    {"name": "dataset-initializer", "status": "Complete"}
                                ],
                                "template": _step("node", backoffLimit=0),
                            },
                        ]
                    }
                },
            },
        },
    ),
)
ARGO = Operator(
    name="argo-workflows",
    package="./cmd/workflow-controller",
    arguments=("--executor-image=registry.example/executor:1", "--namespace=default"),
    environment={"LEADER_ELECTION_DISABLE": "true"},
    needs=(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "workflow-controller-configmap", "namespace": "default"},
            "data": {"config": "metricsConfig: {enabled: false}\n"},
        },
    ),
)
KUBERAY = Operator(
    name="kuberay",
    package=".",
    arguments=(
        "--metrics-addr=0",
        "--health-probe-bind-address=0",
        "--enable-leader-election=false",
        "--use-kubernetes-proxy",
        "--feature-gates=RayClusterStatusConditions=true",
    ),
)
