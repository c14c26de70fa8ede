"""What is played before the controllers of Kubernetes, to record the statuses that they write."""

from __future__ import annotations

from tests.kinds.acts import (
    COMPLETE,
    FAILED,
    changes,
    claim,
    counts,
    ends,
    gets_ready,
    index,
    is_new,
    made,
    says,
    starts,
    waits,
)
from tests.kinds.stage import Act, Json, Scenario, Stage
from tests.kubernetes.kubelet import Pod

TRAIN = {"sample": "job.yaml", "document": 0, "before": (claim("images"),)}
PI = {"sample": "job.yaml", "document": 1}
DRAIN = {"sample": "job.yaml", "document": 2}
SHARDS = {"sample": "job.yaml", "document": 3}

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

SCENARIOS = (*JOBS, *DEPLOYMENTS, *STATEFUL_SETS, *PODS)
