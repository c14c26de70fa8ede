"""What a real cluster refuses in the manifests of a work, and what it may be told to permit."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.cluster import Permits
from fairway.kinds.permitted import faults_in
from fairway.kinds.registry import built_in

Json = dict[str, Any]


def job(**pod: Any) -> Json:
    containers = pod.pop("containers", [{"name": "main", "image": "a"}])
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": containers, **pod}}},
    }


def thing(api_version: str, kind: str, name: str = "a") -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


HOST_PATH = {"name": "disk", "hostPath": {"path": "/etc"}}
PRIVILEGED = {"name": "main", "image": "a", "securityContext": {"privileged": True}}


def faults(*manifests: Json, **permits: Any) -> list[str]:
    found = faults_in(manifests, Permits(**permits), built_in().of)
    return [item for several in found.values() for item in several]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(job(), id="a job"),
        pytest.param(job(serviceAccountName="default"), id="one that runs as anybody would"),
        pytest.param(thing("v1", "ConfigMap"), id="configuration"),
        pytest.param(thing("v1", "Secret"), id="a secret"),
        pytest.param(thing("jobset.x-k8s.io/v1alpha2", "JobSet"), id="a kind that is known"),
    ],
)
def test_what_workloads_are_made_of_is_permitted(manifest: Json) -> None:
    assert faults(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "what", "permits"),
    [
        pytest.param(
            job(volumes=[HOST_PATH]),
            "volumes[disk].hostPath: /etc",
            {"host": ("HostPath",)},
            id="a path of the node",
        ),
        pytest.param(
            job(hostNetwork=True), "hostNetwork", {"host": ("HostNetwork",)}, id="its network"
        ),
        pytest.param(
            job(hostPID=True), "hostPID", {"host": ("HostNamespaces",)}, id="its processes"
        ),
        pytest.param(
            job(containers=[PRIVILEGED]),
            "containers[main].securityContext.privileged: a privileged container",
            {"host": ("Privileged",)},
            id="a privileged container",
        ),
        pytest.param(
            job(serviceAccountName="deployer"),
            "service account deployer",
            {"service_accounts": ("deployer",)},
            id="somebody's service account",
        ),
        pytest.param(
            thing("networking.k8s.io/v1", "Ingress"),
            "does not permit Ingress",
            {"kinds": ("networking.k8s.io/Ingress",)},
            id="a kind that nobody listed",
        ),
    ],
)
def test_what_reaches_further_is_refused_unless_the_cluster_permits_it(
    manifest: Json, what: str, permits: Json
) -> None:
    (fault,) = dict.fromkeys(faults(manifest))
    assert what in fault
    assert faults(manifest, **permits) == []


@pytest.mark.parametrize(
    "manifest",
    [
        thing("rbac.authorization.k8s.io/v1", "RoleBinding"),
        thing("v1", "Namespace"),
        thing("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        thing("v1", "ResourceQuota"),
    ],
    ids=lambda item: item["kind"],
)
def test_what_grants_rights_is_refused_whatever_is_permitted(manifest: Json) -> None:
    group, _, _ = manifest["apiVersion"].rpartition("/")
    kinds = (f"{group}/{manifest['kind']}" if group else manifest["kind"],)
    assert faults(manifest, kinds=kinds) == [
        f"kind: {manifest['kind']} is not allowed in a workload"
    ]


def test_a_service_account_that_comes_with_the_workload_may_be_used() -> None:
    brought = thing("v1", "ServiceAccount", "trainer")
    assert faults(job(serviceAccountName="trainer")) != []
    assert faults(brought, job(serviceAccountName="trainer")) == []
