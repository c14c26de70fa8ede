"""Health of clusters: ready, silent or lost; and the nodes that are set aside.

Silence is measured by the hub's own clock from the last change of a heartbeat that the hub saw, and
only while the hub itself was up: after a start or a pause of the hub no agent counts as silent for
that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from msgspec.structs import replace

from fairway.api.cluster import UNCOUNTED_RULES_MAX, AvoidedNode, Cluster, ClusterStatus
from fairway.api.fleet import Health
from fairway.api.meta import Condition
from fairway.api.taint_times import noted

# A longer gap between two checks was a pause of the hub itself.
PAUSE_SECONDS = 15.0
_SEEN_STEP_SECONDS = 60  # the precision of `lastSeenAt`; each step is a write
_ASIDE_MOST = 1024
_OWN_CONDITIONS = ("Ready", "RulesCounted")
_NAMED_MOST = 8
_CUT_OFF = "its agent lives, and the cluster does not answer it"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAside:
    """A faulty node, to be avoided for a while."""

    cluster: str
    node: AvoidedNode


@dataclass(frozen=True, slots=True)
class Heard:
    """What the hub knows about the heartbeat of one agent."""

    renewed: str  # from the lease; only whether it changes matters
    silent_seconds: float = 0.0
    looked_at: float = 0.0
    last_seen_at: float | None = None  # None: no heartbeat since the hub started
    is_cut_off: bool = False  # as the agent last reported: its cluster does not answer it

    def look(self, renewed: str, now: float, *, is_cut_off: bool = False) -> Heard:
        """The state after another check of the lease."""
        if renewed != self.renewed:
            return Heard(renewed, 0.0, now, now, is_cut_off)
        passed = now - self.looked_at
        counted = passed if 0 <= passed <= PAUSE_SECONDS else 0.0
        silent = self.silent_seconds + counted
        return Heard(self.renewed, silent, now, self.last_seen_at, is_cut_off)


def first_look(renewed: str, now: float, *, is_cut_off: bool = False) -> Heard:
    """The state after the first check: silence counts from now."""
    return Heard(renewed, 0.0, now, None, is_cut_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The inputs of the status of a cluster."""

    heard: Heard | None  # None: no heartbeat was ever seen
    workloads: int = 0  # with a work there that is not over
    aside: Sequence[NodeAside] = ()  # nodes to add to those set aside

    @property
    def is_cut_off(self) -> bool:
        return self.heard is not None and self.heard.is_cut_off


def phase_of(cluster: Cluster, observation: Observation, health: Health) -> str:
    """Pending, Ready, Unready, Lost or Held."""
    heard = observation.heard
    if heard is None or not cluster.spec.accepted:
        return "Pending"
    if heard.silent_seconds >= health.lost_seconds:
        return "Lost"
    if heard.silent_seconds >= health.unready_seconds:
        return "Unready"
    was_silent = cluster.status.phase in ("Lost", "Unready")
    if was_silent and heard.last_seen_at is None:
        return cluster.status.phase  # a hub that just started keeps the old phase
    if cluster.spec.hold != "None":
        return "Held"
    return "Ready"


def changes_at(observation: Observation, health: Health) -> float | None:
    """When silence alone changes the phase, if the hub stays up."""
    heard = observation.heard
    if heard is None:
        return None
    due = [
        limit - heard.silent_seconds
        for limit in (health.unready_seconds, health.lost_seconds)
        if limit > heard.silent_seconds
    ]
    return heard.looked_at + min(due) if due else None


