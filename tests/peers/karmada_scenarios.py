"""Replicas that Karmada's scheduler divides over clusters of different sizes.

A step says how many replicas are wanted from now on, or that the division is to begin afresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
# Karmada breaks ties by the name of the cluster, in an order that depends on a hash of this.
FORWARDS, BACKWARDS = "10000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    replicas: int
    is_fresh: bool = False
    gpus: Mapping[str, int] = field(default_factory=dict)  # clusters whose size changes before


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    gpus: Mapping[str, int]  # by cluster
    placement: Json
    steps: tuple[Step, ...]
    uid: str = FORWARDS
    regions: Mapping[str, str] = field(default_factory=dict)


def _divided(preference: str, **more: Any) -> Json:
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": preference,
            **more,
        }
    }


def weights(**by_cluster: int) -> Json:
    rows = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight}
        for name, weight in by_cluster.items()
    ]
    return _divided("Weighted", weightPreference={"staticWeightList": rows})


def spread(placement: Json, field_name: str, least: int, most: int) -> Json:
    rows = placement.get("spreadConstraints", [])
    row = {"spreadByField": field_name, "minGroups": least, "maxGroups": most}
    return {**placement, "spreadConstraints": [*rows, row]}


DUPLICATED: Json = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
DYNAMIC = _divided("Weighted", weightPreference={"dynamicWeight": "AvailableReplicas"})
AGGREGATED = _divided("Aggregated")
SIZES = {"member-a": 6, "member-b": 8, "member-c": 10}


def to(*replicas: int) -> tuple[Step, ...]:
    return tuple(Step(replicas=replica) for replica in replicas)


SCENARIOS = (
    Scenario(
        name="Duplicated puts all replicas in each cluster",
        gpus=SIZES,
        placement=DUPLICATED,
        steps=to(3, 5),
    ),
    Scenario(
        name="Static weights divide with Webster's remainders",
        gpus={"member-a": 99, "member-b": 99, "member-c": 99},
        placement=weights(**{"member-a": 1, "member-b": 2, "member-c": 4}),
        steps=to(9, 20, 5, 1),
    ),
    Scenario(
        name="A cluster without a weight gets nothing",
        gpus={"member-a": 99, "member-b": 99, "member-c": 99},
        placement=weights(**{"member-a": 2, "member-c": 1}),
        steps=to(9, 10),
    ),
    Scenario(
        name="Equal static weights give the odd one to the first by name",
        gpus={"member-a": 99, "member-b": 99},
        placement=weights(**{"member-a": 1, "member-b": 1}),
        steps=to(3, 7),
    ),
    Scenario(
        name="An odd hash of the template gives the odd one to the last by name",
        gpus={"member-a": 99, "member-b": 99},
        placement=weights(**{"member-a": 1, "member-b": 1}),
        steps=to(3, 7),
        uid=BACKWARDS,
    ),
    Scenario(
        name="Static weights beyond what a cluster holds",
        gpus={"member-a": 99, "member-b": 4},
        placement=weights(**{"member-a": 1, "member-b": 2}),
        steps=to(9),
    ),
    Scenario(
        name="Dynamic weights divide by what fits",
        gpus=SIZES,
        placement=DYNAMIC,
        steps=to(12),
    ),
    Scenario(
        name="Dynamic weights place only the difference when more is wanted",
        gpus=SIZES,
        placement=DYNAMIC,
        steps=to(6, 12, 18),
    ),
    Scenario(
        name="Dynamic weights take in proportion when less is wanted",
        gpus=SIZES,
        placement=DYNAMIC,
        steps=to(18, 11, 4),
    ),
    Scenario(
        name="More replicas than fit",
        gpus=SIZES,
        placement=DYNAMIC,
        steps=to(30),
    ),
    Scenario(
        name="Aggregated uses the fewest clusters",
        gpus=SIZES,
        placement=AGGREGATED,
        steps=to(9),
    ),
    Scenario(
        name="Aggregated over two clusters divides by what fits and does not fill",
        gpus=SIZES,
        placement=AGGREGATED,
        steps=to(12),
    ),
    Scenario(
        name="Aggregated stays in the clusters in use when more is wanted",
        gpus=SIZES,
        placement=AGGREGATED,
        steps=to(5, 9, 14),
    ),
    Scenario(
        name="A fresh division forgets what there was",
        gpus={"member-a": 4, "member-b": 4, "member-c": 0},
        placement=DYNAMIC,
        steps=(
            Step(replicas=6),
            Step(replicas=6, gpus={"member-c": 12}),
            Step(replicas=6, is_fresh=True),
        ),
    ),
    Scenario(
        name="Spread over two clusters takes the two with the most room",
        gpus=SIZES,
        placement=spread(DYNAMIC, "cluster", 2, 2),
        steps=to(9),
    ),
    Scenario(
        name="Spread over two regions",
        gpus={"member-a": 6, "member-b": 8, "member-c": 10},
        regions={"member-a": "north", "member-b": "south", "member-c": "south"},
        placement=spread(spread(DYNAMIC, "cluster", 2, 2), "region", 2, 2),
        steps=to(8),
    ),
    Scenario(
        name="A cluster that is excluded gets nothing",
        gpus=SIZES,
        placement={**DYNAMIC, "clusterAffinity": {"exclude": ["member-c"]}},
        steps=to(7),
    ),
)
