"""Volume claims of workloads: a bound volume pins its workload to the cluster where it was bound.

An annotation of the claim on the hub names that cluster. A claim that the workload declares
portable (it is copied, or reachable from everywhere) pins nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.workload import Workload
from fairway.kinds.registry import KnownKinds

BOUND_IN = "fairway.dev/bound-in"
CLAIM = "PersistentVolumeClaim"


def claims_of(workload: Workload, kinds: KnownKinds) -> tuple[str, ...]:
    """Names of the volume claims that a workload mounts or names, in order."""
    claims = [
        dependency.name for dependency in workload.spec.dependencies if dependency.kind == CLAIM
    ]
    for manifest in workload.spec.template.manifests if workload.spec.template else ():
        kind = kinds.of(manifest)
        if kind is not None:
            claims += [
                dependency.name
                for dependency in kind.dependencies(manifest)
                if dependency.kind == CLAIM
            ]
    return tuple(sorted(set(claims)))


def pinned_to(workload: Workload, bound_in: Mapping[str, str], kinds: KnownKinds) -> str:
    """The cluster that holds a volume of the workload; empty if none does.

    `bound_in` maps the namespace's bound claims to their clusters.
    """
    if not bound_in:
        return ""
    portable = workload.spec.portable_volumes
    claims = (claim for claim in claims_of(workload, kinds) if claim not in portable)
    return next((bound_in[claim] for claim in claims if claim in bound_in), "")
