"""What fleet policies look at: the images of every part that runs, and where they come from."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fairway.api.cluster import Mirror
from fairway.api.governance import FleetPolicySpec, NamespaceSelector
from fairway.api.meta import ClusterSelector, LabelSelector
from fairway.api.work import Manifest, WorkPolicy, WorkSpec
from fairway.governance.cluster_selectors import ClusterFacts
from fairway.governance.rules import images_of, is_from, selects
from fairway.governance.works import refusals, work_policies
from tests.contracts.drivers import job, work

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("image", "registry", "expected"),
    [
        ("ghcr.io/acme/train:1", "ghcr.io", True),
        ("ghcr.io/acme/train:1", "ghcr.io/acme", True),
        ("ghcr.io/acme/train:1", "ghcr.io/acme/", True),
        ("ghcr.io/acme/train:1", "ghcr.io/acme/train", True),
        ("ghcr.io/acme/train@sha256:0", "ghcr.io/acme/train", True),
        ("ghcr.io/acme-evil/train", "ghcr.io/acme", False),
        ("ghcr.io.evil.com/acme/train", "ghcr.io", False),
        ("evil.com/ghcr.io/acme/train", "ghcr.io", False),
        ("GHCR.io/acme/train", "ghcr.io", False),
        ("nginx", "docker.io", True),
        ("nginx:1", "docker.io/library", True),
        ("pytorch/pytorch", "docker.io/pytorch", True),
        ("index.docker.io/pytorch/pytorch", "docker.io/pytorch", True),
        ("pytorch/pytorch", "ghcr.io", False),
        ("localhost:5000/train", "localhost:5000", True),
        ("localhost:5000/train", "localhost", False),
        ("podSpecPatch", "docker.io", False),
    ],
)
def test_an_image_is_of_a_registry(image: str, registry: str, expected: bool) -> None:
    assert is_from(image, registry) is expected


MANIFESTS = {
    "all containers of a pod, and its image volumes": """
        apiVersion: v1
        kind: Pod
        metadata: {name: a, labels: {image: not-one}, annotations: {image: not-one}}
        spec:
          nodeSelector: {image: not-one}
          initContainers: [{name: a, image: image-1}]
          containers: [{name: b, image: image-2, env: [{name: image, value: not-one}]}]
          ephemeralContainers: [{name: c, image: image-3}]
          volumes:
            - {name: model, image: {reference: image-4}}
            - {name: disk, rbd: {image: not-one}}
    """,
    "every task of a Volcano job": """
        apiVersion: batch.volcano.sh/v1alpha1
        kind: Job
        metadata: {name: a}
        spec:
          tasks:
            - {name: a, template: {spec: {containers: [{name: a, image: image-1}]}}}
            - {name: b, template: {spec: {containers: [{name: a, image: image-2}]}}}
    """,
    "groups of a Ray cluster, and its autoscaler": """
        apiVersion: ray.io/v1
        kind: RayCluster
        metadata: {name: a}
        spec:
          autoscalerOptions: {image: image-1}
          headGroupSpec: {template: {spec: {containers: [{name: a, image: image-2}]}}}
          workerGroupSpecs:
            - {template: {spec: {containers: [{name: a, image: image-3}]}}}
    """,
    "a Spark application, whose operator makes its pods": """
        apiVersion: sparkoperator.k8s.io/v1beta2
        kind: SparkApplication
        metadata: {name: a}
        spec:
          image: image-1
          driver: {image: image-2}
          executor: {sidecars: [{name: a, image: image-3}]}
          sparkConf: {spark.kubernetes.container.image: image-4}
    """,
    "steps of an Argo workflow": """
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {name: a}
        spec:
          templates:
            - {name: a, container: {image: image-1}}
            - {name: b, script: {image: image-2}}
    """,
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_images_are_found(manifest: str) -> None:
    images = sorted(images_of(yaml.safe_load(manifest)))
    assert images == [f"image-{number + 1}" for number in range(len(images))]
    assert len(images) == manifest.count("image-")


def test_a_patch_of_pods_as_text_counts_as_an_image_of_no_registry() -> None:
    patched = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
               "spec": {"podSpecPatch": '{"containers": [{"image": "evil.io/x"}]}'}}  # fmt: skip
    (image,) = images_of(patched)
    assert not is_from(image, "ghcr.io")


def test_an_object_that_runs_nothing_names_no_image() -> None:
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"image": "evil.io/x"}}
    assert list(images_of(plain)) == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (NamespaceSelector(), True),
        (NamespaceSelector(names=("team",)), True),
        (NamespaceSelector(names=("other",)), False),
        (NamespaceSelector(exclude=("team",)), False),
        (NamespaceSelector(labels=LabelSelector(match_labels={"a": "b"})), True),
        (NamespaceSelector(labels=LabelSelector(match_labels={"a": "c"})), False),
        (NamespaceSelector(names=("team",), labels=LabelSelector(match_labels={"a": "c"})), False),
    ],
    ids=["all", "its name", "another name", "left out", "its label", "another label", "one of two"],
)
def test_a_policy_selects_a_namespace(selector: NamespaceSelector, expected: bool) -> None:
    assert selects(selector, "team", {"a": "b"}) is expected


HERE = ClusterFacts(name="here", labels={"region": "eu"}, claims={})
ONLY_HERE = WorkPolicy(name="p", clusters=ClusterSelector(names=("here",)))
ONLY_THERE = WorkPolicy(name="p", clusters=ClusterSelector(names=("there",)))
OURS = WorkPolicy(name="p", registries=("ghcr.io",))


def spec(policy: WorkPolicy, image: str = "busybox", **more: Any) -> WorkSpec:
    made = job("a")
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return work("a", Manifest(object=made), policies=(policy,), **more).spec


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        pytest.param(spec(ONLY_HERE), None, [], id="the right cluster"),
        pytest.param(spec(ONLY_THERE), None, [("clusters", "here")], id="another cluster"),
        pytest.param(spec(ONLY_THERE), spec(ONLY_HERE), [], id="what runs stays where it is"),
        pytest.param(spec(ONLY_THERE, attempt=2), spec(ONLY_HERE), [("clusters", "here")],
                     id="a later attempt does not"),
        pytest.param(spec(OURS), None, [("registries", "busybox")], id="another registry"),
        pytest.param(spec(OURS), spec(ONLY_HERE), [], id="an image that runs already"),
        pytest.param(spec(OURS, "evil.io/x"), spec(ONLY_HERE), [("registries", "evil.io/x")],
                     id="a new image"),
        pytest.param(spec(OURS, tombstone=True), None, [], id="a tombstone is always taken"),
        pytest.param(spec(WorkPolicy(name="p", kinds=("Pod",))), None, [("kinds", "batch/Job")],
                     id="another kind"),
    ],
)  # fmt: skip
def test_an_agent_refuses(
    after: WorkSpec, before: WorkSpec | None, expected: list[tuple[str, str]]
) -> None:
    broken = refusals(after, before, HERE)
    assert [(item.rule, item.what) for item in broken] == expected


def test_a_work_carries_registries_with_the_mirrors_of_its_cluster() -> None:
    specs = {
        "p": FleetPolicySpec(registries=("ghcr.io/acme", "quay.io")),
        "q": FleetPolicySpec(run_seconds_max=60),  # nothing that an agent could check
    }
    mirrors = (
        Mirror(prefix="ghcr.io/", replacement="mirror.local/ghcr/"),
        Mirror(prefix="quay.io/big/", replacement="mirror.local/big/"),
    )
    (policy,) = work_policies(specs, mirrors, has_template=True)
    assert policy.registries == (
        "ghcr.io/acme", "quay.io", "mirror.local/ghcr/acme", "mirror.local/big/",
    )  # fmt: skip
    assert work_policies(specs, mirrors, has_template=False) == ()
