"""Queue: a node of the quota tree. Leaves take workloads; inner nodes share and limit.

Quota is given per resource group, flavor and resource. A queue lends quota that it does not use and
borrows quota that others do not use, within its limits; a queue without a parent does neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Count,
    Label,
    Name,
    Priority,
    Reference,
    ResourceName,
    Rule,
    Seconds,
    Text,
    doc,
    rules,
)
from fairway.api.flavor import ONE
from fairway.api.meta import (
    ClusterSelector,
    Hold,
    LabelSelector,
    Object,
    OnClusterLost,
    Part,
    ResourceList,
)


class Quota(Part, frozen=True, kw_only=True):
    """Quota of one resource of one flavor."""

    resource: Annotated[ResourceName, doc("Name of the resource.")]
    nominal: Annotated[Quantity, doc("Nominal quota: what the queue owns.")]
    borrowing_limit: Annotated[
        Quantity | None,
        doc("Maximum that the queue borrows beyond its nominal quota; unset: no limit."),
    ] = None
    lending_limit: Annotated[
        Quantity | None, doc("Maximum of its nominal quota that the queue lends; unset: all.")
    ] = None


class FlavorQuota(Part, frozen=True, kw_only=True):
    """Quota of one flavor."""

    name: Annotated[Name, doc("Name of the flavor.")]
    quotas: Annotated[
        tuple[Quota, ...],
        doc(
            "Quota of each resource; a covered resource that is not listed has zero quota.",
            max_items=32,
            list_type="map",
            list_map_keys=["resource"],
        ),
    ] = ()


@rules(
    Rule(
        "self.flavors.all(f, !has(f.quotas) || f.quotas.all(q, q.resource in self.resources))",
        "each quota is of a resource that its group covers",
        ".flavors",
    )
)
class ResourceGroup(Part, frozen=True, kw_only=True):
    """Resources that are taken together from one flavor, and the flavors to try in order."""

    resources: Annotated[
        tuple[ResourceName, ...],
        doc("Resources that the group covers.", min_items=1, max_items=32, list_type="set"),
    ]
    flavors: Annotated[
        tuple[FlavorQuota, ...],
        doc(
            "Flavors and their quota, in the order in which they are tried.",
            min_items=1,
            max_items=32,
            list_type="map",
            list_map_keys=["name"],
        ),
    ]


class PreemptionWhileBorrowing(Part, frozen=True, kw_only=True):
    """Whether a workload that must borrow may preempt in other queues."""

    policy: Annotated[
        Literal["Never", "LowerPriority"],
        doc("Whether it may preempt, and which workloads; applies only without fair share."),
    ] = "Never"
    priority_max: Annotated[
        Priority | None,
        doc("Highest priority of a victim; unset: any priority below the preemptor's."),
    ] = None


class Preemption(Part, frozen=True, kw_only=True):
    """Which workloads this queue's workloads may preempt, and when its own are protected."""

    within_queue: Annotated[
        Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"],
        doc("Which workloads of the same queue may be preempted."),
    ] = "Never"
    reclaim: Annotated[
        Literal["Never", "LowerPriority", "Any"],
        doc("Which borrowers in other queues may be preempted to reclaim the queue's own quota."),
    ] = "Never"
    while_borrowing: Annotated[
        PreemptionWhileBorrowing,
        doc("Whether a workload that borrows may preempt in other queues."),
    ] = PreemptionWhileBorrowing()
    protect_within_nominal: Annotated[
        bool, doc("Whether workloads within nominal quota are never preempted.")
    ] = False


Uncovered = Literal["Unavailable", "Unlimited"]


@rules(
    Rule(
        "!has(self.preference) || self.preference != 'PreemptionOverBorrowing' || "
        "(has(self.whenCanBorrow) && self.whenCanBorrow == 'TryNextFlavor' && "
        "(!has(self.whenCanPreempt) || self.whenCanPreempt == 'TryNextFlavor'))",
        "PreemptionOverBorrowing needs TryNextFlavor in whenCanBorrow and whenCanPreempt: "
        "otherwise the search stops before they are compared",
        ".preference",
    )
)
class Fungibility(Part, frozen=True, kw_only=True):
    """When the search for a flavor stops, and which of several suitable flavors is preferred.

    By default idle capacity of any flavor comes before preemption. That is not so with
    `whenCanPreempt: MayStopSearch`, and with PreemptionOverBorrowing only if the idle capacity is
    borrowed from no further up the tree.
    """

    when_can_borrow: Annotated[
        Literal["MayStopSearch", "TryNextFlavor", "Borrow"],
        doc(
            "If a flavor fits by borrowing: MayStopSearch takes it, TryNextFlavor first looks for "
            "one that fits without, or by borrowing from nearer. Borrow is an older name of "
            "MayStopSearch."
        ),
    ] = "MayStopSearch"
    when_can_preempt: Annotated[
        Literal["MayStopSearch", "TryNextFlavor", "Preempt"],
        doc(
            "If a flavor fits only by preemption: MayStopSearch preempts there, even if the next "
            "flavor is idle; a flavor on which no victims are found does not stop the search. "
            "TryNextFlavor first looks for idle capacity of other flavors, then compares the "
            "victims on all of them: by whether quota is only reclaimed, by how much is borrowed, "
            "then by the harm. With MayStopSearch too, idle capacity of all flavors comes first "
            "for services that have given weights, rules of spread or copies, and where the "
            "policy's ladder does not preempt in a group right after it looks for idle capacity. "
            "Preempt is an older name of MayStopSearch."
        ),
    ] = "TryNextFlavor"
    preference: Annotated[
        Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"],
        doc(
            "Whether to borrow rather than preempt, or to preempt rather than borrow. "
            "PreemptionOverBorrowing requires TryNextFlavor in both other fields."
        ),
    ] = "BorrowingOverPreemption"


