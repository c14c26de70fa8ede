"""Native objects that name a queue, as workloads."""

from __future__ import annotations

import copy
import json

import pytest

from fairway.api.codec import decode
from fairway.api.errors import Invalid
from fairway.api.workload import Workload
from fairway.kinds.native import as_workload, clean_manifest, derived_pod_sets
from fairway.kinds.registry import built_in
from tests.kinds.recorded import samples

SAMPLES = {sample.name: sample.manifest for sample in samples()}


def native(sample: str = "job-train", **metadata) -> dict:
    manifest = copy.deepcopy(SAMPLES[sample])
    for field, values in metadata.items():
        manifest["metadata"].setdefault(field, {}).update(values)
    return manifest


def workload(manifest: dict) -> Workload:
    body = as_workload(manifest, built_in())
    assert body is not None
    return decode(body, Workload)


@pytest.mark.parametrize(
    "name",
    [
        value
        for value, plain in SAMPLES.items()
        if "fairway.dev/queue" in plain["metadata"].get("labels", {})
    ],
)
def test_every_sample_with_a_queue_is_a_workload(name: str) -> None:
    manifest = SAMPLES[name]
    found = workload(manifest)
    assert found.spec.queue == manifest["metadata"]["labels"]["fairway.dev/queue"]
    assert found.spec.source is not None
    assert (found.spec.source.api_version, found.spec.source.kind, found.spec.source.name) == (
        manifest["apiVersion"],
        manifest["kind"],
        manifest["metadata"]["name"],
    )
    assert found.metadata.finalizers == ("fairway.dev/works",)
    kind = built_in().of(manifest)
    assert kind is not None
    assert derived_pod_sets(found) == kind.pod_sets(manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        SAMPLES["job-pi"],
        {**native(), "kind": "CronJob"},
        {
            **native("pod-notebook"),
            "metadata": {
                "name": "train-0-x",
                "labels": {"fairway.dev/queue": "research"},
                "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
            },
        },
    ],
    ids=["has no queue", "is of a kind not known", "was made by a controller"],
)
def test_an_object_is_no_workload_that(manifest: dict) -> None:
    assert as_workload(manifest, built_in()) is None


def test_kueues_labels_are_understood() -> None:
    manifest = native(
        labels={
            "kueue.x-k8s.io/queue-name": "theirs",
            "kueue.x-k8s.io/priority-class": "prod",
            "kueue.x-k8s.io/max-exec-time-seconds": "7200",
        },
        annotations={"kueue.x-k8s.io/job-min-parallelism": "2"},
    )
    del manifest["metadata"]["labels"]["fairway.dev/queue"]
    found = workload(manifest)
    assert (found.spec.queue, found.spec.priority_class) == ("theirs", "prod")
    assert found.spec.run_seconds.limit == 7200
    (pods,) = derived_pod_sets(found)
    assert (pods.count, pods.least_count) == (4, 2)


QUEUES = {"kueue.x-k8s.io/queue-name": "theirs", "fairway.dev/queue": "ours"}


def labelled(sample: str, **labels: str) -> dict:
    """A sample whose templates bear labels."""
    manifest = copy.deepcopy(SAMPLES[sample])
    kind = built_in().of(manifest)
    assert kind is not None
    for template in kind.templates(manifest).values():
        template.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    return manifest


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_nothing_that_is_made_of_a_template_is_queued_once_more(sample: str) -> None:
    manifest = labelled(sample, own="kept", **QUEUES)
    assert clean_manifest(manifest) == clean_manifest(labelled(sample, own="kept"))
    assert manifest == labelled(sample, own="kept", **QUEUES), "what came in stays as it was"


def test_a_selector_asks_for_no_label_that_was_taken_off() -> None:
    manifest = copy.deepcopy(SAMPLES["deployment-assistant"])
    labels = {**QUEUES, "app": "vllm"}
    manifest["spec"]["selector"] = {"matchLabels": labels}
    manifest["spec"]["template"]["metadata"] = {"labels": labels}
    spec = clean_manifest(manifest)["spec"]
    assert spec["selector"] == {"matchLabels": {"app": "vllm"}}
    assert spec["template"]["metadata"] == {"labels": {"app": "vllm"}}


def test_a_job_of_a_jobset_names_no_queue_either() -> None:
    manifest = copy.deepcopy(SAMPLES["jobset-pytorch"])
    for replicated_job in manifest["spec"]["replicatedJobs"]:
        replicated_job["template"]["metadata"] = {"labels": dict(QUEUES)}
    assert "queue" not in json.dumps(
        [
            replicated_job["template"]["metadata"]
            for replicated_job in clean_manifest(manifest)["spec"]["replicatedJobs"]
        ]
    )


def test_what_a_workload_says_is_said_by_labels_and_annotations() -> None:
    manifest = native(
        labels={"fairway.dev/policy": "burst", "fairway.dev/priority": "-5"},
        annotations={"fairway.dev/run-seconds": "9000"},
    )
    manifest["spec"]["activeDeadlineSeconds"] = 3600
    found = workload(manifest).spec
    assert (found.policy, found.priority) == ("burst", -5)
    assert (found.run_seconds.estimate, found.run_seconds.limit) == (3600, 3600)


