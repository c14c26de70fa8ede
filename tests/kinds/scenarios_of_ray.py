"""What is played before Ray's operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kinds import ray
from tests.kinds.acts import (
    changes,
    counts,
    ends,
    holds_nothing,
    is_new,
    is_running,
    labelled,
    made,
    starts,
)
from tests.kinds.stage import Act, Json, Scenario, Stage
from tests.kubernetes.kubelet import Pod

_NODE = "ray.io/node-type"
_HEAD, _WORKER = labelled(_NODE, "head"), labelled(_NODE, "worker")
# Workers of the sample, some of which are two to a replica.
WORKERS = 5
# This version never calls a cluster ready that has several workers to a replica; here is one each.
_GROUP: Json = {
    "groupName": "gpu-group",
    "replicas": 2,
    "minReplicas": 1,
    "maxReplicas": 4,
    "rayStartParams": {},
    "template": {
        "spec": {"containers": [{"name": "ray-worker", "image": "example.com/ray/ray:2.46.0"}]}
    },
}
_PLAIN: Json = {"workerGroupSpecs": [_GROUP]}


def _runs(what: str, *, count: int, chosen: Callable[[Pod], bool], until: Any = None) -> Act:
    """Pods start and soon are ready, at the address where a head would answer."""

    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda item: is_new(item) and chosen(item), count):
            stage.kubelet.start(pod, ray.address())
        for pod in stage.wait_for(lambda item: is_running(item) and chosen(item), count):
            stage.kubelet.ready(pod)

    return Act(what=what, does=does, until=until or holds_nothing)


def _state(state: str) -> Callable[[Json], bool]:
    return lambda found: bool(found.get("state") == state)


_IS_READY = _runs("its workers are ready", count=2, chosen=_WORKER, until=_state("ready"))
_QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "compute"},
    "spec": {"hard": {"pods": "2"}},
}
RAY_CLUSTERS = (
    Scenario(
        name="becomes-ready",
        sample="raycluster.yaml",
        spec=_PLAIN,
        acts=(
            made(until=counts(desiredWorkerReplicas=2)),
            _runs("its head is ready", count=1, chosen=_HEAD),
            _IS_READY,
            ends("a worker fails", 1, count=1, chosen=_WORKER, until=counts(readyWorkerReplicas=1)),
            _runs(
                "the worker made anew is ready",
                count=1,
                chosen=_WORKER,
                until=counts(readyWorkerReplicas=2),
            ),
            ends("its head fails", 1, count=1, chosen=_HEAD),
        ),
    ),
    Scenario(
        name="has-several-hosts",
        sample="raycluster.yaml",
        acts=(
            made(until=counts(desiredWorkerReplicas=3)),
            _runs("its head is ready", count=1, chosen=_HEAD),
            _runs(
                "its workers are ready",
                count=WORKERS,
                chosen=_WORKER,
                until=counts(readyWorkerReplicas=WORKERS),
            ),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        sample="raycluster.yaml",
        spec={**_PLAIN, "suspend": True},
        acts=(
            made("created suspended", until=_state("suspended")),
            changes("resumed", suspend=False),
            _runs("its head is ready", count=1, chosen=_HEAD),
            _IS_READY,
            changes("suspended while it runs", suspend=True, until=_state("suspended")),
        ),
    ),
    Scenario(
        name="meets-a-quota",
        sample="raycluster.yaml",
        before=(_QUOTA,),
        acts=(made("created where two pods may be"),),
    ),
)


def _deployed(status: str) -> Callable[[Json], bool]:
    return lambda found: bool(found.get("jobDeploymentStatus") == status)


def _tells(what: str, status: str, message: str = "", until: Any = None) -> Act:
    """The head tells what became of the job."""

    def does(stage: Stage) -> None:
        identity = stage.found()["status"]["jobId"]
        ray.jobs[identity] = {"status": status, "message": message, "submission_id": identity}

    return Act(what=what, does=does, until=until or (lambda found: found["jobStatus"] == status))


_SUBMITTER = labelled("job-name", "sample")
_READY = (
    _runs("its head is ready", count=1, chosen=_HEAD),
    _runs("its workers are ready", count=2, chosen=_WORKER, until=_deployed("Running")),
    starts("its submitter starts", count=1, chosen=_SUBMITTER),
    _tells("the head knows of the job", "PENDING"),
    _tells("the job runs", "RUNNING", "Job is currently running."),
)
RAY_JOBS = (
    Scenario(
        name="succeeds",
        sample="rayjob.yaml",
        spec={"rayClusterSpec": _PLAIN},
        acts=(
            made(until=_deployed("Initializing")),
            *_READY,
            _tells("the job is done", "SUCCEEDED", "Job finished successfully."),
            ends("its submitter ends", count=1, chosen=_SUBMITTER, until=_deployed("Complete")),
        ),
    ),
    Scenario(
        name="fails",
        sample="rayjob.yaml",
        spec={"rayClusterSpec": _PLAIN},
        acts=(
            made(until=_deployed("Initializing")),
            *_READY,
            _tells("the job fails", "FAILED", "Job entrypoint command failed with exit code 1"),
            ends("its submitter ends", count=1, chosen=_SUBMITTER, until=_deployed("Failed")),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        sample="rayjob.yaml",
        spec={"rayClusterSpec": _PLAIN, "suspend": True},
        acts=(
            made("created suspended", until=_deployed("Suspended")),
            changes("resumed", suspend=False, until=_deployed("Initializing")),
            *_READY,
            changes("suspended while it runs", suspend=True, until=_deployed("Suspended")),
        ),
    ),
)


def _serves(what: str, status: str, message: str, until: Any = None) -> Act:
    """The head tells of its application."""

    def does(_stage: Stage) -> None:
        healthy = "HEALTHY" if status == "RUNNING" else "UPDATING"
        deployments = {"llm": {"name": "llm", "status": healthy, "message": ""}}
        ray.applications["chat"] = {
            "name": "chat",
            "route_prefix": "/",
            "status": status,
            "message": message,
            "deployments": deployments,
        }

    return Act(what=what, does=does, until=until or holds_nothing)


RAY_SERVICES = (
    Scenario(
        name="serves",
        sample="rayservice.yaml",
        spec={"rayClusterConfig": _PLAIN},
        acts=(
            made(),
            _runs("its head is ready", count=1, chosen=_HEAD),
            _serves("its application is put up", "DEPLOYING", ""),
            _runs("its workers are ready", count=2, chosen=_WORKER),
            _serves(
                "its application runs",
                "RUNNING",
                "",
                until=lambda found: found.get("numServeEndpoints", 0) > 0,
            ),
            _serves("its application is unwell", "UNHEALTHY", "replicas fail"),
        ),
    ),
)
RAY = (*RAY_CLUSTERS, *RAY_JOBS, *RAY_SERVICES)
