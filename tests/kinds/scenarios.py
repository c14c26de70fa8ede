"""What is played before real controllers, to record the statuses that they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kinds.stage import Act, Json, Scenario, Stage
from tests.kubernetes.kubelet import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
Chosen = Callable[[Pod], bool]


def every(_pod: Pod) -> bool:
    return True


def index(*numbers: int) -> Chosen:
    return lambda pod: int(pod["metadata"]["annotations"].get(INDEX, "-1")) in numbers


def labelled(name: str, *values: str) -> Chosen:
    return lambda pod: pod["metadata"].get("labels", {}).get(name) in values


def is_new(pod: Pod) -> bool:
    return pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]


def is_running(pod: Pod) -> bool:
    return pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]


def starts(what: str, *, count: int, chosen: Chosen = every, until: Any = None) -> Act:
    """Pods that are new run, as soon as there are so many on nodes."""

    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda one: is_new(one) and chosen(one), count):
            stage.kubelet.start(pod)

    return Act(what=what, does=does, until=until or holds_nothing)


def gets_ready(what: str, *, count: int, chosen: Chosen = every, until: Any = None) -> Act:
    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda one: is_running(one) and chosen(one), count):
            stage.kubelet.ready(pod)

    return Act(what=what, does=does, until=until or holds_nothing)


def ends(
    what: str, exit_code: int = 0, *, count: int, chosen: Chosen = every, until: Any = None
) -> Act:
    """Pods that run end with an exit code."""

    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda one: is_running(one) and chosen(one), count):
            stage.kubelet.end(pod, exit_code)

    return Act(what=what, does=does, until=until or holds_nothing)


def made(what: str = "created", until: Any = None) -> Act:
    return Act(what=what, does=Stage.make, until=until or holds_nothing)


def changes(what: str, until: Any = None, **spec: Any) -> Act:
    return Act(what=what, does=lambda stage: stage.change(**spec), until=until or holds_nothing)


def waits(what: str, until: Any) -> Act:
    return Act(what=what, does=lambda _stage: None, until=until)


def holds_nothing(_status: Json) -> bool:
    return True


def says(kind: str, status: str = "True", reason: str = "") -> Callable[[Json], bool]:
    """Whether a condition has come to be so."""
    return lambda found: any(
        one["type"] == kind and one["status"] == status and reason in (one.get("reason"), "")
        for one in found.get("conditions", [])
    )


def counts(**numbers: int) -> Callable[[Json], bool]:
    return lambda found: all(found.get(name, 0) == number for name, number in numbers.items())


def claim(name: str) -> Json:
    """A volume claim, bound to the volume that waits for it."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }


TRAIN = {"sample": "job.yaml", "document": 0, "before": (claim("images"),)}
PI = {"sample": "job.yaml", "document": 1}
DRAIN = {"sample": "job.yaml", "document": 2}
SHARDS = {"sample": "job.yaml", "document": 3}
COMPLETE, FAILED = says("Complete"), says("Failed")

