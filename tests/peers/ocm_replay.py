"""Clusters that Open Cluster Management chose, chosen again by our core for equivalent policies.

A taint that evicts is NoExecute here, one that keeps new ones out is NoSchedule. A score that is
not there counts 0 there, and what our policy says here: so it says 0. Nothing moves by a margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.clock import timestamp
from fairway.core.clusters.choice import choose
from fairway.core.measured import MeasuredScore
from fairway.view.objects import Objects
from tests.builders import NOW
from tests.core.score_facts import Given
from tests.peers.recording import Json, Recording

Chosen = dict[str, list[str]]
_EFFECTS = {
    "NoSelect": "NoExecute",
    "NoSelectIfNew": "NoSchedule",
    "PreferNoSelect": "PreferNoSchedule",
}
_BUILT_IN: dict[str, Json] = {
    "Steady": {"builtIn": "Steady"},
    "Balance": {"builtIn": "Balance"},
    "ResourceAllocatableCPU": {"builtIn": "Allocatable", "resource": "cpu", "missing": 0},
}


def differences(recording: Recording) -> list[str]:
    """Where we choose other clusters than OCM did, in a sentence a step."""
    found = []
    steps = recording.content["steps"]
    for number, (step, ours) in enumerate(zip(steps, replay(recording), strict=True), 1):
        theirs = step["decisions"]
        if ours != theirs:
            found.append(f"step {number}: OCM chooses {theirs}; Fairway chooses {ours}")
    return found


def replay(recording: Recording) -> Iterator[Chosen]:
    """Our choice after each step, each beside those of the steps before."""
    chosen: Chosen = {}
    for step in recording.content["steps"]:
        name = step["placement"]["metadata"]["name"]
        others = [item for key, row in chosen.items() if key != name for item in row]
        chosen[name] = _choice(step, chosen.get(name, []), others)
        yield dict(sorted(chosen.items()))


def _choice(step: Json, before: list[str], others: list[str]) -> list[str]:
    members = step["members"]
    objects = Objects.of([*map(_cluster, members), _policy(step["placement"]["spec"], before)])
    facts = objects.facts(NOW)
    seen = {
        member["name"]: Given(
            member["name"],
            others=others.count(member["name"]),
            amounts={"allocatable": {"cpu": member["cpus"] * 1000} if member["cpus"] else {}},
            scores={
                ("usage", item): MeasuredScore(value, NOW - 1 if member["isExpired"] else None)
                for item, value in member["scores"].items()
            },
        )
        for member in members
    }
    made = choose(facts.policies["fairway-system/chooses"], facts.clusters, seen, NOW)
    return sorted(item.cluster for item in made.chosen)


def _cluster(member: Json) -> Json:
    taints = [{**taint, "effect": _EFFECTS[taint["effect"]]} for taint in member["taints"]]
    spec = {"simulated": {}, "taints": taints, "claims": member["claims"]}
    return _object("Cluster", member["name"], spec, labels=member["labels"])


def _policy(spec: Json, before: list[str]) -> Json:
    prioritizers = spec["prioritizerPolicy"]
    made: Json = {
        "scoreMode": prioritizers["mode"],
        "scores": [_score(configuration) for configuration in prioritizers["configurations"]],
        "moveMargin": 0,
        "selector": _selector(spec.get("predicates", [])),
        "tolerations": spec.get("tolerations", []),
    }
    if "numberOfClusters" in spec:
        made["numberOfClusters"] = spec["numberOfClusters"]
    policy = _object("PlacementPolicy", "chooses", made, namespace="fairway-system")
    policy["status"] = {
        "decisions": [{"cluster": item, "chosenAt": timestamp(NOW)} for item in before]
    }
    return policy


def _score(row: Json) -> Json:
    coordinate = row["scoreCoordinate"]
    if coordinate["type"] == "BuiltIn":
        return {**_BUILT_IN[coordinate["builtIn"]], "weight": row["weight"]}
    item = coordinate["addOn"]["scoreName"]
    return {"scorer": "usage", "item": item, "missing": 0, "weight": row["weight"]}


def _selector(predicates: list[Json]) -> Json:
    if not predicates:
        return {}
    selector = predicates[0]["requiredClusterSelector"]
    made: Json = {}
    if "labelSelector" in selector:
        made["labels"] = selector["labelSelector"]
    if rows := selector.get("claimSelector", {}).get("matchExpressions"):
        made["expressions"] = [
            f"cluster.claims[{row['key']!r}] in {list(row['values'])!r}" for row in rows
        ]
    return made


def _object(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }
