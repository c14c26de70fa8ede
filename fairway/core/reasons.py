"""Why a workload cannot start now, as reasons: its queue, its user, clusters, room.

Nothing here decides; this module only describes what was tried and refused.

Most reasons of a plan are never read: a workload that fits nowhere has a reason for each cluster on
each rung. So the inputs of a reason are kept as they were at the refusal, which is cheap, and the
reason is computed from them when it is first read. The result is the same as if it had been
computed at once. Workloads that are refused together share their reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, overload

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.allowances import Beyond, counted_as
from fairway.core.clusters import fit_bounds, ranking
from fairway.core.clusters.candidates import (
    Avoided,
    Closed,
    Fenced,
    Forbidden,
    KindNotServed,
    NoDomain,
    NotAdmitted,
    Pinned,
    Refusal,
    Tainted,
)
from fairway.core.model import Form, Usage, Workload, unit_nanos
from fairway.core.packing import pack
from fairway.core.placement_request import PlacementRequest
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.limits import total_of

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


class Unread(Protocol):
    """Reasons that have not been read yet. The inputs that it keeps must never change."""

    def reasons(self) -> Iterable[Reason]:
        """The reasons, in order; at least one."""


class Reasons(Sequence[Reason]):
    """Reasons in order, some of them unread. It grows only until the outcome is final."""

    __slots__ = ("_parts", "_read")

    def __init__(self, reasons: Iterable[Reason] = ()) -> None:
        self._parts: list[Reason | Unread | tuple[Reason, ...]] = list(reasons)
        self._read: tuple[Reason, ...] | None = None

    # Growing.

    def append(self, reason: Reason) -> None:
        self._parts.append(reason)
        self._read = None

    def extend(self, reasons: Iterable[Reason]) -> None:
        self._parts.append(tuple(reasons))
        self._read = None

    def later(self, unread: Unread) -> None:
        """Adds reasons that are computed when they are read."""
        self._parts.append(unread)
        self._read = None

    def clear(self) -> None:
        self._parts.clear()
        self._read = None

    def has_said(self, reason: Reason) -> bool:
        """Whether a reason was added by itself; unread reasons are not computed for this."""
        return any(isinstance(part, Reason) and part == reason for part in self._parts)

    def has_code(self, code: Code) -> bool:
        """Whether a reason with a code was added; unread reasons are not computed for this."""
        return any(
            part.code == code
            if isinstance(part, Reason)
            else isinstance(part, tuple) and any(reason.code == code for reason in part)
            for part in self._parts
        )

    # Reading.

    @property
    def told(self) -> tuple[Reason, ...]:
        """All reasons, as plain values."""
        if self._read is None:
            self._read = tuple(_describe(self._parts))
            self._parts = [self._read]
        return self._read

    def __bool__(self) -> bool:
        return any(part != () for part in self._parts)

    def __len__(self) -> int:
        return len(self.told)

    @overload
    def __getitem__(self, at: int) -> Reason: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Reason, ...]: ...
    def __getitem__(self, at: int | slice) -> Reason | tuple[Reason, ...]:
        if at == 0 and self._read is None and self._parts:
            return next(_describe(self._parts))  # many callers need only the first code
        return self.told[at]

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.told)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Reasons | tuple | list):
            return self is other or self.told == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.told)

    def __repr__(self) -> str:
        return repr(self.told)

    def __reduce__(self) -> tuple[type[tuple[Reason, ...]], tuple[tuple[Reason, ...]]]:
        """Pickles as a plain tuple."""
        return (tuple, (self.told,))


def _describe(parts: Iterable[Reason | Unread | tuple[Reason, ...]]) -> Iterator[Reason]:
    for part in parts:
        if isinstance(part, Reason):
            yield part
        elif isinstance(part, tuple):
            yield from part
        else:
            yield from part.reasons()


def quota_reason(planning: PlanningRound, request: PlacementRequest) -> Reason | None:
    """Why the queue does not allow a request now; None if it does."""
    workload, usage = request.workload, request.usage
    tree, queue = planning.ledger.tree, workload.queue
    missing = {} if tree.fits(queue, usage) else tree.shortfall(queue, usage)
    # The quota that a workload which is not preemptible borrows could not be reclaimed.
    must_own = not workload.preemptible and tree.borrow_level(queue, usage) > 0
    if must_own:
        left = {pair: tree.left_within(queue, pair, 0) for pair in usage}
        missing = {pair: more for pair in usage if (more := usage[pair] - left[pair]) > 0}
    if not missing:
        return user_reason(planning, request) or _kept_quota(planning, request)
    uncovered = tree.uncovered(queue, usage)
    if uncovered:
        return Reason(code=Code.NOT_COVERED, queue=queue, other=", ".join(uncovered))
    most = tree.subtree_quota if must_own else tree.potential_available
    never = {pair: more for pair in missing if (more := usage[pair] - most(queue, pair)) > 0}
    owner = None if never or must_own else planning.kept_quota.keeper(queue, usage)
    if owner is not None:
        return Reason(
            code=Code.KEPT_FOR_OWNER, queue=owner.queue, flavor=request.flavor, other=owner.key
        )
    return Reason(
        code=Code.QUOTA_TOO_SMALL if never else Code.QUOTA_EXCEEDED,
        queue=queue,
        flavor=request.flavor,
        level="queue" if must_own else "",
        short=in_nanos(never or missing),
    )


def no_flavor(planning: PlanningRound, workload: Workload, form: Form) -> Reason:
    """That no flavor of its queue suits a workload; names the one that only its provider spoils."""
    bold = planning.assignments(replace(workload, preemptible=True), form)
    for name in (name for option in bold for name in option.names):
        if planning.snapshot.facts.flavors[name].is_interruptible:
            why = "its nodes may be reclaimed, and the workload is not preemptible"
            return Reason(code=Code.NO_FLAVOR, queue=workload.queue, flavor=name, other=why)
    return Reason(code=Code.NO_FLAVOR, queue=workload.queue)


def user_reason(planning: PlanningRound, request: PlacementRequest) -> Reason | None:
    """Why the limits of the user do not allow a request; None if they do."""
    workload = request.workload
    allowed = planning.claims.left_for_user(workload)
    total = total_of(request.usage) if allowed else {}
    for resource, (left, queue) in sorted(allowed.items()):
        if total.get(resource, 0) > left:
            return Reason(code=Code.USER_LIMIT_EXCEEDED, queue=queue, other=workload.user)
    return None


def place_reason(planning: PlanningRound, workload: Workload) -> Reason | None:
    """That a queue has no place for another pending workload; None if it has."""
    full = planning.without_place.get(workload.key)
    if full is None:
        return None
    user = workload.user if full.is_for_user else ""
    return Reason(code=Code.QUEUE_FULL, queue=full.queue, count=full.most, other=user)


def _kept_quota(planning: PlanningRound, request: PlacementRequest) -> Reason | None:
    """Why the queue keeps its quota: for a workload with a reservation that ranks before."""
    if not planning.reservations:
        return None
    hold = planning.reservations.quota_keeper(request)
    if hold is None:
        return None
    return Reason(
        code=Code.RESERVED,
        queue=request.workload.queue,
        flavor=request.flavor,
        other=hold.workload.key,
    )


def in_nanos(amounts: Usage) -> tuple[tuple[str, int], ...]:
    total: dict[str, int] = {}
    for (_, resource), amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount * unit_nanos(resource)
    return tuple(sorted(total.items()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoRoom:
    """No cluster of a group has room on some flavors: one reason per cluster, best first."""

    group: str
    option: Assignment
    ranked: Sequence[ranking.Ranked]
    chance: fit_bounds.Chance
    position: Mapping[str, int]  # of each cluster in the columns of the chance
    refused: Mapping[str, Reason]  # of clusters where a packing was tried

    def reasons(self) -> Iterator[Reason]:
        worst, flavor = self.chance.worst(), ",".join(self.option.names)
        for ranked_cluster in self.ranked:
            reason = self.refused.get(ranked_cluster.cluster)
            if reason is None:
                count, name = worst[self.position[ranked_cluster.cluster]]
                reason = no_room(ranked_cluster.cluster, self.group, flavor, name, count)
            yield reason


def no_room(cluster: str, group: str, flavor: str, pod_set: str, count: int) -> Reason:
    """`count` pods of a set do not fit in a cluster."""
    return Reason(
        code=Code.DOES_NOT_FIT,
        cluster=cluster,
        group=group,
        rung="Idle",
        flavor=flavor,
        pod_set=pod_set,
        count=count,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoPools:
    """No cluster of a group has elastic pools: one reason per cluster, best first."""

    ranked: Sequence[ranking.Ranked]

    def reasons(self) -> Iterator[Reason]:
        return (no_pool(ranked_cluster.cluster) for ranked_cluster in self.ranked)


def no_pool(cluster: str) -> Reason:
    """A cluster has no elastic pool that would help."""
    return Reason(code=Code.NO_POOL, cluster=cluster, rung="Provision")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MayNotUse:
    """Clusters that may not be used, whatever is free there."""

    refused: tuple[tuple[str, Refusal], ...]

    def reasons(self) -> Iterator[Reason]:
        return (refusal_reason(*pair) for pair in self.refused)


def kept_reason(
    planning: PlanningRound, request: PlacementRequest, group: str, cluster: str
) -> Reason | None:
    """The reservation but for which a request would fit; None if it would not fit anyway."""
    if not planning.reservations:
        return None
    hold = planning.reservations.keeper(request, cluster)
    if hold is None:
        return None
    return Reason(
        code=Code.RESERVED,
        cluster=cluster,
        group=group,
        rung="Idle",
        flavor=request.flavor,
        other=hold.workload.key,
        until=hold.spot.starts_at if hold.spot is not None else 0.0,
    )


def no_room_for_more(
    planning: PlanningRound,
    request: PlacementRequest,
    group: str,
    clusters: Sequence[str],
    missing: int,
) -> NoRoomForMore:
    """The clusters that lack room for `missing` more replicas or tasks, as they are now."""
    kept = {
        name: reason
        for name in clusters
        if (
            reason := kept_reason(planning, request, group, name)
            or not_allowed(planning, request, group, name)
        )
        is not None
    }
    pods = request.form.pod_sets[0]
    return NoRoomForMore(
        group=group,
        flavor=request.flavor,
        pod_set=pods.name,
        count=pods.count * missing,
        clusters=clusters,
        kept=kept,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoRoomForMore:
    """Clusters of a group that lack room for the rest of a service or a sweep."""

    group: str
    flavor: str
    pod_set: str
    count: int
    clusters: Sequence[str]
    kept: Mapping[str, Reason]  # where room is reserved for others, or their quota is used up

    def reasons(self) -> Iterator[Reason]:
        for name in self.clusters:
            yield self.kept.get(name) or no_room(
                name, self.group, self.flavor, self.pod_set, self.count
            )


def shortage_reason(
    cluster: str, group: str, rung: Rung, option: Assignment, shortage: pack.Shortage
) -> Reason:
    if shortage.refusal:
        return refusal_reason(cluster, NotAdmitted(shortage.refusal))
    if shortage.beyond is not None:
        return allowance_reason(cluster, group, rung, shortage.beyond)
    worst = max(shortage.short, key=lambda short: (short.missing, short.name))
    return Reason(
        code=Code.DOES_NOT_FIT,
        cluster=cluster,
        group=group,
        rung=rung,
        flavor=",".join(option.names),
        pod_set=worst.name,
        count=worst.missing,
    )


def allowance_reason(cluster: str, group: str, rung: Rung, short: Beyond) -> Reason:
    """That the quota of a namespace in a cluster leaves too little of a resource."""
    resource = short.key.resource
    unit = unit_nanos(counted_as(resource))
    return Reason(
        code=Code.NAMESPACE_QUOTA_EXCEEDED,
        cluster=cluster,
        group=group,
        rung=rung,
        rule=resource,
        other=f"{short.key.namespace}/{short.key.quota}",
        short=(
            ("asked", short.asked * unit),
            ("hard", short.hard * unit),
            ("left", max(0, short.left) * unit),
        ),
    )


def not_allowed(
    planning: PlanningRound, request: PlacementRequest, group: str, cluster: str
) -> Reason | None:
    """The allowance that is too small for a request in a cluster; None: all are large enough."""
    if not planning.cluster(cluster).allowances:
        return None
    wants = planning.bare_wants(cluster, request.assignment, request.form)
    short = pack.short_allowances(planning.ledger.rooms[cluster], wants)
    return allowance_reason(cluster, group, "Idle", short[0]) if short else None


def warnings(planning: PlanningRound) -> tuple[Reason, ...]:
    """Faults of the fleet, whatever waits: nodes that have two flavors of one group."""
    return tuple(
        Reason(
            code=Code.FLAVORS_OVERLAP,
            cluster=overlap.cluster,
            flavor=overlap.first,
            other=overlap.second,
            count=overlap.count,
        )
        for overlap in planning.snapshot.overlaps()
    )


def warnings_for(planning: PlanningRound, workload: Workload) -> Iterator[Reason]:
    """The warnings about nodes that a workload could use otherwise."""
    reasons = warnings(planning)
    if not reasons:
        return
    allowed = planning.candidates(workload).allowed
    flavors = {
        name
        for form in workload.forms
        for option in planning.assignments(workload, form)
        for name in option.names
    }
    for reason in reasons:
        if reason.cluster in allowed and (reason.flavor in flavors or reason.other in flavors):
            yield reason


def refusal_reason(cluster: str, refusal: Refusal) -> Reason:
    """Why a cluster may not be used, as a reason."""
    match refusal:
        case Fenced(queue=queue):
            return Reason(code=Code.FENCED, cluster=cluster, queue=queue)
        case Forbidden(policy=policy):
            return Reason(
                code=Code.CLUSTER_FORBIDDEN, cluster=cluster, policy=policy, rule="clusters"
            )
        case Tainted(taint=taint):
            return Reason(code=Code.TAINTED, cluster=cluster, other=f"{taint.key}:{taint.effect}")
        case Closed(why=why):
            return Reason(code=Code.CLOSED, cluster=cluster, other=why)
        case KindNotServed(kind=kind):
            return Reason(code=Code.KIND_NOT_SERVED, cluster=cluster, other=kind)
        case NotAdmitted(why=why):
            return Reason(code=Code.NOT_ADMITTED, cluster=cluster, other=why)
        case Pinned(elsewhere=elsewhere):
            return Reason(code=Code.PINNED, cluster=cluster, other=elsewhere)
        case Avoided(refusal=said):
            code = Code.TEMPLATE_REFUSED if said else Code.AVOIDED
            return Reason(code=code, cluster=cluster, other=said)
        case NoDomain():
            return Reason(code=Code.SPREAD_UNMET, cluster=cluster, other="it lacks the label")
        case _:
            return Reason(code=Code.NOT_SELECTED, cluster=cluster)
