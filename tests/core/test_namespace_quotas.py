"""Tables of small fleets whose clusters have ResourceQuotas and LimitRanges: the whole plan."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.reasons import sentence
from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.explain.explain import explain
from fairway.core.forecast.ever_possible import impossible
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import (
    GPU,
    H100,
    NOW,
    Plain,
    cluster,
    leaving,
    plan_of,
    policy,
    pool,
    queue,
    told,
    workload,
)

GPUS = f"requests.{GPU}"
PREEMPTS = {"preemption": {"withinQueue": "LowerPriority"}}


def quota(name: str = "compute", **more: Any) -> Plain:
    return {"name": name, **more}


def limit(name: str = "bounds", **more: Any) -> Plain:
    return {"name": name, **more}


def ruled(name: str, *gpus: int, namespace: str = "team", pools: Any = (), **rules: Any) -> Plain:
    """A cluster with rules for one namespace, that of all workloads here unless it is named."""
    made = cluster(name, *gpus, pools=pools)
    made["spec"]["simulated"]["namespaces"] = [{"name": namespace, **rules}]
    return made


def four(name: str = "east", *gpus: int, **more: Any) -> Plain:
    """A cluster of eight GPUs whose quota leaves four."""
    return ruled(name, *(gpus or (8,)), quotas=[quota(hard={GPUS: 4, **more})])


def elsewhere(made: Plain) -> Plain:
    """A workload of another namespace."""
    made["metadata"]["namespace"] = "other"
    return made


def renamed(made: Plain) -> Plain:
    """A cluster that calls a resource of the fleet differently."""
    made["spec"]["profile"] = {"resources": {"rdma/any": "example.com/nic"}}
    for node_pool in made["spec"]["simulated"]["nodePools"]:
        node_pool["shape"]["example.com/nic"] = 8
    return made


WEST = cluster("west", 8)
HOME_FIRST = policy("home", ["east"], ["west"])

QUOTAS = {
    "a gang goes where the namespace's quota holds it": (
        [queue("q", 99), four(), WEST, workload("a", "q", count=5)],
        ["a starts in west:5@h100"],
    ),
    "it waits where no other cluster has room, and says which quota": (
        [queue("q", 99), four(), workload("a", "q", count=5)],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "what fits in the rest of a quota starts": (
        [queue("q", 99), four(), workload("a", "q", count=4)],
        ["a starts in east:4@h100"],
    ),
    "what others use is gone": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={GPUS: 4}, others={GPUS: 2})]),
         workload("a", "q", count=3, waited=90), workload("b", "q", count=2)],
        ["b starts in east:2@h100", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "claims of one plan add up": (
        [queue("q", 99), four(), WEST, workload("a", "q", count=3, policy="home", waited=90),
         workload("b", "q", count=3, policy="home"), HOME_FIRST],
        ["a starts in east:3@h100", "b starts in west:3@h100"],
    ),
    "what runs takes its part": (
        [queue("q", 99), four(), workload("r", "q", count=3, running="east"),
         workload("a", "q", count=2, waited=90), workload("b", "q", count=1)],
        ["b starts in east:1@h100", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "what is being stopped takes its part until it is gone": (
        [queue("q", 99), four(), leaving(workload("r", "q", count=3, running="east")),
         workload("a", "q", count=2)],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool", "r waits: StillEnding"],
    ),
    "a quota of another namespace is no limit": (
        [queue("q", 99), ruled("east", 8, namespace="other", quotas=[quota(hard={GPUS: 0})]),
         workload("a", "q", count=8)],
        ["a starts in east:8@h100"],
    ),
    "every quota must hold": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={GPUS: 8}),
                                                  quota("few", hard={"pods": 2})]),
         workload("a", "q", count=3, waited=90), workload("b", "q", count=2)],
        ["b starts in east:2@h100", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "cpu counts as cpu and as requests.cpu, in thousandths": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={"cpu": "2500m"})]),
         ruled("west", 8, quotas=[quota(hard={"requests.cpu": "2999m"})]),
         workload("a", "q", count=3, waited=90), workload("b", "q", count=2),
         workload("c", "q", count=2)],
        ["b starts in east:2@h100", "c starts in west:2@h100",
         "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "pods without a template have limits like their requests": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={"limits.cpu": "1"})]),
         workload("a", "q", count=2)],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a quota of a resource that the pods do not need is no limit": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={"requests.storage": "0"})]),
         workload("a", "q", count=8)],
        ["a starts in east:8@h100"],
    ),
    "an elastic gang shrinks to what the quota leaves": (
        [queue("q", 99), four(), workload("a", "q", count=8, leastCount=2)],
        ["a starts in east:4@h100"],
    ),
    "but not below its least count": (
        [queue("q", 99), four(), workload("a", "q", count=8, leastCount=5)],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a gang of two sets counts both": (
        [queue("q", 99), four(), workload("a", "q", pod_sets=[
            {"name": "leader", "count": 1, "requests": {GPU: 1}},
            {"name": "worker", "count": 2, "requests": {GPU: 2}}])],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a gang may split over the quotas of two clusters": (
        [queue("q", 99), four("east", 8), four("west", 8),
         workload("a", "q", count=8, memberSize=2, gang={"clustersMax": 2})],
        ["a starts in east:4@h100 + west:4@h100"],
    ),
    "a service takes what the quota leaves, and the rest in the next cluster": (
        [queue("q", 99), four(), WEST, HOME_FIRST,
         workload("s", "q", mode="Divided", replicas=7, policy="home")],
        ["s starts in east:4@h100 + west:3@h100"],
    ),
    "a service that no other cluster takes waits for the rest": (
        [queue("q", 99), four(), workload("s", "q", mode="Divided", replicas=7)],
        ["s starts in east:4@h100",
         "s waits: NamespaceQuotaExceeded, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a sweep runs as many tasks as the quota leaves": (
        [queue("q", 99), four(), workload("s", "q", mode="Independent", tasks={"count": 9})],
        ["s starts in east:4@h100",
         "s waits: NamespaceQuotaExceeded, NoVictims, NoPool, PartlyPlaced"],
    ),
    "no node is bought for pods that the quota refuses": (
        [queue("q", 99), ruled("east", 2, pools=[pool("spot", 8, stock=4)],
                               quotas=[quota(hard={GPUS: 4})]),
         workload("a", "q", count=5, waited=90), workload("b", "q", count=4)],
        ["b gets 1 of east/spot", "b starts in east:4@h100",
         "a waits: DoesNotFit, NoVictims, NamespaceQuotaExceeded"],
    ),
    "pods on bought nodes take their part at once": (
        [queue("q", 99), ruled("east", 2, pools=[pool("spot", 8, stock=4)],
                               quotas=[quota(hard={GPUS: 4})]),
         workload("a", "q", count=3, waited=90), workload("b", "q", count=2)],
        ["a gets 1 of east/spot", "a starts in east:3@h100",
         "b waits: NamespaceQuotaExceeded, NoVictims"],
    ),
    "a negative rest leaves nothing": (
        [queue("q", 99), ruled("east", 8, quotas=[quota(hard={GPUS: 1}, others={GPUS: 3})]),
         workload("a", "q")],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
}  # fmt: skip


PREEMPTION = {
    "a victim in the same namespace and cluster gives its part back": (
        [queue("q", 99, **PREEMPTS), four(), workload("low", "q", count=3, running="east"),
         workload("high", "q", count=2, priority=5)],
        ["low yields to high", "high starts in east:2@h100 after low"],
    ),
    "one in another cluster does not": (
        [queue("q", 99, **PREEMPTS), ruled("east", 8, quotas=[quota(hard={GPUS: 1})]), WEST,
         workload("low", "q", count=8, running="west"), policy("east", ["east"]),
         workload("high", "q", count=2, priority=5, policy="east")],
        ["high waits: NotSelected, NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "nor does one of another namespace, though it is on the nodes": (
        [queue("q", 99, **PREEMPTS), ruled("east", 8, quotas=[quota(hard={GPUS: 1})]),
         elsewhere(workload("low", "q", count=8, running="east")),
         workload("high", "q", count=2, priority=5)],
        ["high waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "only those that are needed yield": (
        [queue("q", 99, **PREEMPTS), ruled("east", 16, quotas=[quota(hard={GPUS: 4})]),
         workload("one", "q", count=1, running="east"),
         workload("two", "q", count=3, running="east"),
         elsewhere(workload("far", "q", count=8, running="east")),
         workload("high", "q", count=3, priority=5)],
        ["two yields to high", "high starts in east:3@h100 after two"],
    ),
    "nodes and the quota may each need a victim": (
        [queue("q", 99, **PREEMPTS), ruled("east", 8, quotas=[quota(hard={GPUS: 4})]),
         workload("mine", "q", count=3, running="east"),
         elsewhere(workload("other", "q", count=5, running="east")),
         workload("high", "q", count=4, priority=5)],
        ["mine yields to high", "other/other yields to high",
         "high starts in east:4@h100 after mine, other/other"],
    ),
    "what is being stopped is waited for, and nobody yields": (
        [queue("q", 99, **PREEMPTS), four(),
         leaving(workload("gone", "q", count=3, running="east")),
         workload("low", "q", running="east"), workload("high", "q", count=3, priority=5)],
        ["high starts in east:3@h100 after gone", "gone waits: StillEnding"],
    ),
    "an heir of the rest of what a victim leaves waits for it, too": (
        [queue("q", 99, **PREEMPTS), four(), workload("low", "q", count=4, running="east"),
         workload("high", "q", count=2, priority=5, waited=90),
         workload("next", "q", count=2, priority=4)],
        ["low yields to high", "high starts in east:2@h100 after low",
         "next starts in east:2@h100 after low"],
    ),
}  # fmt: skip


TEMPLATE = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
}


def job(name: str, *, pods: int = 1, resources: Plain | None = None, **more: Any) -> Plain:
    """A Job of equal pods; its container has these resources, and `more` is of its pod spec."""
    container = {"name": "main", "image": "busybox", "resources": resources or {}}
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    manifest = {
        **TEMPLATE,
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }
    made = workload(name, "q")
    del made["spec"]["podSets"]
    made["spec"]["template"] = {"manifests": [manifest]}
    return made


ONE_CPU = {"requests": {"cpu": "1"}}
REFUSED = "a waits: NotAdmitted, NoCluster"

ADMISSION = {
    "a quota of cpu refuses pods that state none": (
        [ruled("east", 8, quotas=[quota(hard={"requests.cpu": "9"})]), job("a")],
        [REFUSED],
    ),
    "a quota of limits refuses pods without a limit": (
        [ruled("east", 8, quotas=[quota(hard={"limits.cpu": "9"})]), job("a", resources=ONE_CPU)],
        [REFUSED],
    ),
    "a cluster without such a quota takes them": (
        [ruled("east", 8, quotas=[quota(hard={"requests.cpu": "9"})]), WEST, job("a")],
        ["a starts in west:1@-"],
    ),
    "a default of a LimitRange states it for them": (
        [ruled("east", 8, quotas=[quota(hard={"requests.cpu": "3"})],
               limits=[limit(defaultRequest={"cpu": "1500m"})]), job("a", pods=2)],
        ["a starts in east:2@-"],
    ),
    "and counts in the quota": (
        [ruled("east", 8, quotas=[quota(hard={"requests.cpu": "2"})],
               limits=[limit(defaultRequest={"cpu": "1500m"})]), job("a", pods=2)],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a default request needs room on nodes": (
        [ruled("east", 8, limits=[limit(defaultRequest={"cpu": "40"})]), job("a", pods=2)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "what runs holds its default request on its node": (
        [ruled("east", 8, limits=[limit(defaultRequest={"cpu": "40"})]), job("a"),
         workload("big", "q", priority=-1, pod_sets=[
            {"name": "main", "count": 1, "requests": {"cpu": "30"}}])],
        ["a starts in east:1@-", "big waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a default limit is the default request": (
        [ruled("east", 8, limits=[limit(default={"cpu": "40"})]), job("a", pods=2)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a default limit below the request refuses the pod": (
        [ruled("east", 8, limits=[limit(default={"cpu": "500m"})]), job("a", resources=ONE_CPU)],
        [REFUSED],
    ),
    "less than the least is refused": (
        [ruled("east", 8, limits=[limit(min={"cpu": "2"})]), job("a", resources=ONE_CPU)],
        [REFUSED],
    ),
    "more than the most is refused": (
        [ruled("east", 8, limits=[limit(max={"cpu": "500m"})]),
         job("a", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})],
        [REFUSED],
    ),
    "a limit too far above the request is refused": (
        [ruled("east", 8, limits=[limit(maxLimitRequestRatio={"cpu": "2"})]),
         job("a", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "3"}})],
        [REFUSED],
    ),
    "within all bounds it starts": (
        [ruled("east", 8, limits=[limit(min={"cpu": "1"}, max={"cpu": "3"},
                                        maxLimitRequestRatio={"cpu": "3"})]),
         job("a", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "3"}})],
        ["a starts in east:1@-"],
    ),
    "a bound of pods counts their containers together": (
        [ruled("east", 8, limits=[limit(type="Pod", max={"cpu": "1"})]),
         job("a", containers=[
            {"name": name, "resources": {"limits": {"cpu": "1"}}} for name in ("one", "two")])],
        [REFUSED],
    ),
    "an init container is bounded as well": (
        [ruled("east", 8, limits=[limit(max={"cpu": "1"})]),
         job("a", initContainers=[{"name": "first", "resources": {"limits": {"cpu": "2"}}}])],
        [REFUSED],
    ),
    "a form that the cluster admits is taken instead": (
        [ruled("east", 8, limits=[limit(max={"cpu": "1"})]),
         {**(small := job("a", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})),
          "spec": {**small["spec"], "alternatives": [
            {"name": "small", "podSets": [{"name": "pod", "requests": {"cpu": "1"}}]}]}}],
        ["a starts as small in east:1@-"],
    ),
    "a quota of best-effort pods counts pods without requests": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[{"name": "BestEffort"}])]),
         job("a", pods=2), job("b", pods=2, resources=ONE_CPU)],
        ["b starts in east:2@-", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a quota of others counts pods with requests": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[{"name": "NotBestEffort"}])]),
         job("a", pods=2), job("b", pods=2, resources=ONE_CPU)],
        ["a starts in east:2@-", "b waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a quota of pods that end counts those with a deadline": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[{"name": "Terminating"}])]),
         job("a", pods=2, activeDeadlineSeconds=60), job("b", pods=2)],
        ["b starts in east:2@-", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "and one of pods that do not end the others": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[{"name": "NotTerminating"}])]),
         job("a", pods=2, activeDeadlineSeconds=60), job("b", pods=2)],
        ["a starts in east:2@-", "b waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a quota of a priority class counts its pods": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[
            {"name": "PriorityClass", "operator": "In", "values": ["high"]}])]),
         job("a", pods=2, priorityClassName="high"), job("b", pods=2, priorityClassName="low")],
        ["b starts in east:2@-", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "or all but its pods": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[
            {"name": "PriorityClass", "operator": "NotIn", "values": ["high"]}])]),
         job("a", pods=2, priorityClassName="high"), job("b", pods=2, priorityClassName="low")],
        ["a starts in east:2@-", "b waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "or those with any class": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[{"name": "PriorityClass"}])]),
         job("a", pods=2, priorityClassName="high"), job("b", pods=2)],
        ["b starts in east:2@-", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "or those with none": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 1}, scopes=[
            {"name": "PriorityClass", "operator": "DoesNotExist"}])]),
         job("a", pods=2, priorityClassName="high"), job("b", pods=2)],
        ["a starts in east:2@-", "b waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a quota of pods near those of other namespaces counts only these": (
        [ruled("east", 8, quotas=[quota(hard={"pods": 0}, scopes=[
            {"name": "CrossNamespacePodAffinity"}])]),
         job("a", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"namespaces": ["data"], "topologyKey": "zone"}]}}), job("b")],
        ["b starts in east:1@-", "a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
    "a resource is counted by the cluster's own name": (
        [renamed(ruled("east", 8, quotas=[quota(hard={"requests.example.com/nic": 1})])),
         job("a", pods=2, resources={"limits": {"rdma/any": 1}})],
        ["a waits: NamespaceQuotaExceeded, NoVictims, NoPool"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", [*QUOTAS, *PREEMPTION])
def test_what_a_namespace_has_left_is_one_more_limit(rule: str) -> None:
    objects, expected = {**QUOTAS, **PREEMPTION}[rule]
    facts = Objects.of([H100, *objects]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    assert told(made) == expected
    assert broken(facts, made) == []


@pytest.mark.parametrize("rule", ADMISSION)
def test_pods_are_counted_as_the_cluster_admits_them(rule: str) -> None:
    objects, expected = ADMISSION[rule]
    facts = Objects.of([H100, queue("q", 99), *objects]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    assert told(made) == expected
    assert broken(facts, made) == []


def test_a_reason_names_the_quota_and_its_numbers() -> None:
    made = plan_of(
        queue("q", 99),
        ruled(
            "east",
            8,
            quotas=[quota(hard={"requests.memory": "10Gi"}, others={"requests.memory": "4Gi"})],
        ),
        workload("a", "q", pod_sets=[{"name": "w", "count": 1, "requests": {"memory": "8Gi"}}]),
    )
    reason = made.waiting[0].reasons[0]
    assert (reason.cluster, reason.other, reason.rule) == (
        "east",
        "team/compute",
        "requests.memory",
    )
    gibi = 2**30 * 10**9
    assert reason.short == (("asked", 8 * gibi), ("hard", 10 * gibi), ("left", 6 * gibi))
    assert "6Gi of 10Gi requests.memory" in sentence(reason)


def test_the_nearest_place_counts_what_the_quota_leaves() -> None:
    east = ruled("east", 8, quotas=[quota(hard={GPUS: 8}, others={GPUS: 4})])
    facts = Objects.of([H100, queue("q", 99), east, workload("a", "q", count=6)]).facts(NOW)
    (place,) = explain(facts, "team/a").places
    assert (place.free_nanos, place.short_nanos) == (4 * 10**9, 2 * 10**9)


def test_nothing_is_kept_for_a_gang_that_the_quota_keeps_out() -> None:
    made = plan_of(
        queue("q", 99),
        four(),
        workload("r", "q", count=3, running="east", since=600, runSeconds={"limit": 3600}),
        workload("a", "q", count=8, waited=90),
        workload("b", "q", count=1),
    )
    assert made.reservations == ()
    assert told(made) == [
        "b starts in east:1@h100",
        "a waits: DoesNotFit, NoVictims, NoPool",
    ]


def test_a_refusal_says_what_to_change() -> None:
    made = plan_of(
        queue("q", 99),
        ruled("east", 8, limits=[limit(min={"cpu": "2"})]),
        job("a", resources=ONE_CPU),
    )
    said = sentence(made.waiting[0].reasons[0])
    assert said.startswith("east would refuse its pods: namespace team: LimitRange bounds")


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ([four(), workload("a", "q", count=5)], "NamespaceQuotaExceeded"),
        ([four(), WEST, workload("a", "q", count=5)], None),
        ([ruled("east", 8, quotas=[quota(hard={GPUS: 5}, others={GPUS: 5})]),
          workload("a", "q", count=5)], None),
        ([four(), workload("r", "q", count=4, running="east"), workload("a", "q", count=4)], None),
        ([four("east", 2), workload("a", "q", count=5)], "Impossible"),
        ([ruled("east", 8, limits=[limit(min={"cpu": "2"})]), job("a", resources=ONE_CPU)],
         "NotAdmitted"),
    ],
    ids=["too small even if others leave", "another cluster has room", "others may leave",
         "what runs ends", "nodes are too small anyway", "the rules refuse it"],
)  # fmt: skip
def test_what_no_cluster_ever_allows_can_never_start(
    objects: list[Plain], code: str | None
) -> None:
    facts = Objects.of([H100, queue("q", 99), *objects]).facts(NOW)
    reason = impossible(facts, facts.workloads["team/a"])
    assert (reason.code.value if reason else None) == code
