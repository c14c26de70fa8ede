"""No pod that a workload runs escapes quota, whatever its pod sets and other manifests say."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.reasons import Code
from tests.builders import GPU, Plain, cluster, plan_of, queue, told, workload

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}


def pods(gpus: int, **spec: Any) -> Plain:
    resources = {"limits": {GPU: gpus}}
    return {"spec": {"containers": [{"name": "main", "image": "x", "resources": resources}]}}


def job(gpus: int, count: int = 1) -> Plain:
    spec = {"parallelism": count, "completions": count, "template": pods(gpus)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}


def deployment(gpus: int) -> Plain:
    spec = {"replicas": 1, "selector": {}, "template": pods(gpus)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def given(name: str, gpus: int, count: int = 1) -> Plain:
    return {"name": name, "count": count, "requests": {GPU: gpus}}


def runs(*manifests: Plain, sets: list[Plain] | None = None, **spec: Any) -> Plain:
    made = workload("a", "q", template={"manifests": list(manifests)}, **spec)
    made["spec"]["podSets"] = sets or []
    return made


COUNTED = {
    "what stands beside the first manifest and runs nothing is sent along": (
        runs(job(2), SETTINGS),
        "a starts in east:1@h100",
    ),
    "pod sets that say less than the manifest requests are charged what it requests": (
        runs(job(8), sets=[given("pod", 2)]),
        "a waits: QuotaTooSmall, NoVictims",
    ),
    "also under another name": (
        runs(job(8), sets=[given("worker", 2)]),
        "a waits: QuotaTooSmall, NoVictims",
    ),
    "pod sets that say more are charged that": (
        runs(job(1), sets=[given("pod", 8)]),
        "a waits: QuotaTooSmall, NoVictims",
    ),
    "a number of pods that is written into the manifest may be smaller": (
        runs(job(1, count=8), sets=[given("pod", 1, count=2)]),
        "a starts in east:2@h100",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "expected"), COUNTED.values(), ids=COUNTED)
def test_pods_are_charged_as_they_run(made: Plain, expected: str) -> None:
    assert told(plan_of(queue("q", 4), cluster("east", 8), made)) == [expected]


UNCOUNTED = {
    "a second manifest that runs pods": (
        runs(job(1), deployment(8)),
        ("spec.template.manifests[1] is a Deployment with pods, and only the first manifest may "
        "have any"),
    ),
    "a manifest that runs pods behind one that runs none": (
        runs(SETTINGS, job(8)),
        "spec.template.manifests[1] is a Job with pods, and only the first manifest may have any",
    ),
    "pod sets that leave out the pods of the manifest": (
        runs(job(8), sets=[given("some", 1), given("others", 1)]),
        "spec.podSets leave out the pods of pod",
    ),
    "fewer pods under another name than the manifest runs": (
        runs(job(1, count=8), sets=[given("worker", 1, count=2)]),
        "spec.podSets leave out the pods of pod",
    ),
    "fewer pods than a replica has": (
        runs(deployment(1), sets=[given("pod", 1, count=0)], mode="Divided", replicas=2),
        "spec.podSets say 0 pods of pod, and the manifest runs 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "expected"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_what_would_not_be_counted_waits(made: Plain, expected: str) -> None:
    plan = plan_of(queue("q", 4), cluster("east", 8), made)
    assert told(plan) == ["a waits: PodsNotCounted"]
    (waiting,) = plan.waiting
    assert [(reason.code, reason.other) for reason in waiting.reasons] == [
        (Code.PODS_NOT_COUNTED, expected)
    ]


def test_what_runs_already_keeps_running() -> None:
    made = runs(job(1), deployment(8))
    claimed = workload("a", "q", running="east")
    made["status"] = claimed["status"]
    assert told(plan_of(queue("q", 4), cluster("east", 8), made)) == []
