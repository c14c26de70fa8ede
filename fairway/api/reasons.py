"""Why a workload waits, or a decision was made: a closed set, and its one place of English.

A reason is a code with what it concerns and the amounts that are missing. Programs compare codes;
people read `sentence`. What is stored in objects is the code alone; the rest is computed when read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fairway.api.amounts import Quantity, family_of, is_accelerator
from fairway.api.governance import Violation


class Code(StrEnum):
    """Every reason there is."""

    # The workload itself.
    HELD = "Held"
    STILL_ENDING = "StillEnding"
    RUNS_ALREADY = "RunsAlready"
    BACK_OFF = "BackOff"
    IMPOSSIBLE = "Impossible"
    PARTLY_PLACED = "PartlyPlaced"
    POLICY_VIOLATED = "PolicyViolated"
    DEVICES_NOT_COUNTED = "DevicesNotCounted"
    PODS_NOT_COUNTED = "PodsNotCounted"
    # Its queue.
    NO_QUEUE = "NoQueue"
    QUEUE_HELD = "QueueHeld"
    QUEUE_BROKEN = "QueueBroken"
    NOT_A_SUBMITTER = "NotASubmitter"
    BEHIND_HEAD = "BehindHead"
    QUEUE_FULL = "QueueFull"
    CLAIMS_EXCEEDED = "ClaimsExceeded"
    USER_LIMIT_EXCEEDED = "UserLimitExceeded"
    QUOTA_EXCEEDED = "QuotaExceeded"
    QUOTA_TOO_SMALL = "QuotaTooSmall"
    # Flavors.
    NO_FLAVOR = "NoFlavor"
    NOT_COVERED = "NotCovered"
    HOLDING_OUT = "HoldingOut"
    FLAVORS_OVERLAP = "FlavorsOverlap"
    # Clusters.
    NO_CLUSTER = "NoCluster"
    NOT_SELECTED = "NotSelected"
    FENCED = "Fenced"
    CLUSTER_FORBIDDEN = "ClusterForbidden"
    TAINTED = "Tainted"
    CLOSED = "Closed"
    KIND_NOT_SERVED = "KindNotServed"
    NOT_ADMITTED = "NotAdmitted"
    PINNED = "Pinned"
    AVOIDED = "Avoided"
    TEMPLATE_REFUSED = "TemplateRefused"
    SPREAD_UNMET = "SpreadUnmet"
    REPLICAS_LIMITED = "ReplicasLimited"
    # Capacity.
    DOES_NOT_FIT = "DoesNotFit"
    NAMESPACE_QUOTA_EXCEEDED = "NamespaceQuotaExceeded"
    RESERVED = "Reserved"
    KEPT_FOR_OWNER = "KeptForOwner"
    NO_VICTIMS = "NoVictims"
    NO_POOL = "NoPool"
    OUT_OF_STOCK = "OutOfStock"
    STOCK_UNKNOWN = "StockUnknown"
    BREAKER_OPEN = "BreakerOpen"
    # Decisions.
    PREEMPTED_WITHIN_QUEUE = "PreemptedWithinQueue"
    PREEMPTED_TO_RECLAIM = "PreemptedToReclaim"
    PREEMPTED_FOR_FAIR_SHARE = "PreemptedForFairShare"
    PREEMPTED_WHILE_BORROWING = "PreemptedWhileBorrowing"
    RETURNS_HOME = "ReturnsHome"
    NO_LONGER_ALLOWED = "NoLongerAllowed"
    REBALANCED = "Rebalanced"
    # Ends of attempts; those by fault of place or program are causes of their own.
    CANCELLED = "Cancelled"
    DELETED = "Deleted"
    DRAINED = "Drained"
    QUEUE_DRAINED = "QueueDrained"
    CLUSTER_DRAINED = "ClusterDrained"
    CLUSTER_TAINTED = "ClusterTainted"
    CLUSTER_LOST = "ClusterLost"
    CLUSTER_REMOVED = "ClusterRemoved"
    NOT_READY_IN_TIME = "NotReadyInTime"
    PENDING_TOO_LONG = "PendingTooLong"
    RUN_LIMIT_EXCEEDED = "RunLimitExceeded"
    TASKS_FAILED = "TasksFailed"


# Ends of attempts, some of them causes, in which a cluster refused to make the objects at all.
REFUSALS = frozenset({Code.TEMPLATE_REFUSED.value, "QuotaRefused", "KindMissing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason; fields that do not apply are empty."""

    code: Code
    queue: str = ""
    cluster: str = ""
    group: str = ""
    rung: str = ""
    flavor: str = ""
    pod_set: str = ""
    pool: str = ""
    level: str = ""  # a topology level, or what else is too small: the cluster, the queue itself
    policy: str = ""  # a fleet policy
    rule: str = ""  # a rule of it, or the field that sets a limit
    other: str = ""  # another workload or flavor, a kind, a taint, a user, a namespace, an image
    count: int = 0  # pods, replicas or nodes that are missing or left
    until: float = 0.0
    short: tuple[tuple[str, int], ...] = ()  # (resource, nanos) that are missing

    def render(self) -> dict[str, Any]:
        """The reason for programs, with its sentence."""
        fields = {
            "queue": self.queue,
            "cluster": self.cluster,
            "group": self.group,
            "rung": self.rung,
            "flavor": self.flavor,
            "podSet": self.pod_set,
            "pool": self.pool,
            "level": self.level,
            "policy": self.policy,
            "rule": self.rule,
            "other": self.other,
            "count": self.count,
            "until": self.until,
        }
        rendered: dict[str, Any] = {"code": self.code.value}
        rendered.update({key: value for key, value in fields.items() if value})
        if self.short:
            rendered["short"] = {resource: str(Quantity(nanos)) for resource, nanos in self.short}
        rendered["message"] = sentence(self)
        return rendered


