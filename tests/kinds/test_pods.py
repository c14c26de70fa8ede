"""What pod templates ask for, counted as Kubernetes counts it."""

from __future__ import annotations

import pytest

from fairway.api.meta import NodeRequirement, NodeTerm, Toleration
from fairway.api.podset import TopologyRequest
from fairway.kinds import pods
from fairway.kinds.registry import built_in


def container(name: str = "c", **resources) -> dict:
    return {"name": name, "resources": resources}


def requests(**spec) -> dict[str, str]:
    return {name: str(amount) for name, amount in pods.pod_requests(spec).items()}


SIDECAR = {**container("side", requests={"cpu": "1"}), "restartPolicy": "Always"}
INIT = container("init", requests={"cpu": "3"})
MAIN = container("main", requests={"cpu": "1"})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [MAIN, MAIN]}, {"cpu": "2"}),
        ({"containers": [container(limits={"nvidia.com/gpu": 2})]}, {"nvidia.com/gpu": "2"}),
        (
            {
                "containers": [
                    container(requests={"cpu": "1"}, limits={"cpu": "4", "memory": "1Gi"})
                ]
            },
            {"cpu": "1", "memory": "1Gi"},
        ),
        ({"containers": [MAIN], "initContainers": [INIT]}, {"cpu": "3"}),
        ({"containers": [MAIN], "initContainers": [SIDECAR]}, {"cpu": "2"}),
        ({"containers": [MAIN], "initContainers": [SIDECAR, INIT]}, {"cpu": "4"}),
        ({"containers": [MAIN], "initContainers": [INIT, SIDECAR]}, {"cpu": "3"}),
        ({"containers": [MAIN], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
        (
            {"containers": [MAIN], "resources": {"requests": {"cpu": "5"}}},
            {"cpu": "5"},
        ),
        (
            {"containers": [MAIN], "resources": {"limits": {"cpu": "5", "memory": "2Gi"}}},
            {"cpu": "1", "memory": "2Gi"},
        ),
        (
            {
                "containers": [container(limits={"nvidia.com/gpu": 1})],
                "resources": {"requests": {"nvidia.com/gpu": "4"}},
            },
            {"nvidia.com/gpu": "1"},
        ),
        ({"containers": None, "initContainers": "x"}, {}),
    ],
    ids=[
        "containers add up",
        "a limit alone is a request",
        "a request counts before its limit",
        "an init container runs alone",
        "a sidecar runs beside the containers",
        "an init container runs beside the sidecars before it",
        "but not beside those after it",
        "overhead is added",
        "what is asked for the whole pod replaces what its containers ask for",
        "a limit of the whole pod counts where no container asks",
        "devices are the containers' alone",
        "what can't be read asks for nothing",
    ],
)
def test_requests(spec: dict, expected: dict) -> None:
    assert requests(**spec) == expected


def test_required_affinity_becomes_terms_and_preferred_does_not() -> None:
    test = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [test]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [test]}}
            ],
        }
    }
    assert pods.node_terms({"affinity": affinity}) == (
        NodeTerm(
            match_expressions=(NodeRequirement(key="zone", operator="In", values=("a", "b")),)
        ),
        NodeTerm(
            match_expressions=(
                NodeRequirement(key="kubernetes.io/hostname", operator="In", values=("n1",)),
            )
        ),
    )


def test_tolerations_are_read_as_they_are() -> None:
    plain = [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 0},
    ]
    assert pods.tolerations({"tolerations": plain}) == (
        Toleration(key="gpu", operator="Exists", effect="NoSchedule"),
        Toleration(key="a", value="b", effect="NoExecute", toleration_seconds=0),
    )


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, None),
        ({"fairway.dev/required-topology": "rack"}, TopologyRequest(required="rack")),
        (
            {"kueue.x-k8s.io/podset-preferred-topology": "example.com/block"},
            TopologyRequest(preferred="example.com/block"),
        ),
        (
            {
                "kueue.x-k8s.io/podset-slice-required-topology": "rack",
                "kueue.x-k8s.io/podset-slice-size": "4",
            },
            TopologyRequest(slice_level="rack", slice_size=4),
        ),
        ({"kueue.x-k8s.io/podset-slice-size": "4"}, None),
    ],
    ids=["none", "ours", "Kueue's", "slices", "a slice size without its level"],
)
def test_topology_is_asked_for_by_annotation(annotations: dict, expected) -> None:
    assert pods.topology({"metadata": {"annotations": annotations}}) == expected


@pytest.mark.parametrize("key", ["fairway.dev/pod-set-group", "kueue.x-k8s.io/podset-group-name"])
def test_pod_sets_that_take_the_same_flavor_are_named_by_annotation(key: str) -> None:
    template = {
        "metadata": {"annotations": {key: "together"}},
        "spec": {"containers": [{"name": "main", "image": "train:1"}]},
    }
    group = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {"leaderWorkerTemplate": {
            "size": 3, "leaderTemplate": template, "workerTemplate": template,
        }},
    }  # fmt: skip
    pod_sets = built_in().pod_sets(group, "Divided")
    assert [(each.name, each.count, each.group) for each in pod_sets] == [
        ("leader", 1, "together"),
        ("worker", 2, "together"),
    ]


def test_what_no_pod_can_be_made_of_is_told_with_its_path() -> None:
    assert pods.template_faults({}, "spec.template") == [
        "spec.template.spec.containers: a pod needs at least one container"
    ]
    (fault,) = pods.template_faults(
        {"spec": {"containers": [MAIN, container(requests={"cpu": "much"})]}}, "spec.template"
    )
    assert fault.startswith("spec.template.spec.containers[1].resources.requests[cpu]: ")


def test_variables_that_a_container_sets_itself_stay() -> None:
    spec = {"containers": [{"name": "c", "env": [{"name": "A", "value": "own"}]}]}
    last = pods.with_environment(spec, {"A": "given", "B": "given"})
    first = pods.with_environment(spec, {"B": "given"}, are_first=True)
    assert last["containers"][0]["env"] == [
        {"name": "A", "value": "own"},
        {"name": "B", "value": "given"},
    ]
    assert [variable["name"] for variable in first["containers"][0]["env"]] == ["B", "A"]
