"""The plan: steps in order, and the workloads that wait, with reasons.

Each step can be committed by itself: it is valid in the state that the steps before it leave.
`render` gives the stable JSON form that `fairway plan -o json` prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairway.api.explanations import ScoredCluster
from fairway.api.meta import Rung
from fairway.api.reasons import Reason
from fairway.core.model import Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """Gives a workload its claim, or changes it (services, sweeps, gangs that grow)."""

    workload: str
    placed: tuple[Placed, ...]
    form: str = ""
    rung: Rung = "Idle"
    waits_for: tuple[str, ...] = ()  # victims that must be gone first
    scores: Mapping[str, int] | None = None  # of the clusters that were compared
    ranking: tuple[ScoredCluster, ...] = ()  # the best of these, if scores tell more than Balance
    leaving: int = 0  # replicas that leave other clusters, within the disruption budget
    is_rebalanced: bool = False  # a request to divide it afresh is fulfilled
    missing_copies: int | None = None  # of copies that end: those that have no place yet
    reasons: tuple[Reason, ...] = ()

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "action": "Admit",
            "workload": self.workload,
            "placements": [placement(other) for other in self.placed],
            "rung": self.rung,
        }
        if self.form:
            rendered["alternative"] = self.form
        if self.waits_for:
            rendered["waitsFor"] = list(self.waits_for)
        if self.scores:
            rendered["scores"] = dict(self.scores)
        if self.ranking:
            rendered["ranking"] = [scored.render() for scored in self.ranking]
        if self.leaving:
            rendered["leaving"] = self.leaving
        if self.is_rebalanced:
            rendered["rebalanced"] = True
        if self.missing_copies:
            rendered["missingCopies"] = self.missing_copies
        return _with_reasons(rendered, self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Takes the claim of a victim away."""

    workload: str
    for_: str
    cluster: str = ""
    lost_seconds: float = 0.0  # work that is lost
    reasons: tuple[Reason, ...] = ()

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "action": "Preempt",
            "workload": self.workload,
            "for": self.for_,
        }
        if self.cluster:
            rendered["cluster"] = self.cluster
        if self.lost_seconds:
            rendered["lostSeconds"] = self.lost_seconds
        return _with_reasons(rendered, self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """Asks an elastic pool for nodes."""

    workload: str  # the one that needs the nodes
    cluster: str
    pool: str
    count: int
    reasons: tuple[Reason, ...] = ()

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "action": "Provision",
            "workload": self.workload,
            "for": self.workload,
            "cluster": self.cluster,
            "pool": self.pool,
            "count": self.count,
        }
        return _with_reasons(rendered, self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Moves replicas of a running workload from one cluster to another."""

    workload: str
    source: str
    placed: Placed  # the placement in the target cluster after the move
    count: int
    stops_first: bool = False  # replicas stop before they start: no surge, or no quota for both
    is_rebalanced: bool = False  # this fulfils a request to divide it afresh
    reasons: tuple[Reason, ...] = ()

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "action": "Move",
            "workload": self.workload,
            "from": self.source,
            "count": self.count,
            "placements": [placement(self.placed)],
        }
        if self.stops_first:
            rendered["stopsFirst"] = True
        if self.is_rebalanced:
            rendered["rebalanced"] = True
        return _with_reasons(rendered, self.reasons)


Step = Admit | Preempt | Provision | Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A workload that waits, and why."""

    workload: str
    reasons: Sequence[Reason]  # computed when read
    never: Reason | None = None  # why it can never start as the fleet is, where that is known
    is_refused: bool = False  # it is over: its queue refuses what can never start

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "workload": self.workload,
            "reasons": [reason.render() for reason in self.reasons],
        }
        if self.never is not None:
            rendered["never"] = self.never.render()
        if self.is_refused:
            rendered["refused"] = True
        return rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes that are reserved for a gang that waits for room."""

    workload: str
    cluster: str
    flavors: tuple[str, ...] = ()
    starts_at: float | None = None  # expected start; None: not computed in this plan

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "workload": self.workload,
            "cluster": self.cluster,
            "flavors": list(self.flavors),
        }
        if self.starts_at is not None:
            rendered["startsAt"] = self.starts_at
        return rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the core decided at one moment."""

    now: float
    steps: tuple[Step, ...] = ()
    waiting: tuple[Waits, ...] = ()
    reservations: tuple[Reservation, ...] = ()  # all that hold after the plan; others are dropped
    warnings: tuple[Reason, ...] = ()  # faults of the fleet, whatever waits

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {
            "now": self.now,
            "steps": [step.render() for step in self.steps],
            "waiting": [waiting_workload.render() for waiting_workload in self.waiting],
        }
        if self.reservations:
            rendered["reservations"] = [reservation.render() for reservation in self.reservations]
        if self.warnings:
            rendered["warnings"] = [warning.render() for warning in self.warnings]
        return rendered


def placement(placed: Placed) -> dict[str, Any]:
    """A placement in one cluster, in the form of the API."""
    result: dict[str, Any] = {"cluster": placed.cluster}
    if placed.group:
        result["group"] = placed.group
    if placed.replicas:
        result["replicas"] = placed.replicas
    if placed.tasks:
        result["tasks"] = placed.tasks
    result["podSets"] = [_pod_set(pods) for pods in placed.pods]
    return result


def _pod_set(pods: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"name": pods.name, "count": pods.count}
    flavors = {resource: flavor for resource, flavor in pods.flavors if flavor}
    if flavors:
        result["flavors"] = flavors
    if pods.domains:
        result["domains"] = {"level": pods.level, **dict(pods.domains)}
    return result


def _with_reasons(with_reasons: dict[str, Any], reasons: tuple[Reason, ...]) -> dict[str, Any]:
    if reasons:
        with_reasons["reasons"] = [reason.render() for reason in reasons]
    return with_reasons