# Clusters that a workload could not use even if they were empty; that says least of why it waits.
_OUT_OF_THE_QUESTION = frozenset(
    {
        Code.NOT_SELECTED,
        Code.FENCED,
        Code.CLUSTER_FORBIDDEN,
        Code.TAINTED,
        Code.CLOSED,
        Code.KIND_NOT_SERVED,
        Code.NOT_ADMITTED,
        Code.PINNED,
        Code.AVOIDED,
    }
)


def headline(reasons: Sequence[Reason]) -> str:
    """The code that stands for all reasons: the first, unless it is of a cluster out of the
    question and another one is not. If no cluster is left, a policy that forbids one is to blame.
    """
    telling = (reason for reason in reasons if reason.code not in _OUT_OF_THE_QUESTION)
    first = next(telling, reasons[0] if reasons else None)
    if first is not None and first.code is Code.NO_CLUSTER:
        first = next((item for item in reasons if item.code is Code.CLUSTER_FORBIDDEN), first)
    return first.code.value if first is not None else ""


def sentence(reason: Reason) -> str:
    """A reason in English."""
    return _SENTENCES[reason.code](reason)


def more_words(resource: str, nanos: int, flavor: str = "") -> str:
    """`8 more h100 GPUs`, `4 more CPUs`, `32Gi more memory`."""
    amount = str(Quantity(nanos, family_of(resource)))
    if resource in _COUNTED:
        return _plural(f"{amount} more", _COUNTED[resource])
    if is_accelerator(resource):
        device = resource.rpartition("/")[2]
        if device.endswith("gpu"):
            return _plural(f"{amount} more", f"{flavor} GPU".strip())
        return " ".join(filter(None, (amount, "more", flavor, device)))
    return f"{amount} more {resource}"


_COUNTED = {"cpu": "CPU", "pods": "pod"}


def _plural(amount: str, noun: str) -> str:
    return f"{amount} {noun}" if amount.split(maxsplit=1)[0] == "1" else f"{amount} {noun}s"


def _listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def _missing(reason: Reason) -> str:
    """`8 more h100 GPUs`, of what a reason says is short."""
    flavors = set(reason.flavor.split(","))
    flavor = flavors.pop() if len(flavors) == 1 else ""
    return missing_words(reason.short, flavor)


