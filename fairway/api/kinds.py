"""The table of our kinds: how each is named, scoped and shown."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api import flavor_v1beta1
from fairway.api.autoscaler import FleetAutoscaler
from fairway.api.cluster import Cluster
from fairway.api.costs import CostAccount
from fairway.api.flavor import Flavor
from fairway.api.fleet import Fleet
from fairway.api.governance import FleetPolicy
from fairway.api.kindrule import KindRule
from fairway.api.meta import VERSION, Object
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.report import ClusterReport
from fairway.api.rollout import Revision, Rollout
from fairway.api.scores import ClusterScore, Scorer
from fairway.api.work import Work
from fairway.api.workload import Workload

CATEGORY = "fairway"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a kind's table. Wide ones are shown with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    is_wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the scale subresource finds its numbers."""

    replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A further version of a kind, served beside the version that Fairway itself uses."""

    name: str
    struct: type[Object]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: its type, its names, and the columns of its table.

    `stored` is the version in which objects are stored. A version is stored one release after it
    was first served, so that two neighbouring releases read each other's objects.
    """

    struct: type[Object]
    plural: str
    short_names: tuple[str, ...]
    is_namespaced: bool
    columns: tuple[Column, ...]
    has_status: bool = True
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()
    further: tuple[Version, ...] = ()
    stored: str = VERSION

    @property
    def name(self) -> str:
        return self.struct.__name__

    @property
    def singular(self) -> str:
        return self.name.lower()

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.struct.api_group}"


_AGE = Column("Age", ".metadata.creationTimestamp", "date", "Time since it was created.")

_FLEET = Kind(
    struct=Fleet,
    plural="fleets",
    short_names=("flt",),
    is_namespaced=False,
    columns=(
        Column("Phase", ".status.phase"),
        Column("Paused", ".spec.paused", "boolean"),
        Column("Clusters", ".status.clusters", "integer"),
        Column("Ready", ".status.readyClusters", "integer"),
        Column("Waiting", ".status.waitingWorkloads", "integer"),
        Column("Claimed", ".status.claimedWorkloads", "integer"),
        Column("Leader", ".status.leader", is_wide=True),
        _AGE,
    ),
)
_CLUSTER = Kind(
    struct=Cluster,
    plural="clusters",
    short_names=("cl",),
    is_namespaced=False,
    columns=(
        Column("Phase", ".status.phase"),
        Column("Mode", ".spec.mode"),
        Column("Hold", ".spec.hold"),
        Column("Nodes", ".status.nodes", "integer"),
        Column("GPUs", r".status.allocatable.nvidia\.com/gpu"),
        Column("Free", r".status.free.nvidia\.com/gpu", description="Unused GPUs."),
        Column("Workloads", ".status.workloads", "integer"),
        Column("Accepted", ".spec.accepted", "boolean", is_wide=True),
        Column("Region", r".metadata.labels.topology\.kubernetes\.io/region", is_wide=True),
        Column("Version", ".status.driverVersion", is_wide=True),
        _AGE,
    ),
)
_REPORT = Kind(
    struct=ClusterReport,
    plural="clusterreports",
    short_names=("clr",),
    is_namespaced=False,
    has_status=False,
    columns=(
        Column("Cluster", ".spec.cluster"),
        Column("Chunk", ".spec.chunk", "integer"),
        Column("Chunks", ".spec.chunks", "integer"),
        Column("Epoch", ".spec.agentEpoch", "integer"),
        Column("Sequence", ".spec.sequence", "integer"),
        Column("Seen", ".spec.seenAt", "date"),
    ),
    selectable_fields=(".spec.cluster",),
)
_FLAVOR = Kind(
    struct=Flavor,
    plural="flavors",
    short_names=("fl",),
    is_namespaced=False,
    columns=(
        Column("Nodes", ".status.nodes", "integer"),
        Column("Speed", ".spec.speed"),
        Column("Interruptible", ".spec.interruptible", "boolean"),
        Column("Description", ".spec.description", is_wide=True),
        _AGE,
    ),
    further=(
        Version(
            name=flavor_v1beta1.VERSION,
            struct=flavor_v1beta1.FlavorV1Beta1,
            columns=(
                Column("Nodes", ".status.nodes", "integer"),
                Column("Speed", ".spec.speed"),
                Column("Capacity", ".spec.capacity"),
                Column("Description", ".spec.description", is_wide=True),
                _AGE,
            ),
        ),
    ),
)
_QUEUE = Kind(
    struct=Queue,
    plural="queues",
    short_names=("q",),
    is_namespaced=False,
    columns=(
        Column("Parent", ".spec.parent"),
        Column("Weight", ".spec.weight"),
        Column("Hold", ".spec.hold"),
        Column("Waiting", ".status.waitingWorkloads", "integer"),
        Column("Claimed", ".status.claimedWorkloads", "integer"),
        Column("Running", ".status.runningWorkloads", "integer"),
        Column("Share", ".status.share", "integer", "Thousandths of what may be borrowed."),
        Column("Strategy", ".spec.strategy", is_wide=True),
        Column("Priority", ".spec.priority", "integer", is_wide=True),
        _AGE,
    ),
    selectable_fields=(".spec.parent",),
)
_WORKLOAD = Kind(
    struct=Workload,
    plural="workloads",
    short_names=("wl",),
    is_namespaced=True,
    columns=(
        Column("Queue", ".spec.queue"),
        Column("Mode", ".spec.mode"),
        Column("Phase", ".status.phase"),
        Column("Reason", ".status.reason"),
        Column("Clusters", ".status.claim.summary"),
        Column("Pods", ".status.pods.wanted", "integer", "Pods of its claim."),
        Column("Ready", ".status.pods.ready", "integer", "Pods that are ready."),
        Column("Priority", ".spec.priority", "integer", is_wide=True),
        Column("Attempt", ".status.claim.attempt", "integer", is_wide=True),
        Column("Rung", ".status.claim.rung", is_wide=True),
        _AGE,
    ),
    scale=Scale(
        replicas=".spec.replicas", status_replicas=".status.replicas", selector=".status.selector"
    ),
    selectable_fields=(".spec.queue", ".status.phase"),
)
_POLICY = Kind(
    struct=PlacementPolicy,
    plural="placementpolicies",
    short_names=("pp",),
    is_namespaced=True,
    columns=(
        Column("Division", ".spec.division.type"),
        Column("Wanted", ".spec.numberOfClusters", "integer"),
        Column("Chosen", ".status.chosen", "integer"),
        _AGE,
    ),
)
_WORK = Kind(
    struct=Work,
    plural="works",
    short_names=("wk",),
    is_namespaced=True,
    columns=(
        Column("Cluster", ".spec.cluster"),
        Column("Workload", ".spec.workload.name"),
        Column("Desired", ".spec.desired"),
        Column("Phase", ".status.phase"),
        Column("Reason", ".status.reason"),
        Column("Attempt", ".spec.attempt", "integer", is_wide=True),
        Column("Term", ".spec.term", "integer", is_wide=True),
        _AGE,
    ),
    selectable_fields=(".spec.cluster",),
)
_KIND_RULE = Kind(
    struct=KindRule,
    plural="kindrules",
    short_names=("kr",),
    is_namespaced=False,
    columns=(
        Column("Describes", ".spec.kind"),
        Column("Mode", ".spec.mode"),
        _AGE,
    ),
)
_ROLLOUT = Kind(
    struct=Rollout,
    plural="rollouts",
    short_names=("ro",),
    is_namespaced=True,
    columns=(
        Column("Workload", ".spec.workload.name"),
        Column("Revision", ".status.revision", "integer"),
        Column("Phase", ".status.phase"),
        Column("Batch", ".status.currentBatch", "integer", "The batch under way, from 0."),
        Column("Replicas", ".status.replicas", "integer"),
        Column("Updated", ".status.updated", "integer", "Replicas of the revision, ready."),
        Column("Ready", ".status.ready", "integer", "Replicas of any revision, ready."),
        Column("Reason", ".status.reason", is_wide=True),
        _AGE,
    ),
)
_REVISION = Kind(
    struct=Revision,
    plural="revisions",
    short_names=("rev",),
    is_namespaced=True,
    has_status=False,
    columns=(Column("Workload", ".spec.workload"), Column("Mark", ".spec.mark"), _AGE),
)
_AUTOSCALER = Kind(
    struct=FleetAutoscaler,
    plural="fleetautoscalers",
    short_names=("fas",),
    is_namespaced=True,
    columns=(
        Column("Kind", ".spec.target.kind"),
        Column("Target", ".spec.target.name"),
        Column("Min", ".status.minReplicas", "integer", "Fewest replicas now."),
        Column("Max", ".status.maxReplicas", "integer", "Most replicas now."),
        Column("Replicas", ".status.desiredReplicas", "integer"),
        Column("Schedule", ".status.schedule", is_wide=True),
        Column("Reason", ".status.lastScaleReason", is_wide=True),
        Column("Scaled", ".status.lastScaleTime", "date"),
        _AGE,
    ),
)