class MinimumRun(Part, frozen=True, kw_only=True):
    """How long a workload runs before it may be preempted; unset fields come from the parent."""

    within_queue_seconds: Annotated[
        Seconds | None, doc("Seconds before a workload of the same queue may preempt it.")
    ] = None
    reclaim_seconds: Annotated[
        Seconds | None, doc("Seconds before a workload of another queue may preempt it.")
    ] = None


class Submitters(Part, frozen=True, kw_only=True):
    """Who may submit; one match suffices, and every ancestor with submitters must agree.

    Users and groups are those of the person who set the workload's queue. Other people are refused
    when they set it, and the workload is checked again when its turn comes: then it stays pending
    with the reason NotASubmitter. What already runs keeps running, and gets no more.
    """

    namespaces: Annotated[
        tuple[Name, ...],
        doc("Namespaces whose workloads are accepted.", max_items=256, list_type="set"),
    ] = ()
    namespace_selector: Annotated[
        LabelSelector | None, doc("Selects namespaces, by label, whose workloads are accepted.")
    ] = None
    users: Annotated[
        tuple[str, ...],
        doc("Users who may submit.", max_items=256, list_type="set"),
    ] = ()
    groups: Annotated[
        tuple[str, ...],
        doc("Groups whose members may submit.", max_items=256, list_type="set"),
    ] = ()


class UserLimit(Part, frozen=True, kw_only=True):
    """Limits for one user in this queue and below."""

    name: Annotated[Label, doc("Name of the limit.")]
    users: Annotated[
        tuple[str, ...],
        doc("Users to limit, each separately; empty: everyone.", max_items=256, list_type="set"),
    ] = ()
    claimed_workloads: Annotated[
        Count | None, doc("Maximum workloads that hold a claim at a time.")
    ] = None
    waiting_workloads: Annotated[Count | None, doc("Maximum pending workloads at a time.")] = None
    amounts: Annotated[ResourceList, doc("Maximum resources at a time, over all flavors.")] = {}


class QueueDefaults(Part, frozen=True, kw_only=True):
    """Defaults for what workloads do not specify; unset fields come from the parent."""

    policy: Annotated[Reference, doc("Placement policy, in the system namespace.")] = ""
    priority: Annotated[Priority | None, doc("Priority of workloads.")] = None
    on_cluster_lost: Annotated[
        OnClusterLost | None, doc("What happens to workloads when their cluster is lost.")
    ] = None
    run_seconds_estimate: Annotated[Seconds | None, doc("Expected run time, in seconds.")] = None
    run_seconds_limit: Annotated[Seconds | None, doc("Maximum run time, in seconds.")] = None


