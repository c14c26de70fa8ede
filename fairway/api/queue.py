"""Queue: a node of the quota tree. Leaves take workloads; inner nodes share and limit.

Quota is given per resource group, flavor and resource. A queue lends what it does not use and
borrows what others do not use, within its limits; a queue without a parent does neither.
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
    Conditions,
    Hold,
    LabelSelector,
    Object,
    OnClusterLost,
    Part,
    ResourceList,
)


class Quota(Part, frozen=True, kw_only=True):
    """How much of one resource of one flavor."""

    resource: Annotated[ResourceName, doc("The resource.")]
    nominal: Annotated[Quantity, doc("What the queue owns.")]
    borrowing_limit: Annotated[
        Quantity | None, doc("Most that it borrows beyond what it owns; unset means no limit.")
    ] = None
    lending_limit: Annotated[
        Quantity | None, doc("Most that it lends of what it owns; unset means all.")
    ] = None


class FlavorQuota(Part, frozen=True, kw_only=True):
    """Quota on one flavor."""

    name: Annotated[Name, doc("Name of the flavor.")]
    quotas: Annotated[
        tuple[Quota, ...],
        doc(
            "Quota of each resource; one that is covered and not listed is zero.",
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
            "Flavors with their quota, in the order in which they are tried.",
            min_items=1,
            max_items=32,
            list_type="map",
            list_map_keys=["name"],
        ),
    ]


class PreemptionWhileBorrowing(Part, frozen=True, kw_only=True):
    """Whether a workload that would have to borrow may preempt in other queues."""

    policy: Annotated[
        Literal["Never", "LowerPriority"], doc("Whether it may, and whom; without fair share only.")
    ] = "Never"
    priority_max: Annotated[
        Priority | None, doc("Highest priority of a victim; unset means below the own priority.")
    ] = None


class Preemption(Part, frozen=True, kw_only=True):
    """Whom workloads of this queue may preempt, and when its own are safe."""

    within_queue: Annotated[
        Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"],
        doc("Which workloads of the same queue may be preempted."),
    ] = "Never"
    reclaim: Annotated[
        Literal["Never", "LowerPriority", "Any"],
        doc("Which borrowers in other queues may be preempted to get the queue's own back."),
    ] = "Never"
    while_borrowing: Annotated[
        PreemptionWhileBorrowing, doc("Whether one that borrows may preempt in other queues.")
    ] = PreemptionWhileBorrowing()
    protect_within_nominal: Annotated[
        bool, doc("Whether workloads within the nominal quota are never victims.")
    ] = False


class Fungibility(Part, frozen=True, kw_only=True):
    """When the search for a flavor stops, and what is better among flavors that would do."""

    when_can_borrow: Annotated[
        Literal["Borrow", "TryNextFlavor"], doc("What to do where the flavor fits by borrowing.")
    ] = "Borrow"
    when_can_preempt: Annotated[
        Literal["Preempt", "TryNextFlavor"], doc("What to do where it fits by preemption.")
    ] = "TryNextFlavor"
    preference: Annotated[
        Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"],
        doc("What is better when no flavor stopped the search."),
    ] = "BorrowingOverPreemption"


class MinimumRun(Part, frozen=True, kw_only=True):
    """How long a workload runs before it can be a victim; unset parts come from the parent."""

    within_queue_seconds: Annotated[
        Seconds | None, doc("Before one of the same queue may preempt it.")
    ] = None
    reclaim_seconds: Annotated[Seconds | None, doc("Before another queue may preempt it.")] = None


class Submitters(Part, frozen=True, kw_only=True):
    """Who may submit; one match suffices, and every ancestor that states it must agree.

    Users and groups are those of whoever named the queue. Others are refused when they name it, and
    again when the workload's turn comes: then it waits with the reason NotASubmitter. What runs
    already is left alone, and gets no more.
    """

    namespaces: Annotated[
        tuple[Name, ...],
        doc("Namespaces whose workloads are taken.", max_items=256, list_type="set"),
    ] = ()
    namespace_selector: Annotated[
        LabelSelector | None, doc("Namespaces, by their labels, whose workloads are taken.")
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
    """What one user may have in this queue and below it."""

    name: Annotated[Label, doc("Name of the limit.")]
    users: Annotated[
        tuple[str, ...],
        doc("Users, each limited alone; empty means everyone.", max_items=256, list_type="set"),
    ] = ()
    claimed_workloads: Annotated[
        Count | None, doc("Most workloads that hold a claim at a time.")
    ] = None
    waiting_workloads: Annotated[Count | None, doc("Most workloads that wait at a time.")] = None
    amounts: Annotated[ResourceList, doc("Most resources, over all flavors, at a time.")] = {}


class QueueDefaults(Part, frozen=True, kw_only=True):
    """What workloads of this queue get that they do not say; unset parts come from the parent."""

    policy: Annotated[Reference, doc("Placement policy, in the system namespace.")] = ""
    priority: Annotated[Priority | None, doc("Priority.")] = None
    on_cluster_lost: Annotated[
        OnClusterLost | None, doc("What becomes of them when their cluster is lost.")
    ] = None
    run_seconds_estimate: Annotated[Seconds | None, doc("Expected run time.")] = None
    run_seconds_limit: Annotated[Seconds | None, doc("Longest run time.")] = None


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
    """Place in the tree, quota, and rules."""

    description: Annotated[Text, doc("What the queue is for, for people.")] = ""
    parent: Annotated[Reference, doc("The queue above; empty for the root of a tree.")] = ""
    weight: Annotated[
        Quantity, doc("Weight of its share among siblings; with 0 it only gets what is left over.")
    ] = ONE
    priority: Annotated[
        Priority, doc("Siblings of higher priority come first, whatever their shares.")
    ] = 0
    resource_groups: Annotated[
        tuple[ResourceGroup, ...],
        doc("Quota per resource group, flavor and resource.", max_items=8, list_type="atomic"),
    ] = ()
    strategy: Annotated[
        Literal["BestEffort", "Strict"],
        doc("Whether a workload that cannot start lets later ones pass, or blocks them."),
    ] = "BestEffort"
    preemption: Annotated[
        Preemption, doc("Whom its workloads may preempt, and when its own are safe.")
    ] = Preemption()
    fungibility: Annotated[
        Fungibility, doc("When the search for a flavor stops, and which is better.")
    ] = Fungibility()
    minimum_run: Annotated[
        MinimumRun, doc("How long a workload runs before it can be a victim.")
    ] = MinimumRun()
    hold: Annotated[
        Hold,
        doc(
            "Hold starts nothing new in this queue and below it; HoldAndDrain also stops what runs."
        ),
    ] = "None"
    submitters: Annotated[
        Submitters | None, doc("Who may submit; unset means everyone with the right to do so.")
    ] = None
    clusters: Annotated[
        ClusterSelector | None,
        doc("The only clusters its workloads may ever use; queues below can only narrow it."),
    ] = None
    claimed_workloads_max: Annotated[
        Count | None, doc("Most workloads that hold a claim at a time, in this queue and below.")
    ] = None
    waiting_workloads_max: Annotated[
        Count | None, doc("Most workloads that wait at a time; further ones are refused.")
    ] = None
    user_limits: Annotated[
        tuple[UserLimit, ...],
        doc(
            "What one user may have in this queue and below; the first limit naming them counts, "
            "then the first for everyone.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    refuse_impossible: Annotated[
        bool, doc("Whether workloads that no cluster or pool could ever run are refused.")
    ] = False
    defaults: Annotated[QueueDefaults, doc("What its workloads get that they do not say.")] = (
        QueueDefaults()
    )


class FlavorUsage(Part, frozen=True, kw_only=True):
    """Usage of one resource of one flavor by a queue and all below it."""

    flavor: Annotated[Name, doc("The flavor.")]
    resource: Annotated[ResourceName, doc("The resource.")]
    used: Annotated[Quantity, doc("What claims hold.")]
    borrowed: Annotated[Quantity, doc("The part of it that is borrowed.")] = Quantity(0)


class RememberedUsage(Part, frozen=True, kw_only=True):
    """Usage as it fades, for shares that remember."""

    amounts: Annotated[
        Mapping[ResourceName, Quantity], doc("Faded usage of each resource.", max_properties=64)
    ] = {}
    updated_at: Annotated[datetime, doc("When it was last brought up to date.")]


class QueueStatus(Part, frozen=True, kw_only=True):
    """What the queue holds."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    waiting_workloads: Annotated[Count, doc("Workloads that wait, here and below.")] = 0
    claimed_workloads: Annotated[Count, doc("Workloads that hold a claim, here and below.")] = 0
    running_workloads: Annotated[Count, doc("Workloads that run, here and below.")] = 0
    share: Annotated[
        int, doc("Weighted dominant share in thousandths of what may be borrowed, rounded up.")
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
    remembered: Annotated[RememberedUsage | None, doc("Usage as it fades.")] = None
    conditions: Annotated[Conditions, doc("State of the queue, aspect by aspect.")] = ()


@rules(
    Rule(
        "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
        "a queue is not its own parent",
    )
)
class Queue(Object, frozen=True, kw_only=True):
    """A node of the quota tree: what a team owns, lends and borrows, and by which rules."""

    spec: Annotated[QueueSpec, doc("Place in the tree, quota, and rules.")] = QueueSpec()
    status: Annotated[QueueStatus, doc("What the queue holds.")] = QueueStatus()