JOBS = (
    Scenario(
        name="succeeds",
        **TRAIN,
        acts=(
            made(until=counts(active=4)),
            starts("its pods start", count=4, until=counts(ready=4)),
            ends("two indexes complete", count=2, chosen=index(0, 3), until=counts(succeeded=2)),
            ends("the others complete", count=2, chosen=index(1, 2), until=COMPLETE),
        ),
    ),
    Scenario(
        name="fails",
        **TRAIN,
        acts=(
            made(until=counts(active=4)),
            starts("its pods start", count=4, until=counts(ready=4)),
            ends("one pod fails", 1, count=1, chosen=index(2), until=FAILED),
        ),
    ),
    Scenario(
        name="fails-after-a-retry",
        **PI,
        spec={"backoffLimit": 1},
        acts=(
            made(until=counts(active=2)),
            starts("its pods start", count=2, until=counts(ready=2)),
            ends("a pod fails", 1, count=1, until=counts(failed=1)),
            starts("the pod made anew starts", count=1, until=counts(ready=2)),
            ends("another pod fails", 1, count=1, until=FAILED),
        ),
    ),
    Scenario(
        name="runs-in-turns",
        **PI,
        acts=(
            made(until=counts(active=2)),
            starts("two pods start", count=2, until=counts(ready=2)),
            ends("two complete", count=2, until=counts(succeeded=2, active=2)),
            starts("two more start", count=2, until=counts(ready=2)),
            ends("two more complete", count=2, until=counts(succeeded=4, active=1)),
            starts("the last starts", count=1, until=counts(ready=1)),
            ends("the last completes", count=1, until=COMPLETE),
        ),
    ),
    Scenario(
        name="fails-by-policy",
        **SHARDS,
        acts=(
            made(until=counts(active=3)),
            starts("its pods start", count=3, until=counts(ready=3)),
            ends("an exit code that ends all", 42, count=1, chosen=index(1), until=FAILED),
        ),
    ),
    Scenario(
        name="fails-by-index",
        **SHARDS,
        acts=(
            made(until=counts(active=3)),
            starts("its pods start", count=3, until=counts(ready=3)),
            ends("an index fails", 1, count=1, chosen=index(1), until=counts(failed=1)),
            ends("the others complete", count=2, chosen=index(0, 2), until=counts(succeeded=2)),
            starts("the index is tried again", count=1, until=counts(ready=1)),
            ends("the index fails again", 1, count=1, chosen=index(1), until=FAILED),
        ),
    ),
    Scenario(
        name="fails-by-too-many-indexes",
        **SHARDS,
        spec={"maxFailedIndexes": 0},
        acts=(
            made(until=counts(active=3)),
            starts("its pods start", count=3, until=counts(ready=3)),
            ends("an index fails", 1, count=1, chosen=index(1), until=counts(failed=1)),
            starts("the index is tried again", count=1, until=counts(ready=3)),
            ends("the index fails again", 1, count=1, chosen=index(1), until=FAILED),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        **TRAIN,
        spec={"suspend": True},
        acts=(
            made("created suspended", until=says("Suspended")),
            changes("resumed", suspend=False, until=counts(active=4)),
            starts("its pods start", count=4, until=counts(ready=4)),
            ends("one index completes", count=1, chosen=index(0), until=counts(succeeded=1)),
            changes(
                "suspended while it runs",
                suspend=True,
                until=lambda status: says("Suspended")(status) and counts(terminating=0)(status),
            ),
            changes("resumed again", suspend=False, until=counts(active=3)),
            starts("its pods start again", count=3, until=counts(ready=3)),
            ends("all others complete", count=3, until=COMPLETE),
        ),
    ),
    Scenario(
        name="exceeds-its-deadline",
        **PI,
        spec={"activeDeadlineSeconds": 8},
        acts=(
            made(until=counts(active=2)),
            starts("its pods start", count=2, until=counts(ready=2)),
            waits("the deadline passes", FAILED),
        ),
    ),
    Scenario(
        name="drains-a-queue",
        **DRAIN,
        acts=(
            made(until=counts(active=3)),
            starts("its workers start", count=3, until=counts(ready=3)),
            ends("one worker finds the queue empty", count=1, until=counts(succeeded=1)),
            ends("the others too", count=2, until=COMPLETE),
        ),
    ),
    Scenario(
        name="succeeds-by-policy",
        **TRAIN,
        spec={"successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
        acts=(
            made(until=counts(active=4)),
            starts("its pods start", count=4, until=counts(ready=4)),
            ends("the index that counts completes", count=1, chosen=index(0), until=COMPLETE),
        ),
    ),
    Scenario(
        name="finds-no-node",
        **{**TRAIN, "before": ()},
        acts=(made("created, a volume claim is missing", until=counts(active=4)),),
    ),
)

_NEW = {"template": {"metadata": {"annotations": {"revision": "two"}}}}
ASSISTANT = {"sample": "deployment.yaml"}
READY3 = counts(readyReplicas=3, updatedReplicas=3, replicas=3)
QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few"},
    "spec": {"hard": {"pods": "1"}},
}

DEPLOYMENTS = (
    Scenario(
        name="rolls-out",
        **ASSISTANT,
        acts=(
            made(until=counts(replicas=3)),
            starts("its pods start", count=3),
            gets_ready("its pods are ready", count=3, until=READY3),
            changes("paused", paused=True, until=says("Progressing", "Unknown")),
            changes("no longer paused", paused=False, until=says("Progressing", "True")),
            changes("scaled to none", replicas=0, until=counts(replicas=0)),
        ),
    ),
    Scenario(
        name="updates",
        **ASSISTANT,
        spec={"minReadySeconds": 3},
        acts=(
            made(until=counts(replicas=3)),
            starts("its pods start", count=3),
            gets_ready("its pods are ready", count=3, until=counts(availableReplicas=3)),
            changes("a new template", until=counts(updatedReplicas=1), **_NEW),
            starts("the first new pod starts", count=1),
            gets_ready(
                "it is ready",
                count=1,
                chosen=lambda pod: "ready" not in _readiness(pod),
                until=counts(updatedReplicas=2),
            ),
            starts("the second new pod starts", count=1),
            gets_ready(
                "the second is ready",
                count=1,
                chosen=lambda pod: "ready" not in _readiness(pod),
                until=counts(updatedReplicas=3),
            ),
            starts("the last new pod starts", count=1),
            gets_ready(
                "the last is ready",
                count=1,
                chosen=lambda pod: "ready" not in _readiness(pod),
                until=lambda status: READY3(status) and counts(availableReplicas=3)(status),
            ),
        ),
    ),
    Scenario(
        name="gets-stuck",
        **ASSISTANT,
        spec={"progressDeadlineSeconds": 8},
        acts=(
            made(until=counts(replicas=3)),
            starts("its pods start and never get ready", count=3),
            waits("the deadline passes", says("Progressing", "False", "ProgressDeadlineExceeded")),
            gets_ready("its pods are ready after all", count=3, until=READY3),
        ),
    ),
    Scenario(
        name="meets-a-quota",
        **ASSISTANT,
        before=(QUOTA,),
        acts=(
            made(until=says("ReplicaFailure")),
            starts("the one that may be starts", count=1),
            gets_ready("it is ready", count=1, until=counts(readyReplicas=1)),
        ),
    ),
)


def _readiness(pod: Pod) -> str:
    return "ready" if pod["status"]["containerStatuses"][0]["ready"] else ""


STORE = {"sample": "statefulset.yaml"}
STATEFUL_SETS = (
    Scenario(
        name="rolls-out",
        **STORE,
        acts=(
            made(until=counts(replicas=1)),
            starts("the first starts", count=1, until=counts(replicas=2)),
            starts("the second starts", count=1, until=counts(replicas=3)),
            starts("the third starts", count=1, until=counts(readyReplicas=3)),
            changes("a new template", until=counts(updatedReplicas=1, readyReplicas=2), **_NEW),
            starts("the last is new", count=1, until=counts(updatedReplicas=2, readyReplicas=2)),
            starts("the middle one is new", count=1, until=counts(updatedReplicas=3)),
            starts("all are new", count=1, until=counts(readyReplicas=3)),
            changes("scaled to none", replicas=0, until=counts(replicas=0)),
        ),
    ),
)

_UNLABELLED = {"nodeSelector": {"accelerator": "none-has-this"}}


def _waits_for_image(stage: Stage) -> None:
    for pod in stage.wait_for(is_new, 1):
        stage.kubelet.wait(pod, "ImagePullBackOff", 'Back-off pulling image "notebook:7"')


PODS = (
    Scenario(
        name="succeeds",
        sample="pod.yaml",
        acts=(
            made(until=lambda status: "containerStatuses" in status),
            starts("its container starts", count=1),
            ends("it ends well", count=1),
        ),
    ),
    Scenario(
        name="fails",
        sample="pod.yaml",
        acts=(
            made(until=lambda status: "containerStatuses" in status),
            Act(what="its image cannot be pulled", does=_waits_for_image),
            starts("its container starts", count=1),
            ends("it ends badly", 2, count=1),
        ),
    ),
    Scenario(
        name="is-held",
        sample="pod.yaml",
        spec={"schedulingGates": [{"name": "fairway.dev/held"}]},
        acts=(
            made("created with a gate", until=says("PodScheduled", "False", "SchedulingGated")),
            changes(
                "the gate is lifted",
                schedulingGates=None,
                until=lambda status: "containerStatuses" in status,
            ),
        ),
    ),
    Scenario(
        name="finds-no-node",
        sample="pod.yaml",
        spec=_UNLABELLED,
        acts=(made(until=says("PodScheduled", "False", "Unschedulable")),),
    ),
)

ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
MESH = {"sample": "jobset.yaml", "document": 0}
PARAMETERS = {"sample": "jobset.yaml", "document": 1}
COMPLETED = says("Completed")


def _ready(**numbers: int) -> Callable[[Json], bool]:
    """Whether so many jobs of each role are ready."""
    return lambda found: all(
        one["ready"] == numbers.get(one["name"], one["ready"])
        for one in found.get("replicatedJobsStatus", [{"name": "", "ready": -1}])
    )


JOB_SETS = (
    Scenario(
        name="succeeds",
        **MESH,
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its driver starts", count=1, chosen=labelled(ROLE, "driver")),
            starts("its workers start", count=8, until=_ready(driver=1, workers=2)),
            ends("its workers complete", count=8, chosen=labelled(ROLE, "workers")),
            ends("its driver completes", count=1, until=COMPLETED),
        ),
    ),
    Scenario(
        name="restarts-and-fails",
        **MESH,
        spec={"failurePolicy": {"maxRestarts": 1}},
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its pods start", count=9, until=_ready(driver=1, workers=2)),
            ends(
                "a worker fails",
                1,
                count=1,
                chosen=labelled(ROLE, "workers"),
                until=counts(restarts=1),
            ),
            starts("its pods start again", count=9, until=_ready(driver=1, workers=2)),
            ends(
                "a worker fails again", 1, count=1, chosen=labelled(ROLE, "workers"), until=FAILED
            ),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        **MESH,
        spec={"suspend": True},
        acts=(
            made("created suspended", until=says("Suspended")),
            changes("resumed", suspend=False, until=says("Suspended", "False")),
            starts("its pods start", count=9, until=_ready(driver=1, workers=2)),
            changes("suspended while it runs", suspend=True, until=says("Suspended")),
        ),
    ),
    Scenario(
        name="succeeds-by-policy",
        **PARAMETERS,
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its pods start", count=7, until=_ready(server=1, worker=3)),
            ends("its workers complete", count=6, chosen=labelled(ROLE, "worker"), until=COMPLETED),
        ),
    ),
)

