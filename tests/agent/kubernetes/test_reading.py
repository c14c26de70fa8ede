"""What is kept of nodes and pods, read from their JSON as a server sends it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.accelerators import Accelerators, accelerators_of
from fairway.agent.drivers.kubernetes.nodes import ReadNode
from fairway.agent.drivers.kubernetes.picture import Picture, Trouble
from fairway.agent.drivers.kubernetes.pods import NO_USE, OwnPod, ReadPod, Use
from fairway.agent.drivers.kubernetes.works import Works
from fairway.api.amounts import NANO
from fairway.api.meta import Taint
from fairway.clock import parse_timestamp
from fairway.controllers.lifecycle.recovery import Failure, cause_of
from fairway.kinds.registry import built_in
from tests.controllers.test_causes import SAMPLES, sample

Json = dict[str, Any]
OURS = {
    "fairway.dev/cluster": "here",
    "fairway.dev/work": "team.train",
    "fairway.dev/attempt": "2",
    "fairway.dev/pod-set": "worker",
}


def text(body: Json) -> bytes:
    return json.dumps(body).encode()


def pod(
    phase: str = "Running",
    *,
    labels: Json | None = None,
    node: str = "n1",
    metadata: Json | None = None,
    requests: Json | None = None,
    **status: Any,
) -> Json:
    spec: Json = {
        "containers": [{"name": "main", "resources": {"requests": requests or {"cpu": "2"}}}]
    }
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {
            "name": "p",
            "namespace": "team",
            "uid": "u",
            "creationTimestamp": "2026-11-15T08:00:00Z",
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": spec,
        "status": {"phase": phase, **status},
    }


NODE_AT = "2026-11-15T08:00:03Z"


def own(body: Json) -> OwnPod:
    read = ReadPod("here")(text(body))
    assert isinstance(read, OwnPod)
    return read


class TestPods:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            pytest.param(pod(), {"cpu": 2 * NANO, "pods": NANO}, id="one that runs"),
            pytest.param(pod("Pending"), {"cpu": 2 * NANO, "pods": NANO}, id="one that starts"),
            pytest.param(pod("Pending", node=""), {}, id="one without a node takes nothing"),
            pytest.param(
                pod("Pending", node="", nominatedNodeName="n1"),
                {"cpu": 2 * NANO, "pods": NANO},
                id="one that displaced others has its place already",
            ),
            pytest.param(pod("Succeeded"), {}, id="one that succeeded takes nothing"),
            pytest.param(pod("Failed"), {}, id="one that failed takes nothing"),
            pytest.param(
                pod(metadata={"deletionTimestamp": "2026-11-15T08:01:00Z"}),
                {"cpu": 2 * NANO, "pods": NANO},
                id="one that ends takes all until it is gone",
            ),
            pytest.param(
                pod(labels={**OURS, "fairway.dev/cluster": "there"}),
                {"cpu": 2 * NANO, "pods": NANO},
                id="one of another fleet is somebody else's",
            ),
        ],
    )
    def test_of_others_only_what_they_take_is_kept(self, body: Json, expected: Json) -> None:
        read = ReadPod("here")(text(body))
        assert isinstance(read, Use)
        assert read.amounts == expected
        assert (read is NO_USE) == (not expected)

    def test_pods_that_take_the_same_share_the_amounts(self) -> None:
        read = ReadPod("here")
        one, other = read(text(pod())), read(text(pod(node="n2")))
        assert isinstance(one, Use)
        assert isinstance(other, Use)
        assert one.amounts is other.amounts

    @pytest.mark.parametrize(
        ("body", "phase"),
        [
            pytest.param(pod("Pending", node=""), "Pending", id="without a node it is pending"),
            pytest.param(pod("Pending"), "Bound", id="with a node it is bound"),
            pytest.param(pod("Running"), "Bound", id="that it runs is not yet ready"),
            pytest.param(
                pod("Running", conditions=[{"type": "Ready", "status": "True"}]),
                "Ready",
                id="its condition says ready",
            ),
            pytest.param(
                pod("Running", metadata={"deletionTimestamp": "2026-11-15T08:01:00Z"}),
                "Terminating",
                id="one that is deleted ends",
            ),
            pytest.param(
                pod("Failed", metadata={"deletionTimestamp": "2026-11-15T08:01:00Z"}),
                "Failed",
                id="one that ended has ended, though it is still there",
            ),
            pytest.param(pod("Succeeded"), "Succeeded", id="one that succeeded"),
        ],
    )
    def test_a_pod_of_ours_has_a_phase(self, body: Json, phase: str) -> None:
        body = copy.deepcopy(body)
        body["metadata"]["labels"] = OURS
        read = own(body)
        assert (read.seen.phase, read.seen.attempt, read.seen.pod_set) == (phase, 2, "worker")

    @pytest.mark.parametrize(
        ("ready", "since"),
        [
            pytest.param("2026-11-15T08:00:01Z", "2026-11-15T08:00:03Z", id="since it has a node"),
            pytest.param("2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z", id="since it was ready"),
        ],
    )
    def test_a_pod_is_not_ready_since_a_time(self, ready: str, since: str) -> None:
        conditions = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": NODE_AT},
            {"type": "Ready", "status": "False", "lastTransitionTime": ready},
        ]
        seen = own(pod("Running", labels=OURS, conditions=conditions)).seen
        assert seen.since == parse_timestamp(since)

    def test_a_pod_that_ended_says_when_and_how(self) -> None:
        ended = {
            "exitCode": 3,
            "reason": "Error",
            "startedAt": "2026-11-15T08:00:10Z",
            "finishedAt": "2026-11-15T08:00:20Z",
        }
        statuses = [{"name": "main", "restartCount": 2, "state": {"terminated": ended}}]
        seen = own(pod("Failed", labels=OURS, containerStatuses=statuses)).seen
        assert seen.started_at is not None
        assert seen.finished_at == seen.started_at + 10
        assert (seen.exit_code, seen.restarts, seen.reason) == (3, 2, "Error")

    @pytest.mark.parametrize("name", [other.stem for other in SAMPLES])
    def test_what_is_told_of_a_failed_pod_has_its_cause(self, name: str) -> None:
        told = sample(name)
        body = copy.deepcopy(told["pod"])
        metadata = body.setdefault("metadata", {})
        metadata |= {"name": "p", "namespace": "team", "uid": "u", "labels": OURS}
        picture = Picture(changed=lambda: None, touched=lambda _: None)
        picture.take_pod(("team", "p"), ReadPod("here")(text(body)))
        for event in told.get("events", ()):
            trouble = Trouble(reason=event["reason"], message=event["message"])
            picture.take_trouble("u", trouble)
        works = Works(picture, built_in().of)
        (seen,) = works.pods(works.keep("team.train"))
        failure = Failure(
            clusters=("here",),
            reason=seen.reason,
            message=seen.message,
            exit_code=seen.exit_code,
        )
        assert cause_of(failure).cause == told["cause"]


class TestNodes:
    def test_a_node_is_kept_without_what_nobody_places_pods_by(self) -> None:
        labels = {"rack": "r1", "feature.node.kubernetes.io/cpu-cpuid.AVX": "true"}
        node = ReadNode()(
            text(
                {
                    "metadata": {"name": "n", "labels": labels},
                    "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
                    "status": {
                        "allocatable": {"cpu": "7900m", "nvidia.com/mig-1g.10gb": "7"},
                        "conditions": [{"type": "Ready", "status": "True"}],
                    },
                }
            )
        )
        assert node.labels == {"rack": "r1"}
        assert node.allocatable == {"cpu": 7_900_000_000, "nvidia.com/mig-1g.10gb": 7 * NANO}
        assert node.taints == (Taint(key="gpu", value="yes", effect="NoSchedule"),)
        assert node.is_ready

    def test_a_cordoned_node_has_a_taint_at_once(self) -> None:
        body = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": {}}
        node = ReadNode()(text(body))
        assert [taint.key for taint in node.taints] == ["node.kubernetes.io/unschedulable"]

    @pytest.mark.parametrize("status", ["False", "Unknown"])
    def test_a_node_that_is_not_heard_of_is_not_ready(self, status: str) -> None:
        conditions = [{"type": "Ready", "status": status}]
        body = {"metadata": {"name": "n"}, "spec": {}, "status": {"conditions": conditions}}
        assert not ReadNode()(text(body)).is_ready


@pytest.mark.parametrize(
    ("labels", "resources", "expected"),
    [
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"},
            ("nvidia.com/gpu",),
            Accelerators(
                model="NVIDIA-H100-80GB-HBM3", resources=("nvidia.com/gpu",), memory="81559"
            ),
            id="NVIDIA's feature discovery",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED"},
            ("nvidia.com/gpu",),
            Accelerators(model="NVIDIA-A100-SXM4-40GB", resources=("nvidia.com/gpu",)),
            id="shared devices are of the same model",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"),
            Accelerators(
                model="NVIDIA-H100-80GB-HBM3",
                resources=("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"),
            ),
            id="parts of a device",
        ),
        pytest.param(
            {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice",
                "cloud.google.com/gke-tpu-topology": "2x2x4",
            },
            ("google.com/tpu",),
            Accelerators(model="tpu-v5p-slice", resources=("google.com/tpu",), topology="2x2x4"),
            id="a TPU slice with its topology",
        ),
        pytest.param(
            {"cloud.google.com/gke-accelerator": "nvidia-l4"},
            ("nvidia.com/gpu",),
            Accelerators(model="nvidia-l4", resources=("nvidia.com/gpu",)),
            id="a provider's own label",
        ),
        pytest.param(
            {"aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-32GB"},
            ("nvidia.com/gpu",),
            Accelerators(model="Tesla-V100-SXM2-32GB", resources=("nvidia.com/gpu",)),
            id="another provider's",
        ),
        pytest.param(
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
            ("amd.com/gpu",),
            Accelerators(model="AMD_Instinct_MI300X_OAM", resources=("amd.com/gpu",)),
            id="AMD's node labeller",
        ),
        pytest.param({"rack": "r1"}, (), None, id="a node without any"),
    ],
)
def test_the_model_of_a_nodes_accelerators_is_read_from_the_usual_labels(
    labels: dict[str, str], resources: tuple[str, ...], expected: Accelerators | None
) -> None:
    assert accelerators_of(labels, dict.fromkeys((*resources, "cpu"), NANO)) == expected


def test_a_name_too_long_for_a_label_is_still_told_whole() -> None:
    name = "team." + "long-" * 30 + "name"
    owner = marks.Owner(cluster="here", work=name, attempt=3)
    body = marks.with_marks({"metadata": {"name": "a"}}, owner)
    assert len(body["metadata"]["labels"]["fairway.dev/work"]) <= 63
    assert (marks.work_of(body), marks.attempt_of(body)) == (name, 3)