def missing_words(short: Sequence[tuple[str, int]], flavor: str = "") -> str:
    """`8 more h100 GPUs and 4 more CPUs`."""
    words = [more_words(resource, nanos, flavor) for resource, nanos in short]
    return _listed(words) or "more capacity"


def _does_not_fit(reason: Reason) -> str:
    if reason.level == "flavor":
        return f"{reason.cluster} has no {' and '.join(reason.flavor.split(','))} nodes"
    if reason.short:
        where = f"{reason.level} {reason.other} " if reason.other else ""
        return f"{reason.cluster}: {where}needs {_missing(reason)}"
    pods = _plural(str(reason.count), "pod") + (f" of {reason.pod_set}" if reason.pod_set else "")
    flavor = f" on {reason.flavor}" if reason.flavor else ""
    return f"{reason.cluster}: no room for {pods}{flavor}"


def _namespace_quota(reason: Reason) -> str:
    namespace, _, quota = reason.other.partition("/")
    counted = reason.rule.removeprefix("requests.").removeprefix("limits.")
    which = f"{reason.cluster}: ResourceQuota {quota} of namespace {namespace}"
    words = {name: str(Quantity(nanos, family_of(counted))) for name, nanos in reason.short}
    if "asked" not in words:
        return f"{which} leaves too little {reason.rule}"
    left, hard, asked = words["left"], words["hard"], words["asked"]
    return f"{which} leaves {left} of {hard} {reason.rule}, and it needs {asked}"


def _no_cluster(reason: Reason) -> str:
    if not reason.flavor:
        return "no cluster is allowed for it"
    flavors = " or ".join(reason.flavor.split(","))
    return f"no cluster that it may use has {flavors} nodes"


_CANNOT_BORROW = "it is not preemptible, so it cannot borrow"


def _quota_exceeded(reason: Reason) -> str:
    if reason.level == "queue":
        return f"{_CANNOT_BORROW}: queue {reason.queue} needs {_missing(reason)} of its own"
    return f"queue {reason.queue} needs quota for {_missing(reason)}"


def _quota_too_small(reason: Reason) -> str:
    if reason.level == "queue":
        return f"{_CANNOT_BORROW}: it needs {_missing(reason)} than queue {reason.queue} owns"
    return (
        f"queue {reason.queue} can never get this much: it needs {_missing(reason)} than its quota"
        " and all that it can borrow"
    )


def _impossible(reason: Reason) -> str:
    if reason.level == "cluster" and reason.count > 1:
        return f"no {reason.count} clusters that it may use together are large enough for it"
    return f"no {reason.level or 'node or pool'} in the fleet is large enough for it"


