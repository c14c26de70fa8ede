"""How Karmada divided replicas, divided again by our core over equivalent clusters."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.core.clusters.spread import LABELS, domains
from fairway.core.model import Policy
from fairway.core.modes.division import DivisionTarget, divide, static_weights
from fairway.core.nodes import Cluster
from fairway.view.objects import Objects
from tests.builders import NOW, cluster, policy
from tests.peers.recording import Json, Recording

Counts = dict[str, int]
_FIELDS = {"cluster": "Cluster", "region": "Region"}


def differences(recording: Recording) -> list[str]:
    """Where our division is another than Karmada's, in a sentence a step."""
    found = []
    steps = recording.content["steps"]
    for number, (step, ours) in enumerate(zip(steps, replay(recording), strict=True), 1):
        theirs = {cluster["name"]: cluster.get("replicas", 0) for cluster in step["clusters"]}
        if ours != theirs:
            told = f"Karmada {_told(theirs)}; Fairway {_told(ours)}"
            found.append(f"step {number}, {step['replicas']} replicas: {told}")
    return found


def _told(counts: Counts) -> str:
    return ", ".join(f"{count} in {name}" for name, count in sorted(counts.items())) or "nothing"


def replay(recording: Recording) -> Iterator[Counts]:
    """Our division after each step, each beside what the step before left."""
    content = recording.content
    assigned: Counts = {}
    for step in content["steps"]:
        read, clusters = _read(content, step["gpus"])
        weights = static_weights(read.division, clusters)
        places = [
            DivisionTarget(
                cluster=name,
                available=step["gpus"][name] - assigned.get(name, 0),
                assigned=assigned.get(name, 0),
                weight=weights[name],
                domains=domains(clusters[name], read.spread),
            )
            for name in sorted(clusters)
            if read.clusters is None or name in read.clusters
        ]
        shares = divide(step["replicas"], places, read, is_fresh=step["isFresh"])
        assigned = dict(shares.counts)
        yield assigned


def _read(content: Json, gpus: Counts) -> tuple[Policy, dict[str, Cluster]]:
    """The policy and the clusters as the view reads them."""
    regions = content["regions"]
    made = [
        cluster(name, count, labels={LABELS["Region"]: regions.get(name, "")})
        for name, count in gpus.items()
    ]
    objects = Objects.of([*made, _policy(content["binding"]["spec"]["placement"], sorted(gpus))])
    facts = objects.facts(NOW)
    return facts.policies["fairway-system/divides"], dict(facts.clusters)


def _policy(placement: Json, names: list[str]) -> Json:
    scheduling = placement["replicaScheduling"]
    kind = scheduling.get("replicaDivisionPreference", scheduling["replicaSchedulingType"])
    preference = scheduling.get("weightPreference", {})
    division: Json = {"type": kind}
    if kind == "Weighted":
        division["type"] = "DynamicWeight" if "dynamicWeight" in preference else "StaticWeight"
    if rows := preference.get("staticWeightList"):
        division["weights"] = [
            {"selector": {"names": row["targetCluster"]["clusterNames"]}, "weight": row["weight"]}
            for row in rows
        ]
    excluded = placement.get("clusterAffinity", {}).get("exclude", [])
    return policy(
        "divides",
        division=division,
        selector={"names": [name for name in names if name not in excluded]},
        spread=[
            {
                "by": _FIELDS[row["spreadByField"]],
                "least": row["minGroups"],
                "most": row["maxGroups"],
            }
            for row in placement.get("spreadConstraints", [])
        ],
    )
