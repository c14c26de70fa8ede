"""Each rule between fields refuses what it should, and the limits of fields do too.

The same objects are refused by a kube-apiserver that has our custom resource definitions.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from fairway.api.documents import read_documents
from fairway.api.kinds import BY_NAME, KINDS, Kind
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.schemas import schema_of
from fairway.schema.cel.rules import check_rules
from fairway.schema.node import Node, parse
from fairway.schema.validation import Findings, conform


def node_of(kind: Kind) -> Node:
    """The parsed schema; metadata, which the served kinds' room knows, is left alone here."""
    schema = schema_of(kind.struct)
    schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = True
    return parse(schema)


NODES: dict[str, Node] = {kind.name: node_of(kind) for kind in KINDS}


def made(kind: str, spec: JsonObject, name: str = "x") -> JsonObject:
    """An object as a user would write it."""
    metadata = {"name": name}
    if BY_NAME[kind].is_namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def faults(value: JsonObject, old: JsonObject | None = None) -> list[str]:
    """What is wrong with an object, in the words that a user reads."""
    node = NODES[value["kind"]]
    findings = Findings()
    for item in (value, old):
        if item is not None:
            conform(item, node, findings)
    found = findings.faults or check_rules(value, old, node, is_update=old is not None)
    return [str(fault) for fault in found] + [str(item) for item in findings.unknown]


def group(*resources: str, **flavors: list[JsonObject]) -> JsonObject:
    return {
        "resources": list(resources),
        "flavors": [{"name": name, "quotas": quotas} for name, quotas in flavors.items()],
    }


CPU = {"resource": "cpu", "nominal": 4}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
RULE = {
    "apiVersions": ["example.com/v1"],
    "kind": "Sweep",
    "mode": "Gang",
    "podSets": [{"name": "a"}],
    "status": {"phases": [{"phase": "Running", "when": "true"}]},
    "play": {"status": {}},
}
REPORT = {"cluster": "c", "agentEpoch": 1, "sequence": 1, "seenAt": "2026-01-01T00:00:00Z"}
WORK = {"cluster": "c", "workload": {"namespace": "n", "name": "w"}, "attempt": 1, "term": 1}


def scoped(scope: JsonObject) -> JsonObject:
    """A simulated cluster with a quota of a namespace."""
    quotas = [{"name": "q", "hard": {"pods": 1}, "scopes": [scope]}]
    return made("Cluster", {"simulated": {"namespaces": [{"name": "team", "quotas": quotas}]}})


def scaled(*metrics: JsonObject, **spec: object) -> JsonObject:
    """An autoscaler of a workload."""
    target = {"kind": "Workload", "name": "w"}
    whole = {"target": target, "maxReplicas": 3, "metrics": list(metrics), **spec}
    return made("FleetAutoscaler", whole)


def measured(sort: str, target: JsonObject | None = None, **more: object) -> JsonObject:
    """A metric of a sort, with what every sort has."""
    part = {"target": target or {"type": "AverageValue", "averageValue": 1}, **more}
    return {"type": sort, f"{sort[0].lower()}{sort[1:]}": part}


def scheduled(cron: str, least: int, most: int) -> JsonObject:
    return {"name": "a", "cron": cron, "minReplicas": least, "maxReplicas": most}


PERCENT = {"type": "Utilization", "averageUtilization": 50}
LEVEL = {"type": "Value", "value": 1}
NAMED = {"metric": {"name": "m"}}
ABOUT = {**NAMED, "describedObject": {"kind": "Service", "name": "s"}}
TGI = {"engine": "TGI", "signal": "QueueLength", "target": 1}

