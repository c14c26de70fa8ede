"""What the demo fleet runs while the browser looks at it; nothing of it ends by itself."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def job(name: str, *, team: str, pods: int, gpus: int = 8, flavor: str = "h100") -> Object:
    """A training job of some pods, all together or not at all."""
    container = {
        "name": "main",
        "image": "training",
        "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": gpus}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": f"team-{team}"},
        "spec": {
            "queue": team,
            "flavors": [flavor],
            "policy": "home-only",
            "runSeconds": {"estimate": 36_000},
            "template": {"manifests": [manifest]},
        },
    }


def service(name: str, replicas: int) -> Object:
    """Replicas of a server."""
    container = {
        "name": "main",
        "image": "serving",
        "resources": {"limits": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": 1}},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team-serving"},
        "spec": {
            "queue": "serving",
            "priority": 1000,
            "mode": "Divided",
            "replicas": replicas,
            "flavors": ["a100", "l40s"],
            "template": {"manifests": [manifest]},
        },
    }


def process(name: str) -> Object:
    """A program on this machine that writes a line and goes on."""
    command = ["/bin/sh", "-c", "echo the first line; sleep 36000"]
    container = {
        "name": "main",
        "image": "none",
        "command": command,
        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
    }
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queue": "playground",
            "policy": "this-machine",
            "template": {"manifests": [manifest]},
        },
    }


def many_pods(name: str, pods: int) -> Object:
    """A gang of pods that ask for little and hold no GPUs."""
    found = job(name, team="research", pods=pods)
    del found["spec"]["flavors"]
    (container,) = _pod_spec(found)["containers"]
    container["resources"] = {"limits": {"cpu": "100m", "memory": "64Mi"}}
    return found


def talkers(name: str, pods: int) -> Object:
    """Programs on this machine that never stop counting; each says which it is, in two voices."""
    found = process(name)
    manifest = found["spec"]["template"]["manifests"][0]
    manifest["spec"] |= {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    count = "i=0; while true; do i=$((i+1)); echo count $i; sleep 0.2; done"
    spec = _pod_spec(found)
    (main,) = spec["containers"]
    main["command"] = ["/bin/sh", "-c", f"echo I am $JOB_COMPLETION_INDEX; {count}"]
    aside = {**main, "name": "aside", "command": ["/bin/sh", "-c", "echo an aside; sleep 36000"]}
    spec["containers"] = [main, aside]
    return found


def _pod_spec(workload: Object) -> Object:
    found: Object = workload["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]
    return found


WORKLOADS: list[Object] = [
    service("assistant", 6),
    job("pretrain", team="research", pods=2),
    job("finetune", team="product", pods=2),
    job("too-large", team="research", pods=3),
    job("queued-last", team="research", pods=3),
    job("evaluate", team="research", pods=1, flavor="a100", gpus=4),
    process("hello"),
]
