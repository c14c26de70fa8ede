"""What happens in scenarios: pods start and end, objects change, statuses come to say something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kinds.stage import Act, Json, Stage
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
        for pod in stage.wait_for(lambda item: is_new(item) and chosen(item), count):
            stage.kubelet.start(pod)

    return Act(what=what, does=does, until=until or holds_nothing)


def gets_ready(what: str, *, count: int, chosen: Chosen = every, until: Any = None) -> Act:
    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda item: is_running(item) and chosen(item), count):
            stage.kubelet.ready(pod)

    return Act(what=what, does=does, until=until or holds_nothing)


def ends(
    what: str, exit_code: int = 0, *, count: int, chosen: Chosen = every, until: Any = None
) -> Act:
    """Pods that run end with an exit code."""

    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda item: is_running(item) and chosen(item), count):
            stage.kubelet.end(pod, exit_code)

    return Act(what=what, does=does, until=until or holds_nothing)


def evicted(what: str, *, count: int, chosen: Chosen = every, until: Any = None) -> Act:
    """Pods that run are ended by their node, which lacks something."""

    def does(stage: Stage) -> None:
        for pod in stage.wait_for(lambda item: is_running(item) and chosen(item), count):
            stage.kubelet.evict(pod)

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
        condition["type"] == kind
        and condition["status"] == status
        and reason in (condition.get("reason"), "")
        for condition in found.get("conditions", [])
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


COMPLETE, FAILED = says("Complete"), says("Failed")
