"""What makes a revision, and how a kind's own controller is told to bring it in."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.kinds.registry import built_in
from fairway.kinds.updates import (
    Pace,
    is_divisible,
    mark_of,
    may_have_second,
    restore_revision,
    second_of,
    step_most,
    with_pace,
)

Plain = dict[str, Any]


def service(kind: str = "Deployment", image: str = "vllm:1", **spec: Any) -> Plain:
    template = {
        "metadata": {"labels": {"app": "llm"}},
        "spec": {"containers": [{"name": "server", "image": image}]},
    }
    version, inner = "apps/v1", {"template": template}
    if kind == "LeaderWorkerSet":
        version = "leaderworkerset.x-k8s.io/v1"
        inner = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "llm"},
        "spec": {"replicas": 3, **inner, **spec},
    }


def mark(*manifests: Plain) -> str:
    return mark_of(manifests, built_in())


SAME = {
    "other replicas": service(replicas=9),
    "no replicas said": {**service(), "spec": {"template": service()["spec"]["template"]}},
    "another pace": service(strategy={"type": "Recreate"}, minReadySeconds=5),
    "held back on the hub": service(paused=True),
    "what its server keeps in it": {
        **service(),
        "metadata": {"name": "llm", "uid": "x", "generation": 7, "annotations": {"a": "b"}},
        "status": {"readyReplicas": 3},
    },
}


@pytest.mark.parametrize("other", SAME.values(), ids=SAME)
def test_what_makes_no_other_revision(other: Plain) -> None:
    assert mark(other) == mark(service())


def test_what_makes_another_revision() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {}}
    others = [
        mark(service(image="vllm:2")),
        mark(service("StatefulSet")),
        mark(service(), settings),
        mark(service(), {**settings, "data": {"a": "1"}}),
    ]
    assert len({mark(service()), *others}) == 5
    assert all(len(item) == 10 for item in others)


def made(kind: str, pace: Pace, replicas: int = 4) -> Plain:
    manifest = service(kind)
    known = built_in().of(manifest)
    assert known is not None
    return with_pace(known, manifest, pace, replicas)


def test_a_deployment_never_has_more_pods_than_were_claimed() -> None:
    found = made("Deployment", Pace(mark="abc", allowance=2))
    rolling = {"maxUnavailable": 2, "maxSurge": 0}
    assert found["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "llm", "fairway.dev/revision": "abc"}


def test_what_has_no_mark_and_no_allowance_stays_as_it_was_written() -> None:
    assert made("Deployment", Pace()) == service()


@pytest.mark.parametrize(("share", "partition"), [(None, 0), (1, 3), (4, 0), (9, 0)])
def test_a_partition_leaves_the_lower_ordinals(share: int | None, partition: int) -> None:
    stateful = made("StatefulSet", Pace(share=share))["spec"]["updateStrategy"]
    assert stateful == {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    groups = made("LeaderWorkerSet", Pace(share=share, allowance=1))["spec"]["rolloutStrategy"]
    assert groups["rollingUpdateConfiguration"] == {
        "partition": partition,
        "maxUnavailable": 1,
        "maxSurge": 0,
    }


@pytest.mark.parametrize(
    ("kind", "divisible", "step"),
    [("Deployment", False, None), ("StatefulSet", True, 1), ("LeaderWorkerSet", True, None)],
)
def test_how_far_and_how_fast_a_kind_goes(kind: str, divisible: bool, step: int | None) -> None:
    assert (is_divisible(service(kind)), step_most(service(kind))) == (divisible, step)


def test_a_second_deployment_has_the_labels_of_the_first_and_a_selector_of_its_own() -> None:
    first = {**service(selector={"matchLabels": {"app": "llm"}}), "metadata": {"name": "llm"}}
    second = second_of(first)
    assert second["metadata"]["name"] == "llm-canary"
    both = {"app": "llm", "fairway.dev/part": "canary"}
    assert second["spec"]["selector"] == {"matchLabels": both}
    assert second["spec"]["template"]["metadata"]["labels"] == both
    assert first["spec"]["selector"] == {"matchLabels": {"app": "llm"}}, "it is left alone"


def test_only_a_deployment_has_a_second_and_only_if_its_name_is_free() -> None:
    first = {**service(), "metadata": {"name": "llm"}}
    assert may_have_second([first])
    assert not may_have_second([first, {**service(), "metadata": {"name": "llm-canary"}}])
    assert not may_have_second([{**service("StatefulSet"), "metadata": {"name": "llm"}}])


def test_an_undo_keeps_counts_pace_and_identity() -> None:
    now = service(image="vllm:2", replicas=8, paused=True)
    now["metadata"] = {"name": "llm", "resourceVersion": "7"}
    found = restore_revision(now, service(image="vllm:1", replicas=3, minReadySeconds=9))
    assert found["metadata"] == {"name": "llm", "resourceVersion": "7"}
    assert (found["spec"]["replicas"], found["spec"]["paused"]) == (8, True)
    assert "minReadySeconds" not in found["spec"]
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm:1"
