"""Why manifests are not sent to a cluster; its agent would refuse them too."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api.cluster import Cluster
from fairway.api.meta import JsonObject
from fairway.api.reasons import violation_sentence
from fairway.api.work import Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.works import generated
from fairway.governance.works import refusals
from fairway.kinds import permitted


def refused_there(
    workload: Workload,
    manifests: Sequence[JsonObject],
    beside: Sequence[JsonObject],
    clusters: Sequence[Cluster],
    find_kind: permitted.FindKind,
) -> tuple[list[str], frozenset[str]]:
    """Faults of a workload's manifests that clusters do not permit, and those clusters.

    `beside` is what goes along with them.
    """
    refusing: set[str] = set()
    faults = generated.faults(workload, clusters)
    if faults:
        refusing.update(item.metadata.name for item in clusters if item.spec.simulated is None)
    for cluster in clusters:
        if cluster.spec.kubernetes is None:
            continue
        permits, name = cluster.spec.kubernetes.permits, cluster.metadata.name
        for position, several in permitted.faults_in(
            [*manifests, *beside], permits, find_kind
        ).items():
            if position < len(manifests):
                refusing.add(name)
                where = f"spec.template.manifests[{position}]"
                faults += [f"{where}.{fault} (in {name})" for fault in several]
    return faults, frozenset(refusing)


def new_violations(spec: WorkSpec, before: Work | None) -> list[str]:
    """What a change of a running work adds that fleet policies forbid: the work stays as it is.

    A new work is sent: the core allowed it, and its agent checks it again.
    """
    if before is None or before.spec.attempt != spec.attempt:
        return []
    return [violation_sentence(item) for item in refusals(spec, before.spec, None)]
