"""The inputs that decide the next status of a workload, and the resulting change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairway.api.claim import Placement
from fairway.api.cluster import WhenLost
from fairway.api.fleet import FleetSpec, Retry
from fairway.api.meta import Hold, OnClusterLost, Taint, Toleration
from fairway.api.queue import Queue
from fairway.api.work import Work, WorkPhase
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.clusters.health import NodeAside
from fairway.controllers.governance import Breach
from fairway.controllers.shared_state import TemplateRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsSeen:
    """Pods of one pod set of a work, as last reported."""

    pending: int = 0
    bound: int = 0  # with a node, and not ready
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    pending_since: float | None = None
    unready_since: float | None = None

    @property
    def total(self) -> int:
        """Pods that hold a node or wait for one."""
        return self.pending + self.bound + self.ready + self.terminating


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkObservation:
    """What a report says of one work."""

    attempt: int
    phase: WorkPhase
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    node: str = ""  # of the pod that made the work fail
    started_at: float | None = None
    ready_at: float | None = None
    finished_at: float | None = None
    pods: Mapping[str, PodsSeen] = field(default_factory=dict)  # by pod set
    succeeded_tasks: str = ""
    failed_tasks: str = ""

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What matters about a cluster for the workloads that run there."""

    phase: str = "Ready"  # Pending, Ready, Unready, Lost or Held
    silent_seconds: float = 0.0  # since its last heartbeat, counted while the hub was up
    is_cut_off: bool = False  # its agent is alive, but cannot reach the cluster to stop anything
    hold: Hold = "None"
    mode: str = "Manage"
    taints: tuple[Taint, ...] = ()
    when_lost: WhenLost | None = None
    awaited_pools: frozenset[str] = frozenset()  # elastic pools with nodes being provisioned
    # Pools whose last provisioning failed, and when, unless nodes are being provisioned.
    failed_pools: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a workload: its own, else its queue's, else the fleet's."""

    queue_hold: Hold = "None"  # the strictest of its queue and the ancestors
    tolerations: tuple[Toleration, ...] = ()  # of its policy
    retry: Retry = field(default_factory=Retry)
    pending_seconds: int = 300
    ready_seconds: int = 1800
    finished_seconds: int | None = None
    run_limit: int | None = None
    on_cluster_lost: OnClusterLost | None = None  # of the workload or its queue
    cluster_lost_seconds: int | None = None  # of the workload
    fleet: FleetSpec = field(default_factory=FleetSpec)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleCase:
    """A workload, and everything that its next status depends on."""

    workload: Workload
    now: float
    works: Mapping[str, WorkObservation] = field(
        default_factory=dict
    )  # by cluster; missing: not reported yet
    places: Mapping[str, ClusterFacts] = field(default_factory=dict)  # by cluster; missing: removed
    sent: Mapping[str, Work] = field(default_factory=dict)  # its works on the hub, by cluster
    unproven: frozenset[str] = frozenset()  # clusters whose work has no proof of this hub
    refusal: TemplateRefusal | None = None  # why the hub could not send its works
    settings: Settings = Settings()
    breaches: tuple[Breach, ...] = ()  # rules of fleet policies that it breaks where it runs
    breach_at: float = float("inf")  # when time alone breaks another one
    outside: frozenset[str] = frozenset()  # clusters that its policy or its queue does not allow
    may_move: bool = True  # False while the fleet is paused, or the breaker of moves is open
    is_copied: bool = False  # it has copies, each of which runs to completion
    awaits_clusters: bool = False  # the hub has just started, and may not know yet all that runs
    refreshes: bool = True  # whether changed counts alone are worth a write now

    def observation_of(self, placement: Placement) -> WorkObservation | None:
        """The observed state of a placement; reports of another attempt are ignored."""
        observation = self.works.get(placement.cluster)
        return (
            observation
            if observation is not None and observation.attempt == attempt_of(self, placement)
            else None
        )


def attempt_of(case: LifecycleCase, placement: Placement) -> int:
    claim = case.workload.status.claim
    return placement.attempt or (claim.attempt if claim else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to write, and when to look again if nothing happens before.

    Nodes are set aside before the status is written: the new status no longer has the cause.
    """

    status: WorkloadStatus | None = None  # None: unchanged
    wake_at: float | None = None
    delete: bool = False  # its time to be kept after its end is over
    releases: bool = False  # nothing of it is left anywhere: remove its finalizer
    nodes_aside: tuple[NodeAside, ...] = ()
    moves: int = 0  # placements that the hub itself moves, for the breaker

    @property
    def is_empty(self) -> bool:
        return self.status is None and not self.delete and not self.releases


def settings_of(
    workload: Workload,
    queues: Sequence[Queue],
    fleet: FleetSpec,
    tolerations: tuple[Toleration, ...] = (),
) -> Settings:
    """The settings of a workload; `queues` has its own queue, then the ancestors."""
    spec, defaults = workload.spec, fleet.defaults
    own = [queue.spec.defaults for queue in queues]
    limits = [spec.run_seconds.limit, *(default.run_seconds_limit for default in own)]
    asked = next((limit for limit in limits if limit is not None), None)
    allowed = workload.status.claim.run_seconds_limit if workload.status.claim else None
    lost = [spec.on_cluster_lost, *(default.on_cluster_lost for default in own)]
    holds = {queue.spec.hold for queue in queues}
    strictest: Hold = "HoldAndDrain" if "HoldAndDrain" in holds else "None"
    if strictest == "None" and "Hold" in holds:
        strictest = "Hold"
    return Settings(
        queue_hold=strictest,
        tolerations=tolerations,
        retry=spec.retry or defaults.retry,
        pending_seconds=defaults.pending_seconds,
        ready_seconds=defaults.ready_seconds,
        finished_seconds=(
            defaults.finished_seconds if spec.finished_seconds is None else spec.finished_seconds
        ),
        run_limit=min((limit for limit in (asked, allowed) if limit is not None), default=None),
        on_cluster_lost=next((item for item in lost if item is not None), None),
        cluster_lost_seconds=spec.cluster_lost_seconds,
        fleet=fleet,
    )


def lost_action(settings: Settings, place: ClusterFacts) -> OnClusterLost:
    """The action when a cluster is lost: of the workload, its queue, the cluster or the fleet."""
    if settings.on_cluster_lost is not None:
        return settings.on_cluster_lost
    if place.when_lost is not None:
        return place.when_lost.action
    return settings.fleet.defaults.on_cluster_lost


def silence_allowed(settings: Settings, place: ClusterFacts) -> int:
    """Seconds without contact after which an agent stops by itself what is to be moved."""
    after = settings.cluster_lost_seconds
    if after is None and place.when_lost is not None:
        after = place.when_lost.after_seconds
    if after is None:
        after = settings.fleet.defaults.cluster_lost_seconds
    return settings.fleet.health.lost_seconds + after
