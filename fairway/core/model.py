"""What the core sees: plain frozen values, with every default resolved.

The view makes these from API objects. Amounts are whole numbers of a base unit per resource (see
`unit_nanos`): a thousandth of a CPU or of a GPU, a byte of memory. Times are seconds since the
epoch. Selectors of clusters are resolved to names and resources have the fleet's names, so that the
core neither evaluates expressions nor knows profiles. Shapes are hashable: equal shapes fit the
same nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from fairway.api.governance import Violation
from fairway.api.meta import NodeTerm, Rung, Taint, Toleration
from fairway.api.reasons import Reason
from fairway.core.allowances import Admitted
from fairway.core.fleet_policy import FleetPolicy, longest_run
from fairway.core.likeness import RemembersLikeness

# (flavor, resource): what quota is counted in.
FlavorResource = tuple[str, str]
Usage = Mapping[FlavorResource, int]
Request = tuple[tuple[str, int], ...]  # (resource, amount) sorted by resource, no zeros
# Clusters that a selector chooses, resolved to names by the view; None: every cluster.
Clusters = frozenset[str] | None

_BYTES = ("memory", "ephemeral-storage", "storage", "hugepages-")
# The flavor that is charged for a resource that no group of the queue covers.
NO_FLAVOR = ""
PODS = "pods"  # every pod takes one of its node; counts in quota only where a group names it


def unit_nanos(resource: str) -> int:
    """The base unit of a resource in nanos: a byte, or a thousandth of anything else."""
    return 1_000_000_000 if resource.startswith(_BYTES) else 1_000_000


ONE_POD = 1_000_000_000 // unit_nanos(PODS)


def on_node(requests: Request) -> Request:
    """What a pod with these requests takes of its node: one of the node's pods as well."""
    if any(resource == PODS for resource, _ in requests):
        return requests
    return tuple(sorted((*requests, (PODS, ONE_POD))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The part of a pod that decides where it can run. Equal shapes fit the same nodes."""

    requests: Request
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    counts_as: Request | None = None  # in quota; None: as requested
    beside: Request = ()  # what it takes of its node besides its requests
    admitted: Admitted = ()  # what clusters with rules for its namespace make of it
    needs: Request = field(init=False, compare=False, repr=False)  # all that it takes of its node

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", on_node((*self.requests, *self.beside)))

    @property
    def charges(self) -> Request:
        """What one pod is charged in quota."""
        return self.requests if self.counts_as is None else self.counts_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How close together the pods of a set must run. Levels are those the cluster names."""

    required: str = ""
    preferred: str = ""
    slice_level: str = ""
    slice_size: int = 1

    def of_each(self, pods: int) -> Topology:
        """The topology of several copies of `pods` pods: each copy stays together, not all copies.

        Copies that have slices already must all be in one domain, if a domain is required.
        """
        if not self.required or self.slice_level:
            return self
        return Topology(preferred=self.preferred, slice_level=self.required, slice_size=pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one shape: `least` to `count` of them."""

    name: str
    shape: Shape
    count: int
    least: int
    topology: Topology = Topology()
    member_size: int = 0  # pods that stay in one cluster when a gang splits; 0: all
    group: str = ""  # sets of one group have the same flavors


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(RemembersLikeness):
    """One form in which a workload may run: the first, or an alternative."""

    name: str = ""
    after_seconds: int = 0  # used only after the workload has waited this long
    flavors: tuple[str, ...] = ()  # allowed flavors; empty: any
    pod_sets: tuple[PodSet, ...] = ()

    @property
    def is_elastic(self) -> bool:
        """Whether it can do with fewer pods than it would have."""
        return any(pod_set.least < pod_set.count for pod_set in self.pod_sets)

    @property
    def smallest(self) -> Form:
        """The form with the fewest pods that it can do with."""
        sets = (replace(pod_set, count=pod_set.least) for pod_set in self.pod_sets)
        return replace(self, pod_sets=tuple(sets)) if self.is_elastic else self

    def _alike(self) -> Hashable:
        return (self.name, self.after_seconds, self.flavors, self.pod_sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPods:
    """Pods of one set in one cluster, as claimed."""

    name: str
    count: int
    shape: Shape
    flavors: tuple[tuple[str, str], ...] = ()  # (resource, flavor), sorted
    level: str = ""
    domains: tuple[tuple[str, int], ...] = ()  # pods per topology domain, where chosen
    finished: int = 0  # further pods, which have finished and hold nothing any more

    def usage(self) -> dict[FlavorResource, int]:
        """The quota that these pods are charged."""
        flavor_of = dict(self.flavors)
        usage = {
            (flavor_of.get(resource, NO_FLAVOR), resource): amount * self.count
            for resource, amount in self.shape.charges
        }
        if PODS in flavor_of:
            usage[flavor_of[PODS], PODS] = self.count * ONE_POD
        return usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What one cluster holds of a workload."""

    cluster: str
    pods: tuple[PlacedPods, ...]
    group: str = ""
    replicas: int = 0
    tasks: str = ""  # ranges of task numbers, of an Independent workload
    bound: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    # pod set -> {position of node: pods} in the cluster's report; nodes of other pods are assumed
    attempt: int = 0  # the attempt its pods belong to; 0: the claim's
    is_charged: bool = True  # to quota; False: its own replacement is charged instead
    stays: bool = False  # released, but it runs until its replacements do or a budget allows


def usage_of(*placed: Placed) -> dict[FlavorResource, int]:
    """The total quota that placements are charged."""
    if len(placed) == 1 and len(placed[0].pods) == 1 and placed[0].is_charged:
        return placed[0].pods[0].usage()
    total: dict[FlavorResource, int] = {}
    for placement in placed:
        for pods in placement.pods if placement.is_charged else ():
            for pair, amount in pods.usage().items():
                total[pair] = total.get(pair, 0) + amount
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """Fairway's pods that no claim accounts for: of an attempt that has ended or is ending."""

    requests: Request  # of one pod
    pods: Mapping[int, int]  # position of node -> pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The claim of a workload: what it holds."""

    attempt: int = 0  # below 0: decided, but the store has not assigned a number yet
    queue: str = ""
    placed: tuple[Placed, ...] = ()
    form: str = ""
    rung: Rung = "Idle"
    decided_at: float = 0.0
    started_at: float | None = None  # when its pods began to run; None before
    has_begun: bool = False  # the claim was extended: part of it may run while the rest waits
    missing_copies: int | None = None  # of copies that end: those that have no place yet
    # Workloads that must be gone before it can run, each with its last attempt that must be gone.
    waits_for_victims: tuple[tuple[str, int], ...] = ()


# The kind of a workload that lists pod sets without a template of what runs in them.
PODS_ALONE = "pod sets without a template"

Mode = Literal["Gang", "Divided", "Independent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(RemembersLikeness):
    """Something to run, with every default resolved."""

    key: str  # namespace/name
    queue: str
    priority: int = 0
    queued_at: float = 0.0  # its age counts from here; for a scale-up, from the increase
    mode: Mode = "Gang"
    forms: tuple[Form, ...]
    policy: str = ""  # key of a Policy; empty: everywhere
    clusters_max: int = 1  # most clusters over which a gang of members may split
    domain: str = ""  # topology level: one domain of it holds the whole workload
    replicas: int = 1  # Divided
    ends: bool = False  # Divided: each copy of it runs to completion, such as a Job
    copies_over: tuple[str, ...] = ()  # Divided: clusters in which its copy has succeeded
    unavailable_max: int = 1  # replicas that a move may stop before their replacements run
    is_ready: bool = True  # all its pods are ready; until then a move stops nothing
    tasks: int = 0  # Independent: number of tasks
    first_task: int = 0
    tasks_over: str = ""  # Independent: finished tasks, as ranges
    task_range: int = 1
    concurrency: int = 0  # Independent: most tasks at a time; 0: no limit
    kinds: tuple[str, ...] = ()  # group/version/Kind that the cluster must serve, or PODS_ALONE
    pinned_to: str = ""  # the cluster that holds its volume
    user: str = ""
    refused_by: str = ""  # its queue, or an ancestor, whose submitters do not include it
    is_on_trial: bool = False  # new in a queue that refuses what can never start
    fleet_policies: tuple[FleetPolicy, ...] = ()  # that apply to its namespace, by name
    violations: tuple[Violation, ...] = ()  # of their rules, wherever it runs
    uncounted: Reason | None = None  # why some of its pods or devices cannot be counted
    # Clusters whose rules for its namespace refuse its pods in every form, with why.
    not_admitted: tuple[tuple[str, str], ...] = ()
    preemptible: bool = True
    is_held: bool = False
    not_before: float = 0.0  # back-off after a failure
    avoids: tuple[str, ...] = ()  # clusters where it failed because of the cluster
    # Of these, those that refused its template, with what they said; the latest last.
    refusals: tuple[tuple[str, str], ...] = ()
    run_seconds: float | None = None  # estimate
    limit_seconds: float | None = None
    ran_seconds: float = 0.0  # of earlier attempts
    was_preempted: bool = False  # its last attempt was preempted
    checkpoint_seconds: float | None = None  # how often it saves by itself; None: never
    saves_when_asked: bool = False
    held: Held | None = None
    releasing: tuple[Placed, ...] = ()  # being stopped; charged until confirmed gone
    rebalance_at: float = 0.0  # when a fresh division is requested
    rebalanced_at: float = 0.0  # when the last such request was fulfilled
    reservation: tuple[str, tuple[str, ...]] | None = None  # (cluster, flavors)
    data: tuple[str, ...] = ()  # data it reads, for scores
    runs_in: str = ""  # a cluster that runs pods of it although it has no claim
    is_over: bool = False  # needs no decision; charged only for what is being stopped
    grows: bool = False  # a gang that can take more pods while it runs

    @property
    def stopping(self) -> tuple[Placed, ...]:
        """What is being released and stops in any case."""
        return tuple(placement for placement in self.releasing if not placement.stays)

    @property
    def is_waiting(self) -> bool:
        return self.held is None and not self.is_over

    @property
    def enforced_violation(self) -> Violation | None:
        """The first violation of a rule that is enforced: it keeps the workload from starting."""
        if not self.violations:
            return None
        enforced = {policy.name for policy in self.fleet_policies if policy.is_enforced}
        return next((item for item in self.violations if item.policy in enforced), None)

    @property
    def allowed_run_seconds(self) -> int | None:
        """The longest run that enforced fleet policies allow; None: any."""
        return longest_run(self.fleet_policies)

    @property
    def is_refused(self) -> bool:
        """Whether nothing that ends or is freed lets it start."""
        is_wrong = bool(self.refused_by or self.uncounted)
        return is_wrong or self.enforced_violation is not None

    def _alike(self) -> Hashable:
        if self.held is not None or len(self.forms) > 1:
            return self.key  # its claim, or how long it has waited, makes it unique
        return (
            self.queue,
            self.priority,
            self.user,
            self.refused_by,
            self.fleet_policies,
            self.violations,
            self.uncounted,
            self.mode,
            tuple(form.likeness for form in self.forms),
            self.policy,
            self.kinds,
            self.pinned_to,
            self.avoids,
            self.refusals,
            self.preemptible,
            self.domain,
            self.clusters_max,
            self.replicas,
            self.ends,
            self.copies_over,
            self.tasks,
            self.first_task,
            self.tasks_over,
            self.concurrency,
            self.data,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Quota of one resource of one flavor; None: no limit."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """Resources taken together from one flavor, and the flavors to try in order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRules:
    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim: Literal["Never", "LowerPriority", "Any"] = "Never"
    while_borrowing: Literal["Never", "LowerPriority"] = "Never"
    while_borrowing_priority_max: int | None = None
    protect_within_nominal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fungibility:
    borrows_last: bool = False  # the next flavor is tried before anything is borrowed
    compares_victims: bool = True  # False: the first flavor that works is taken, idle or not
    prefers_preemption: bool = False  # to borrowing


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimit:
    users: tuple[str, ...] = ()
    claimed_max: int | None = None
    waiting_max: int | None = None
    amounts: Request = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A node of the quota tree."""

    name: str
    parent: str = ""
    weight_nanos: int = 1_000_000_000  # 0: infinite share as soon as it borrows
    priority: int = 0
    groups: tuple[ResourceGroup, ...] = ()
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    is_strict: bool = False
    preemption: PreemptionRules = PreemptionRules()
    refuses_uncovered: bool = False  # resources that no group names are not available
    fungibility: Fungibility = Fungibility()
    minimum_run_within: float = 0.0  # seconds before a workload of its own queue may preempt it
    minimum_run_reclaim: float = 0.0  # seconds before another queue may reclaim from it
    is_held: bool = False
    fence: Clusters = None  # clusters that the queue and all its ancestors allow
    claimed_max: int | None = None
    waiting_max: int | None = None
    user_limits: tuple[UserLimit, ...] = ()
    remembered: Mapping[str, int] = field(default_factory=dict)  # decayed usage per resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    name: str
    node_labels: tuple[tuple[str, str], ...] = ()
    cluster_labels: tuple[tuple[str, str], ...] = ()
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    is_interruptible: bool = False  # the provider may reclaim its nodes
    speed_nanos: int = 1_000_000_000
    prices: Mapping[str, int] = field(default_factory=dict)  # nanos of currency per unit and hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """An elastic pool: nodes that a cluster can provision."""

    name: str
    shape: Request
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    left: int = 0  # nodes still available: the least that its maximum, stock and quota allow
    unit: int = 1
    price_nanos: int | None = None  # per node and hour
    provision_seconds: float = 300.0
    is_doubtful: bool = False  # may be out of stock: used only as a last resort
    awaits_stock: bool = False  # the source of its stock has not answered yet: nothing is left
    is_unsure: bool = False  # was out of stock: one request at a time until nodes arrive
    out_until: float = 0.0  # when it is no longer doubtful
    is_interruptible: bool = False  # the provider may reclaim its nodes
    quota: str = ""  # provider quota that it shares with other pools
    limited: tuple[str, ...] = ()  # resources that this quota limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    clusters: Clusters = None
    replicas_max: int | None = None
    copies: int | None = None  # of a Duplicated service: clusters that carry one; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    by: Literal["Cluster", "Region", "Zone", "Provider", "Label"]
    label: str = ""
    least: int = 1
    most: int | None = None
    skew: int | None = None
    is_preferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    name: str  # name of a built-in score or of a scorer
    is_built_in: bool = True
    item: str = ""
    resource: str = "nvidia.com/gpu"
    flavor: str = ""  # whose nodes are counted; empty: all
    weight: int = 1
    missing: int | None = None  # None: the worst for the sign of the weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    type: Literal["Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"] = "Aggregated"
    weights: tuple[tuple[Clusters, int], ...] = ()
    cluster_min: int = 0
    cluster_max: int | None = None
    counts_speed: bool = False  # replicas are counted at speed 1: a faster flavor needs fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnHome:
    enabled: bool = False
    after_seconds: float = 600.0
    per_minute: int = 1
    surge: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Where workloads may run."""

    key: str = ""
    clusters: Clusters = None  # considered at all
    groups: tuple[Group, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[Spread, ...] = ()
    division: Division = Division()
    splits_across_groups: bool = False  # gangs that no single group can hold
    ladder: tuple[tuple[str, Rung], ...] = ()  # (group, rung); empty: the default order
    weighs_price: bool = False
    scores: tuple[Score, ...] = ()  # complete: Additive is resolved
    move_margin: int = 20
    return_home: ReturnHome = ReturnHome()
    rebalance_at: float = 0.0  # when a fresh division of its services is requested
    moves_services: bool = True  # out of clusters that it no longer allows, and down to its limits
    number_of_clusters: int | None = None
    chosen: tuple[str, ...] = ()  # the last choice, of a policy without a workload
    faults: tuple[str, ...] = ()  # fields that are not valid


EVERYWHERE = Policy()
