"""What Kueue decided, decided again by our core on equivalent objects.

A ClusterQueue is a queue below that of its cohort, a ResourceFlavor a flavor, a Job a workload of
one set of pods. There are no clusters: quota alone decides, as it did for Kueue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairway.clock import timestamp
from fairway.core.cycle import plan
from fairway.core.model import Workload
from fairway.core.plan import Preempt
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import NOW
from tests.peers.recording import Json, Recording

# Admitted: the pods of each flavor, by workload. Evicted: how often, by workload.
Decision = tuple[dict[str, dict[str, int]], dict[str, int]]
CYCLES_MAX = 20
_WAVE_SECONDS = 60.0


def differences(recording: Recording) -> list[str]:
    """Where our decision is another than Kueue's, in a sentence a step."""
    found = []
    steps = recording.content["steps"]
    for number, (step, ours) in enumerate(zip(steps, replay(recording), strict=True), 1):
        theirs = decided(steps[number - 2]["statuses"] if number > 1 else {}, step["statuses"])
        if ours != theirs:
            found.append(f"step {number}: Kueue {_told(theirs)}; Fairway {_told(ours)}")
    return found


def decided(before: Json, statuses: Json) -> Decision:
    """What Kueue's statuses say was admitted, and evicted since the step before."""
    admitted = {
        name: {
            flavor: row["count"]
            for row in status["admission"]["podSetAssignments"]
            for flavor in row["flavors"].values()
        }
        for name, status in statuses.items()
        if "admission" in status
    }
    evicted = {
        name: _evictions(status) - _evictions(before.get(name, {}))
        for name, status in statuses.items()
    }
    return admitted, {name: count for name, count in evicted.items() if count}


def _evictions(status: Json) -> int:
    rows = status.get("schedulingStats", {}).get("evictions", [])
    return sum(int(row["count"]) for row in rows)


def replay(recording: Recording) -> Iterator[Decision]:
    """Our decision after each step of a recording."""
    content = recording.content
    objects = Objects.of(_translated(content))
    assumed: dict[str, Workload] = {}
    for number, step in enumerate(content["steps"], 1):
        begun = NOW + number * _WAVE_SECONDS
        evicted: dict[str, int] = {}
        for name in step["end"]:
            objects.remove(_named(name))
            assumed.pop(f"team/{name}")
        # Each that arrives is decided on before the next does, as it was for Kueue.
        for place, job in enumerate(step["arrive"]):
            objects.put(_workload(job, begun + place, content["priorities"]))
            assumed = _settled(objects.facts(begun + place + 0.5, assumed), evicted)
        assumed = _settled(objects.facts(begun + _WAVE_SECONDS / 2, assumed), evicted)
        yield _admitted(assumed), evicted


def _settled(facts: Facts, evicted: dict[str, int]) -> dict[str, Workload]:
    """The workloads once nothing more is decided."""
    for _ in range(CYCLES_MAX):
        made, _ = plan(Snapshot(facts))
        if not made.steps:
            return dict(facts.workloads)
        for step in made.steps:
            if isinstance(step, Preempt):
                name = step.workload.removeprefix("team/")
                evicted[name] = evicted.get(name, 0) + 1
        facts = after(facts, made)
    raise AssertionError(f"the core still decides after {CYCLES_MAX} cycles")


def _admitted(workloads: Mapping[str, Workload]) -> dict[str, dict[str, int]]:
    return {
        key.removeprefix("team/"): {
            flavor: pods.count
            for placed in workload.held.placed
            for pods in placed.pods
            for _, flavor in pods.flavors
        }
        for key, workload in workloads.items()
        if workload.held is not None
    }


def _told(decision: Decision) -> str:
    admitted, evicted = decision
    rows = [
        f"{name} {' + '.join(f'{count}@{flavor}' for flavor, count in sorted(counts.items()))}"
        for name, counts in sorted(admitted.items())
    ]
    gone = ", ".join(sorted(evicted))
    return f"admits {', '.join(rows) or 'nothing'}" + (f", evicts {gone}" if gone else "")


# Objects.


def _translated(content: Json) -> Iterator[Json]:
    yield _object(
        "Fleet",
        "fleet",
        {"fairShare": {"enabled": content["fairSharing"]}, "reservations": {"enabled": False}},
    )
    given = content["objects"]
    cohorts = {
        item["spec"]["cohortName"]: {} for item in given if item["spec"].get("cohortName")
    } | {item["metadata"]["name"]: item["spec"] for item in given if item["kind"] == "Cohort"}
    for name, spec in cohorts.items():
        yield _object("Queue", name, _quota(spec, parent=spec.get("parentName", "")))
    for item in given:
        name, spec = item["metadata"]["name"], item["spec"]
        if item["kind"] == "ResourceFlavor":
            yield _object("Flavor", name, spec)
        elif item["kind"] == "ClusterQueue":
            yield _object("Queue", name, _queue(spec))


def _queue(spec: Json) -> Json:
    preemption, fungibility = spec.get("preemption", {}), spec.get("flavorFungibility", {})
    borrowing = preemption.get("borrowWithinCohort", {})
    can_preempt = fungibility.get("whenCanPreempt", "TryNextFlavor")
    return {
        **_quota(spec, parent=spec.get("cohortName", "")),
        "strategy": "Strict" if spec.get("queueingStrategy") == "StrictFIFO" else "BestEffort",
        "weight": spec.get("fairSharing", {}).get("weight", "1"),
        "preemption": {
            "withinQueue": preemption.get("withinClusterQueue", "Never"),
            "reclaim": preemption.get("reclaimWithinCohort", "Never"),
            "whileBorrowing": {"policy": borrowing.get("policy", "Never")},
        },
        "fungibility": {
            "whenCanBorrow": fungibility.get("whenCanBorrow", "MayStopSearch"),
            "whenCanPreempt": can_preempt,
        },
    }


def _quota(spec: Json, *, parent: str) -> Json:
    groups = [
        {
            "resources": group["coveredResources"],
            "flavors": [
                {
                    "name": flavor["name"],
                    "quotas": [_limits(row) for row in flavor["resources"]],
                }
                for flavor in group["flavors"]
            ],
        }
        for group in spec.get("resourceGroups", [])
    ]
    return {"parent": parent, "resourceGroups": groups}


def _limits(row: Json) -> Json:
    ours = {"name": "resource", "nominalQuota": "nominal"}
    return {ours.get(key, key): value for key, value in row.items()}


def _workload(job: Json, created_at: float, priorities: Mapping[str, int]) -> Json:
    metadata, spec = job["metadata"], job["spec"]
    pod = spec["template"]["spec"]
    pods: Json = {
        "name": "main",
        "count": spec["parallelism"],
        "requests": pod["containers"][0]["resources"]["requests"],
        "nodeSelector": pod.get("nodeSelector", {}),
    }
    least = metadata["annotations"].get("kueue.x-k8s.io/job-min-parallelism")
    if least:
        pods["leastCount"] = int(least)
    labels = metadata["labels"]
    made = _named(metadata["name"])
    made["metadata"]["creationTimestamp"] = timestamp(created_at)
    made["spec"] = {
        "queue": labels["kueue.x-k8s.io/queue-name"],
        "priority": priorities.get(labels.get("kueue.x-k8s.io/priority-class", ""), 0),
        "podSets": [pods],
    }
    return made


def _named(name: str) -> Json:
    return _object("Workload", name, {}, namespace="team")


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: str) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }
