"""Small fleets of queues for Kueue, and what arrives in them.

Quota is of GPUs of one flavor unless said otherwise. What arrives in one wave arrives one after the
other, more than a second apart: Kueue orders by moments of whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
API = "kueue.x-k8s.io/v1beta2"
PRIORITIES = {"low": 10, "middle": 50, "high": 100}
NAMESPACE = "team"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """What arrives, or what ends, before the peer is left to settle."""

    arrive: tuple[Json, ...] = ()
    end: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    objects: tuple[Json, ...]
    waves: tuple[Wave, ...]
    is_fair: bool = False  # with fair sharing


def _object(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def flavor(name: str) -> Json:
    return _object("ResourceFlavor", name, {"nodeLabels": {"accelerator": name}})


def cohort(name: str, parent: str = "", **quotas: Json | int) -> Json:
    spec: Json = {"parentName": parent} if parent else {}
    return _object("Cohort", name, {**spec, "resourceGroups": _groups(quotas)})


def queue(name: str, within: str = "everyone", *, spec: Json | None = None, **quotas: Any) -> Json:
    """A ClusterQueue with quota of each flavor: a number, or a number with limits."""
    given: Json = {
        "namespaceSelector": {},
        "resourceGroups": _groups(quotas),
        **({"cohortName": within} if within else {}),
        **(spec or {}),
    }
    return _object("ClusterQueue", name, given)


def _groups(quotas: Json) -> list[Json]:
    flavors = [
        {
            "name": name.replace("_", "-"),
            "resources": [
                {"name": GPU, **(quota if isinstance(quota, dict) else {"nominalQuota": quota})}
            ],
        }
        for name, quota in quotas.items()
    ]
    return [{"coveredResources": [GPU], "flavors": flavors}] if flavors else []


def job(
    name: str,
    in_queue: str,
    gpus: int = 1,
    *,
    pods: int = 1,
    priority: str = "",
    least: int = 0,
    on: str = "",
) -> Json:
    """A Job of equal pods; `least` of them suffice, and `on` is the only flavor it can use."""
    labels = {"kueue.x-k8s.io/queue-name": in_queue}
    if priority:
        labels["kueue.x-k8s.io/priority-class"] = priority
    annotations = {"kueue.x-k8s.io/job-min-parallelism": str(least)} if least else {}
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": {GPU: gpus}, "limits": {GPU: gpus}},
    }
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if on:
        pod["nodeSelector"] = {"accelerator": on}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": pod},
        },
    }


def arrives(*jobs: Json) -> Wave:
    return Wave(arrive=jobs)


def ends(*names: str) -> Wave:
    return Wave(end=names)


H100 = flavor("h100")
WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}
RECLAIM = {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}}
CLASSICAL = (
    Scenario(
        name="A queue borrows up to its borrowing limit",
        objects=(
            H100,
            queue("a", h100={"nominalQuota": 4, "borrowingLimit": 2}),
            queue("b", h100=4),
        ),
        waves=(
            arrives(job("own", "a", 4), job("borrows", "a", 2), job("too-much", "a", 1)),
            arrives(job("others", "b", 2)),
        ),
    ),
    Scenario(
        name="A lending limit keeps quota at home",
        objects=(
            H100,
            queue("a", h100=2),
            queue("b", h100={"nominalQuota": 6, "lendingLimit": 3}),
        ),
        waves=(
            arrives(job("all-of-it", "a", 6)),
            arrives(job("what-is-lent", "a", 5), job("one-more", "a", 1)),
            arrives(job("at-home", "b", 3), job("beyond", "b", 1)),
        ),
    ),
    Scenario(
        name="Higher priority goes first within a queue",
        objects=(H100, queue("a", within="", h100=4)),
        waves=(
            arrives(job("blocker", "a", 4)),
            arrives(
                job("low", "a", 4, priority="low"),
                job("middle", "a", 4, priority="middle"),
                job("high", "a", 4, priority="high"),
            ),
            ends("blocker"),
            ends("high"),
        ),
    ),
    Scenario(
        name="A small workload passes one that does not fit",
        objects=(H100, queue("a", within="", h100=4)),
        waves=(arrives(job("first", "a", 2), job("large", "a", 4), job("small", "a", 2)),),
    ),
    Scenario(
        name="A strict queue lets nothing pass its head",
        objects=(H100, queue("a", within="", spec={"queueingStrategy": "StrictFIFO"}, h100=4)),
        waves=(
            arrives(job("first", "a", 2), job("large", "a", 4), job("small", "a", 2)),
            ends("first"),
        ),
    ),
    Scenario(
        name="Lower priority yields within its queue and the last that started goes first",
        objects=(H100, queue("a", within="", spec=WITHIN, h100=6)),
        waves=(
            arrives(
                job("early", "a", 2, priority="low"),
                job("peer", "a", 2, priority="high"),
                job("late", "a", 2, priority="low"),
            ),
            arrives(job("urgent", "a", 2, priority="high")),
            arrives(job("equal", "a", 4, priority="middle")),
        ),
    ),
    Scenario(
        name="A queue reclaims its own from those who borrow",
        objects=(H100, queue("a", h100=4), queue("b", spec=RECLAIM, h100=4)),
        waves=(
            arrives(*(job(f"borrower-{number}", "a", 2) for number in range(4))),
            arrives(job("owner", "b", 2)),
            arrives(job("second-owner", "b", 2), job("beyond", "b", 2)),
        ),
    ),
    Scenario(
        name="A queue that reclaims from lower priority spares the rest",
        objects=(
            H100,
            queue("a", h100=4),
            queue("b", spec={"preemption": {"reclaimWithinCohort": "LowerPriority"}}, h100=4),
        ),
        waves=(
            arrives(job("own", "a", 4), job("important", "a", 4, priority="high")),
            arrives(job("owner", "b", 4, priority="middle")),
            arrives(job("more-important", "b", 4, priority="high")),
        ),
    ),
    Scenario(
        name="The next flavor is used where the first is full",
        objects=(H100, flavor("a100"), queue("a", within="", h100=2, a100=4)),
        waves=(
            arrives(
                job("first", "a", 2),
                job("second", "a", 2),
                job("third", "a", 2),
                job("fourth", "a", 2),
            ),
            ends("first"),
        ),
    ),
    Scenario(
        name="A workload that selects nodes gets the flavor of these nodes",
        objects=(H100, flavor("a100"), queue("a", within="", h100=4, a100=2)),
        waves=(
            arrives(
                job("selects", "a", 2, on="a100"),
                job("selects-again", "a", 2, on="a100"),
                job("any", "a", 2),
            ),
        ),
    ),
    Scenario(
        name="A queue that may try the next flavor does so rather than borrow",
        objects=(
            H100,
            flavor("a100"),
            queue(
                "a",
                spec={"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}},
                h100=2,
                a100=2,
            ),
            queue("b", h100=4, a100=0),
        ),
        waves=(
            arrives(
                job("own", "a", 2),
                job("next-flavor", "a", 2),
                job("borrows", "a", 2),
            ),
        ),
    ),
    Scenario(
        name="A queue that may stop its search preempts in the first flavor",
        objects=(
            H100,
            flavor("a100"),
            queue(
                "a",
                within="",
                spec={**WITHIN, "flavorFungibility": {"whenCanPreempt": "MayStopSearch"}},
                h100=2,
                a100=2,
            ),
            queue("b", within="", spec=WITHIN, h100=2, a100=2),
        ),
        waves=(
            arrives(
                job("low-a", "a", 2, priority="low"),
                job("low-b", "b", 2, priority="low"),
                job("high-a", "a", 2, priority="high"),
                job("high-b", "b", 2, priority="high"),
            ),
        ),
    ),
    Scenario(
        name="Fewer pods are admitted where all do not fit",
        objects=(H100, queue("a", within="", h100=5)),
        waves=(arrives(job("elastic", "a", 1, pods=8, least=2), job("rigid", "a", 1, pods=2)),),
    ),
    Scenario(
        name="A cohort shares quota of its own with the queues below it",
        objects=(
            H100,
            cohort("company", h100=2),
            cohort("research", "company"),
            cohort("product", "company"),
            queue("a", "research", h100=2),
            queue("b", "research", h100=2),
            queue("c", "product", h100={"nominalQuota": 2, "borrowingLimit": 3}),
        ),
        waves=(
            arrives(job("a-takes", "a", 5)),
            arrives(job("c-takes", "c", 4), job("c-own", "c", 3)),
            arrives(job("b-takes", "b", 1)),
        ),
    ),
    Scenario(
        name="One that borrows preempts lower priority where its queue says so",
        objects=(
            H100,
            queue(
                "a",
                spec={
                    "preemption": {
                        "reclaimWithinCohort": "LowerPriority",
                        "borrowWithinCohort": {"policy": "LowerPriority"},
                    }
                },
                h100=2,
            ),
            queue("b", h100=2),
            queue("c", h100=4),
        ),
        waves=(
            arrives(job("b-own", "b", 2, priority="low"), job("b-borrows", "b", 4, priority="low")),
            arrives(job("a-own", "a", 2, priority="high")),
            arrives(job("a-borrows", "a", 3, priority="high")),
        ),
    ),
    Scenario(
        name="What needs no borrowing goes before higher priority that borrows",
        objects=(H100, queue("a", h100=2), queue("b", h100=4), queue("c", h100=0)),
        waves=(
            arrives(job("blocker", "c", 6)),
            arrives(job("borrows", "a", 4, priority="high"), job("own", "b", 4, priority="low")),
            ends("blocker"),
        ),
    ),
)
FAIR = (
    Scenario(
        name="With fair sharing one who has less takes from one who has more until shares are even",
        objects=(
            H100,
            queue("a", spec=RECLAIM, h100=0),
            queue("b", spec=RECLAIM, h100=0),
            queue("c", spec=RECLAIM, h100=8),
        ),
        waves=(
            arrives(*(job(f"a-{number}", "a", 1) for number in range(8))),
            arrives(*(job(f"b-{number}", "b", 1) for number in range(5))),
        ),
        is_fair=True,
    ),
    Scenario(
        name="With fair sharing a weight gives its queue as much more",
        objects=(
            H100,
            queue("a", spec={**RECLAIM, "fairSharing": {"weight": "3"}}, h100=0),
            queue("b", spec=RECLAIM, h100=0),
            queue("c", spec=RECLAIM, h100=8),
        ),
        waves=(
            arrives(*(job(f"b-{number}", "b", 2) for number in range(4))),
            arrives(*(job(f"a-{number}", "a", 2) for number in range(4))),
        ),
        is_fair=True,
    ),
    Scenario(
        name="With fair sharing the lower share goes first whatever the priority",
        objects=(
            H100,
            queue("a", h100=2),
            queue("b", h100=2),
            queue("c", h100=4),
        ),
        waves=(
            arrives(job("a-own", "a", 2), job("a-more", "a", 2), job("blocker", "c", 4)),
            arrives(job("a-waits", "a", 4, priority="high"), job("b-waits", "b", 4)),
            ends("blocker"),
        ),
        is_fair=True,
    ),
    Scenario(
        name="With fair sharing a queue takes its own back at once",
        objects=(H100, queue("a", h100=2), queue("b", spec=RECLAIM, h100=6)),
        waves=(
            arrives(*(job(f"a-{number}", "a", 2, priority="high") for number in range(4))),
            arrives(job("b-own", "b", 6, priority="low")),
        ),
        is_fair=True,
    ),
)
SCENARIOS = (*CLASSICAL, *FAIR)
