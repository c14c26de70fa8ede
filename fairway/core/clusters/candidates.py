"""Which clusters a workload may use, in which groups, and why not the others.

The policy selects and groups clusters, the queue and fleet policies fence them, the workload may be
pinned or avoid some, and a cluster may be closed, tainted, lack a kind, or not admit such pods in
the workload's namespace. Each refusal is a value of a closed set. The first that holds is reported,
lasting ones before temporary ones, so that users first read what they would have to change.

This module does not check for room, only whether pods of the workload are allowed. A result that
depends on time says when it next changes, so that the scheduler can sleep until then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairway.api.meta import Rung, Taint, Toleration, in_utc
from fairway.core.clusters.spread import domain
from fairway.core.model import Clusters, Placed, Policy, Queue, Workload
from fairway.core.nodes import Cluster
from fairway.core.packing.eligibility import tolerates

RUNGS: tuple[Rung, ...] = ("Idle", "Preempt", "Provision")
EVER = float("inf")


@dataclass(frozen=True, slots=True)
class NotSelected:
    """The policy does not select the cluster."""


@dataclass(frozen=True, slots=True)
class InNoGroup:
    """The policy has groups, and the cluster is in none of them."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """The queue, or an ancestor, does not allow the cluster."""

    queue: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A fleet policy does not allow the cluster."""

    policy: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """The workload has a volume in another cluster."""

    elsewhere: str


@dataclass(frozen=True, slots=True)
class NoDomain:
    """A required spread rule needs a label that the cluster lacks."""

    label: str


@dataclass(frozen=True, slots=True)
class KindNotServed:
    """The cluster does not serve a kind of the workload."""

    kind: str


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """The rules of the cluster for the workload's namespace refuse its pods."""

    why: str


@dataclass(frozen=True, slots=True)
class Tainted:
    """The cluster has a taint that is not tolerated, or no longer tolerated."""

    taint: Taint


@dataclass(frozen=True, slots=True)
class Closed:
    """The cluster takes no new pods."""

    why: str


@dataclass(frozen=True, slots=True)
class Avoided:
    """The workload failed in the cluster because of the cluster."""

    refusal: str = ""  # what the cluster said, if it refused the template


Refusal = (
    NotSelected
    | InNoGroup
    | Fenced
    | Forbidden
    | Pinned
    | NoDomain
    | KindNotServed
    | NotAdmitted
    | Tainted
    | Closed
    | Avoided
)


def evicts(refusal: Refusal) -> bool:
    """Whether running pods are evicted, in addition to no new pods being allowed."""
    return isinstance(refusal, Tainted) and refusal.taint.effect == "NoExecute"


class Names(tuple[str, ...]):
    """Names of clusters, hashed once: they are the key of many caches, and there may be many."""

    _hash: int

    def __new__(cls, names: Iterable[str] = ()) -> Names:
        result = super().__new__(cls, names)
        result._hash = tuple.__hash__(result)
        return result

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The clusters that may be used, by group in the policy's order, and why not the others."""

    groups: tuple[tuple[str, Names], ...]  # clusters by name; empty groups included
    allowed: Names  # all clusters that may be used, those of earlier groups first
    refused: tuple[tuple[str, Refusal], ...]  # by name of the cluster
    unwelcome: frozenset[str]  # allowed, but a last choice: PreferNoSchedule, or borne for a time
    changes_at: float | None  # when the next toleration expires

    def in_group(self, group: str) -> Names:
        """Clusters of a group; an empty name means all groups, unless a group has that name."""
        for name, clusters in self.groups:
            if name == group:
                return clusters
        return self.allowed if group == "" else Names()

    def group_of(self) -> dict[str, str]:
        return {cluster: group for group, names in self.groups for cluster in names}


def likeness(workload: Workload | None, policy: Policy, queue: Queue | None) -> Hashable:
    """What `candidates` depends on: equal likeness, equal candidates (at one moment)."""
    if workload is None:
        return (policy.key, _fenced(queue))
    return (
        policy.key,
        _fenced(queue),
        workload.fleet_policies,
        workload.kinds,
        workload.pinned_to,
        workload.avoids,
        workload.refusals,
        workload.not_admitted,
        workload.copies_over,
    )


def _fenced(queue: Queue | None) -> str | None:
    """The name of a queue with a fence; queues without a fence allow the same clusters."""
    return None if queue is None or queue.fence is None else queue.name


def candidates(
    workload: Workload | None,
    policy: Policy,
    queue: Queue | None,
    clusters: Mapping[str, Cluster],
    now: float,
) -> Candidates:
    """Sorts the clusters of the fleet into allowed and refused.

    Without a workload or a queue, their checks are skipped: a policy may choose clusters by itself.
    A cluster in which a copy of the workload has succeeded is neither: nothing is to run there.
    """
    over = workload.copies_over if workload is not None else ()
    grouped: dict[str, list[str]] = {name: [] for name in group_names(policy)}
    refused: list[tuple[str, Refusal]] = []
    unwelcome: set[str] = set()
    changes_at = EVER
    for name in sorted(clusters):
        if name in over:
            continue
        cluster = clusters[name]
        refusal = _lasting(cluster, workload, policy, queue)
        if refusal is None:
            until, refusal = _borne(cluster.taints, policy.tolerations, now)
            changes_at = min(changes_at, until)
            refusal = refusal or _passing(cluster, workload)
        if refusal is not None:
            refused.append((name, refusal))
            continue
        group = group_of(name, policy)
        assert group is not None, "a cluster of no group was refused before"
        grouped[group].append(name)
        if until != EVER or not _is_welcome(cluster.taints, policy.tolerations):
            unwelcome.add(name)
    return Candidates(
        groups=tuple((group, Names(names)) for group, names in grouped.items()),
        allowed=Names(name for names in grouped.values() for name in names),
        refused=tuple(refused),
        unwelcome=frozenset(unwelcome),
        changes_at=None if changes_at == EVER else changes_at,
    )


