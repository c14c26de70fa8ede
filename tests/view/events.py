"""Events of a small busy fleet, drawn by chance: everything that can happen to its objects.

A `Story` keeps the objects as a store would, with versions, and tells each change to whoever
listens. Everything is small, so that things meet: three clusters of few nodes, six workloads.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from fairway.api import codec
from fairway.api.names import report_name, work_name
from fairway.api.report import ClusterReport
from fairway.api.report_changes import difference
from fairway.clock import timestamp
from tests.builders import (
    GPU,
    NOW,
    Plain,
    cluster,
    flavor,
    fleet,
    fleet_policy,
    policy,
    pool,
    queue,
)

CLUSTERS = ("east", "north", "west")
BUSY = ("east", "east", "east", "north", "west")  # how often something happens in each
WORKLOADS = ("a", "b", "c", "d", "e", "f")
RACKS = ("r0", "r1")
DEVICES = "deviceclass.resource.kubernetes.io/gpu"
CREATED = timestamp(NOW - 1000)


class Story:
    """The objects as they are, and what happens to them."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.now = NOW
        self.version = 1
        self.sequence = 0
        self.objects: dict[tuple[str, str], Plain] = {}
        self.listeners: list[Callable[[str, Plain], None]] = []

    def begin(self) -> None:
        for item in (
            flavor("h100"),
            flavor("a10"),
            queue("all", 8),
            queue("left", 8, parent="all", preemption={"withinQueue": "LowerPriority"}),
            queue("right", 4, parent="all", preemption={"reclaim": "Any"}),
        ):
            self.put(item)
        for name in CLUSTERS:
            self.put(self.a_cluster(name))

    # Telling.

    def put(self, plain: Plain) -> None:
        self.version += 1
        plain = copy.deepcopy(plain)
        plain["metadata"]["resourceVersion"] = str(self.version)
        before = self.objects.get((plain["kind"], plain["metadata"]["name"]))
        uid = before["metadata"]["uid"] if before else f"uid-{self.version}"
        plain["metadata"]["uid"] = uid
        self.objects[plain["kind"], plain["metadata"]["name"]] = plain
        for tell in self.listeners:
            tell("put", plain)

    def remove(self, kind: str, name: str) -> None:
        plain = self.objects.pop((kind, name), None)
        if plain is not None:
            for tell in self.listeners:
                tell("remove", plain)

    def happen(self) -> None:
        """One event."""
        dice = self.dice
        what = dice.choice(
            [self.claim] * 6
            + [self.wait] * 3
            + [self.report] * 5
            + [self.bind] * 3
            + [self.leave] * 2
            + [self.end, self.change_cluster, self.change_rules, self.change_claims]
            + [self.pass_time] * 2
        )
        what()

    # Workloads.

    def wait(self) -> None:
        self.put(self.a_workload(self.dice.choice(WORKLOADS)))

    def claim(self) -> None:
        """A claim comes, or is another one now."""
        dice = self.dice
        plain = copy.deepcopy(self.found("Workload", dice.choice(WORKLOADS)))
        replicas = plain["spec"].get("replicas")
        places = {dice.choice(BUSY) for _ in range(2 if replicas else 1)}
        before = plain.get("status", {}).get("claim", {})
        attempt = before.get("attempt", 0) + dice.choice([0, 1]) or 1
        plain["status"] = {
            **plain.get("status", {}),
            "phase": dice.choice(["Claimed", "Running"]),
            "claim": {
                "attempt": attempt,
                "term": 1,
                "decidedAt": timestamp(self.now - dice.choice([0, 0, 0, 10, 20])),
                "queue": plain["spec"]["queue"],
                "waitsFor": self.victims(),
                "placements": [
                    self.a_placement(plain, place) | {"attempt": attempt}
                    for place in sorted(places)
                ],
            },
        }
        self.put(plain)

    def victims(self) -> list[Plain]:
        """Mostly none; else one of another namespace, by its UID, which may be gone."""
        uids = [
            object_["metadata"]["uid"]
            for object_ in self.objects.values()
            if object_["kind"] == "Workload"
        ]
        if not uids or self.dice.random() < 0.6:
            return []
        uid = self.dice.choice([*uids, "uid-of-one-that-is-gone"])
        return [{"type": "Preemption", "workload": {"uid": uid}, "attempt": 1}]

    def leave(self) -> None:
        """What is held is on its way out; the workload waits again, or is over."""
        dice = self.dice
        plain = copy.deepcopy(self.found("Workload", dice.choice(WORKLOADS)))
        status = plain.get("status", {})
        claim = status.pop("claim", None)
        if claim is not None and dice.random() < 0.7:
            status["releasing"] = claim["placements"]
        else:
            status.pop("releasing", None)
        status["phase"] = dice.choice(["Waiting", "Waiting", "Failed"])
        plain["status"] = status
        self.put(plain)

    def end(self) -> None:
        self.remove("Workload", self.dice.choice(WORKLOADS))

    def found(self, kind: str, name: str) -> Plain:
        if (kind, name) not in self.objects:
            self.put(self.a_workload(name))
        return self.objects[kind, name]

    def a_workload(self, name: str) -> Plain:
        dice = self.dice
        sets: list[Plain] = [
            {
                "name": each,
                "count": dice.choice([1, 1, 2, 3]),
                "requests": {"cpu": "1", GPU: dice.choice([1, 1, 1, 2, 2, 2, 4, 4, "500m"])},
            }
            for each in dice.choice([["worker"], ["worker"], ["driver", "worker"]])
        ]
        spec: Plain = {"queue": dice.choice(["left", "right", "gone"]), "podSets": sets}
        if dice.random() < 0.3:
            spec |= {"mode": "Divided", "replicas": dice.randint(1, 3)}
        if dice.random() < 0.5:
            spec["priority"] = dice.randint(0, 2)
        if dice.random() < 0.2:
            spec["policy"] = "near"
        if dice.random() < 0.2:
            spec["priorityClass"] = "urgent"
        if dice.random() < 0.3:
            names = [each["name"] for each in sets]
            spec["template"] = {"manifests": [self.a_manifest(names, dice.choice(["one", "two"]))]}
        if dice.random() < 0.3:
            spec["runSeconds"] = {"estimate": 60, "limit": dice.choice([90, 600])}
        plain: Plain = {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {
                "name": name,
                "namespace": "team",
                "creationTimestamp": CREATED,
                "annotations": {"fairway.dev/created-by": dice.choice(["ann", "bob"])},
            },
            "spec": spec,
        }
        if dice.random() < 0.2:
            held = {"cluster": dice.choice(CLUSTERS), "flavors": ["h100"], "heldSince": CREATED}
            plain["status"] = {"reservation": held}
        return plain

    def a_manifest(self, pod_sets: list[str], claim: str) -> Plain:
        """A JobSet whose pods ask for devices."""
        asked = [{"name": "devices", "resourceClaimTemplateName": claim}]
        pods = {"spec": {"containers": [{"name": "main"}], "resourceClaims": asked}}
        jobs = [{"name": name, "template": {"spec": {"template": pods}}} for name in pod_sets]
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": {"name": "set"}, "spec": {"replicatedJobs": jobs}}  # fmt: skip

    def a_placement(self, plain: Plain, where: str) -> Plain:
        dice = self.dice
        replicas = dice.randint(1, 2) if "replicas" in plain["spec"] else None
        is_tied = dice.random() < 0.25
        pods = []
        for pod_set in plain["spec"]["podSets"]:
            count = pod_set["count"] * (replicas or 1)
            placed = {
                "name": pod_set["name"],
                "count": count,
                "requests": pod_set["requests"],
                "flavors": {GPU: dice.choice(["h100", "h100", "a10"])},
            }
            if is_tied:
                placed |= {"topologyLevel": "rack", "domains": {dice.choice(RACKS): count}}
            pods.append(placed)
        found: Plain = {"cluster": where, "podSets": pods}
        return found | ({"replicas": replicas} if replicas else {})

    # Clusters.

    def a_cluster(self, name: str) -> Plain:
        pools = [pool("more", 4, stock=2)] if self.dice.random() < 0.3 else []
        return cluster(name, 4, 2, 4, racks=2, pools=pools, labels={"site": name})

    def change_cluster(self) -> None:
        dice = self.dice
        name = dice.choice(BUSY)
        known = self.objects.get(("Cluster", name))
        if known is None or dice.random() < 0.3:
            if known is None:
                self.put(self.a_cluster(name))
            else:
                self.remove("Cluster", name)
            return
        plain = copy.deepcopy(known)
        match dice.randint(0, 4):
            case 0:
                plain["spec"]["hold"] = dice.choice(["None", "Hold"])
            case 1:
                plain["metadata"]["labels"] = {"site": dice.choice(["east", "far"])}
            case 2:
                until = timestamp(self.now + dice.choice([-5, 15]))
                plain["status"] = {"avoidedNodes": [{"name": "n1", "until": until}]}
            case 3:
                plain["status"] = {"phase": dice.choice(["Ready", "Lost"])}
            case _:
                plain["spec"]["topology"] = dice.choice(
                    [[], [{"name": "rack", "nodeLabel": "rack"}]]
                )
        self.put(plain)

    def report(self) -> None:
        """An agent tells of one chunk: whole, or what changed since the last whole one."""
        dice = self.dice
        name, chunk = dice.choice(BUSY), dice.choice([0, 0, 0, 1])
        plain = self.a_report(name, chunk)
        last = self.objects.get(("ClusterReport", report_name(name, chunk)))
        if last is not None and dice.random() < 0.5:
            new = codec.decode(plain, ClusterReport)
            changes = difference(codec.decode(last, ClusterReport), new)
            if changes is not None:
                told = json.loads(codec.encode(changes))
                told["metadata"]["name"] = report_name(name, chunk, is_difference=True)
                self.put(told)
                return
        if dice.random() < 0.1:
            self.remove("ClusterReport", report_name(name, chunk))
        else:
            self.put(plain)

    def bind(self) -> None:
        """A report sees the pods of one that holds something on nodes."""
        dice = self.dice
        holders = [
            (object_, place)
            for (kind, _), object_ in sorted(self.objects.items())
            if kind == "Workload"
            for place in object_.get("status", {}).get("claim", {}).get("placements", ())
        ]
        if not holders:
            return
        one, place = dice.choice(holders)
        plain = self.a_report(place["cluster"], 0)
        nodes = range(len(plain["spec"]["nodes"]["names"]))
        for pods in place["podSets"] if nodes else ():
            counts: dict[int, int] = {}
            for _ in range(dice.randint(0, pods["count"])):
                at = dice.choice(nodes)
                counts[at] = counts.get(at, 0) + 1
            plain["spec"]["works"].append(
                {
                    "work": work_name("team", one["metadata"]["name"]),
                    "podSet": pods["name"],
                    "attempt": one["status"]["claim"]["attempt"],
                    "requests": pods["requests"],
                    "bound": {"nodes": list(counts), "counts": list(counts.values())},
                }
            )
        self.put(plain)

    def a_report(self, name: str, chunk: int) -> Plain:
        """Mostly of the nodes that were there before, and of other pods."""
        dice = self.dice
        self.sequence += 1
        last = self.objects.get(("ClusterReport", report_name(name, chunk)))
        is_new = last is None or dice.random() < 0.2
        nodes = self.some_nodes(chunk) if is_new else copy.deepcopy(last["spec"]["nodes"])
        works: list[Plain] = [] if is_new else copy.deepcopy(last["spec"]["works"])
        if dice.random() < 0.4:
            works = works[1:]
        for work in dice.sample(WORKLOADS, dice.choice([0, 0, 0, 1])):
            at = dice.randrange(len(nodes["names"]))
            pods = {"nodes": [at], "counts": [dice.choice([1, 2])]}
            works.append(
                {
                    "work": work_name("team", work),
                    "podSet": dice.choice(["worker", "driver", "other"]),
                    "attempt": dice.choice([1, 1, 2]),
                    "requests": {GPU: dice.choice([1, 1, 1, "500m"])},
                    dice.choice(["bound", "terminating"]): pods,
                }
            )
        return {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "ClusterReport",
            "metadata": {"name": report_name(name, chunk)},
            "spec": {
                "cluster": name,
                "agentEpoch": 2 if dice.random() < 0.1 else 1,
                "sequence": self.sequence,
                "seenAt": timestamp(self.now),
                "chunk": chunk,
                "chunks": 1 if chunk == 0 and dice.random() < 0.1 else 2,
                "works": works,
                "nodes": nodes,
                "namespaces": self.some_rules() if chunk == 0 else [],
            },
        }

    def some_rules(self) -> list[Plain]:
        """Mostly none; else a quota of the namespace of all workloads, or defaults for its pods."""
        dice = self.dice
        if dice.random() < 0.7:
            return []
        others = {f"requests.{GPU}": dice.choice([0, 1])}
        quota = {"name": "gpus", "hard": {f"requests.{GPU}": dice.choice([2, 4])}, "others": others}
        limit = {"name": "cpus", "defaultRequest": {"cpu": dice.choice(["1", "2"])}}
        rules = dice.choice([{"quotas": [quota]}, {"limits": [limit]}])
        return [{"name": "team", **rules}]

    def some_nodes(self, chunk: int) -> Plain:
        dice = self.dice
        names = [f"n{at}" for at in range(chunk * 3, chunk * 3 + dice.choice([1, 2, 3, 3]))]

        def column(values: list[Any]) -> list[Any]:
            return [dice.choice(values) for _ in names]

        return {
            "names": dice.sample(names, len(names)),
            "unready": [0] if dice.random() < 0.1 else [],
            "labels": [
                {"key": "accelerator", "values": column(["h100", "h100", "a10"])},
                {"key": "rack", "values": column(list(RACKS))},
            ],
            "amounts": [
                {"resource": "cpu", "unit": "1", "allocatable": column([64])},
                {"resource": GPU, "unit": "1", "allocatable": column([0, 2, 4, 4])},
                {"resource": DEVICES, "unit": "1", "allocatable": column([0, 2, 4])},
            ],
        }

    # What many things hang on, and time.

    def change_rules(self) -> None:
        dice = self.dice
        match dice.randint(0, 10):
            case 0:
                limits = [{"name": "each", "claimedWorkloads": 2, "amounts": {GPU: 4}}]
                self.put(
                    queue(
                        dice.choice(["left", "right"]),
                        dice.randint(0, 8),
                        parent=dice.choice(["all", "all", "left"]),
                        userLimits=dice.choice([[], limits]),
                        claimedWorkloadsMax=dice.choice([3, 9]),
                    )
                )
            case 1:
                name = dice.choice(["left", "right"])
                plain = copy.deepcopy(self.objects.get(("Queue", name)) or queue(name, 2))
                plain["status"] = {
                    "remembered": {"updatedAt": CREATED, "amounts": {GPU: dice.randint(0, 9)}}
                }
                self.put(plain)
            case 2:
                name = dice.choice(["left", "right"])
                plain = copy.deepcopy(self.objects.get(("Queue", name)) or queue(name, 2))
                plain["spec"]["hold"] = dice.choice(["None", "Hold"])
                plain["spec"]["defaults"] = {"priority": dice.randint(0, 3)}
                self.put(plain)
            case 3:
                self.remove("Queue", dice.choice(["all", "left", "right"]))
            case 4:
                counted = [{"name": "gpu", "resource": dice.choice([GPU, "example.com/other"])}]
                classes = dice.choice([[], counted, counted])
                paused, defaults = dice.random() < 0.2, {"queue": "left"}
                self.put(fleet(paused=paused, defaults=defaults, deviceClasses=classes))
            case 5:
                self.put(flavor("a10", nodeLabels={"accelerator": dice.choice(["a10", "h100"])}))
            case 6:
                self.put(
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": {"name": "urgent"},
                        "value": dice.randint(0, 3),
                    }
                )
            case 7:
                self.put(policy("near", dice.sample(CLUSTERS, 1), CLUSTERS))
            case 8:
                self.put(
                    fleet_policy(
                        "rules",
                        clusters={"names": dice.sample(CLUSTERS, 2)},
                        priority={"max": dice.randint(0, 3)},
                        runSecondsMax=dice.choice([60, 600]),
                        enforcement=dice.choice(["Enforce", "Enforce", "Warn", "DryRun"]),
                    )
                )
            case 9:
                self.remove("FleetPolicy", "rules")
            case _:
                self.remove("PlacementPolicy", "near")

    def change_claims(self) -> None:
        """What pods that ask for devices get."""
        dice, name = self.dice, self.dice.choice(["one", "two"])
        if dice.random() < 0.4:
            self.remove("ResourceClaimTemplate", name)
            return
        exactly = {"deviceClassName": "gpu", "count": dice.choice([1, 1, 2])}
        spec = {"devices": {"requests": [{"name": "all", "exactly": exactly}]}}
        named = {"name": name, "namespace": "team"}
        self.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                  "metadata": named, "spec": {"spec": spec}})  # fmt: skip

    def pass_time(self) -> None:
        self.now += self.dice.choice([1.0, 10.0, 60.0])
