"""What an event costs a view that is kept up to date, at full size.

Clusters report their nodes in chunks of 2,000, with a claim's pods on one node in ten; the rest
waits. Each event is an object put into the view, and the snapshot brought up to date. Times are of
CPU, since machines are shared.
"""

from __future__ import annotations

import copy
import gc
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.figures import Report, percentile, resident_mib
from fairway.api import codec
from fairway.api.names import report_name, work_name
from fairway.api.report import ClusterReport
from fairway.api.report_changes import difference
from fairway.clock import timestamp
from fairway.core.model import Placed, PlacedPods
from fairway.core.plan import Admit, Plan
from fairway.core.snapshot import Snapshot
from fairway.view.view import View

NOW = 1_800_000_000.0
GPU = "nvidia.com/gpu"
CHUNK = 2_000
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    clusters: int
    nodes: int
    queues: int
    waiting: int
    held: int  # in each cluster


def size_of(scale: float) -> Size:
    return Size(
        clusters=max(3, round(100 * scale)),
        nodes=max(500, round(5_000 * min(1.0, scale * 5))),
        queues=max(10, round(1_000 * scale)),
        waiting=max(100, round(100_000 * scale)),
        held=max(20, round(200 * min(1.0, scale * 5))),
    )


def _object(kind: str, name: str, spec: Plain, **metadata: Any) -> Plain:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


