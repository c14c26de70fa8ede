"""What fleet policies allow: tables of small fleets, and the whole plan of each."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.reasons import Code, sentence
from fairway.core.explain.explain import explain
from fairway.view.objects import Objects
from tests.builders import (
    H100,
    NOW,
    Plain,
    cluster,
    fleet_policy,
    namespace,
    plan_of,
    policy,
    queue,
    told,
    workload,
)

EU = {"topology.kubernetes.io/region": "eu"}
FLEET = [queue("q", 16), cluster("east", 8), cluster("west", 8, labels=EU)]
ONLY_EU = {"clusters": {"labels": {"matchLabels": EU}}}
EAST, WEST = ["a starts in east:1@h100"], ["a starts in west:1@h100"]
REFUSED = ["a waits: PolicyViolated"]
NOWHERE = ["a waits: ClusterForbidden, NoCluster"]


def job(*, image: str = "nginx", kind: str = "Job", **parts: Any) -> Plain:
    """A workload with a template."""
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    manifest = {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "a"},
                "spec": {"template": template}}  # fmt: skip
    return workload("a", "q", template={"manifests": [manifest]}, **parts)


A = workload("a", "q")

CLUSTERS = {
    "without a policy everything is allowed": ([A], EAST),
    "a policy without rules allows everything": ([fleet_policy("p"), A], EAST),
    "a cluster of another region is not used": ([fleet_policy("p", **ONLY_EU), A], WEST),
    "a cluster by name": ([fleet_policy("p", clusters={"names": ["west"]}), A], WEST),
    "an expression": (
        [fleet_policy("p", clusters={"expressions": ["cluster.name.startsWith('w')"]}), A], WEST,
    ),
    "an expression that is not valid allows nothing": (
        [fleet_policy("p", clusters={"expressions": ["cluster.name.("]}), A], NOWHERE,
    ),
    "all policies must allow a cluster": (
        [fleet_policy("p", **ONLY_EU), fleet_policy("r", clusters={"names": ["east"]}), A],
        NOWHERE,
    ),
    "a policy that only warns forbids nothing": (
        [fleet_policy("p", **ONLY_EU, enforcement="Warn"), A], EAST,
    ),
    "nor does a policy that is tried out": (
        [fleet_policy("p", **ONLY_EU, enforcement="DryRun"), A], EAST,
    ),
    "a service gets all its replicas where they are allowed": (
        [fleet_policy("p", **ONLY_EU), workload("a", "q", mode="Divided", replicas=12)],
        ["a starts in west:8@h100",
         "a waits: ClusterForbidden, DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a sweep runs its tasks where they are allowed": (
        [fleet_policy("p", **ONLY_EU), workload("a", "q", mode="Independent", tasks={"count": 3})],
        ["a starts in west:3@h100"],
    ),
}  # fmt: skip

NAMESPACES = {
    "a policy for its namespace by name": (
        [fleet_policy("p", namespaces={"names": ["team"]}, **ONLY_EU), A], WEST,
    ),
    "a policy for another namespace": (
        [fleet_policy("p", namespaces={"names": ["other"]}, **ONLY_EU), A], EAST,
    ),
    "a namespace that is left out": (
        [fleet_policy("p", namespaces={"exclude": ["team"]}, **ONLY_EU), A], EAST,
    ),
    "a namespace with the label": (
        [namespace("team", tenancy="partner"), A,
         fleet_policy("p", namespaces={"labels": {"matchLabels": {"tenancy": "partner"}}},
                      **ONLY_EU)],
        WEST,
    ),
    "a namespace with another label": (
        [namespace("team", tenancy="own"), A,
         fleet_policy("p", namespaces={"labels": {"matchLabels": {"tenancy": "partner"}}},
                      **ONLY_EU)],
        EAST,
    ),
}  # fmt: skip

RULES = {
    "an image of an allowed registry": (
        [fleet_policy("p", registries=["ghcr.io/acme"]), job(image="ghcr.io/acme/train:1")], EAST,
    ),
    "an image of another registry": (
        [fleet_policy("p", registries=["ghcr.io/acme"]), job(image="ghcr.io/acme-not/train")],
        REFUSED,
    ),
    "an image of an alternative": (
        [fleet_policy("p", registries=["ghcr.io/acme"]),
         job(image="ghcr.io/acme/x", alternatives=[
             {"name": "b", "podSets": [{"name": "worker", "image": "evil.io/x"}]}])],
        REFUSED,
    ),
    "an allowed kind": ([fleet_policy("p", kinds=["batch/Job"]), job()], EAST),
    "another kind": ([fleet_policy("p", kinds=["apps/Deployment"]), job()], REFUSED),
    "a priority within the range": (
        [fleet_policy("p", priority={"min": 1, "max": 5}), workload("a", "q", priority=5)], EAST,
    ),
    "a priority above it": (
        [fleet_policy("p", priority={"max": 5}), workload("a", "q", priority=6)], REFUSED,
    ),
    "the default priority, below it": ([fleet_policy("p", priority={"min": 1}), A], REFUSED),
    "the priority of its queue": (
        [fleet_policy("p", priority={"max": 5}), queue("q", 16, defaults={"priority": 6}), A],
        REFUSED,
    ),
    "a shorter limit": (
        [fleet_policy("p", runSecondsMax=60), workload("a", "q", runSeconds={"limit": 60})], EAST,
    ),
    "a longer limit": (
        [fleet_policy("p", runSecondsMax=60), workload("a", "q", runSeconds={"limit": 61})],
        REFUSED,
    ),
    "no limit: it gets that of the policy": ([fleet_policy("p", runSecondsMax=60), A], EAST),
    "a longer limit of its queue is lowered": (
        [fleet_policy("p", runSecondsMax=60), queue("q", 16, defaults={"runSecondsLimit": 90}), A],
        EAST,
    ),
    "rules that are not enforced": (
        [fleet_policy("p", kinds=["apps/Deployment"], enforcement="Warn"),
         fleet_policy("r", registries=["ghcr.io"], enforcement="DryRun"), job()],
        EAST,
    ),
    "what runs is left alone, and gets no more": (
        [fleet_policy("p", priority={"max": 5}),
         workload("a", "q", mode="Divided", replicas=4, running="east", holds=2, priority=6)],
        REFUSED,
    ),
    "and may become less": (
        [fleet_policy("p", priority={"max": 5}),
         workload("a", "q", mode="Divided", replicas=1, running="east", holds=2, priority=6)],
        EAST,
    ),
    "nor does it come home, where it would start anew": (
        [fleet_policy("p", priority={"max": 5}),
         policy("home", ["west"], ["east"], returnHome={"enabled": True, "afterSeconds": 0}),
         workload("a", "q", mode="Divided", replicas=2, running="east", priority=6,
                  policy="home")],
        [],
    ),
    "a refused workload does not block a strict queue": (
        [fleet_policy("p", priority={"max": 5}), queue("q", 16, strategy="Strict"),
         workload("a", "q", priority=6), workload("b", "q")],
        ["b starts in east:1@h100", *REFUSED],
    ),
    "nor does it take back what another queue borrows": (
        [fleet_policy("p", priority={"max": 5}), queue("root"), queue("q", 8, parent="root"),
         queue("r", 8, parent="root", preemption={"reclaim": "Any"}),
         workload("low", "q", count=16, gpus=1, running="east"), workload("a", "r", priority=6)],
        REFUSED,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(objects, expected, id=name)
        for table in (CLUSTERS, NAMESPACES, RULES)
        for name, (objects, expected) in table.items()
    ],
)
def test_a_fleet_with_policies(objects: list[Plain], expected: list[str]) -> None:
    names = {item["metadata"]["name"] for item in objects if item["kind"] == "Queue"}
    fleet = [item for item in FLEET if item["metadata"]["name"] not in names]
    assert told(plan_of(*fleet, *objects)) == expected


@pytest.mark.parametrize(
    ("spec", "item", "expected"),
    [
        ({"registries": ["ghcr.io"]}, job(image="evil.io/x"),
         ("fleet policy p does not allow image evil.io/x, which is of no allowed registry: rule"
          " registries")),
        ({"kinds": ["Pod"]}, job(), "fleet policy p does not allow kind batch/Job: rule kinds"),
        ({"priority": {"max": 1}}, job(priority=2),
         "fleet policy p does not allow priority 2: rule priority"),
        ({"runSecondsMax": 60}, job(runSeconds={"limit": 90}),
         "fleet policy p does not allow a run of 90 seconds: rule runSeconds"),
    ],
    ids=["registries", "kinds", "priority", "runSeconds"],
)  # fmt: skip
def test_the_reason_names_the_policy_and_the_rule(spec: Plain, item: Plain, expected: str) -> None:
    made = plan_of(*FLEET, fleet_policy("p", **spec), item)
    (reason,) = made.waiting[0].reasons
    assert (reason.code, reason.policy, sentence(reason)) == (
        Code.POLICY_VIOLATED, "p", expected,
    )  # fmt: skip
    objects = [H100, *FLEET, fleet_policy("p", **spec), item]
    answer = explain(Objects.of(objects).facts(NOW), "team/a").render()
    assert answer["message"].startswith(f"needs 1 × h100 in one cluster; {expected}")  # noqa: RUF001


def test_a_workload_that_no_cluster_may_run_says_which_policy_is_to_blame() -> None:
    objects = [H100, *FLEET, fleet_policy("p", clusters={"names": ["moon"]}), A]
    answer = explain(Objects.of(objects).facts(NOW), "team/a").render()
    assert answer["message"] == (
        "can never start: fleet policy p does not allow east: rule clusters"
    )
    assert answer["reasons"][0]["policy"] == "p"


def test_what_runs_gains_nothing_by_a_priority_that_is_too_high() -> None:
    high = workload("a", "q", priority=9, running="east")
    for enforcement, priority in (("Enforce", 5), ("Warn", 9)):
        rule = fleet_policy("p", priority={"max": 5}, enforcement=enforcement)
        facts = Objects.of([*FLEET, rule, high]).facts(NOW)
        assert facts.workloads["team/a"].priority == priority


def test_why_names_the_rules_that_a_running_workload_breaks() -> None:
    rules = {**ONLY_EU, "priority": {"max": 5}}
    running = workload("a", "q", priority=9, running="east")
    for enforcement, expected in (
        ("Enforce", ["fleet policy p does not allow priority 9: rule priority",
                     "fleet policy p does not allow east: rule clusters"]),
        ("DryRun", []),
    ):  # fmt: skip
        objects = [H100, *FLEET, fleet_policy("p", **rules, enforcement=enforcement), running]
        answer = explain(Objects.of(objects).facts(NOW), "team/a")
        assert (answer.state, list(map(sentence, answer.reasons))) == ("Runs", expected)


def test_the_longest_run_counts_where_others_look_at_limits() -> None:
    """A job that ends in time may run ahead of a reservation."""
    facts = Objects.of([*FLEET, fleet_policy("p", runSecondsMax=60), A]).facts(NOW)
    assert facts.workloads["team/a"].limit_seconds == 60
