"""Drivers under contract: what a test needs of one, whatever time it runs on.

A `Rig` is a cluster with its driver. Tests never wait by themselves: they say what they wait for,
and the rig lets time pass, virtual or real, until it is so. Works are Jobs whose pods sleep: a
driver with real processes runs them, one without goes by the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fairway.agent.drivers.interface import Driver, Observation, PodSeen, WorkSeen
from fairway.api.meta import ObjectMeta, WorkloadReference
from fairway.api.work import Manifest, Stop, Work, WorkPodSet, WorkSpec

LONG = 3600  # seconds; longer than any test
Plain = dict[str, Any]


class Rig(Protocol):
    """A cluster under test."""

    driver: Driver
    quick_seconds: float  # how long a quick pod should sleep here

    async def until(self, holds: Callable[[Observation], bool], what: str) -> Observation:
        """Lets time pass until something is seen; fails with `what` if it takes too long."""
        ...

    async def restart(self) -> None:
        """Closes the driver and opens another one on the same cluster."""
        ...


def job(name: str, *, pods: int = 1, seconds: float = LONG, cpu: str = "100m") -> Plain:
    """A Job whose pods sleep and then succeed."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "busybox",
                            "command": ["sleep", str(seconds)],
                            "resources": {"requests": {"cpu": cpu}},
                        }
                    ],
                }
            },
        },
    }


def service(name: str, *, replicas: int = 1) -> Plain:
    """A Deployment whose pods run until they are stopped."""
    template = job(name)["spec"]["template"]["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {**template, "restartPolicy": "Always"},
            },
        },
    }


def config_map(name: str, **data: str) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def work(
    name: str,
    *manifests: Plain | Manifest,
    attempt: int = 1,
    term: int = 1,
    pods: int = 1,
    seconds: float | None = None,
    grace_seconds: int = 2,
    pod_sets: Mapping[str, int] | None = None,
    **spec: Any,
) -> Work:
    """A work of the cluster `here`; without manifests, one of a Job of so many pods."""
    given = manifests or (job(name, pods=pods, seconds=LONG if seconds is None else seconds),)
    return Work(
        metadata=ObjectMeta(name=f"team.{name}", namespace="fairway-cluster-here", generation=1),
        spec=WorkSpec(
            **{
                "cluster": "here",
                "workload": WorkloadReference(namespace="team", name=name),
                "attempt": attempt,
                "term": term,
                "manifests": tuple(
                    item if isinstance(item, Manifest) else Manifest(object=item) for item in given
                ),
                "pod_sets": tuple(
                    WorkPodSet(name=key, count=count)
                    for key, count in (pod_sets or {"pod": pods}).items()
                ),
                "stop": Stop(grace_seconds=grace_seconds),
                "run_seconds_estimate": None if seconds is None else max(1, int(seconds)),
                **spec,
            }
        ),
    )


def seen(observation: Observation, of: Work) -> WorkSeen | None:
    return observation.works.get(of.metadata.name)


def pods_of(observation: Observation, of: Work) -> tuple[PodSeen, ...]:
    found = seen(observation, of)
    return found.pods if found else ()


def in_phase(of: Work, phase: str, count: int = 1) -> Callable[[Observation], bool]:
    """Whether a work has exactly so many pods, all in one phase."""

    def holds(observation: Observation) -> bool:
        pods = pods_of(observation, of)
        return len(pods) == count and all(pod.phase == phase for pod in pods)

    return holds


def has_no_pods(of: Work) -> Callable[[Observation], bool]:
    return lambda observation: not pods_of(observation, of)


def is_absent(of: Work) -> Callable[[Observation], bool]:
    return lambda observation: of.metadata.name not in observation.works
