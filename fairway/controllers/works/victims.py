"""Whether the victims that a claim waits for are gone.

A victim may have got another claim since, even in the same cluster. That claim was decided after
ours and leaves it room, so only the attempts that a claim names count.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.claim import Claim, WorkloadMention
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.controllers.glance import glance
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name

_SETTLED_SECONDS = 30.0


def victims_left(claim: Claim, victims: Mapping[str, Workload], now: float) -> list[str]:
    """The victims that a claim still waits for; `victims` has those that still exist.

    A claim also waits for victims in other clusters: until they are gone, their quota is used.
    """
    left, is_settled = [], now >= settled_at(claim)
    for wait in claim.waits_for:
        if wait.type != "Preemption" or wait.workload is None:
            continue
        key = mention(wait.workload)
        workload = victims.get(key)
        if workload is not None and _is_here(workload, wait.attempt, is_settled=is_settled):
            left.append(key)
    return left


def mention(victim: WorkloadMention) -> str:
    """The key of a victim: `namespace/name`, or its UID if that is all that is known."""
    return f"{victim.namespace}/{victim.name}" if victim.name else victim.uid


class Incarnations:
    """An index of workloads by UID, updated by a watch."""

    def __init__(self, cache: Cache) -> None:
        self._names: dict[str, Name] = {}
        self._uids: dict[Name, str] = {}
        mirror = cache.mirror(WORKLOADS)
        mirror.followers.append(self._follow)
        for name, stored in mirror.items():
            self._follow(name, stored)

    def name(self, victim: WorkloadMention) -> Name | None:
        """The name of a mentioned workload; None if its UID is gone."""
        if victim.name:
            return (victim.namespace, victim.name)
        return self._names.get(victim.uid)

    def _follow(self, name: Name, stored: Stored | None) -> None:
        seen = glance(stored) if stored is not None else None
        uid = seen.metadata.uid if seen is not None else ""
        before = self._uids.pop(name, "")
        if before != uid:
            self._names.pop(before, None)
        if uid:
            self._uids[name] = uid
            self._names[uid] = name


def _is_here(victim: Workload, attempt: int, *, is_settled: bool) -> bool:
    """Whether anything of a victim is left of the given or an earlier attempt.

    A victim loses its claim before the claim that waits for it is written, but a mirror that lists
    again may show the later write first. Once that is settled, a workload that still holds the
    attempt has released only a part of it, and that part is what was waited for; not so replicas
    that run until others do.
    """
    claim = victim.status.claim
    attempts = [placement.attempt for placement in victim.status.stopping]
    if claim is not None and not is_settled:
        attempts.append(claim.attempt)
    return any(number <= attempt for number in attempts)


def settled_at(claim: Claim) -> float:
    """From when on a mirror shows all that was written before a claim."""
    return claim.decided_at.timestamp() + _SETTLED_SECONDS
