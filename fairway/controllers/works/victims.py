"""Whether those that must yield to a claim are gone.

A victim may have been given another claim since, even in the same place. That one was decided
knowing of ours, so only the attempts that a claim names count.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.claim import Claim
from fairway.api.workload import Workload


def victims_left(claim: Claim, victims: Mapping[str, Workload]) -> list[str]:
    """The victims that a claim still waits for; `victims` are the workloads that still exist.

    A victim in another cluster is waited for as well: until it is gone, its quota is used.
    """
    left = []
    for wait in claim.waits_for:
        if wait.type != "Preemption" or wait.workload is None:
            continue
        key = f"{wait.workload.namespace}/{wait.workload.name}"
        found = victims.get(key)
        if found is not None and _is_here(found, wait.attempt):
            left.append(key)
    return left


def _is_here(victim: Workload, attempt: int) -> bool:
    """Whether anything of a victim is left, up to an attempt."""
    claim = victim.status.claim
    attempts = [one.attempt for one in victim.status.releasing]
    if claim is not None:
        attempts.append(claim.attempt)
    return any(one <= attempt for one in attempts)