WRONG: dict[str, tuple[JsonObject, str]] = {
    "the fleet has another name": (made("Fleet", {}, "mine"), "its name is fleet"),
    "a cluster is lost before it is unready": (
        made("Fleet", {"health": {"unreadySeconds": 400, "lostSeconds": 300}}, "fleet"),
        "spec.health.unreadySeconds: Invalid value: a cluster is unready before it is lost",
    ),
    "devices that count as memory": (
        made("Fleet", {"deviceClasses": [{"name": "a", "resource": "memory"}]}, "fleet"),
        "spec.deviceClasses[0].resource: Invalid value: devices are no cpu",
    ),
    "a cluster without a driver": (made("Cluster", {}), "exactly one driver"),
    "a cluster with two drivers": (
        made("Cluster", {"local": {}, "simulated": {}}), "exactly one driver"),
    "a fleet policy whose least priority is above the highest": (
        made("FleetPolicy", {"priority": {"min": 2, "max": 1}}),
        "spec.priority.min: Invalid value: min must not exceed max"),
    "a registry without a host": (
        made("FleetPolicy", {"registries": ["acme/train"]}), "spec.registries[0]"),
    "a kind with its version": (
        made("FleetPolicy", {"kinds": ["batch/v1/Job"]}), "spec.kinds[0]"),
    "a longest run of no time": (
        made("FleetPolicy", {"runSecondsMax": 0}), "spec.runSecondsMax: Invalid value: 0"),
    "a scope of a quota that is compared though it only exists": (
        scoped({"name": "BestEffort", "operator": "DoesNotExist"}),
        "scopes[0].operator: Invalid value"),
    "a scope of a quota without the classes that it needs": (
        scoped({"name": "PriorityClass", "operator": "In"}), "In and NotIn need values"),
    "a scope of a quota with classes that it does not compare": (
        scoped({"name": "PriorityClass", "values": ["high"]}), "In and NotIn need values"),
    "a simulated pool of minus one nodes": (
        made("Cluster", {"simulated": {"nodePools": [{"name": "a", "count": -1, "shape": {}}]}}),
        "spec.simulated.nodePools[0].count: Invalid value: -1"),
    "a negative amount": (
        made("Cluster", {"local": {"capacity": {"cpu": "-1"}}}), "spec.local.capacity.cpu"),
    "two pools of one name": (
        made("Cluster", {"simulated": {"nodePools": [
            {"name": "a", "count": 1, "shape": {}}, {"name": "a", "count": 1, "shape": {}}]}}),
        "spec.simulated.nodePools[1]: Duplicate value"),
    "a cluster in an unknown mode": (
        made("Cluster", {"local": {}, "mode": "Watch"}), 'spec.mode: Unsupported value: "Watch"'),
    "a chunk beyond the last": (
        made("ClusterReport", {**REPORT, "chunk": 2, "chunks": 2}), "chunk must be below chunks"),
    "a column that is too short": (
        made("ClusterReport", {**REPORT, "nodes": {
            "names": ["a", "b"],
            "amounts": [{"resource": "cpu", "unit": "1m", "allocatable": [1]}]}}),
        "all columns have one entry for each node"),
    "pods on nodes without a count": (
        made("ClusterReport", {**REPORT, "works": [
            {"work": "w", "podSet": "p", "bound": {"nodes": [0, 1], "counts": [1]}}]}),
        "each node has a count"),
    "a queue that is its own parent": (
        made("Queue", {"parent": "x"}), "a queue is not its own parent"),
    "preemption preferred to borrowing by a queue that stops at the first that borrows": (
        made("Queue", {"fungibility": {"preference": "PreemptionOverBorrowing"}}),
        "PreemptionOverBorrowing needs TryNextFlavor"),
    "a borrowing limit without a parent": (
        made("Queue", {"resourceGroups": [group("cpu", a=[{**CPU, "borrowingLimit": 1}])]}),
        "borrowingLimit and lendingLimit need a parent"),
    "a lending limit without a parent": (
        made("Queue", {"resourceGroups": [group("cpu", a=[{**CPU, "lendingLimit": 1}])]}),
        "borrowingLimit and lendingLimit need a parent"),
    "a quota of a resource that the group does not cover": (
        made("Queue", {"resourceGroups": [group("memory", a=[CPU])]}),
        "each quota is of a resource that its group covers"),
    "a resource in two groups": (
        made("Queue", {"resourceGroups": [group("cpu", a=[]), group("cpu", b=[])]}),
        "a resource belongs to one group"),
    "a flavor in two groups": (
        made("Queue", {"resourceGroups": [group("cpu", a=[]), group("memory", a=[])]}),
        "a flavor belongs to one group"),
    "a word for a quota": (
        made("Queue", {"resourceGroups": [group("cpu", a=[{**CPU, "nominal": "many"}])]}),
        "spec.resourceGroups[0].flavors[0].quotas[0].nominal"),
    "a selector with values that it ignores": (
        made("Queue", {"clusters": {"labels": {"matchExpressions": [
            {"key": "a", "operator": "Exists", "values": ["b"]}]}}}),
        "values are needed with In and NotIn"),
    "a selector without values that it needs": (
        made("Queue", {"clusters": {"labels": {"matchExpressions": [
            {"key": "a", "operator": "In"}]}}}),
        "values are needed with In and NotIn"),
    "a misspelt field": (
        made("Queue", {"preemption": {"withinQueu": "Never"}}),
        'unknown field "spec.preemption.withinQueu", did you mean "withinQueue"?'),
    "a workload of nothing": (made("Workload", {}), "needs a template, a source or pod sets"),
    "more pods at least than at most": (
        made("Workload", {"podSets": [{"name": "a", "leastCount": 2}]}),
        "spec.podSets[0].leastCount: Invalid value: leastCount must not exceed count"),
    "an alternative with more pods at least than at most": (
        made("Workload", {"podSets": [{"name": "a"}], "alternatives": [
            {"name": "b", "podSets": [{"name": "a", "count": 1, "leastCount": 2}]}]}),
        "leastCount must not exceed count"),
    "replicas of a gang": (
        made("Workload", {"podSets": [{"name": "a"}], "replicas": 2}), "replicas need mode"),
    "a disruption budget of a gang": (
        made("Workload", {"podSets": [{"name": "a"}], "disruption": {"maxUnavailable": 0}}),
        "spec.disruption: Invalid value: disruption needs mode: Divided"),
    "a gang that is divided afresh": (
        made("Workload", {"podSets": [{"name": "a"}], "rebalanceAt": "2026-11-15T08:00:00Z"}),
        "spec.rebalanceAt: Invalid value: rebalanceAt needs mode: Divided"),
    "a gang that is divided": (
        made("Workload", {"podSets": [{"name": "a"}], "mode": "Divided", "gang": {}}),
        "gang needs mode: Gang"),
    "tasks of a gang": (
        made("Workload", {"podSets": [{"name": "a"}], "tasks": {"count": 2}}),
        "tasks are needed with mode: Independent"),
    "an independent workload without tasks": (
        made("Workload", {"podSets": [{"name": "a"}], "mode": "Independent"}),
        "tasks are needed with mode: Independent"),
    "an estimate beyond the limit": (
        made("Workload", {"podSets": [{"name": "a"}], "runSeconds": {"estimate": 9, "limit": 8}}),
        "estimate must not exceed limit"),
    "a topology level that is required and preferred": (
        made("Workload", {"podSets": [
            {"name": "a", "topology": {"required": "rack", "preferred": "block"}}]}),
        "either required or preferred"),
    "a slice without a level": (
        made("Workload", {"podSets": [{"name": "a", "topology": {"sliceSize": 4}}]}),
        "sliceSize and sliceLevel go together"),
    "a node test without the values it needs": (
        made("Workload", {"podSets": [{"name": "a", "nodeAffinity": [
            {"matchExpressions": [{"key": "k", "operator": "Gt"}]}]}]}),
        "values are needed, except with Exists"),
    "a toleration of a value that it ignores": (
        made("PlacementPolicy", {"tolerations": [
            {"key": "a", "operator": "Exists", "value": "b"}]}),
        "a toleration with operator Exists has no value"),
    "a toleration of nothing": (
        made("PlacementPolicy", {"tolerations": [{"value": "b"}]}),
        "a toleration without a key needs operator Exists"),
    "seconds for a taint that does not evict": (
        made("PlacementPolicy", {"tolerations": [
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]}),
        "tolerationSeconds needs effect NoExecute"),
    "a ladder with an unknown group": (
        made("PlacementPolicy", {"ladder": [{"group": "home", "rung": "Idle"}]}),
        "each step of the ladder names a group of this policy"),
    "spread by a label that is not named": (
        made("PlacementPolicy", {"spread": [{"by": "Label"}]}), "label is needed with by: Label"),
    "spread over more domains at least than at most": (
        made("PlacementPolicy", {"spread": [{"by": "Zone", "least": 3, "most": 2}]}),
        "least must not exceed most"),
    "weights that nothing uses": (
        made("PlacementPolicy", {"division": {
            "type": "Duplicated", "weights": [{"selector": {}, "weight": 1}]}}),
        "weights need type: StaticWeight"),
    "copies that are counted by speed": (
        made("PlacementPolicy", {"division": {"type": "Duplicated", "countBy": "Speed"}}),
        "spec.division.countBy: Invalid value: replicas in each cluster are not counted by speed"),
    "copies of a group whose replicas are divided": (
        made("PlacementPolicy", {"groups": [{"name": "a", "copies": 1}]}),
        "spec.groups: Invalid value: copies of a group need division.type: Duplicated"),
    "copies of a group beside a rule of spread": (
        made("PlacementPolicy", {"groups": [{"name": "a", "copies": 1}],
                                 "division": {"type": "Duplicated"}, "spread": [{"by": "Zone"}]}),
        "spec.groups: Invalid value: copies of a group need division.type: Duplicated"),
    "a weight beyond ten": (
        made("PlacementPolicy", {"scores": [{"builtIn": "Price", "weight": 11}]}),
        "spec.scores[0].weight: Invalid value: 11"),
    "a score of two sources": (
        made("PlacementPolicy", {"scores": [{"builtIn": "Price", "scorer": "mine"}]}),
        "exactly one of builtIn and scorer"),
    "a scorer without a source": (made("Scorer", {}), "a scorer has exactly one source"),
    "a scorer with two sources": (
        made("Scorer", {"prometheus": {"query": "up"}, "expression": "1"}),
        "a scorer has exactly one source"),
    "agents that read a table": (
        made("Scorer", {"table": {"rows": [{"value": 1}]}, "runBy": "Agent"}),
        "spec.runBy: Invalid value: runBy: Agent needs prometheus or http"),
    "agents that do not know which Prometheus": (
        made("Scorer", {"prometheus": {"query": "up"}, "runBy": "Agent"}),
        "spec.prometheus.server: Invalid value: runBy: Agent needs a server that agents reach"),
    "scores that expire before the next run": (
        made("Scorer", {"expression": "1", "intervalSeconds": 60, "validSeconds": 59}),
        "spec.validSeconds: Invalid value: validSeconds must not be below intervalSeconds"),
    "an HTTP scorer without an address": (
        made("Scorer", {"http": {}}), "spec.http.url: Invalid value: url or configUrl is needed"),
    "an empty table": (made("Scorer", {"table": {}}), "rows or csv is needed"),
    "a file in two places": (
        made("Scorer", {"table": {"csv": {"url": "http://a", "configMap": {
            "namespace": "a", "name": "b", "key": "c"}}}}),
        "exactly one of url and configMap is given"),
    "a score of data": (
        made("PlacementPolicy", {"scores": [{"builtIn": "DataSeconds"}]}),
        "DataSeconds is not supported yet: where data is, is not known"),
    "data that a workload reads": (
        made("Workload", {"podSets": [{"name": "a"}], "data": [{"name": "corpus"}]}),
        "data is not supported yet: where data is, is not known"),
    "a score of no source": (
        made("PlacementPolicy", {"scores": [{"weight": 2}]}), "exactly one of builtIn and scorer"),
    "a batch of nothing": (
        made("Rollout", {"workload": {"name": "w"}, "strategy": {"batches": [{}]}}),
        "exactly one of clusters, group and percent is given"),
    "batches beside those of the groups": (
        made("Rollout", {"workload": {"name": "w"}, "strategy": {
            "byGroup": True, "batches": [{"percent": 5}]}}),
        "batches are refused with byGroup"),
    "a gate that is no test of a number": (
        made("Rollout", {"workload": {"name": "w"}, "strategy": {"gates": [
            {"name": "g", "query": "up", "condition": "less than 1"}]}}),
        "spec.strategy.gates[0].condition: Invalid value"),
    "feedback paths that nothing reads": (
        made("Work", {**WORK, "manifests": [{"object": POD, "feedback": [
            {"type": "WellKnown", "paths": [{"name": "a", "path": ".b"}]}]}]}),
        "paths are needed with type: JsonPaths"),
    "a condition without its expressions": (
        made("Work", {**WORK, "manifests": [{"object": POD, "conditions": [
            {"condition": "Complete", "type": "Cel"}]}]}),
        "expressions are needed with type: Cel"),
    "a rule for a role of two names": (
        made("KindRule", {**RULE, "podSets": [{"name": "a", "nameFrom": "key"}]}),
        "spec.podSets[0]: Invalid value: exactly one of name and nameFrom is given"),
    "a rule for a variable without a value": (
        made("KindRule", {**RULE, "environment": [{"name": "A"}]}),
        "exactly one of value and json is given"),
    "a rule for a divided kind without replicas": (
        made("KindRule", {**RULE, "mode": "Divided"}),
        "spec.replicas: Invalid value: replicas are needed with mode: Divided"),
    "an autoscaler whose least is above its most": (
        scaled(minReplicas=4), "spec.minReplicas: Invalid value: minReplicas must not exceed"),
    "an autoscaler down to zero without anybody who tells who is active": (
        scaled(measured("Resource", name="cpu"), minReplicas=0), "zero replicas need a metric"),
    "a schedule down to zero without anybody who tells who is active": (
        scaled(schedules=[scheduled("@daily", 0, 1)]), "zero replicas need a metric"),
    "a schedule whose least is above its most": (
        scaled(schedules=[scheduled("@daily", 2, 1)]), "minReplicas must not exceed maxReplicas"),
    "a schedule that is no cron expression": (
        scaled(schedules=[scheduled("daily", 1, 1)]), "spec.schedules[0].cron"),
    "a metric of one sort with the part of another": (
        scaled({**measured("Pods", **NAMED), "type": "External"}), "external is needed with"),
    "a metric of a resource that names none": (
        scaled({"type": "Resource"}), "resource is needed with type: Resource"),
    "a metric of a container that names none": (
        scaled({"type": "ContainerResource"}), "containerResource is needed with"),
    "a metric of pods that names none": (scaled({"type": "Pods"}), "pods is needed with"),
    "a metric of an object that names none": (scaled({"type": "Object"}), "object is needed with"),
    "a metric of a server that names none": (scaled({"type": "Serving"}), "serving is needed with"),
    "a resource kept at a value": (
        scaled(measured("Resource", LEVEL, name="cpu")), "the target of resource is of type"),
    "a container kept at a value": (
        scaled(measured("ContainerResource", LEVEL, name="cpu", container="c")),
        "the target of containerResource is of type Utilization or AverageValue"),
    "pods kept at a value": (
        scaled(measured("Pods", LEVEL, **NAMED)), "the target of pods is of type AverageValue"),
    "an object kept at a percentage": (
        scaled(measured("Object", PERCENT, **ABOUT)), "the target of object is of type"),
    "anything kept at a percentage": (
        scaled(measured("External", PERCENT, **NAMED)), "the target of external is of type"),
    "a target with the number of another type": (
        scaled(measured("External", {"type": "Value", "averageValue": 1}, **NAMED)),
        "the number that the type names is needed"),
    "a signal that a server does not tell": (
        scaled({"type": "Serving", "serving": {**TGI, "signal": "KVCacheUse"}}),
        "TGI does not tell"),
    "a model where series name none": (
        scaled({"type": "Serving", "serving": {**TGI, "model": "m"}}),
        "series of TGI do not name the model"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "said"), WRONG.values(), ids=WRONG)
def test_refused(value: JsonObject, said: str) -> None:
    found = faults(deepcopy(value))
    assert any(said in item for item in found), found


def test_the_examples_are_right() -> None:
    folder = Path(__file__).parent.parent.parent / "examples" / "fleet"
    for path in sorted(folder.glob("*.yaml")):
        for document in read_documents(path.read_bytes(), path.name):
            assert faults(document.value) == [], document.place


def test_the_driver_of_a_cluster_does_not_change() -> None:
    old, new = made("Cluster", {"local": {}}), made("Cluster", {"simulated": {}})
    assert any("driver of a cluster does not change" in fault for fault in faults(new, old))


def test_every_rule_is_broken_by_some_object_here() -> None:
    broken = " ".join(fault for value, _ in WRONG.values() for fault in faults(deepcopy(value)))
    broken += " ".join(faults(made("Cluster", {"simulated": {}}), made("Cluster", {"local": {}})))
    for node in NODES.values():
        for message in _messages(node):
            assert message in broken, message


def _messages(node: Node) -> set[str]:
    found = {rule.message for rule in node.rules}
    below = [*node.properties.values(), node.items, node.additional]
    return found.union(*(_messages(part) for part in below if part is not None))
