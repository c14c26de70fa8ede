"""PlacementPolicy: where workloads may run, in which order, and how replicas are divided.

All namespaces may use the policies of the system namespace; a tenant's policies serve its own
namespace. A policy with `numberOfClusters` needs no workload: it chooses clusters and publishes
them in its status.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fairway.api.doc import (
    Count,
    Label,
    Name,
    OptionalLabel,
    Reference,
    ResourceName,
    Rule,
    Seconds,
    doc,
    rules,
)
from fairway.api.meta import ClusterSelector, Conditions, Object, Part, Rung, Toleration

BuiltInScore = Literal[
    "Steady",
    "Balance",
    "Allocatable",
    "AcceleratorsOnBestNode",
    "AcceleratorsInCluster",
    "Price",
    "DataSeconds",
]


class ClusterGroup(Part, frozen=True, kw_only=True):
    """Clusters of equal preference; an earlier group is preferred to a later one."""

    name: Annotated[Label, doc("Name of the group, used in the ladder.")]
    selector: Annotated[
        ClusterSelector,
        doc(
            "Selects the clusters of the group; a cluster belongs to the first group that "
            "selects it."
        ),
    ] = ClusterSelector()
    replicas_max: Annotated[
        Count | None, doc("Maximum replicas of a Divided workload in this group; unset: no limit.")
    ] = None
    copies: Annotated[
        Count | None,
        doc(
            "With division Duplicated: number of clusters of this group that carry a copy; if one "
            "fails, another cluster of the group takes over its copy; unset: all clusters.",
            minimum=1,
        ),
    ] = None


@rules(
    Rule(
        "(self.by == 'Label') == (has(self.label) && self.label != '')",
        "label is needed with by: Label, and refused otherwise",
        ".label",
    ),
    Rule(
        "!has(self.most) || !has(self.least) || self.least <= self.most",
        "least must not exceed most",
        ".least",
    ),
)
class Spread(Part, frozen=True, kw_only=True):
    """Number of domains over which a workload is spread, and how evenly."""

    by: Annotated[
        Literal["Cluster", "Region", "Zone", "Provider", "Label"],
        doc("What defines a domain: the cluster itself, or one of its labels."),
    ]
    label: Annotated[
        str, doc("Cluster label whose values are the domains, with by: Label.", max_length=316)
    ] = ""
    least: Annotated[Count, doc("Minimum number of domains.", minimum=1)] = 1
    most: Annotated[Count | None, doc("Maximum number of domains; unset: no limit.", minimum=1)] = (
        None
    )
    skew: Annotated[
        Count | None,
        doc("Maximum difference in replicas between two domains; unset: no limit.", minimum=1),
    ] = None
    when_unsatisfiable: Annotated[
        Literal["Refuse", "Prefer"],
        doc("Refuse: the rule must hold. Prefer: it is only preferred."),
    ] = "Refuse"


class StaticWeight(Part, frozen=True, kw_only=True):
    """Weight of some clusters; a cluster that several rules select gets the largest."""

    selector: Annotated[ClusterSelector, doc("Selects the clusters.")]
    weight: Annotated[int, doc("Weight of these clusters.", minimum=0, maximum=1_000_000)]


@rules(
    Rule(
        "self.type == 'StaticWeight' || !has(self.weights) || size(self.weights) == 0",
        "weights need type: StaticWeight",
        ".weights",
    ),
    Rule(
        "!has(self.countBy) || self.countBy != 'Speed' || self.type != 'Duplicated'",
        "replicas in each cluster are not counted by speed",
        ".countBy",
    ),
)
class Division(Part, frozen=True, kw_only=True):
    """How the replicas of a Divided workload are distributed over clusters."""

    type: Annotated[
        Literal["Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"],
        doc(
            "Duplicated: all replicas in each cluster. StaticWeight: by given weights. "
            "DynamicWeight: by what fits in each. Aggregated: in as few clusters as possible."
        ),
    ] = "Aggregated"
    weights: Annotated[
        tuple[StaticWeight, ...],
        doc("Weights of clusters, for StaticWeight.", max_items=64, list_type="atomic"),
    ] = ()
    count_by: Annotated[
        Literal["Replicas", "Speed"],
        doc(
            "Replicas: each replica counts as one. Speed: each counts by the speed of its "
            "flavor, so that replicas are requested at speed 1 and fewer are needed on faster "
            "flavors."
        ),
    ] = "Replicas"
    per_cluster_min: Annotated[Count, doc("Minimum replicas in a cluster that gets any.")] = 0
    per_cluster_max: Annotated[
        Count | None, doc("Maximum replicas in a cluster; unset: no limit.")
    ] = None


class LadderStep(Part, frozen=True, kw_only=True):
    """One way to obtain capacity, tried before the next."""

    group: Annotated[OptionalLabel, doc("Name of the group; empty if there are no groups.")] = ""
    rung: Annotated[
        Rung,
        doc(
            "Idle: use idle capacity. Preempt: preempt victims. Provision: provision nodes of "
            "an elastic pool."
        ),
    ]


@rules(
    Rule(
        "has(self.builtIn) != (has(self.scorer) && self.scorer != '')",
        "exactly one of builtIn and scorer is given",
    )
)
class ScoreWeight(Part, frozen=True, kw_only=True):
    """A score and its weight."""

    built_in: Annotated[BuiltInScore | None, doc("Score that the hub computes.")] = None
    scorer: Annotated[Reference, doc("Name of a scorer in ClusterScores, for any other score.")] = (
        ""
    )
    item: Annotated[str, doc("Item of the scorer; empty: it has no items.", max_length=253)] = ""
    resource: Annotated[
        ResourceName, doc("Resource that Allocatable and the accelerator scores compare.")
    ] = "nvidia.com/gpu"
    flavor: Annotated[
        Reference,
        doc(
            "Flavor whose nodes Allocatable and the accelerator scores count, such as one model "
            "of accelerator; empty: all nodes."
        ),
    ] = ""
    weight: Annotated[
        int,
        doc(
            "Weight of the score; a negative weight prefers the lowest score.",
            minimum=-10,
            maximum=10,
        ),
    ] = 1
    missing: Annotated[
        int | None,
        doc(
            "Score of a cluster that has none, or an expired one; unset: the worst for the sign "
            "of the weight.",
            minimum=-100,
            maximum=100,
        ),
    ] = None


class ReturnHome(Part, frozen=True, kw_only=True):
    """How replicas return to an earlier group once it has room again."""

    enabled: Annotated[bool, doc("Whether replicas return.")] = False
    after_seconds: Annotated[
        Seconds, doc("Seconds that the earlier group must have had room before replicas move.")
    ] = 600
    replicas_per_minute: Annotated[Count, doc("Maximum replicas moved per minute.", minimum=1)] = 1
    surge: Annotated[
        Count, doc("Maximum replicas that run in both places while they move, within quota.")
    ] = 1


@rules(
    Rule(
        "!has(self.ladder) || self.ladder.all(s, !has(s.group) || s.group == '' || "
        "(has(self.groups) && self.groups.exists(g, g.name == s.group)))",
        "each step of the ladder names a group of this policy",
        ".ladder",
    ),
    Rule(
        "!has(self.groups) || self.groups.all(g, !has(g.copies)) || (has(self.division) && "
        "has(self.division.type) && self.division.type == 'Duplicated' && "
        "(!has(self.spread) || size(self.spread) == 0))",
        "copies of a group need division.type: Duplicated, and no spread",
        ".groups",
    ),
    Rule(
        "!has(self.scores) || self.scores.all(s, !has(s.builtIn) || s.builtIn != 'DataSeconds')",
        "DataSeconds is not supported yet: where data is, is not known",
        ".scores",
    ),
)
class PlacementPolicySpec(Part, frozen=True, kw_only=True):
    """Which clusters, in which order, and how replicas are divided."""

    selector: Annotated[ClusterSelector, doc("Selects the clusters to consider.")] = (
        ClusterSelector()
    )
    groups: Annotated[
        tuple[ClusterGroup, ...],
        doc(
            "Groups of clusters in order of preference; empty: one group of all.",
            max_items=32,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Cluster taints that are tolerated.", max_items=32, list_type="atomic"),
    ] = ()
    spread: Annotated[
        tuple[Spread, ...],
        doc("Spread rules, most important first.", max_items=8, list_type="atomic"),
    ] = ()
    division: Annotated[Division, doc("How replicas are divided over clusters.")] = Division()
    gang_split: Annotated[
        Literal["WithinGroup", "AcrossGroups"],
        doc(
            "How a gang is split that may run in several clusters (gang.clustersMax). WithinGroup: "
            "over clusters of one group. AcrossGroups: over clusters of several groups, if no step "
            "of the ladder places it; it takes idle capacity, of earlier groups first."
        ),
    ] = "WithinGroup"
    ladder: Annotated[
        tuple[LadderStep, ...],
        doc(
            "Ways to obtain capacity, in the order in which they are tried; empty: Idle, "
            "Preempt and Provision for each group in order.",
            max_items=96,
            list_type="atomic",
        ),
    ] = ()
    weigh_price: Annotated[
        bool,
        doc(
            "Whether to compare the price of lost work with the price of provisioning if both "
            "are possible, instead of following the ladder."
        ),
    ] = False
    score_mode: Annotated[
        Literal["Additive", "Exact"],
        doc(
            "Additive: the listed scores add to Steady and Balance of weight 1. Exact: only the "
            "listed scores count."
        ),
    ] = "Additive"
    scores: Annotated[
        tuple[ScoreWeight, ...],
        doc("Scores that rank clusters, with their weights.", max_items=32, list_type="atomic"),
    ] = ()
    move_margin: Annotated[
        int,
        doc(
            "Points by which a cluster must score better to replace one that the policy has "
            "already chosen (status.decisions). Scores move nothing that runs.",
            minimum=0,
            maximum=20_000,
        ),
    ] = 20
    return_home: Annotated[ReturnHome, doc("How replicas return to an earlier group.")] = (
        ReturnHome()
    )
    rebalance_at: Annotated[
        datetime | None,
        doc(
            "Time at which the services of this policy are divided afresh, once each; a later "
            "time does so again."
        ),
    ] = None
    when_no_longer_allowed: Annotated[
        Literal["Leave", "Stay"],
        doc(
            "What services do in clusters that this policy or their queue no longer allows, and "
            "with replicas beyond lowered limits. Leave: they move, as fast as their disruption "
            "budget allows. Stay: they stay. Gangs and sweeps always stay until they end."
        ),
    ] = "Leave"
    number_of_clusters: Annotated[
        Count | None,
        doc(
            "Number of clusters to choose, for others that read the status; unset: all that match.",
            minimum=1,
        ),
    ] = None
    clusters_per_batch: Annotated[
        Count | None,
        doc("Number of chosen clusters in each batch of the status; unset: one batch.", minimum=1),
    ] = None


class Decision(Part, frozen=True, kw_only=True):
    """A chosen cluster."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    group: Annotated[OptionalLabel, doc("Group of the policy that the cluster belongs to.")] = ""
    score: Annotated[int, doc("Weighted score of the cluster.")] = 0
    batch: Annotated[
        Count, doc("Batch of the cluster, from 0: the best clusters are in the first.")
    ] = 0
    chosen_at: Annotated[datetime, doc("Time since which the cluster has been chosen.")]


class PlacementPolicyStatus(Part, frozen=True, kw_only=True):
    """Clusters that the policy chooses, best first."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    chosen: Annotated[Count, doc("Number of chosen clusters.")] = 0
    decisions: Annotated[
        tuple[Decision, ...],
        doc("Chosen clusters.", max_items=512, list_type="map", list_map_keys=["cluster"]),
    ] = ()
    conditions: Annotated[Conditions, doc("Latest observations of the policy's state.")] = ()


class PlacementPolicy(Object, frozen=True, kw_only=True):
    """Where workloads may run, what is preferred, and how replicas are divided."""

    spec: Annotated[
        PlacementPolicySpec, doc("Which clusters, in which order, and how replicas are divided.")
    ] = PlacementPolicySpec()
    status: Annotated[PlacementPolicyStatus, doc("Clusters that the policy chooses.")] = (
        PlacementPolicyStatus()
    )
