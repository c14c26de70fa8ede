"""Manifests of workloads that have only pod sets.

Such a workload has no program. A simulated cluster needs none: it runs pods of the requested size
for the expected time. So a gang becomes a Job for each pod set, a service a Deployment for each,
and a task one index of a Job. Each object is marked, and none is ever sent to a real cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api.claim import Placement
from fairway.api.cluster import Cluster
from fairway.api.codec import to_plain
from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.api.workload import Workload
from fairway.kinds.decision import plain_toleration
from fairway.kinds.pods import POD_SET_LABEL

GENERATED = "fairway.dev/generated-from"
_CONTAINER = "main"
_IMAGE = "fairway.dev/no-program"


def faults(workload: Workload, clusters: Sequence[Cluster]) -> list[str]:
    """Why a workload without a template cannot run in its clusters."""
    if workload.spec.template is not None:
        return []
    real = [cluster.metadata.name for cluster in clusters if cluster.spec.simulated is None]
    if real:
        where = ", ".join(sorted(real))
        why = f"without one there is nothing to run in {where}"
        return [f"spec.template: {why}; only simulated clusters run pod sets alone"]
    is_sweep = workload.spec.mode == "Independent"
    if is_sweep and [pod_set.count for pod_set in workload.spec.pod_sets] != [1]:
        return ["spec.podSets: without a template a task is one pod set of one pod"]
    return []


def manifests(workload: Workload, placement: Placement) -> list[JsonObject]:
    """An object for each pod set of a placement, with its counts."""
    given = {pod_set.name: pod_set for pod_set in workload.spec.pod_sets}
    make = _deployment if workload.spec.mode == "Divided" else _job
    return [
        make(workload, given[pod_set.name], pod_set.count)
        for pod_set in placement.pod_sets
        if pod_set.name in given and pod_set.count
    ]


def _job(workload: Workload, pods: PodSet, count: int) -> JsonObject:
    spec = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimit": 0,
        "template": _template(pods, restarts="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(workload, pods),
        "spec": spec,
    }


def _deployment(workload: Workload, pods: PodSet, count: int) -> JsonObject:
    template = _template(pods, restarts="Always")
    labels = {POD_SET_LABEL: pods.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(workload, pods),
        "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template},
    }


def _metadata(workload: Workload, pods: PodSet) -> JsonObject:
    """Named after the workload, and after the pod set if there are several."""
    own = workload.metadata.name
    return {
        "name": own if len(workload.spec.pod_sets) == 1 else f"{own}-{pods.name}",
        "namespace": workload.metadata.namespace,
        "annotations": {GENERATED: f"podSets/{pods.name}"},
    }


def _template(pods: PodSet, *, restarts: str) -> JsonObject:
    amounts = {resource: str(amount) for resource, amount in pods.requests.items()}
    spec: JsonObject = {
        "restartPolicy": restarts,
        "containers": [
            {
                "name": _CONTAINER,
                "image": _IMAGE,
                "resources": {"requests": amounts, "limits": dict(amounts)},
            }
        ],
    }
    if pods.node_selector:
        spec["nodeSelector"] = dict(pods.node_selector)
    if pods.node_affinity:
        terms = [to_plain(term) for term in pods.node_affinity]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    if pods.tolerations:
        spec["tolerations"] = [plain_toleration(toleration) for toleration in pods.tolerations]
    return {"metadata": {"labels": {POD_SET_LABEL: pods.name}}, "spec": spec}
