"""A view follows what clusters allow in namespaces."""

from __future__ import annotations

from typing import Any

from fairway.core.cycle import plan
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.builders import GPU, NOW, Plain, cluster, flavor, queue, workload
from tests.view.test_view import facts_shown

GPUS = f"requests.{GPU}"


def ruled(**rules: Any) -> Plain:
    made = cluster("east", 8)
    made["spec"]["simulated"]["namespaces"] = [{"name": "team", **rules}] if rules else []
    return made


def quota(hard: int, others: int = 0, **more: Any) -> Plain:
    return {"quotas": [{"name": "gpus", "hard": {GPUS: hard}, "others": {GPUS: others}, **more}]}


def test_a_view_follows_quotas_scopes_and_limits() -> None:
    fleet = [flavor("h100"), queue("q", 8), ruled(), workload("a", "q", count=2)]
    events = [
        (ruled(**quota(1)), False),
        (ruled(**quota(2)), True),
        (ruled(**quota(2, 1)), False),
        (ruled(**quota(2, 1, scopes=[{"name": "BestEffort"}])), True),
        (ruled(limits=[{"name": "least", "min": {"cpu": "2"}}]), False),
        (ruled(limits=[{"name": "least", "min": {"cpu": "1"}}]), True),
        (ruled(**quota(1)), False),
        (ruled(), True),
    ]
    view, present = View(), {}
    for plain, starts in [*((item, None) for item in fleet), *events]:
        present[plain["kind"], plain["metadata"]["name"]] = plain
        view.put(plain)
        assert facts_shown(view.facts(NOW)) == facts_shown(Objects.of(present.values()).facts(NOW))
        if starts is not None:
            assert bool(plan(view.snapshot(NOW))[0].steps) is starts, plain


def test_what_others_use_reads_no_workload_again() -> None:
    view = View()
    for plain in [flavor("h100"), queue("q", 8), ruled(**quota(4)), workload("a", "q")]:
        view.put(plain)
    before = view.facts(NOW).workloads["team/a"]
    view.put(ruled(**quota(3, 2)))
    assert view.facts(NOW).workloads["team/a"] is before


def test_a_quota_of_another_namespace_changes_no_shape() -> None:
    view = View()
    other = ruled(**quota(0))
    other["spec"]["simulated"]["namespaces"][0]["name"] = "other"
    for plain in [flavor("h100"), queue("q", 8), other, workload("a", "q")]:
        view.put(plain)
    assert view.facts(NOW).workloads["team/a"].forms[0].pod_sets[0].shape.admitted == ()
