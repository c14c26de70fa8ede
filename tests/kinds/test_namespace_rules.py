"""What quotas of a namespace count of a pod, and what they require of it."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.amounts import Quantity
from fairway.api.namespaces import NamespaceLimit, NamespaceQuota, NamespaceRules
from fairway.kinds.namespace_rules import admit, limits_pods

Json = dict[str, Any]


def rules(*resources: str, **default_request: str) -> NamespaceRules:
    """A quota of these resources, and default requests of containers."""
    hard = dict.fromkeys(resources, Quantity.of(9))
    default = {name: Quantity.of(amount) for name, amount in default_request.items()}
    return NamespaceRules(
        name="team",
        quotas=(NamespaceQuota(name="q", hard=hard),) if hard else (),
        limits=(NamespaceLimit(name="l", default_request=default),) if default else (),
    )


def container(name: str = "main", *, limits: Json | None = None, **requests: str) -> Json:
    return {"name": name, "resources": {"requests": requests, "limits": limits or {}}}


def taken(spec: Json, *resources: str) -> dict[str, int]:
    """What a pod takes, in thousandths."""
    verdict = admit(spec, rules(*resources))
    assert verdict.refusal == ""
    return {resource: nanos // 10**6 for (_, resource), nanos in verdict.takes.items()}


TAKEN = {
    "containers add up": (
        {"containers": [container(cpu="1"), container("two", cpu="500m")]}, {"cpu": 1500}),
    "an init container counts if it is larger": (
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]},
        {"cpu": 3000}),
    "a sidecar counts beside the containers": (
        {"containers": [container(cpu="1")],
         "initContainers": [{**container("i", cpu="3"), "restartPolicy": "Always"}]},
        {"cpu": 4000}),
    "the overhead counts": (
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
    "a limit is a request where there is none": (
        {"containers": [container(limits={"cpu": "2"})]},
        {"requests.cpu": 2000, "limits.cpu": 2000}),
    "what the whole pod requests replaces what its containers do": (
        {"containers": [container()], "resources": {"requests": {"cpu": "2"}}}, {"cpu": 2000}),
    "a pod is a pod": ({"containers": [container()]}, {"pods": 1000, "count/pods": 1000}),
    "an extended resource counts by its request": (
        {"containers": [container(limits={"nvidia.com/gpu": "4"})]},
        {"requests.nvidia.com/gpu": 4000}),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), TAKEN.values(), ids=TAKEN)
def test_a_quota_counts(spec: Json, expected: dict[str, int]) -> None:
    assert taken(spec, *expected) == expected


def test_every_container_must_state_what_a_quota_limits() -> None:
    spec = {"containers": [container(cpu="1"), container("two")]}
    refusal = admit(spec, rules("requests.cpu")).refusal
    assert refusal == "ResourceQuota q requires requests.cpu of container two"


def test_defaults_add_to_what_is_requested() -> None:
    verdict = admit(
        {"containers": [container(), container("two", cpu="1")]},
        rules(cpu="500m", memory="1Gi"),
    )
    assert verdict.added == {"cpu": 500 * 10**6, "memory": 2 * 2**30 * 10**9}


@pytest.mark.parametrize(
    ("resource", "is_of_pods"),
    [
        ("pods", True),
        ("memory", True),
        ("limits.ephemeral-storage", True),
        ("requests.hugepages-2Mi", True),
        ("requests.nvidia.com/gpu", True),
        ("requests.storage", False),
        ("count/jobs.batch", False),
        ("services", False),
    ],
)
def test_some_resources_of_quotas_are_not_of_pods(resource: str, is_of_pods: bool) -> None:
    assert limits_pods(resource) is is_of_pods
