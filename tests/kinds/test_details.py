"""What is particular to single kinds."""

from __future__ import annotations

import copy

import pytest

from fairway.api.meta import ObjectReference
from fairway.kinds import dependencies, pod_starts
from fairway.kinds.interface import Kind, PodState
from fairway.kinds.registry import Kinds, built_in
from tests.kinds.recorded import samples

NOW = 1_800_000_000.0
SAMPLES = {sample.name: sample.manifest for sample in samples()}


def kind_of(manifest: dict) -> Kind:
    found = built_in().of(manifest)
    assert found is not None
    return found


def changed(sample: str, **spec) -> dict:
    manifest = copy.deepcopy(SAMPLES[sample])
    manifest["spec"] |= spec
    return manifest


def states(manifest: dict, *phases: str, **given) -> list[PodState]:
    return [
        PodState(name=pod.name, pod_set=pod.pod_set, index=pod.index, phase=phase, **given)
        for pod, phase in zip(kind_of(manifest).pods(manifest), phases, strict=False)
    ]


def read(manifest: dict, pods: list[PodState]):
    return pod_starts.observe_pods(kind_of(manifest), manifest, pods, now=NOW)


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({"completions": 3}, {"phases": ["Succeeded", "Failed"]}, ("Running", "")),
        ({}, {"phases": ["Succeeded", "Ready"]}, ("Running", "")),
        (
            {"backoffLimit": 1},
            {"phases": ["Failed", "Failed"], "exit_code": 1},
            ("Failed", "BackoffLimitExceeded"),
        ),
        (
            {"activeDeadlineSeconds": 60},
            {"phases": ["Ready"], "started_at": NOW - 60},
            ("Failed", "DeadlineExceeded"),
        ),
        (
            {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
            {"phases": ["Succeeded", "Ready"]},
            ("Succeeded", "SuccessPolicy"),
        ),
        (
            {"successPolicy": {"rules": [{"succeededCount": 2}]}},
            {"phases": ["Succeeded", "Ready"]},
            ("Running", ""),
        ),
    ],
    ids=[
        "a failed pod that is made anew",
        "one of many done",
        "more failures than it bears",
        "it ran too long",
        "the index that matters is done",
        "fewer than matter are done",
    ],
)
def test_a_job_is_over_by_its_own_rules(spec: dict, pods: dict, expected: tuple) -> None:
    manifest = changed("job-pi", **spec)
    phases = pods.pop("phases")
    if expected[0] == "Running" and "Ready" not in phases:
        phases = [*phases, "Ready"]
    found = read(manifest, states(manifest, *phases, **pods))
    assert (found.phase, found.reason) == expected


def test_an_exit_code_may_end_a_job_at_once() -> None:
    manifest = SAMPLES["job-shards"]
    found = read(manifest, states(manifest, "Failed", "Ready", exit_code=42))
    assert (found.phase, found.reason) == ("Failed", "PodFailurePolicy")
    found = read(manifest, states(manifest, "Failed", "Ready", exit_code=1))
    assert found.phase == "Running"


def test_each_index_may_fail_by_itself() -> None:
    manifest = SAMPLES["job-shards"]
    once = states(manifest, "Failed", "Succeeded", "Succeeded", exit_code=1)
    assert [item.name for item in pod_starts.due(kind_of(manifest), manifest, once, now=NOW)] == [
        "shards-0"
    ]
    twice = states(manifest, "Failed", exit_code=1, restarts=1) + once[1:]
    assert pod_starts.due(kind_of(manifest), manifest, twice, now=NOW) == ()
    status = kind_of(manifest).play(manifest, twice, now=NOW)
    assert (status["completedIndexes"], status["failedIndexes"]) == ("1,2", "0")
    assert read(manifest, twice).reason == "FailedIndexes"


def test_a_queue_of_work_is_done_once_one_pod_says_so_and_the_rest_end() -> None:
    manifest = SAMPLES["job-drain"]
    assert read(manifest, states(manifest, "Succeeded", "Ready", "Ready")).phase == "Running"
    assert read(manifest, states(manifest, "Succeeded", "Succeeded", "Succeeded")).phase == (
        "Succeeded"
    )


def test_fewer_workers_mean_fewer_completions_only_where_a_job_says_so() -> None:
    manifest = changed("job-train")
    kind = kind_of(manifest)
    assert kind.with_counts(manifest, {"pod": 2})["spec"]["completions"] == 4
    manifest["metadata"]["annotations"] = {"fairway.dev/completions-equal-parallelism": "true"}
    assert kind.with_counts(manifest, {"pod": 2})["spec"]["completions"] == 2


def test_a_job_that_another_controller_runs_is_refused() -> None:
    (fault,) = kind_of(SAMPLES["job-pi"]).faults(changed("job-pi", managedBy="example.com/other"))
    assert fault.startswith("spec.managedBy: ")
    assert kind_of(SAMPLES["job-pi"]).faults(changed("job-pi", managedBy="fairway.dev/hub")) == []


