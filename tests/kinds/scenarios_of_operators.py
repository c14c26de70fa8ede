"""What is played before the controllers of other projects, beside those of training jobs."""

from __future__ import annotations

from tests.kinds.acts import changes, counts, ends, is_new, labelled, made, says, starts
from tests.kinds.stage import Act, Json, Scenario, Stage
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