def next_status(
    cluster: Cluster, observation: Observation, health: Health, now: float, *, is_sure: bool = True
) -> ClusterStatus | None:
    """The new status of a cluster; None if nothing changed.

    Its agent writes the resources of its nodes, which it counts as they come and go. `is_sure` says
    whether the clock that gave `now` is.
    """
    before = cluster.status
    phase = phase_of(cluster, observation, health)
    status = replace(
        before,
        phase=phase,
        observed_generation=cluster.metadata.generation,
        workloads=observation.workloads,
        taints=noted(cluster, datetime.fromtimestamp(int(now), UTC), is_sure=is_sure),
        avoided_nodes=aside(before.avoided_nodes, observation.aside, now),
        conditions=_conditions(cluster, observation, phase, now),
        agent=replace(before.agent, last_seen_at=_last_seen(before, observation, phase)),
    )
    return None if status == before else status


def _last_seen(before: ClusterStatus, observation: Observation, phase: str) -> datetime | None:
    """When the agent was last seen; updated once a minute, and when the phase changes."""
    known = before.agent.last_seen_at
    seen = observation.heard.last_seen_at if observation.heard else None
    if seen is None:
        return known
    is_recent = known is not None and seen - known.timestamp() < _SEEN_STEP_SECONDS
    if is_recent and phase == before.phase:
        return known
    return datetime.fromtimestamp(int(seen), UTC)


def _conditions(
    cluster: Cluster, observation: Observation, phase: str, now: float
) -> tuple[Condition, ...]:
    is_ready = phase in ("Ready", "Held")
    word: Literal["True", "False", "Unknown"] = "True" if is_ready else "False"
    if phase == "Lost":
        word = "Unknown"  # the state of a lost cluster is not known
    ready = _condition(
        cluster,
        now,
        type="Ready",
        status=word,
        reason=phase,
        message=_CUT_OFF if observation.is_cut_off and not is_ready else "",
    )
    own = (ready, *_rules_condition(cluster, now))
    others = (item for item in cluster.status.conditions if item.type not in _OWN_CONDITIONS)
    return (*own, *others)


def _rules_condition(cluster: Cluster, now: float) -> Iterator[Condition]:
    """Says that rules of namespaces are not counted, while there are such."""
    rules = cluster.status.uncounted_rules
    if rules:
        least = "at least " if len(rules) == UNCOUNTED_RULES_MAX else ""
        more = f" and {least}{len(rules) - _NAMED_MOST} more" if len(rules) > _NAMED_MOST else ""
        message = f"not counted, since a report holds no more: {', '.join(rules[:_NAMED_MOST])}"
        yield _condition(
            cluster,
            now,
            type="RulesCounted",
            status="False",
            reason="TooManyRules",
            message=message + more,
        )


def _condition(
    cluster: Cluster,
    now: float,
    *,
    type: str,
    status: Literal["True", "False", "Unknown"],
    reason: str,
    message: str,
) -> Condition:
    """A condition since the time at which it got its status."""
    old = next((item for item in cluster.status.conditions if item.type == type), None)
    since = (
        old.last_transition_time
        if old is not None and old.status == status
        else datetime.fromtimestamp(int(now), UTC)
    )
    return Condition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=cluster.metadata.generation,
    )


def aside(
    before: Iterable[AvoidedNode], added: Iterable[NodeAside], now: float
) -> tuple[AvoidedNode, ...]:
    """Nodes set aside: drops expired entries, adds new ones, keeps the longer one per node."""
    nodes = {
        node.name: node for node in before if node.until is None or node.until.timestamp() > now
    }
    for node in added:
        old = nodes.get(node.node.name)
        if old is None or _until(old) < _until(node.node):
            nodes[node.node.name] = node.node
    # Above the limit, the entries that expire first are dropped.
    kept = sorted(nodes.values(), key=_until, reverse=True)[:_ASIDE_MOST]
    return tuple(sorted(kept, key=lambda node: node.name))


def _until(node: AvoidedNode) -> float:
    return node.until.timestamp() if node.until is not None else float("inf")


def returns_at(status: ClusterStatus) -> float | None:
    """When the next node that is set aside may take pods again."""
    times = [node.until.timestamp() for node in status.avoided_nodes if node.until is not None]
    return min(times, default=None)
