"""Pod sets of workloads that do not list them: from the pod templates of their first manifest.

Only kinds whose pods are plain to see are read here: one pod template and a number. What needs more
knowledge of a kind lists its pod sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.api.amounts import Amounts, Quantity
from fairway.api.podset import PodSet
from fairway.api.workload import Workload

# Where the number of pods stands, by kind; the pods of a Job run so many at a time.
_COUNTS = {
    ("batch/v1", "Job"): "parallelism",
    ("apps/v1", "Deployment"): "replicas",
    ("apps/v1", "StatefulSet"): "replicas",
}


def derived_pod_sets(workload: Workload) -> tuple[PodSet, ...]:
    """The pod sets of a workload's first manifest; none where its kind is not known."""
    if workload.spec.template is None:
        return ()
    manifest: Mapping[str, Any] = workload.spec.template.manifests[0]
    kind = (str(manifest.get("apiVersion")), str(manifest.get("kind")))
    spec = _map(manifest.get("spec"))
    if kind == ("v1", "Pod"):
        return (_pod_set("pod", spec, 1),)
    if kind not in _COUNTS:
        return ()
    count = spec.get(_COUNTS[kind])
    pod = _map(_map(spec.get("template")).get("spec"))
    # The replicas of a Divided workload multiply its pod sets.
    is_divided = workload.spec.mode == "Divided"
    return (_pod_set("pod", pod, 1 if is_divided or not isinstance(count, int) else count),)


def _pod_set(name: str, pod: Mapping[str, Any], count: int) -> PodSet:
    return PodSet(
        name=name,
        count=count,
        requests=pod_requests(pod),
        node_selector={str(k): str(v) for k, v in _map(pod.get("nodeSelector")).items()},
    )


def pod_requests(pod: Mapping[str, Any]) -> dict[str, Quantity]:
    """What a pod needs, as Kubernetes counts it.

    Containers run together and add up; an init container runs alone, beside the sidecars (init
    containers that stay) started before it; the larger of both counts, and the overhead is added.
    """
    running = Amounts()
    for container in pod.get("containers") or ():
        running = running.plus(_requests(container))
    starting, sidecars = Amounts(), Amounts()
    for container in pod.get("initContainers") or ():
        needed = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = sidecars.plus(needed)
            starting = _larger(starting, sidecars)
        else:
            starting = _larger(starting, sidecars.plus(needed))
    total = _larger(running.plus(sidecars), starting)
    overhead = Amounts.of({k: Quantity.of(v) for k, v in _map(pod.get("overhead")).items()})
    return total.plus(overhead).quantities()


def _requests(container: Mapping[str, Any]) -> Amounts:
    """Requests of a container; where only a limit is given, it is the request."""
    resources = _map(container.get("resources"))
    merged = {**_map(resources.get("limits")), **_map(resources.get("requests"))}
    return Amounts.of({key: Quantity.of(value) for key, value in merged.items()})


def _larger(one: Amounts, other: Amounts) -> Amounts:
    names = {*one, *other}
    return Amounts({name: max(one[name], other[name]) for name in names})


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
