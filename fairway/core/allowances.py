"""What a member cluster allows in a namespace: the rest of its quotas, and what it makes of pods.

A ResourceQuota limits all pods of a namespace in one cluster. What it leaves to Fairway (its hard
limit, less what others use) is an allowance; every pod of a claim takes its part of it from the
claim on, until it is confirmed gone. So it is one more limit beside nodes and the queue's quota.

What a pod takes is known only in the cluster: the defaults of a LimitRange add to what it requests,
scopes say which quotas count it, and a rule may refuse it. An admission is the answer for one shape
in one cluster. The view works it out; the core neither reads containers nor knows scopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class AllowanceKey(NamedTuple):
    """One resource of one quota of a cluster, by the cluster's names."""

    namespace: str
    quota: str
    resource: str  # as the quota names it: requests.cpu, limits.memory, pods


Takes = tuple[tuple[AllowanceKey, int], ...]  # of one pod, in the base unit of the resource


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a quota allows: in all, and to Fairway's pods while others use the rest."""

    hard: int
    left: int  # below 0: others use more than there is


Allowances = Mapping[AllowanceKey, Allowance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What a cluster makes of a pod in its namespace."""

    added: tuple[tuple[str, int], ...] = ()  # requests that defaults add, by the fleet's names
    takes: Takes = ()  # of allowances
    refusal: str = ""  # why it refuses the pod


ADMITTED = Admission()
Admitted = tuple[tuple[str, Admission], ...]  # by cluster; in others pods are as they are written


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """An allowance that is too small for some pods."""

    key: AllowanceKey
    asked: int
    left: int
    hard: int


def counted_as(resource: str) -> str:
    """The resource that a quota counts under this name: cpu for requests.cpu and limits.cpu."""
    for prefix in ("requests.", "limits."):
        if resource.startswith(prefix):
            return resource.removeprefix(prefix)
    return resource