def group_names(policy: Policy) -> tuple[str, ...]:
    """Names of the policy's groups in order; one unnamed group where it has none."""
    return tuple(group.name for group in policy.groups) or ("",)


def group_of(cluster: str, policy: Policy) -> str | None:
    """The first group that contains a cluster; None: the policy has groups, but none does."""
    if not policy.groups:
        return ""
    for group in policy.groups:
        if _chooses(group.clusters, cluster):
            return group.name
    return None


def is_outside(cluster: str, policy: Policy, queue: Queue | None) -> bool:
    """Whether a policy, or the fence of a queue, does not allow a cluster at all."""
    if not _chooses(policy.clusters, cluster) or group_of(cluster, policy) is None:
        return True
    return queue is not None and not _chooses(queue.fence, cluster)


def is_misplaced(placed: Sequence[Placed], policy: Policy, queue: Queue | None) -> bool:
    """Whether a service has replicas outside its policy, or more than the policy's limits."""
    most = policy.division.cluster_max
    limits = {group.name: group.replicas_max for group in policy.groups}
    held: dict[str, int] = {}
    for placement in placed:
        if is_outside(placement.cluster, policy, queue):
            return True
        if most is not None and placement.replicas > most:
            return True
        group = group_of(placement.cluster, policy) or ""
        held[group] = held.get(group, 0) + placement.replicas
    return any(
        limit is not None and count > limit
        for count, limit in ((count, limits.get(group)) for group, count in held.items())
    )


def ladder(policy: Policy, groups: Sequence[str]) -> tuple[tuple[str, Rung], ...]:
    """Ways to get capacity, in the order in which they are tried.

    The policy's ladder; else, for each group in order: use idle capacity, preempt, provision.
    """
    return policy.ladder or tuple((group, rung) for group in groups for rung in RUNGS)


def borne_until(taint: Taint, tolerations: Iterable[Toleration]) -> float:
    """Until when a taint is tolerated, by the toleration that lasts longest.

    This decides on placing and on evicting alike: what a taint evicts is not placed there again
    while the taint stands. `toleration_seconds` limits only NoExecute and counts from when the
    taint was added; while that time is not noted yet, there is no limit. Minus infinity: not
    tolerated.
    """
    until = -EVER
    for toleration in tolerations:
        if not tolerates(toleration, taint):
            continue
        seconds = toleration.toleration_seconds
        if seconds is None or taint.effect != "NoExecute" or taint.time_added is None:
            return EVER
        until = max(until, in_utc(taint.time_added).timestamp() + seconds)
    return until


def evicted_at(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """When the first of some taints evicts what runs; infinity: none does."""
    return min(
        (borne_until(taint, tolerations) for taint in taints if taint.effect == "NoExecute"),
        default=EVER,
    )


def _lasting(
    cluster: Cluster, workload: Workload | None, policy: Policy, queue: Queue | None
) -> Refusal | None:
    """A refusal that holds until a user changes something."""
    name = cluster.name
    if not _chooses(policy.clusters, name):
        return NotSelected()
    if group_of(name, policy) is None:
        return InNoGroup()
    if queue is not None and not _chooses(queue.fence, name):
        return Fenced(queue.name)
    for rules in workload.fleet_policies if workload is not None else ():
        if rules.is_enforced and not _chooses(rules.clusters, name):
            return Forbidden(rules.name)
    if workload is not None and workload.pinned_to not in ("", name):
        return Pinned(workload.pinned_to)
    for rule in policy.spread:
        if not rule.is_preferred and domain(cluster, rule) is None:
            return NoDomain(rule.label or rule.by)
    return None if workload is None else _of_template(cluster, workload)


def _of_template(cluster: Cluster, workload: Workload) -> Refusal | None:
    """A refusal for what is in the template: its kinds and its pods."""
    for kind in workload.kinds:
        if not cluster.serves(kind):
            return KindNotServed(kind)
    for name, why in workload.not_admitted:
        if name == cluster.name:
            return NotAdmitted(why)
    return None


def _borne(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], now: float
) -> tuple[float, Refusal | None]:
    """Until when all taints are tolerated; else the first that is not, evicting taints first."""
    earliest = EVER
    refusal: Tainted | None = None
    for taint in taints:
        if taint.effect == "PreferNoSchedule":
            continue
        until = borne_until(taint, tolerations)
        if until > now:
            earliest = min(earliest, until)
        elif refusal is None or _severity(taint) < _severity(refusal.taint):
            refusal = Tainted(taint)
    return (EVER, refusal) if refusal is not None else (earliest, None)


def _severity(taint: Taint) -> tuple[bool, str, str]:
    return (taint.effect != "NoExecute", taint.key, taint.value)


def _passing(cluster: Cluster, workload: Workload | None) -> Refusal | None:
    """A refusal that may end by itself."""
    if not cluster.is_open:
        return Closed(cluster.closed_because)
    if workload is not None and cluster.name in workload.avoids:
        return Avoided(dict(workload.refusals).get(cluster.name, ""))
    return None


def _is_welcome(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect == "PreferNoSchedule"
    )


def _chooses(chosen: Clusters, cluster: str) -> bool:
    return chosen is None or cluster in chosen