@rules(
    Rule(
        "(has(self.parent) && self.parent != '') || !has(self.resourceGroups) || "
        "self.resourceGroups.all(g, g.flavors.all(f, !has(f.quotas) || f.quotas.all(q, "
        "!has(q.borrowingLimit) && !has(q.lendingLimit))))",
        "a queue without a parent neither borrows nor lends: borrowingLimit and lendingLimit need "
        "a parent",
        ".resourceGroups",
    ),
    Rule(
        "!has(self.resourceGroups) || self.resourceGroups.all(g, g.resources.all(r, "
        "self.resourceGroups.exists_one(h, r in h.resources)))",
        "a resource belongs to one group",
        ".resourceGroups",
    ),
    Rule(
        "!has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, "
        "self.resourceGroups.exists_one(h, h.flavors.exists(o, o.name == f.name))))",
        "a flavor belongs to one group",
        ".resourceGroups",
    ),
)
class QueueSpec(Part, frozen=True, kw_only=True):
    """Position in the tree, quota, and rules."""

    description: Annotated[Text, doc("Purpose of the queue, for people.")] = ""
    parent: Annotated[Reference, doc("Parent queue; empty for the root of a tree.")] = ""
    weight: Annotated[
        Quantity,
        doc("Weight of the queue's share among siblings; with 0 it only gets what is left over."),
    ] = ONE
    priority: Annotated[
        Priority, doc("Siblings of higher priority come first, regardless of their shares.")
    ] = 0
    resource_groups: Annotated[
        tuple[ResourceGroup, ...],
        doc("Quota per resource group, flavor and resource.", max_items=8, list_type="atomic"),
    ] = ()
    uncovered: Annotated[
        Uncovered | None,
        doc(
            "What its workloads get of resources that no resource group of this queue or of a "
            "queue above names: nothing (Unavailable), or as much as there is (Unlimited). The "
            "number of pods counts only where a group names it. Unset: as the parent says; "
            "Unavailable at the root of a tree."
        ),
    ] = None
    strategy: Annotated[
        Literal["BestEffort", "Strict"],
        doc(
            "BestEffort: a workload that cannot start lets later ones pass. Strict: it blocks them."
        ),
    ] = "BestEffort"
    preemption: Annotated[
        Preemption,
        doc("Which workloads its workloads may preempt, and when its own are protected."),
    ] = Preemption()
    fungibility: Annotated[
        Fungibility, doc("When the search for a flavor stops, and which flavor is preferred.")
    ] = Fungibility()
    minimum_run: Annotated[
        MinimumRun, doc("How long a workload runs before it may be preempted.")
    ] = MinimumRun()
    hold: Annotated[
        Hold,
        doc("Hold: start nothing new in this queue and below. HoldAndDrain: also stop what runs."),
    ] = "None"
    submitters: Annotated[
        Submitters | None, doc("Who may submit; unset: everyone with the right to do so.")
    ] = None
    clusters: Annotated[
        ClusterSelector | None,
        doc("Clusters that its workloads may use; queues below can only narrow it; unset: all."),
    ] = None
    claimed_workloads_max: Annotated[
        Count | None,
        doc(
            "Maximum workloads that hold a claim at a time, in this queue and below; unset: no "
            "limit."
        ),
    ] = None
    waiting_workloads_max: Annotated[
        Count | None,
        doc("Maximum pending workloads at a time; further ones are refused; unset: no limit."),
    ] = None
    user_limits: Annotated[
        tuple[UserLimit, ...],
        doc(
            "Limits per user in this queue and below; the first limit that names the user "
            "applies, else the first for everyone.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    refuse_impossible: Annotated[
        bool,
        doc(
            "Whether this queue and those below refuse a new workload that can never start as the "
            "fleet is: it fails at once, and says why. Otherwise it waits, and its condition "
            "CanStart says why. Workloads that were accepted before are not refused."
        ),
    ] = False
    defaults: Annotated[QueueDefaults, doc("Defaults for what its workloads do not specify.")] = (
        QueueDefaults()
    )


class FlavorUsage(Part, frozen=True, kw_only=True):
    """Usage of one resource of one flavor by a queue and all queues below."""

    flavor: Annotated[Name, doc("Name of the flavor.")]
    resource: Annotated[ResourceName, doc("Name of the resource.")]
    used: Annotated[Quantity, doc("Amount that claims hold.")]
    borrowed: Annotated[Quantity, doc("Part of it that is borrowed.")] = Quantity(0)


class RememberedUsage(Part, frozen=True, kw_only=True):
    """Past usage, decayed over time, for fair shares."""

    amounts: Annotated[
        Mapping[ResourceName, Quantity], doc("Decayed usage of each resource.", max_properties=64)
    ] = {}
    updated_at: Annotated[datetime, doc("Time of the last update.")]


class QueueStatus(Part, frozen=True, kw_only=True):
    """Usage of the queue."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    waiting_workloads: Annotated[
        Count, doc("Number of pending workloads, in this queue and below.")
    ] = 0
    claimed_workloads: Annotated[
        Count, doc("Number of workloads that hold a claim, in this queue and below.")
    ] = 0
    running_workloads: Annotated[
        Count, doc("Number of running workloads, in this queue and below.")
    ] = 0
    share: Annotated[
        int, doc("Weighted dominant share, in thousandths of what may be borrowed, rounded up.")
    ] = 0
    usage: Annotated[
        tuple[FlavorUsage, ...],
        doc(
            "Usage per flavor and resource.",
            max_items=1024,
            list_type="map",
            list_map_keys=["flavor", "resource"],
        ),
    ] = ()
    remembered: Annotated[RememberedUsage | None, doc("Past usage, decayed over time.")] = None
    uncovered: Annotated[
        Uncovered | None, doc("What applies to resources that no resource group names.")
    ] = None


@rules(
    Rule(
        "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
        "a queue is not its own parent",
    )
)
class Queue(Object, frozen=True, kw_only=True):
    """A node of the quota tree: what a team owns, lends and borrows, and by which rules."""

    spec: Annotated[QueueSpec, doc("Position in the tree, quota, and rules.")] = QueueSpec()
    status: Annotated[QueueStatus, doc("Usage of the queue.")] = QueueStatus()