def _flavors_overlap(reason: Reason) -> str:
    have, are = ("1 node has", "is") if reason.count == 1 else (f"{reason.count} nodes have", "are")
    return (
        f"{reason.cluster}: {have} both flavors {reason.flavor} and {reason.other} of one resource"
        f" group, and {are} used for neither"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S UTC")


def _money(reason: Reason) -> str:
    amounts = dict(reason.short)
    if not amounts:
        return "elastic nodes cost what the fleet allows"
    spent, allowed = Quantity(amounts["spent"]), Quantity(amounts["allowed"])
    return f"elastic nodes cost {spent} an hour and the fleet allows {allowed}"


_POLICY_OBJECTS = {
    "registries": "image {}, which is of no allowed registry",
    "kinds": "kind {}",
    "priority": "priority {}",
    "runSeconds": "a run of {} seconds",
    "clusters": "{}",
}


def _policy_violated(reason: Reason) -> str:
    if not reason.policy:
        return "a fleet policy does not allow it"
    what = _POLICY_OBJECTS[reason.rule].format(reason.other)
    return f"fleet policy {reason.policy} does not allow {what}: rule {reason.rule}"


def violation_sentence(violation: Violation) -> str:
    """What a fleet policy does not allow, in English."""
    return _policy_violated(violation_reason(violation))


def violation_reason(violation: Violation) -> Reason:
    return Reason(
        code=Code.POLICY_VIOLATED,
        policy=violation.policy,
        rule=violation.rule,
        other=violation.what,
    )


def _replicas_limited(reason: Reason) -> str:
    where = reason.cluster or f"group {reason.group}"
    most = _plural(str(reason.count), "replica")
    return f"{where} has {most}, the most that its policy allows there: {reason.rule}"


def _template_refused(reason: Reason) -> str:
    again = f"; it is tried again at {_moment(reason.until)}" if reason.until else ""
    return f"{reason.cluster} refused its template: {reason.other}{again}"


_SENTENCES: Mapping[Code, Callable[[Reason], str]] = {
    Code.HELD: lambda r: "it is held",
    Code.STILL_ENDING: lambda r: f"its last attempt is still stopping in {r.cluster}",
    Code.RUNS_ALREADY: lambda r: f"its pods already run in {r.cluster} and are adopted first",
    Code.BACK_OFF: lambda r: "it failed and is retried later",
    Code.IMPOSSIBLE: _impossible,
    Code.PARTLY_PLACED: lambda r: (
        "1 more replica is pending" if r.count == 1 else f"{r.count} more replicas are pending"
    ),
    Code.POLICY_VIOLATED: _policy_violated,
    Code.DEVICES_NOT_COUNTED: lambda r: (
        f"the devices that it asks for cannot be counted: {r.other}"
    ),
    Code.PODS_NOT_COUNTED: lambda r: f"some of its pods would not be counted: {r.other}",
    Code.NO_QUEUE: lambda r: f"there is no queue {r.queue}" if r.queue else "it names no queue",
    Code.QUEUE_HELD: lambda r: f"queue {r.queue} is held",
    Code.QUEUE_BROKEN: lambda r: f"queue {r.queue} is not part of a tree: {r.other}",
    Code.NOT_A_SUBMITTER: lambda r: (
        f"queue {r.queue} does not accept workloads from namespace {r.other}: its submitters name"
        " neither the namespace nor the user who submitted it"
    ),
    Code.BEHIND_HEAD: lambda r: f"{r.other} is ahead of it in queue {r.queue}, which is strict",
    Code.QUEUE_FULL: lambda r: (
        f"queue {r.queue} already has its maximum of {_plural(str(r.count), 'pending workload')}"
        + (f" of {r.other}" if r.other else "")
    ),
    Code.CLAIMS_EXCEEDED: lambda r: (
        f"queue {r.queue} already runs its maximum of {_plural(str(r.count), 'workload')}"
    ),
    Code.USER_LIMIT_EXCEEDED: lambda r: (
        f"{r.other} has reached the limit for one user in queue {r.queue}"
    ),
    Code.QUOTA_EXCEEDED: _quota_exceeded,
    Code.QUOTA_TOO_SMALL: _quota_too_small,
    Code.NO_FLAVOR: lambda r: (
        f"flavor {r.flavor} does not fit it: {r.other}"
        if r.flavor
        else f"queue {r.queue} has no flavor that fits it"
    ),
    Code.HOLDING_OUT: lambda r: f"it waits for its first form before it takes {r.other}",
    Code.FLAVORS_OVERLAP: _flavors_overlap,
    Code.NO_CLUSTER: _no_cluster,
    Code.NOT_SELECTED: lambda r: f"{r.cluster} is not selected by its policy",
    Code.FENCED: lambda r: f"queue {r.queue} is not allowed to use {r.cluster}",
    Code.CLUSTER_FORBIDDEN: lambda r: (
        f"fleet policy {r.policy} does not allow {r.cluster}: rule {r.rule}"
    ),
    Code.TAINTED: lambda r: (
        f"{r.cluster} has the taint {r.other}, which its policy does not tolerate"
    ),
    Code.CLOSED: lambda r: f"{r.cluster} accepts nothing new: {r.other}",
    Code.KIND_NOT_SERVED: lambda r: f"{r.cluster} does not serve {r.other}",
    Code.NOT_ADMITTED: lambda r: f"{r.cluster} would refuse its pods: {r.other}",
    Code.PINNED: lambda r: f"a volume pins it to {r.other}",
    Code.AVOIDED: lambda r: f"it failed in {r.cluster} before",
    Code.TEMPLATE_REFUSED: _template_refused,
    Code.SPREAD_UNMET: lambda r: f"it cannot be spread as its policy asks: {r.other}",
    Code.REPLICAS_LIMITED: _replicas_limited,
    Code.DOES_NOT_FIT: _does_not_fit,
    Code.NAMESPACE_QUOTA_EXCEEDED: _namespace_quota,
    Code.NOT_COVERED: lambda r: (
        f"queue {r.queue} has no quota of {r.other}: name it in a resource group, or set "
        "uncovered: Unlimited"
    ),
    Code.KEPT_FOR_OWNER: lambda r: (
        f"needs quota that queue {r.queue} owns and keeps for {r.other}, which waits for the rest"
    ),
    Code.RESERVED: lambda r: (
        f"{r.cluster}: what is free is reserved for {r.other}"
        if r.cluster
        else f"queue {r.queue} reserves its quota for {r.other}"
    ),
    Code.NO_VICTIMS: lambda r: f"{r.cluster}: preemption cannot free enough",
    Code.NO_POOL: lambda r: f"{r.cluster} has no elastic pool for it",
    Code.OUT_OF_STOCK: lambda r: (
        f"{r.cluster}: pool {r.pool} is out of stock, and is tried again at {_moment(r.until)}"
        if r.until
        else f"{r.cluster}: pool {r.pool} has only {_plural(str(r.count), 'node')} left"
    ),
    Code.STOCK_UNKNOWN: lambda r: (
        f"{r.cluster}: the stock of pool {r.pool} is not known, since the inventory of the cluster "
        "has not answered yet"
    ),
    Code.BREAKER_OPEN: lambda r: (
        f"the breaker of {r.other} is open: the fleet's limit for the past hour is reached"
        if r.other != "price"
        else f"the breaker of price is open: {_money(r)}"
    ),
    Code.PREEMPTED_WITHIN_QUEUE: lambda r: (
        f"preempted for {r.other}, which comes first in {r.queue}"
    ),
    Code.PREEMPTED_TO_RECLAIM: lambda r: (
        f"preempted for {r.other}: queue {r.queue} reclaims its quota"
    ),
    Code.PREEMPTED_FOR_FAIR_SHARE: lambda r: (
        f"preempted for {r.other}: queue {r.queue} has the lower share"
    ),
    Code.PREEMPTED_WHILE_BORROWING: lambda r: (
        f"preempted while borrowing, for {r.other} of queue {r.queue}, which has priority"
    ),
    Code.RETURNS_HOME: lambda r: f"there is room in {r.cluster} again",
    Code.NO_LONGER_ALLOWED: lambda r: (
        f"its policy no longer allows {_plural(str(r.count), 'replica')} in {r.cluster}"
    ),
    Code.REBALANCED: lambda r: "it is divided afresh, as requested",
    Code.CANCELLED: lambda r: "it was cancelled",
    Code.DELETED: lambda r: "it was deleted",
    Code.DRAINED: lambda r: "it was held while it ran",
    Code.QUEUE_DRAINED: lambda r: f"queue {r.queue} is drained",
    Code.CLUSTER_DRAINED: lambda r: f"{r.cluster} is drained",
    Code.CLUSTER_TAINTED: lambda r: f"a taint of {r.cluster} evicts it",
    Code.CLUSTER_LOST: lambda r: f"{r.cluster} was lost",
    Code.CLUSTER_REMOVED: lambda r: f"{r.cluster} was removed from the fleet",
    Code.NOT_READY_IN_TIME: lambda r: "not all of its pods were ready in time",
    Code.PENDING_TOO_LONG: lambda r: f"its pods were pending in {r.cluster} for too long",
    Code.RUN_LIMIT_EXCEEDED: lambda r: "it ran longer than its limit",
    Code.TASKS_FAILED: lambda r: "more of its tasks failed than allowed",
}