def test_what_an_object_says_of_its_users_is_not_said_of_its_workload() -> None:
    notes = {"fairway.dev/submitted-by": "alice", "fairway.dev/created-by": "alice"}
    body = as_workload(native(annotations={**notes, "example.com/other": "stays"}), built_in())
    assert body is not None
    annotations = body["metadata"]["annotations"]
    assert annotations["example.com/other"] == "stays"
    assert not set(annotations) & set(notes)


def test_the_priority_class_of_the_pods_counts_where_none_is_named() -> None:
    manifest = native("jobset-pytorch")
    workers = manifest["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]
    workers["spec"]["priorityClassName"] = "high"
    assert workload(manifest).spec.priority_class == "high"


def test_an_indexed_job_may_run_as_a_sweep() -> None:
    manifest = native(annotations={"fairway.dev/mode": "Independent"})
    found = workload(manifest)
    assert found.spec.mode == "Independent"
    assert found.spec.tasks is not None
    assert (found.spec.tasks.count, found.spec.tasks.concurrency) == (4, 4)
    (pods,) = derived_pod_sets(found)
    assert pods.count == 1


def test_a_job_may_run_in_each_cluster_that_its_policy_chooses() -> None:
    manifest = native(annotations={"fairway.dev/mode": "Divided"})
    found = workload(manifest)
    assert (found.spec.mode, found.spec.replicas, found.spec.tasks) == ("Divided", 1, None)
    (pods,) = derived_pod_sets(found)
    assert pods.count == 4


def test_other_kinds_that_end_do_not_run_in_each_cluster() -> None:
    with pytest.raises(Invalid, match=r"fairway\.dev/mode"):
        workload(native("jobset-pytorch", annotations={"fairway.dev/mode": "Divided"}))


def test_a_service_may_run_as_a_gang_of_all_its_replicas() -> None:
    manifest = native("leaderworkerset-vllm", annotations={"fairway.dev/mode": "Gang"})
    found = workload(manifest)
    assert (found.spec.mode, found.spec.replicas) == ("Gang", None)
    assert {
        derived_pod_set.name: derived_pod_set.count for derived_pod_set in derived_pod_sets(found)
    } == {"leader": 2, "worker": 6}


@pytest.mark.parametrize(
    ("annotations", "path"),
    [
        ({"fairway.dev/mode": "Sometimes"}, "metadata.annotations[fairway.dev/mode]"),
        ({"fairway.dev/priority": "high"}, "metadata.annotations[fairway.dev/priority]"),
        ({"fairway.dev/run-seconds": "1h"}, "metadata.annotations[fairway.dev/run-seconds]"),
        ({"fairway.dev/run-seconds": "0"}, "metadata.annotations[fairway.dev/run-seconds]"),
    ],
    ids=["a mode its kind has not", "a priority in words", "a time with a unit", "no time"],
)
def test_what_cannot_be_understood_is_refused_with_its_path(annotations: dict, path: str) -> None:
    with pytest.raises(Invalid) as refusal:
        as_workload(native(annotations=annotations), built_in())
    assert path in str(refusal.value)


def test_the_template_is_without_what_server_and_controllers_set() -> None:
    manifest = native(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"})
    manifest["metadata"] |= {
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{}],
        "ownerReferences": [{"kind": "Owner"}],
    }
    manifest["status"] = {"active": 1}
    manifest["spec"] |= {
        "managedBy": "fairway.dev/hub",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
    }
    manifest["spec"]["template"]["metadata"] = {
        "labels": {"app": "train", "controller-uid": "1", "job-name": "train"}
    }
    found = workload(manifest)
    assert found.spec.template is not None
    (template,) = found.spec.template.manifests
    expected = copy.deepcopy(SAMPLES["job-train"])
    del expected["metadata"]["labels"]
    expected["spec"]["template"]["metadata"] = {"labels": {"app": "train"}}
    assert template == expected
    assert found.spec.source is not None
    assert found.spec.source.uid == "1"


def test_a_pod_loses_its_node_its_gate_and_its_servers_identity() -> None:
    manifest = native("pod-notebook")
    del manifest["metadata"]["labels"]
    running = copy.deepcopy(manifest)
    running["spec"] |= {
        "nodeName": "n1",
        "schedulingGates": [{"name": "fairway.dev/held"}],
        "volumes": [{"name": "kube-api-access-x7"}],
    }
    running["spec"]["containers"][0]["volumeMounts"] = [{"name": "kube-api-access-x7"}]
    manifest["spec"]["volumes"] = []
    manifest["spec"]["containers"][0]["volumeMounts"] = []
    assert clean_manifest(running) == manifest


def test_a_held_service_is_a_workload_of_the_replicas_that_it_had() -> None:
    kind = built_in().of(SAMPLES["deployment-assistant"])
    assert kind is not None
    assert workload(kind.hold(native("deployment-assistant"))).spec.replicas == 3
