"""What is played before the controllers of other projects, beside those of training jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairway.client import Scope
from tests.kinds.acts import (
    changes,
    counts,
    ends,
    is_new,
    is_running,
    labelled,
    made,
    says,
    starts,
)
from tests.kinds.stage import ACT_SECONDS_MAX, Act, Json, Scenario, Stage
from tests.kubernetes.kubelet import Pod

GROUP = "leaderworkerset.sigs.k8s.io/group-index"
PLACE = "leaderworkerset.sigs.k8s.io/worker-index"
VLLM: Json = {"sample": "leaderworkerset.yaml", "document": 0}
_AVAILABLE = says("Available")


def _image_of_worker(version: str) -> Json:
    """A new template of the workers, whole, since no merge goes into a list."""
    container = {
        "name": "worker",
        "image": f"registry.example/llm/vllm:{version}",
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    return {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [container]}}}}


def _cannot_pull(stage: Stage) -> None:
    for pod in stage.wait_for(is_new, 2):
        stage.kubelet.wait(pod, "ImagePullBackOff", "Back-off pulling image")


def _group(number: int) -> tuple[Act, ...]:
    """A group whose leader starts, and then its workers."""
    chosen = labelled(GROUP, str(number))
    return (
        starts(f"the leader of group {number} starts", count=1, chosen=chosen),
        starts(
            f"the workers of group {number} start",
            count=3,
            chosen=chosen,
            until=counts(readyReplicas=number + 1),
        ),
    )


LEADER_WORKER_SETS = (
    Scenario(
        name="rolls-out",
        **VLLM,
        acts=(
            made(until=counts(replicas=2)),
            *_group(0),
            *_group(1),
            changes("scaled to three groups", replicas=3, until=counts(replicas=3)),
            *_group(2),
            changes("scaled to none", replicas=0, until=counts(replicas=0, readyReplicas=0)),
        ),
    ),
    Scenario(
        name="updates",
        **VLLM,
        acts=(
            made(until=counts(replicas=2)),
            starts("its pods start", count=8, until=_AVAILABLE),
            changes("a new template", until=counts(readyReplicas=1), **_image_of_worker("0.9")),
            starts("the last group is new", count=4, until=counts(readyReplicas=1)),
            starts("all groups are new", count=4, until=counts(readyReplicas=2, updatedReplicas=2)),
        ),
    ),
    Scenario(
        name="gets-stuck",
        **VLLM,
        acts=(
            made(until=counts(replicas=2)),
            Act(what="an image cannot be pulled", does=_cannot_pull),
            starts("its pods start after all", count=8, until=_AVAILABLE),
            ends(
                "a worker fails",
                1,
                count=1,
                chosen=lambda pod: _is_at(pod, group=1, place=2),
                until=counts(readyReplicas=1),
            ),
            starts("its group is made anew", count=4, until=_AVAILABLE),
        ),
    ),
)


def _is_at(pod: Pod, *, group: int, place: int) -> bool:
    return labelled(GROUP, str(group))(pod) and labelled(PLACE, str(place))(pod)


# Its controllers run without its scheduler: that of Kubernetes places the pods, and an act lets
# the pod group in, without which no pods are made. Retries are as its webhook defaults them.
DISTRIBUTED: Json = {"sample": "volcano-job.yaml", "document": 0}
_PLACED: Json = {"schedulerName": "default-scheduler", "maxRetry": 3}
_TASK = "volcano.sh/task-spec"
_MASTER, _WORKERS = labelled(_TASK, "master"), labelled(_TASK, "worker")


def _state(phase: str) -> Callable[[Json], bool]:
    return lambda found: bool(found.get("state", {}).get("phase") == phase)


def _let_in(stage: Stage) -> None:
    """What Volcano's scheduler says of a pod group that finds room."""
    until = time.monotonic() + ACT_SECONDS_MAX
    while time.monotonic() < until:
        groups = stage.client.list(_POD_GROUPS, scope=Scope(namespace=stage.namespace)).items
        waiting = [group for group in groups if group.get("status", {}).get("phase") != "Inqueue"]
        for item in waiting:
            name, status = item["metadata"]["name"], {"status": {"phase": "Inqueue"}}
            stage.client.patch(_POD_GROUPS, name, status, namespace=stage.namespace)
        if waiting:
            return
        time.sleep(0.2)
    raise TimeoutError("there is no pod group to let in")


def _lets_in(what: str) -> Act:
    return Act(what=what, does=_let_in, until=counts(pending=5))


def _commanded(action: str) -> Callable[[Stage], object]:
    """What Volcano's command line does to suspend and to resume a job."""

    def does(stage: Stage) -> None:
        found = stage.found()
        stage.client.create(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"generateName": "distributed-", "namespace": stage.namespace},
                "action": action,
                "target": {
                    "apiVersion": found["apiVersion"],
                    "kind": found["kind"],
                    "name": found["metadata"]["name"],
                    "uid": found["metadata"]["uid"],
                    "controller": True,
                },
            }
        )

    return does


def _policed(action: str) -> Json:
    """What is done with the job once a pod of it fails."""
    return {**_PLACED, "policies": [{"event": "PodFailed", "action": action}]}