class Objects:
    """Manifests of a fleet of a size."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.sequence = 0

    def rules(self) -> Iterator[Plain]:
        yield _object("Flavor", "h100", {"nodeLabels": {"accelerator": "h100"}})
        quota = {"resource": GPU, "nominal": 1_000_000}
        group = {"resources": [GPU], "flavors": [{"name": "h100", "quotas": [quota]}]}
        for number in range(self.size.queues):
            yield _object(
                "Queue", f"queue-{number}", {"uncovered": "Unlimited", "resourceGroups": [group]}
            )
        for number in range(self.size.clusters):
            yield _object("Cluster", f"cluster-{number:03}", {"simulated": {}})

    def workload(self, name: str, number: int, where: str = "", at: float = NOW) -> Plain:
        requests = {"cpu": "8", "memory": "64Gi", GPU: 1 + number % 4}
        queue = f"queue-{number % self.size.queues}"
        pods = {"name": "worker", "count": 1, "requests": requests}
        plain = _object(
            "Workload",
            name,
            {"queue": queue, "podSets": [pods], "priority": number % 5},
            namespace="team",
            creationTimestamp=timestamp(NOW - number % 9_000),
        )
        if where:
            placement = {"cluster": where, "podSets": [{**pods, "flavors": {GPU: "h100"}}]}
            plain["status"] = {
                "phase": "Claimed",
                "claim": {
                    "attempt": 1,
                    "term": 1,
                    "decidedAt": timestamp(at),
                    "queue": queue,
                    "placements": [placement],
                },
            }
        return plain

    def held(self) -> Iterator[Plain]:
        for cluster in range(self.size.clusters):
            for number in range(self.size.held):
                where = f"cluster-{cluster:03}"
                yield self.workload(f"held-{cluster}-{number}", number, where, NOW - 60)

    def waiting(self) -> Iterator[Plain]:
        for number in range(self.size.waiting):
            yield self.workload(f"wait-{number}", number)

    def reports(self, cluster: int, used: int = 0) -> list[Plain]:
        """The chunks of a cluster; others use so much of every node."""
        size = self.size
        name = f"cluster-{cluster:03}"
        chunks = -(-size.nodes // CHUNK)
        found = []
        for chunk in range(chunks):
            self.sequence += 1
            rows = range(chunk * CHUNK, min(size.nodes, (chunk + 1) * CHUNK))
            count = len(rows)
            amounts = [
                {"resource": "cpu", "unit": "1m", "allocatable": [128_000] * count,
                 "others": [used] * count if used else []},
                {"resource": "memory", "unit": "1Mi", "allocatable": [1_000_000] * count},
                {"resource": GPU, "unit": "1", "allocatable": [8] * count},
            ]  # fmt: skip
            spec = {
                "cluster": name,
                "agentEpoch": 1,
                "sequence": self.sequence,
                "seenAt": timestamp(NOW),
                "chunk": chunk,
                "chunks": chunks,
                "nodes": {
                    "names": [f"node-{row:05}" for row in rows],
                    "labels": [
                        {"key": "accelerator", "values": ["h100"] * count},
                        {"key": "zone", "values": [f"zone-{row % 3}" for row in rows]},
                        {"key": "rack", "values": [f"rack-{row // 32}" for row in rows]},
                    ],
                    "amounts": amounts,
                },
                "works": self._works(cluster, rows),
            }
            found.append(_object("ClusterReport", report_name(name, chunk), spec))
        return found

    def _works(self, cluster: int, rows: range) -> list[Plain]:
        """The pods of claims, spread over the nodes."""
        step = self.size.nodes // self.size.held
        return [
            {
                "work": work_name("team", f"held-{cluster}-{number}"),
                "podSet": "worker",
                "attempt": 1,
                "requests": {"cpu": "8", "memory": "64Gi", GPU: 1 + number % 4},
                "bound": {"nodes": [number * step - rows.start], "counts": [1]},
            }
            for number in range(self.size.held)
            if number * step in rows
        ]


def filled(objects: Objects) -> View:
    view = View()
    for plain in objects.rules():
        view.put(plain)
    for cluster in range(objects.size.clusters):
        for plain in objects.reports(cluster):
            view.put(plain)
    for plain in (*objects.held(), *objects.waiting()):
        view.put(plain)
    return view


def timed(view: View, count: int, act: Callable[[int], None]) -> list[float]:
    """Milliseconds of CPU for each event, with the snapshot brought up to date after it."""
    taken = []
    for number in range(count):
        cpu = time.process_time()
        act(number)
        view.snapshot(NOW + 1 + number)
        taken.append((time.process_time() - cpu) * 1000)
    return taken


def difference_of(plain: Plain, changed: Plain) -> Plain:
    changes = difference(codec.decode(plain, ClusterReport), codec.decode(changed, ClusterReport))
    assert changes is not None, "nothing happened that a difference could not tell"
    told: Plain = json.loads(codec.encode(changes))
    told["metadata"]["name"] += "-difference"
    return told


def events(report: Report, objects: Objects, view: View, count: int) -> None:
    """Every kind of event, many times over different clusters."""
    size = objects.size
    snapshot = view.snapshot(NOW)

    def tell(name: str, some: int, act: Callable[[int], None], aim: float | None = None) -> None:
        taken = timed(view, some, act)
        report.add(f"{name}, p50", percentile(taken, 0.5), "ms")
        report.add(f"{name}, p99", percentile(taken, 0.99), "ms", aim=aim)

    def where(number: int) -> str:
        return f"cluster-{number * 7 % size.clusters:03}"

    new = [objects.workload(f"new-{number}", number) for number in range(count)]
    tell("a workload arrives", count, lambda at: view.put(new[at]))
    tell(
        "a decision is assumed",
        count,
        lambda at: view.assume(_decision(snapshot, new[at], where(at), NOW + at)),
    )
    claimed = [objects.workload(f"new-{at}", at, where(at), NOW + at) for at in range(count)]
    tell("the claim is told by the store", count, lambda at: view.put(claimed[at]))
    tell("a claim ends, not seen on a node", count, lambda at: view.remove(claimed[at]))
    held = [
        objects.workload(f"held-{at % size.clusters}-{at // size.clusters}", 0)
        for at in range(count)
    ]
    tell("a claim ends, seen on a node", count, lambda at: view.remove(held[at]))
    few = max(5, count // 20)
    chunks = [objects.reports(at % size.clusters)[0] for at in range(few)]
    for chunk in chunks:
        chunk["spec"]["works"] = chunk["spec"]["works"][1:]
    tell("a report, other pods in one chunk", few, lambda at: view.put(chunks[at]))
    changes = []
    for other in chunks:
        changed = copy.deepcopy(other)
        changed["spec"]["sequence"] += 1_000_000
        changed["spec"]["works"] = changed["spec"]["works"][2:]
        changed["spec"]["nodes"]["unready"] = [3, 5]
        changes.append(difference_of(other, changed))
    tell("a report, a difference", few, lambda at: view.put(changes[at]))
    wholes = [objects.reports(at % size.clusters, used=500) for at in range(few)]

    def put_all(at: int) -> None:
        for item in wholes[at]:
            view.put(item)

    tell("a report, all nodes", few, put_all)


def _decision(snapshot: Snapshot, plain: Plain, cluster: str, at: float) -> Plan:
    key = f"team/{plain['metadata']['name']}"
    asked = snapshot.facts.workloads[key].forms[0].pod_sets[0]
    pods = PlacedPods(name="worker", count=1, shape=asked.shape, flavors=((GPU, "h100"),))
    step = Admit(workload=key, placed=(Placed(cluster=cluster, pods=(pods,)),))
    return Plan(now=at, steps=(step,))


def run(report: Report, *, scale: float = 1.0) -> None:
    size = size_of(scale)
    print(
        f"View: {size.clusters:,} clusters x {size.nodes:,} nodes, {size.queues:,} queues, "
        f"{size.waiting:,} waiting, {size.clusters * size.held:,} held"
    )
    gc.collect()
    before = resident_mib()
    objects = Objects(size)
    cpu = time.process_time()
    view = filled(objects)
    report.add("objects read", time.process_time() - cpu, "s")
    cpu = time.process_time()
    facts = view.facts(NOW)
    report.add("facts from scratch", time.process_time() - cpu, "s")
    cpu = time.process_time()
    view.snapshot(NOW)
    report.add("snapshot from scratch", time.process_time() - cpu, "s")
    del facts
    gc.collect()
    gc.freeze()  # as the hub does once it is up
    report.add("memory of objects, facts and snapshot", resident_mib() - before, "MiB")
    events(report, objects, view, max(20, round(400 * min(1.0, scale * 10))))
    del view
    small = size_of(scale / 10)
    twin = Objects(small)
    view = filled(twin)
    view.snapshot(NOW)
    print(f"  with a tenth of everything ({small.clusters} clusters x {small.nodes:,} nodes):")
    tenth = Report()
    events(tenth, twin, view, max(20, round(400 * min(1.0, scale * 10))))
    for name, value in tenth.figures.items():
        if name.endswith("p50"):
            report.add(f"growth of {name[:-5]}", report.figures[name] / value, "x")
