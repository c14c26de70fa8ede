"""A view follows fleet policies, and what they look at."""

from __future__ import annotations

from fairway.core.cycle import plan
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.builders import (
    NOW,
    cluster,
    flavor,
    fleet_policy,
    namespace,
    queue,
    workload,
)
from tests.view.test_view import facts_shown

EU = {"region": "eu"}
IN_EUROPE = {"clusters": {"labels": {"matchLabels": EU}}}
OF_PARTNERS = {"namespaces": {"labels": {"matchLabels": {"tenancy": "partner"}}}}


def test_a_view_follows_policies_labels_and_priorities() -> None:
    fleet = [flavor("h100"), queue("q", 8), cluster("east", 8), workload("a", "q")]
    events = [
        (fleet_policy("p", **IN_EUROPE), False),
        (cluster("east", 8, labels=EU), True),
        (cluster("east", 8), False),
        (fleet_policy("p", **IN_EUROPE, enforcement="Warn"), True),
        (fleet_policy("p", **IN_EUROPE, **OF_PARTNERS), True),
        (namespace("team", tenancy="partner"), False),
        (namespace("team"), True),
        (fleet_policy("r", priority={"max": 5}), True),
        (queue("q", 8, defaults={"priority": 6}), False),
        (workload("a", "q", priority=5), True),
        (fleet_policy("r", priority={"max": 4}), False),
    ]
    view, present = View(), {}
    for plain, starts in [*((item, True) for item in fleet), *events]:
        present[plain["kind"], plain["metadata"]["name"]] = plain
        view.put(plain)
        assert facts_shown(view.facts(NOW)) == facts_shown(Objects.of(present.values()).facts(NOW))
        if "Workload" in {kind for kind, _ in present}:
            assert bool(plan(view.snapshot(NOW))[0].steps) is starts, plain
    view.remove(fleet_policy("r"))
    assert plan(view.snapshot(NOW))[0].steps


def test_a_new_status_of_a_policy_reads_no_workload_again() -> None:
    view = View()
    policy = fleet_policy("p", priority={"max": 5})
    for plain in [flavor("h100"), queue("q", 8), cluster("east", 8), workload("a", "q"), policy]:
        view.put(plain)
    before = view.facts(NOW).workloads["team/a"]
    view.put({**policy, "status": {"violating": 1}})
    assert view.facts(NOW).workloads["team/a"] is before