_POD_GROUPS = "podgroups.scheduling.volcano.sh"
_RUNS = (
    made(until=_state("Pending")),
    _lets_in("its pod group is let in"),
    starts("its pods start", count=5, until=counts(running=5)),
)
VOLCANO_JOBS = (
    Scenario(
        name="succeeds",
        **DISTRIBUTED,
        spec=_PLACED,
        acts=(
            made(until=_state("Pending")),
            _lets_in("its pod group is let in"),
            starts("its master starts", count=1, chosen=_MASTER, until=counts(running=1)),
            starts("as many run as it needs", count=2, until=_state("Running")),
            starts("all run", count=2, until=counts(running=5)),
            ends("a worker completes", count=1, chosen=_WORKERS, until=counts(succeeded=1)),
            ends("its master completes", count=1, chosen=_MASTER, until=_state("Completed")),
        ),
    ),
    Scenario(
        name="fails",
        **DISTRIBUTED,
        spec=_PLACED,
        acts=(
            *_RUNS,
            ends("its workers fail", 1, count=4, chosen=_WORKERS, until=counts(failed=4)),
            ends("its master fails", 1, count=1, chosen=_MASTER, until=_state("Failed")),
        ),
    ),
    Scenario(
        name="restarts-and-fails",
        **DISTRIBUTED,
        spec={**_policed("RestartJob"), "maxRetry": 2},
        acts=(
            *_RUNS,
            ends("a worker fails", 1, count=1, chosen=_WORKERS, until=_state("Pending")),
            _lets_in("its pod group is let in again"),
            starts("its pods start again", count=5, until=counts(running=5)),
            ends("a worker fails again", 1, count=1, chosen=_WORKERS, until=_state("Failed")),
        ),
    ),
    Scenario(
        name="is-ended-by-policy",
        **DISTRIBUTED,
        spec=_policed("TerminateJob"),
        acts=(
            *_RUNS,
            ends("a worker fails", 1, count=1, chosen=_WORKERS, until=_state("Terminated")),
        ),
    ),
    Scenario(
        name="is-aborted-and-resumed",
        **DISTRIBUTED,
        spec=_PLACED,
        acts=(
            *_RUNS,
            Act(
                what="aborted by a command",
                does=_commanded("AbortJob"),
                until=_state("Aborted"),
            ),
            Act(
                what="resumed by a command",
                does=_commanded("ResumeJob"),
                until=_state("Pending"),
            ),
            _lets_in("its pod group is let in again"),
            starts("its pods start again", count=5, until=counts(running=5)),
        ),
    ),
)


# What its executor tells of each step, in a container beside it, is played as the steps are.
_STEP = "workflows.argoproj.io/node-name"


def _is_step(*names: str) -> Callable[[Pod], bool]:
    return lambda pod: pod["metadata"]["annotations"].get(_STEP) in {f"sample.{n}" for n in names}


def _does_step(what: str, *names: str, exit_code: int = 0, until: Any) -> Act:
    """Steps end, and their executors report that there is no more to come."""

    def does(stage: Stage) -> None:
        chosen = _is_step(*names)
        for pod in stage.wait_for(lambda item: is_running(item) and chosen(item), len(names)):
            metadata = pod["metadata"]
            stage.client.create(
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "WorkflowTaskResult",
                    "metadata": {
                        "name": metadata["annotations"]["workflows.argoproj.io/node-id"],
                        "namespace": stage.namespace,
                        "labels": {
                            "workflows.argoproj.io/workflow": "sample",
                            "workflows.argoproj.io/report-outputs-completed": "true",
                        },
                    },
                }
            )
            stage.kubelet.end(pod, exit_code)

    return Act(what=what, does=does, until=until)


def _phase(phase: str) -> Callable[[Json], bool]:
    return lambda found: bool(found.get("phase") == phase)


def _has_steps(phase: str, count: int) -> Callable[[Json], bool]:
    """Whether so many steps are in a phase; the controller looks at its pods now and then."""
    return lambda found: (
        count
        == sum(
            node["type"] == "Pod" and node["phase"] == phase
            for node in found.get("nodes", {}).values()
        )
    )


def _reached(progress: str) -> Callable[[Json], bool]:
    return lambda found: bool(found.get("progress") == progress)


WORKFLOWS = (
    Scenario(
        name="succeeds",
        sample="workflow.yaml",
        acts=(
            made(until=_phase("Running")),
            starts("its first step starts", count=1, until=_has_steps("Running", 1)),
            _does_step("its first step is done", "prepare", until=_reached("1/3")),
            starts("two steps run side by side", count=2, until=_has_steps("Running", 2)),
            _does_step("one is done", "left", until=_reached("2/3")),
            _does_step("all are done", "right", until=_phase("Succeeded")),
        ),
    ),
    Scenario(
        name="fails",
        sample="workflow.yaml",
        acts=(
            made(until=_phase("Running")),
            starts("its first step starts", count=1, until=_has_steps("Running", 1)),
            _does_step("its first step is done", "prepare", until=_reached("1/3")),
            starts("two steps run side by side", count=2, until=_has_steps("Running", 2)),
            _does_step("one fails", "left", exit_code=1, until=_has_steps("Failed", 1)),
            _does_step("the other is done", "right", until=_phase("Failed")),
        ),
    ),
    Scenario(
        name="is-held",
        sample="workflow.yaml",
        spec={"suspend": True},
        acts=(
            made("created suspended"),
            changes("resumed", suspend=False, until=_phase("Running")),
            starts("its first step starts", count=1, until=_has_steps("Running", 1)),
            changes("suspended while a step runs", suspend=True),
            _does_step("the step is done", "prepare", until=_reached("1/1")),
            changes("resumed again", suspend=False, until=_reached("1/3")),
            starts("two steps run side by side", count=2, until=_has_steps("Running", 2)),
            _does_step("all are done", "left", "right", until=_phase("Succeeded")),
        ),
    ),
    Scenario(
        name="is-refused",
        sample="workflow.yaml",
        spec={"entrypoint": "nothing"},
        acts=(made("created", until=lambda found: "message" in found),),
    ),
)