def test_a_job_set_ends_with_the_jobs_that_matter() -> None:
    manifest = SAMPLES["jobset-parameters"]
    pods = states(manifest, "Ready", *["Succeeded"] * 6)
    assert read(manifest, pods).phase == "Succeeded"


def test_one_failed_job_ends_a_job_set() -> None:
    manifest = SAMPLES["jobset-pytorch"]
    found = read(manifest, states(manifest, *["Ready"] * 8, "Failed"))
    assert (found.phase, found.reason, found.failed) == ("Failed", "FailedJobs", 1)


def test_a_group_is_ready_once_all_its_pods_are() -> None:
    manifest = SAMPLES["leaderworkerset-vllm"]
    found = read(manifest, states(manifest, *["Ready"] * 7, "Running"))
    assert (found.phase, found.ready, found.is_healthy) == ("Running", 4, False)


def test_what_volcano_needs_at_least_is_taken_from_the_last_tasks() -> None:
    manifest = SAMPLES["volcano-job-distributed"]
    kind = kind_of(manifest)
    assert [
        (pod_set.name, pod_set.count, pod_set.least_count) for pod_set in kind.pod_sets(manifest)
    ] == [
        ("master", 1, None),
        ("worker", 4, 2),
    ]
    fewer = kind.with_counts(manifest, {"worker": 1})
    assert fewer["spec"]["minAvailable"] == 2


def test_volcano_ends_with_the_task_that_ends_it() -> None:
    manifest = SAMPLES["volcano-job-distributed"]
    assert read(manifest, states(manifest, "Succeeded", *["Ready"] * 4)).phase == "Succeeded"
    assert read(manifest, states(manifest, "Ready", "Ready", "Pending")).phase == "Pending"
    assert read(manifest, states(manifest, "Ready", "Ready", "Ready", "Pending")).phase == "Running"


def test_gates_of_others_are_theirs_to_lift() -> None:
    manifest = changed("pod-notebook", schedulingGates=[{"name": "example.com/theirs"}])
    kind = kind_of(manifest)
    assert kind.release(kind.hold(manifest)) == manifest
    assert kind.is_held(manifest)


def test_the_worst_of_two_deployments_tells_why() -> None:
    manifest = SAMPLES["deployment-assistant"]
    kind = kind_of(manifest)
    good = kind.play(manifest, states(manifest, *["Ready"] * 3), now=NOW)
    bad = kind.play(manifest, states(manifest, "Pending"), now=NOW)
    merged = kind.merge(manifest, {"a": good, "b": bad})
    found = kind.read({**manifest, "spec": {**manifest["spec"], "replicas": 6}, "status": merged})
    assert (found.ready, found.is_healthy, found.reason) == (3, False, "MinimumReplicasUnavailable")


def test_what_pods_need_is_found_wherever_they_name_it() -> None:
    spec = {
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [
            {
                "env": [
                    {"valueFrom": {"configMapKeyRef": {"name": "settings"}}},
                    {"valueFrom": {"secretKeyRef": {"name": "token"}}},
                    {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "envFrom": [{"secretRef": {"name": "all"}}],
            }
        ],
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "early"}}]}],
        "volumes": [
            {"configMap": {"name": "files"}},
            {"secret": {"secretName": "keys"}},
            {"persistentVolumeClaim": {"claimName": "data"}},
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "kube-root-ca.crt"}},
                        {"secret": {"name": "cert"}},
                        {"serviceAccountToken": {"path": "token"}},
                    ]
                }
            },
            {"csi": {"nodePublishSecretRef": {"name": "mount"}}},
            {"emptyDir": {}},
        ],
    }
    found = dependencies.of_templates([{"spec": spec}, {"spec": spec}])
    assert [(item.kind, item.name) for item in found] == [
        *(("ConfigMap", name) for name in ("early", "files", "settings")),
        ("PersistentVolumeClaim", "data"),
        *(("Secret", name) for name in ("all", "cert", "keys", "mount", "pull", "token")),
        ("ServiceAccount", "runner"),
    ]


def test_claims_of_a_volcano_job_travel_along_but_not_those_of_its_templates() -> None:
    kind = kind_of(SAMPLES["volcano-job-mpi"])
    assert kind.dependencies(SAMPLES["volcano-job-mpi"]) == (
        ObjectReference(kind="PersistentVolumeClaim", name="shared-data"),
    )
    stateful = SAMPLES["statefulset-store"]
    assert kind_of(stateful).dependencies(stateful) == ()


def test_kinds_can_be_added_and_replaced() -> None:
    none = Kinds()
    assert none.of(SAMPLES["job-pi"]) is None
    job = kind_of(SAMPLES["job-pi"])
    some = none.plus([job])
    assert some.of(SAMPLES["job-pi"]) is job
    assert some.of(SAMPLES["volcano-job-mpi"]) is None
    assert list(some.names()) == [("batch/v1", "Job")]
    assert none.names() == []
