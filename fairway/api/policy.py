"""PlacementPolicy: where workloads may go, in which order, and how replicas are divided.

Policies in the system namespace serve everyone; those of a tenant serve its namespace. With
`numberOfClusters` a policy needs no workload: it chooses clusters and publishes them in its status.
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
    """Clusters that are equally welcome; an earlier group is preferred to a later one."""

    name: Annotated[Label, doc("Name of the group, for the ladder.")]
    selector: Annotated[
        ClusterSelector,
        doc("Which clusters belong to it; one in an earlier group is not in a later."),
    ] = ClusterSelector()
    replicas_max: Annotated[
        Count | None, doc("Most replicas of a Divided workload in this group; unset: no limit.")
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
    """Over how many domains a workload is spread, and how evenly."""

    by: Annotated[
        Literal["Cluster", "Region", "Zone", "Provider", "Label"],
        doc("What makes a domain: the cluster itself, or a label of it."),
    ]
    label: Annotated[
        str, doc("Cluster label whose values are the domains, with by: Label.", max_length=316)
    ] = ""
    least: Annotated[Count, doc("Fewest domains to use.", minimum=1)] = 1
    most: Annotated[Count | None, doc("Most domains to use; unset means no limit.", minimum=1)] = (
        None
    )
    skew: Annotated[
        Count | None,
        doc("Largest difference of replicas between two domains; unset: no limit.", minimum=1),
    ] = None
    when_unsatisfiable: Annotated[
        Literal["Refuse", "Prefer"], doc("Whether the rule must hold, or is only preferred.")
    ] = "Refuse"


class StaticWeight(Part, frozen=True, kw_only=True):
    """The weight of some clusters; a cluster chosen by several rules has the largest."""

    selector: Annotated[ClusterSelector, doc("Which clusters.")]
    weight: Annotated[int, doc("Their weight.", minimum=0, maximum=1_000_000)]


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
    """How the replicas of a Divided workload are spread over its clusters."""

    type: Annotated[
        Literal["Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"],
        doc(
            "All replicas in each cluster; by given weights; by what fits in each; or in as few "
            "clusters as hold them."
        ),
    ] = "Aggregated"
    weights: Annotated[
        tuple[StaticWeight, ...],
        doc("Weights of clusters, for StaticWeight.", max_items=64, list_type="atomic"),
    ] = ()
    count_by: Annotated[
        Literal["Replicas", "Speed"],
        doc(
            "Whether each replica counts for one, or for the speed of its flavor: then replicas "
            "are asked for as of speed 1, and fewer are needed where they are faster."
        ),
    ] = "Replicas"
    per_cluster_min: Annotated[Count, doc("Fewest replicas in a cluster that gets any.")] = 0
    per_cluster_max: Annotated[
        Count | None, doc("Most replicas in a cluster; unset means no limit.")
    ] = None


class LadderStep(Part, frozen=True, kw_only=True):
    """One way to get capacity, tried before the next."""

    group: Annotated[OptionalLabel, doc("Name of the group; empty where there are no groups.")] = ""
    rung: Annotated[
        Rung, doc("Take what is idle, preempt victims, or provision nodes of an elastic pool.")
    ]


@rules(
    Rule(
        "has(self.builtIn) != (has(self.scorer) && self.scorer != '')",
        "exactly one of builtIn and scorer is given",
    )
)
class ScoreWeight(Part, frozen=True, kw_only=True):
    """One score and how much it counts."""

    built_in: Annotated[BuiltInScore | None, doc("A score that the hub computes.")] = None
    scorer: Annotated[Reference, doc("Name of a Scorer, for any other score.")] = ""
    item: Annotated[
        str, doc("Which of the scorer's values; empty means its only one.", max_length=253)
    ] = ""
    resource: Annotated[
        ResourceName, doc("The resource that Allocatable and the accelerator scores look at.")
    ] = "nvidia.com/gpu"
    weight: Annotated[
        int, doc("How much it counts; negative prefers the least.", minimum=-10, maximum=10)
    ] = 1
    missing: Annotated[
        int | None,
        doc(
            "Score of a cluster that has none, or an expired one; unset means the worst for the "
            "sign of the weight.",
            minimum=-100,
            maximum=100,
        ),
    ] = None


class ReturnHome(Part, frozen=True, kw_only=True):
    """How replicas come back to an earlier group once it has room again."""

    enabled: Annotated[bool, doc("Whether they come back.")] = False
    after_seconds: Annotated[
        Seconds, doc("How long the earlier group must have had room before anything moves.")
    ] = 600
    replicas_per_minute: Annotated[Count, doc("Most replicas moved in a minute.", minimum=1)] = 1
    surge: Annotated[
        Count, doc("Replicas that may run in both places while they move, within quota.")
    ] = 1


@rules(
    Rule(
        "!has(self.ladder) || self.ladder.all(s, !has(s.group) || s.group == '' || "
        "(has(self.groups) && self.groups.exists(g, g.name == s.group)))",
        "each step of the ladder names a group of this policy",
        ".ladder",
    )
)
class PlacementPolicySpec(Part, frozen=True, kw_only=True):
    """Which clusters, in which order, and how replicas are divided."""

    selector: Annotated[ClusterSelector, doc("Clusters that are considered at all.")] = (
        ClusterSelector()
    )
    groups: Annotated[
        tuple[ClusterGroup, ...],
        doc(
            "Groups of clusters in order of preference; none means one group of all.",
            max_items=32,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Taints of clusters that are accepted.", max_items=32, list_type="atomic"),
    ] = ()
    spread: Annotated[
        tuple[Spread, ...],
        doc("Rules of spread, the most important first.", max_items=8, list_type="atomic"),
    ] = ()
    division: Annotated[Division, doc("How replicas are divided over clusters.")] = Division()
    ladder: Annotated[
        tuple[LadderStep, ...],
        doc(
            "Ways to get capacity in the order in which they are tried; none means, for each group "
            "in order, Idle, Preempt and Provision.",
            max_items=96,
            list_type="atomic",
        ),
    ] = ()
    weigh_price: Annotated[
        bool,
        doc(
            "Whether lost work times its price is compared with the price of provisioning where "
            "both would do, instead of following the ladder."
        ),
    ] = False
    score_mode: Annotated[
        Literal["Additive", "Exact"],
        doc("Whether the scores listed are added to Steady and Balance of weight 1, or are all."),
    ] = "Additive"
    scores: Annotated[
        tuple[ScoreWeight, ...],
        doc("Scores that rank clusters, with their weights.", max_items=32, list_type="atomic"),
    ] = ()
    move_margin: Annotated[
        int,
        doc(
            "By how many points a cluster must be better before anything running moves to it.",
            minimum=0,
            maximum=20_000,
        ),
    ] = 20
    return_home: Annotated[ReturnHome, doc("How replicas come back to an earlier group.")] = (
        ReturnHome()
    )
    number_of_clusters: Annotated[
        Count | None,
        doc(
            "How many clusters to choose without a workload; the choice is in the status.",
            minimum=1,
        ),
    ] = None


class Decision(Part, frozen=True, kw_only=True):
    """A cluster that was chosen."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    group: Annotated[OptionalLabel, doc("Group of the policy that it is in.")] = ""
    score: Annotated[int, doc("Its weighted score when it was chosen.")] = 0
    chosen_at: Annotated[datetime, doc("Since when it is chosen.")]


class PlacementPolicyStatus(Part, frozen=True, kw_only=True):
    """The choice made for a policy with numberOfClusters, best first."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    chosen: Annotated[Count, doc("How many clusters are chosen.")] = 0
    decisions: Annotated[
        tuple[Decision, ...],
        doc("The clusters chosen.", max_items=512, list_type="map", list_map_keys=["cluster"]),
    ] = ()
    conditions: Annotated[Conditions, doc("State of the policy, aspect by aspect.")] = ()


class PlacementPolicy(Object, frozen=True, kw_only=True):
    """Where workloads may go, what is preferred, and how replicas are divided."""

    spec: Annotated[
        PlacementPolicySpec, doc("Which clusters, in which order, and how replicas are divided.")
    ] = PlacementPolicySpec()
    status: Annotated[
        PlacementPolicyStatus, doc("The choice made, where no workload is needed.")
    ] = PlacementPolicyStatus()