TRAINED_BY = "training.kubeflow.org/replica-type"
TRAINING = {"sample": "pytorchjob.yaml", "document": 0, "before": (claim("corpus"),)}


def _by_exit_code(role: str) -> Json:
    """A role whose pods are made anew where their exit code says that this may help."""
    return {"pytorchReplicaSpecs": {role: {"restartPolicy": "ExitCode"}}}


def _actives(**numbers: int) -> Callable[[Json], bool]:
    """Whether so many pods of each role are active."""
    return lambda found: all(
        found.get("replicaStatuses", {}).get(role, {}).get("active", 0) == number
        for role, number in numbers.items()
    )


TRAININGS = (
    Scenario(
        name="succeeds",
        **TRAINING,
        acts=(
            made(until=says("Created")),
            starts("its master starts", count=1, chosen=labelled(TRAINED_BY, "master")),
            starts("its workers start", count=3, until=_actives(Master=1, Worker=3)),
            ends("its workers complete", count=3, chosen=labelled(TRAINED_BY, "worker")),
            ends("its master completes", count=1, until=says("Succeeded")),
        ),
    ),
    Scenario(
        name="restarts-and-fails",
        **TRAINING,
        spec=_by_exit_code("Worker"),
        acts=(
            made(until=says("Created")),
            starts("its pods start", count=4, until=_actives(Master=1, Worker=3)),
            ends(
                "a worker is killed",
                137,
                count=1,
                chosen=labelled(TRAINED_BY, "worker"),
                until=_actives(Master=1, Worker=2),
            ),
            starts("the worker made anew starts", count=1, until=_actives(Master=1, Worker=3)),
            ends(
                "a worker fails for good",
                1,
                count=1,
                chosen=labelled(TRAINED_BY, "worker"),
                until=FAILED,
            ),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        **TRAINING,
        spec={"runPolicy": {"suspend": True}},
        acts=(
            made("created suspended", until=says("Suspended")),
            changes("resumed", runPolicy={"suspend": False}, until=says("Suspended", "False")),
            starts("its pods start", count=4, until=_actives(Master=1, Worker=3)),
            changes(
                "suspended while it runs", runPolicy={"suspend": True}, until=says("Suspended")
            ),
            changes(
                "resumed again", runPolicy={"suspend": False}, until=says("Suspended", "False")
            ),
            starts("its pods start again", count=4, until=_actives(Master=1, Worker=3)),
            ends("all complete", count=4, until=says("Succeeded")),
        ),
    ),
)

SCENARIOS = (*JOBS, *DEPLOYMENTS, *STATEFUL_SETS, *PODS)
