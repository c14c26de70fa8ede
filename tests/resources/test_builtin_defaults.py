"""What is filled in on write equals what a Kubernetes 1.36 stored for the same manifests.

`data/samples.yaml` was created on a real kube-apiserver; `data/stored.jsonl` is what it kept. The
few differences are listed here, each with its reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.resources.builtin import builtin_resources
from fairway.resources.builtin.pod_defaults import pull_policy, quality_class
from fairway.schema.validation import Findings, conform

DATA = Path(__file__).parent / "data"
BY_KIND = {resource.kind: resource for resource in builtin_resources()}
STORED = {
    (item["kind"], item["metadata"]["name"]): item
    for item in map(json.loads, (DATA / "stored.jsonl").read_text().splitlines())
}
SAMPLES = list(yaml.safe_load_all((DATA / "samples.yaml").read_text()))
SYSTEM_FIELDS = ("uid", "creationTimestamp", "resourceVersion", "generation")

# Paths that a real cluster adds and a hub does not.
DIFFERENCES = {
    "Pod": (
        "spec.priority",  # admission looks up priority classes where pods run
        "spec.preemptionPolicy",
        "spec.tolerations",  # admission adds tolerations of node failures
    ),
    "Service": (
        "spec.clusterIP",  # the hub has no network
        "spec.clusterIPs",
        "spec.ipFamilies",
        "spec.ipFamilyPolicy",
    ),
    "PersistentVolumeClaim": ("metadata.finalizers",),  # protects volumes in use by pods
}


def without(obj: dict[str, Any], path: str) -> None:
    parent, _, last = path.partition(".")
    obj.get(parent, {}).pop(last, None)


def without_nulls(value: Any) -> Any:
    """Kubernetes writes some unset times as null; a hub leaves them out."""
    if isinstance(value, dict):
        return {key: without_nulls(other) for key, other in value.items() if other is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "sample", SAMPLES, ids=lambda other: f"{other['kind']}-{other['metadata']['name']}"
)
@pytest.mark.parametrize("order", ["schema first", "schema last"])
def test_a_new_object_is_stored_as_kubernetes_stores_it(sample: dict[str, Any], order: str) -> None:
    resource = BY_KIND[sample["kind"]]
    want = json.loads(json.dumps(STORED[sample["kind"], sample["metadata"]["name"]]))
    got = json.loads(json.dumps(sample))
    for name in SYSTEM_FIELDS:
        if name in want["metadata"]:
            got["metadata"][name] = want["metadata"][name]
    findings = Findings()
    if order == "schema first":
        conform(got, resource.schema, findings)
    if resource.prepare is not None:
        resource.prepare(got, None)
    if order == "schema last":
        conform(got, resource.schema, findings)
    for path in DIFFERENCES.get(sample["kind"], ()):
        without(want, path)
        without(got, path)
    assert got == without_nulls(want)
    assert findings.faults == []
    assert findings.unknown == []
    assert resource.check is None or not list(resource.check(got, None))
    assert resource.counts_generations == ("generation" in want["metadata"])


@pytest.mark.parametrize("kind", sorted({sample["kind"] for sample in SAMPLES}))
def test_what_is_stored_does_not_change_when_written_again(kind: str) -> None:
    resource = BY_KIND[kind]
    for (stored_kind, _), stored in STORED.items():
        if stored_kind != kind:
            continue
        again = json.loads(json.dumps(stored))
        if resource.prepare is not None:
            resource.prepare(again, stored)
        assert again == stored
        assert resource.check is None or not list(resource.check(again, stored))


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry:5000/app", "Always"),
        ("registry:5000/app:1", "IfNotPresent"),
        ("app@sha256:0123", "IfNotPresent"),
        ("app:latest@sha256:0123", "Always"),
    ],
)
def test_images_without_a_fixed_tag_are_pulled_each_time(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def resources(**parts: dict[str, str]) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": parts}]}


@pytest.mark.parametrize(
    ("spec", "quality"),
    [
        (resources(), "BestEffort"),
        (resources(requests={"nvidia.com/gpu": "1"}), "BestEffort"),
        (resources(requests={"cpu": "1"}), "Burstable"),
        (resources(limits={"cpu": "1"}), "Burstable"),
        (resources(limits={"cpu": "1", "memory": "1Gi"}), "Guaranteed"),
        (
            resources(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1000m"}),
            "Guaranteed",
        ),
        (resources(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1m"}), "Burstable"),
    ],
)
def test_quality_follows_requests_and_limits(spec: dict[str, Any], quality: str) -> None:
    assert quality_class(spec) == quality


def test_a_new_storage_version_joins_the_stored_ones() -> None:
    definition = json.loads(json.dumps(STORED["CustomResourceDefinition", "things.example.com"]))
    old = json.loads(json.dumps(definition))
    first = definition["spec"]["versions"][0]
    first["storage"] = False
    definition["spec"]["versions"].append({**first, "name": "v2", "storage": True})
    resource = BY_KIND["CustomResourceDefinition"]
    assert resource.prepare is not None
    resource.prepare(definition, old)
    assert definition["status"]["storedVersions"] == ["v1", "v2"]
    assert definition["status"]["conditions"] == old["status"]["conditions"]


def test_a_pod_template_gets_no_requests_from_its_limits() -> None:
    job = STORED["Job", "indexed"]
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "1"}}
