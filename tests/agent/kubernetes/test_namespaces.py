"""Rules of namespaces are read as the cluster means them, less what pods of works use."""

from __future__ import annotations

import json
from typing import Any

from fairway.agent.drivers.kubernetes.namespaces import read_limits, read_quota
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.pods import ReadPod
from fairway.api.amounts import Quantity
from fairway.api.namespaces import NamespaceLimit, NamespaceRules, QuotaScope

Json = dict[str, Any]


def quota(hard: Json, used: Json | None = None, **spec: Any) -> bytes:
    return json.dumps(
        {
            "metadata": {"name": "q", "namespace": "team"},
            "spec": {"hard": hard, **spec},
            "status": {"hard": hard, "used": used} if used is not None else {},
        }
    ).encode()


def pod(cpu: str, *, phase: str = "Pending", **spec: Any) -> bytes:
    """A pod of a work, or of nobody if it has a name of its own."""
    labels = {"fairway.dev/cluster": "here", "fairway.dev/work": "w"}
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return json.dumps(
        {
            "metadata": {"name": "p", "namespace": "team", "uid": "1", "labels": labels},
            "spec": {"containers": [container], **spec},
            "status": {"phase": phase},
        }
    ).encode()


def picture() -> Picture:
    return Picture(changed=lambda: None, touched=lambda _: None)


def others(made: Picture) -> dict[str, str]:
    (rules,) = made.namespaces.rules()
    return {name: str(amount) for name, amount in rules.quotas[0].others.items()}


def take(made: Picture, raw: bytes | None, name: str = "p") -> None:
    made.take_pod(("team", name), ReadPod("here")(raw) if raw is not None else None)


def test_what_pods_of_works_use_is_not_of_others() -> None:
    made = picture()
    made.namespaces.take_quota(
        ("team", "q"), read_quota(quota({"cpu": "9", "pods": 9}, {"cpu": "5", "pods": 3}))
    )
    assert others(made) == {"cpu": "5", "pods": "3"}
    take(made, pod("2"))
    assert others(made) == {"cpu": "3", "pods": "2"}
    take(made, pod("1"), "p2")
    assert others(made) == {"cpu": "2", "pods": "1"}
    take(made, pod("2", phase="Succeeded"))
    assert others(made) == {"cpu": "4", "pods": "2"}
    take(made, None, "p2")
    assert others(made) == {"cpu": "5", "pods": "3"}


def test_others_never_use_less_than_nothing() -> None:
    made = picture()
    made.namespaces.take_quota(("team", "q"), read_quota(quota({"cpu": "9"}, {"cpu": "1"})))
    take(made, pod("2"))
    assert others(made) == {}


def test_a_quota_with_scopes_counts_only_pods_that_they_select() -> None:
    made = picture()
    raw = quota(
        {"pods": 9},
        {"pods": 4},
        scopeSelector={
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
            ]
        },
    )
    made.namespaces.take_quota(("team", "q"), read_quota(raw))
    take(made, pod("1", priorityClassName="low"))
    assert others(made) == {"pods": "4"}
    take(made, pod("1", priorityClassName="high"), "p2")
    assert others(made) == {"pods": "3"}


def test_scopes_are_read_in_both_their_forms() -> None:
    read = read_quota(quota({"pods": 1}, scopes=["BestEffort"]))
    assert read is not None
    assert read.quota.scopes == (QuotaScope(name="BestEffort"),)


def test_a_quota_of_other_things_than_pods_is_left_out() -> None:
    assert (
        read_quota(quota({"services": 3, "count/jobs.batch": 2, "requests.storage": "1Gi"})) is None
    )
    assert read_quota(quota({"pods": 3}, scopes=["VolumeAttributesClass"])) is None


def test_limits_of_containers_and_pods_are_read_and_those_of_volumes_are_not() -> None:
    raw = {
        "metadata": {"name": "l"},
        "spec": {
            "limits": [
                {"type": "Container", "defaultRequest": {"cpu": "1"}},
                {"type": "Pod", "max": {"cpu": "2"}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
            ]
        },
    }
    assert read_limits(json.dumps(raw).encode()) == (
        NamespaceLimit(name="l", default_request={"cpu": Quantity.of("1")}),
        NamespaceLimit(name="l", type="Pod", max={"cpu": Quantity.of("2")}),
    )


def test_namespaces_are_listed_by_name_until_their_rules_are_gone() -> None:
    made = picture()
    limits = (NamespaceLimit(name="l"),)
    for name in ("b", "a", "kube-system"):
        made.namespaces.take_limits((name, "l"), limits)
    rules = made.namespaces.rules()
    assert rules == tuple(NamespaceRules(name=name, limits=limits) for name in ("a", "b"))
    assert made.namespaces.rules() is rules
    made.namespaces.take_limits(("a", "l"), None)
    assert [item.name for item in made.namespaces.rules()] == ["b"]


def limit_range(name: str, entries: int) -> bytes:
    limits = [{"type": "Container", "max": {"cpu": number + 1}} for number in range(entries)]
    return json.dumps({"metadata": {"name": name}, "spec": {"limits": limits}}).encode()


def test_rules_beyond_what_a_report_holds_are_named() -> None:
    namespaces = picture().namespaces
    for number in range(18):
        namespaces.take_quota(("team", f"q{number:02}"), read_quota(quota({"pods": number})))
    namespaces.take_limits(("team", "bounds"), read_limits(limit_range("bounds", 30)))
    namespaces.take_limits(("team", "more"), read_limits(limit_range("more", 5)))
    (rules,) = namespaces.rules()
    assert (len(rules.quotas), len(rules.limits)) == (16, 32)
    assert namespaces.left_out() == (
        "team/ResourceQuota q16",
        "team/ResourceQuota q17",
        "team/LimitRange more",
    )
    for number in (0, 1, 2):
        namespaces.take_quota(("team", f"q{number:02}"), None)
    namespaces.take_limits(("team", "more"), None)
    assert len(namespaces.rules()[0].quotas) == 15
    assert namespaces.left_out() == ()


def test_namespaces_beyond_what_a_report_holds_are_named() -> None:
    namespaces = picture().namespaces
    for number in range(1002):
        namespaces.take_quota((f"n{number:04}", "q"), read_quota(quota({"pods": 1})))
    assert len(namespaces.rules()) == 1000
    assert namespaces.left_out() == ("n1000", "n1001")


def test_a_quota_that_no_report_can_hold_is_named() -> None:
    """It would have every report refused."""
    classes = [f"class-{number}" for number in range(33)]
    selector = [{"scopeName": "PriorityClass", "operator": "In", "values": classes}]
    namespaces = picture().namespaces
    raw = quota({"pods": 1}, scopeSelector={"matchExpressions": selector})
    namespaces.take_quota(("team", "q"), read_quota(raw))
    assert namespaces.rules() == (NamespaceRules(name="team"),)
    assert namespaces.left_out() == ("team/ResourceQuota q",)
