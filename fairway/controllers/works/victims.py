"""Whether those that must yield to a claim are gone.

A victim may have been given another claim since, even in the same place; that one was decided
knowing of ours, so only what it held before counts: the terms of claims tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.claim import Claim
from fairway.api.workload import Workload


def victims_left(claim: Claim, victims: Mapping[str, Workload]) -> list[str]:
    """The victims that a claim still waits for; `victims` are the workloads that still exist."""
    clusters = {one.cluster for one in claim.placements}
    left = []
    for wait in claim.waits_for:
        if wait.type != "Preemption" or wait.workload is None:
            continue
        key = f"{wait.workload.namespace}/{wait.workload.name}"
        found = victims.get(key)
        where = {wait.cluster} if wait.cluster else clusters
        if found is not None and _is_in(found, where, claim.term):
            left.append(key)
    return left


def _is_in(victim: Workload, clusters: set[str], term: int) -> bool:
    status = victim.status
    if any(one.cluster in clusters for one in status.releasing):
        return True
    return (
        status.claim is not None
        and status.claim.term < term
        and any(one.cluster in clusters for one in status.claim.placements)
    )
