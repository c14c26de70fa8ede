"""Controllers that statuses are recorded from, and that no test starts."""

from __future__ import annotations

import dataclasses

from tests.kinds.operators import TRAINING, Json, Operator

_POD: Json = {"containers": [{"name": "asks", "image": "registry.example/asks:1"}]}

LWS = Operator(
    name="lws",
    package="./cmd",
    webhooks="config/webhook/manifests.yaml",
    asks={
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": _POD,
    },
    arguments=("--config={folder}/settings.yaml",),
    settings={
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {
            "port": "{port}",
            "host": "127.0.0.1",
            "certDir": "{folder}/certificates",
        },
    },
)
MPI = Operator(
    name="mpi-operator",
    package="./cmd/mpi-operator",
    arguments=("-kubeConfig={kubeconfig}", "-lock-namespace=default", "-kube-api-qps=50"),
)
LATER_TRAINING = dataclasses.replace(TRAINING, name="training-operator-jax")
