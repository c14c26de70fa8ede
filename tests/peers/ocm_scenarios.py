"""Placements of Open Cluster Management over clusters with labels, claims, taints and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A managed cluster as its agent reports it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    cpus: int = 0
    scores: Mapping[str, int] = field(default_factory=dict)  # of the add-on
    is_expired: bool = False  # its scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A Placement as it is from now on, over these clusters."""

    spec: Json
    members: tuple[Member, ...]
    name: str = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    steps: tuple[Step, ...]


ADD_ON = "resource-usage-score"


def score(item: str, weight: int = 1) -> Json:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": ADD_ON, "scoreName": item}}
    return {"scoreCoordinate": coordinate, "weight": weight}


def built_in(name: str, weight: int = 1) -> Json:
    return {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}


def placement(count: int | None, *prioritizers: Json, mode: str = "Exact", **more: Any) -> Json:
    spec: Json = {"clusterSets": ["global"], **more}
    if count is not None:
        spec["numberOfClusters"] = count
    spec["prioritizerPolicy"] = {"mode": mode, "configurations": list(prioritizers)}
    return spec


def predicate(**selector: Any) -> Json:
    return {"predicates": [{"requiredClusterSelector": selector}]}


def scored(**by_name: int) -> tuple[Member, ...]:
    return tuple(Member(name=name, scores={"gpus": value}) for name, value in by_name.items())


THREE = scored(one=10, two=70, three=40)
SIZES = tuple(Member(name=name, cpus=cpus) for name, cpus in (("a", 8), ("b", 32), ("c", 16)))
REGIONS = (
    Member(name="one", labels={"region": "eu"}, claims={"tier": "gold"}),
    Member(name="two", labels={"region": "us"}, claims={"tier": "gold"}),
    Member(name="three", labels={"region": "eu"}, claims={"tier": "silver"}),
)
NO_SELECT = {"key": "repair", "value": "yes", "effect": "NoSelect"}
IF_NEW = {"key": "repair", "value": "yes", "effect": "NoSelectIfNew"}
PREFER_NOT = {"key": "repair", "value": "yes", "effect": "PreferNoSelect"}


def tainted(taint: Json) -> tuple[Member, ...]:
    return (THREE[0], Member(name="two", scores={"gpus": 70}, taints=(taint,)), THREE[2])


SCENARIOS = (
    Scenario(
        name="The highest scores are chosen",
        steps=(Step(spec=placement(2, score("gpus")), members=THREE),),
    ),
    Scenario(
        name="A negative weight prefers the least",
        steps=(Step(spec=placement(2, score("gpus", -2)), members=THREE),),
    ),
    Scenario(
        name="Without a number all are chosen",
        steps=(Step(spec=placement(None, score("gpus")), members=THREE),),
    ),
    Scenario(
        name="Equal scores go by name",
        steps=(Step(spec=placement(2, score("gpus")), members=scored(c=5, b=5, a=5)),),
    ),
    Scenario(
        name="Two scores add up by their weights",
        steps=(
            Step(
                spec=placement(1, score("gpus", 3), score("price", -1)),
                members=(
                    Member(name="near", scores={"gpus": 20, "price": 10}),
                    Member(name="dear", scores={"gpus": 30, "price": 90}),
                ),
            ),
        ),
    ),
    Scenario(
        name="Labels choose who is considered",
        steps=(
            Step(
                spec=placement(3, **predicate(labelSelector={"matchLabels": {"region": "eu"}})),
                members=REGIONS,
            ),
        ),
    ),
    Scenario(
        name="Claims choose who is considered",
        steps=(
            Step(
                spec=placement(
                    3,
                    **predicate(
                        claimSelector={
                            "matchExpressions": [
                                {"key": "tier", "operator": "In", "values": ["gold"]}
                            ]
                        }
                    ),
                ),
                members=REGIONS,
            ),
        ),
    ),
    Scenario(
        name="A taint keeps a cluster out",
        steps=(Step(spec=placement(2, score("gpus")), members=tainted(NO_SELECT)),),
    ),
    Scenario(
        name="A taint that is tolerated does not",
        steps=(
            Step(
                spec=placement(
                    2,
                    score("gpus"),
                    tolerations=[{"key": "repair", "operator": "Exists"}],
                ),
                members=tainted(NO_SELECT),
            ),
        ),
    ),
    Scenario(
        name="A taint for new ones leaves what is chosen alone",
        steps=(
            Step(spec=placement(2, score("gpus")), members=THREE),
            Step(spec=placement(2, score("gpus")), members=tainted(IF_NEW)),
        ),
    ),
    Scenario(
        name="A taint for new ones keeps a new one out",
        steps=(Step(spec=placement(2, score("gpus")), members=tainted(IF_NEW)),),
    ),
    Scenario(
        name="A taint that prefers others",
        steps=(Step(spec=placement(2, score("gpus")), members=tainted(PREFER_NOT)),),
    ),
    Scenario(
        name="The largest processors are preferred",
        steps=(Step(spec=placement(1, built_in("ResourceAllocatableCPU")), members=SIZES),),
    ),
    Scenario(
        name="What is chosen stays where it is steady",
        steps=(
            Step(spec=placement(1, built_in("Steady"), score("gpus")), members=scored(a=50, b=40)),
            Step(spec=placement(1, built_in("Steady"), score("gpus")), members=scored(a=50, b=90)),
        ),
    ),
    Scenario(
        name="What is chosen is left for one that is better by more",
        steps=(
            Step(
                spec=placement(1, built_in("Steady"), score("gpus", 5)), members=scored(a=50, b=40)
            ),
            Step(
                spec=placement(1, built_in("Steady"), score("gpus", 5)), members=scored(a=50, b=90)
            ),
        ),
    ),
    Scenario(
        name="A cluster without the score",
        steps=(
            Step(
                spec=placement(1, score("gpus")),
                members=(Member(name="unknown"), Member(name="busy", scores={"gpus": -30})),
            ),
        ),
    ),
    Scenario(
        name="A score that has expired",
        steps=(
            Step(
                spec=placement(1, score("gpus")),
                members=(
                    Member(name="old", scores={"gpus": 90}, is_expired=True),
                    Member(name="new", scores={"gpus": -30}),
                ),
            ),
        ),
    ),
    Scenario(
        name="Other placements are balanced",
        steps=(
            Step(spec=placement(1, score("gpus")), members=scored(a=50, b=40, c=30), name="first"),
            Step(
                spec=placement(1, mode="Additive"), members=scored(a=50, b=40, c=30), name="second"
            ),
        ),
    ),
)