_COST_ACCOUNT = Kind(
    struct=CostAccount,
    plural="costaccounts",
    short_names=("ca",),
    is_namespaced=False,
    has_status=False,
    columns=(
        Column("Until", ".spec.until", "date"),
        Column("Currency", ".spec.currency"),
        _AGE,
    ),
)
_FLEET_POLICY = Kind(
    struct=FleetPolicy,
    plural="fleetpolicies",
    short_names=("fp",),
    is_namespaced=False,
    columns=(
        Column("Enforcement", ".spec.enforcement"),
        Column("On Violation", ".spec.onViolation", is_wide=True),
        Column("Workloads", ".status.workloads", "integer", "Workloads that it applies to."),
        Column("Violating", ".status.violating", "integer", "Workloads that break a rule of it."),
        _AGE,
    ),
)
_SCORER = Kind(
    struct=Scorer,
    plural="scorers",
    short_names=("sc",),
    is_namespaced=False,
    columns=(
        Column("Source", ".status.source"),
        Column("Run By", ".spec.runBy"),
        Column("Interval", ".spec.intervalSeconds", "integer", "Seconds between two runs."),
        Column("Clusters", ".status.clusters", "integer", "Clusters with a valid score."),
        Column("Last Run", ".status.lastRunAt", "date"),
        Column("Fault", ".status.fault"),
        _AGE,
    ),
)
_CLUSTER_SCORE = Kind(
    struct=ClusterScore,
    plural="clusterscores",
    short_names=("scores",),
    is_namespaced=False,
    has_status=False,
    columns=(Column("Scores", ".spec.summary"), _AGE),
)

KINDS: tuple[Kind, ...] = (
    _FLEET,
    _CLUSTER,
    _REPORT,
    _FLAVOR,
    _QUEUE,
    _WORKLOAD,
    _POLICY,
    _WORK,
    _KIND_RULE,
    _ROLLOUT,
    _REVISION,
    _AUTOSCALER,
    _COST_ACCOUNT,
    _FLEET_POLICY,
    _SCORER,
    _CLUSTER_SCORE,
)
BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}
