"""What pods may ask of a cluster, by the rules of Pod Security `baseline` and beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.cluster import Permits
from fairway.kinds.pod_security import FAULTS_MAX, Allowed, pod_faults
from tests.kinds.recorded import Sample, samples
from tests.pod_cases import BEYOND, HARMLESS, by_sentence, mounted, pod, refused_pods, secured

Json = dict[str, Any]


def faults(manifest: Json, *accounts: str, **permits: Any) -> list[str]:
    allowed = Allowed(permits=Permits(**permits), accounts=frozenset({"default", *accounts}))
    return pod_faults(manifest, allowed)


@pytest.mark.parametrize(
    ("body", "permit"),
    [pytest.param(*case, id=sentence) for sentence, case in refused_pods().items()],
)
def test_what_baseline_refuses_needs_the_permission_of_the_cluster(body: Json, permit: str) -> None:
    refused = faults(body)
    assert any(f"; {permit} in permits.host of the Cluster allows it" in item for item in refused)
    network = ("HostNetwork",) if body["spec"].get("hostNetwork") else ()
    assert faults(body, host=(permit, *network)) == []


@pytest.mark.parametrize("body", by_sentence(HARMLESS))
def test_what_baseline_accepts_is_accepted(body: Json) -> None:
    assert faults(body) == []


@pytest.mark.parametrize(
    ("body", "said"), [pytest.param(*case, id=sentence) for sentence, case in BEYOND.items()]
)
def test_what_reaches_beyond_the_pods_is_refused(body: Json, said: str) -> None:
    (fault,) = faults(body)
    assert said in fault


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_the_samples_of_all_kinds_are_accepted(sample: Sample) -> None:
    assert faults(sample.manifest, "models", "spark", "trainer", "workflow") == []


def test_a_cluster_may_permit_types_of_volumes() -> None:
    disk = mounted(nfs={"server": "10.0.0.1", "path": "/"})
    assert faults(disk, volumes=("csi",)) != []
    assert faults(disk, volumes=("nfs",)) == []
    assert faults(mounted(hostPath={"path": "/"}), volumes=("hostPath",)) != []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(pod(hostFuture=True), "spec.hostFuture", id="of a pod"),
        pytest.param(pod({"devices": []}), "spec.containers[main].devices", id="of a container"),
        pytest.param(
            secured(hostUser=True),
            "spec.containers[main].securityContext.hostUser",
            id="of a security context",
        ),
        pytest.param(mounted(future={}), "spec.volumes[disk].future", id="of a volume"),
        pytest.param(
            mounted(projected={"sources": [{"future": {}}]}),
            "spec.volumes[disk].projected.sources[0].future",
            id="of a projected volume",
        ),
    ],
)
def test_a_field_that_is_not_known_is_refused(body: Json, field: str) -> None:
    (fault,) = faults(body)
    assert fault.startswith(f"{field}: ")


def test_a_manifest_of_many_faults_says_some_of_them() -> None:
    many = [{"name": f"disk-{number}", "hostPath": {"path": "/"}} for number in range(100)]
    assert len(faults(pod(volumes=many))) == FAULTS_MAX


def test_a_manifest_of_any_depth_is_walked() -> None:
    body: Any = {"hostPID": True}
    for _ in range(2_000):
        body = {"in": [body]}
    (fault,) = faults({"apiVersion": "example.com/v1", "kind": "Deep", "spec": body})
    assert fault.endswith("HostNamespaces in permits.host of the Cluster allows it")


@pytest.mark.parametrize(
    "value",
    [None, 3, "text", ["text", 3, None], [[]], {"name": 3}, {"name": []}],
    ids=repr,
)
@pytest.mark.parametrize(
    "field",
    [
        "containers",
        "volumes",
        "template",
        "securityContext",
        "annotations",
        "projected",
        "serviceAccount",
        "capabilities",
        "httpGet",
        "priorityClassName",
        "hostPath",
        "nfs",
    ],
)
def test_values_of_other_types_are_no_surprise(field: str, value: Any) -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Odd", "spec": {field: value}}
    assert all(fault.startswith("spec.") for fault in faults(body))
