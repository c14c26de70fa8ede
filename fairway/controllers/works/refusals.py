"""Why manifests are not sent to a cluster; its agent would refuse them too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairway.api.cluster import Cluster
from fairway.api.meta import JsonObject
from fairway.api.reasons import violation_sentence
from fairway.api.work import Work, WorkSpec
from fairway.governance.works import refusals
from fairway.kinds import permitted


def not_permitted(
    manifests: Sequence[JsonObject],
    own: int,
    clusters: Sequence[Cluster],
    find_kind: permitted.FindKind,
) -> Iterator[str]:
    """Faults of manifests that clusters do not permit; the first `own` are the workload's own."""
    for cluster in clusters:
        if cluster.spec.kubernetes is None:
            continue
        faults = permitted.faults_in(manifests, cluster.spec.kubernetes.permits, find_kind)
        for position, several in faults.items():
            if position < own:
                where = f"spec.template.manifests[{position}]"
                yield from (f"{where}.{name} (in {cluster.metadata.name})" for name in several)


def new_violations(spec: WorkSpec, before: Work | None) -> list[str]:
    """What a change of a running work adds that fleet policies forbid: the work stays as it is.

    A new work is sent: the core allowed it, and its agent checks it again.
    """
    if before is None or before.spec.attempt != spec.attempt:
        return []
    return [violation_sentence(item) for item in refusals(spec, before.spec, None)]
