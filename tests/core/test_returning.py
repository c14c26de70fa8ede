"""Coming home from plan to plan: room must have lasted, and only so many move in a minute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairway.core.cycle import Cursor, plan
from fairway.core.modes.way_home import Homeward
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import H100, NOW, cluster, policy, queue, told, workload

RULE = {"enabled": True, "afterSeconds": 600, "replicasPerMinute": 3, "surge": 2}


def facts_of(*objects: dict[str, Any], home: int = 8, quota: int = 16) -> Facts:
    found = [
        H100,
        queue("q", quota),
        cluster("home", home),
        cluster("away", 8),
        policy("p", ["home"], ["away"], returnHome=RULE),
        *objects,
    ]
    return Objects.of(found).facts(NOW)


def service(**more: Any) -> dict[str, Any]:
    return workload(
        "s", "q", mode="Divided", replicas=4, running="away", since=9_000, policy="p", **more
    )


class Hub:
    """Plans again and again, and remembers what the cursor does."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.cursor = Cursor(homeward=Homeward())

    def at(self, seconds: float, *, only: tuple[str, ...] | None = None) -> list[str]:
        self.facts = replace(self.facts, now=NOW + seconds)
        begin = self.cursor.anew() if only is None else self.cursor.wake(only)
        made, self.cursor = plan(Snapshot(self.facts), begin)
        self.facts = after(self.facts, made)
        return told(made)

    def others(self, **workloads: Any) -> None:
        self.facts = replace(self.facts, workloads={**self.facts.workloads, **workloads})


def test_room_counts_from_when_it_was_first_seen() -> None:
    hub = Hub(facts_of(service()))
    assert hub.at(0) == []
    assert hub.cursor.homeward is not None
    assert hub.cursor.homeward.look_at == NOW + 600
    assert hub.at(599) == []
    assert hub.at(600) == ["s moves 2 from away to home"]


def test_once_room_has_lasted_only_the_rate_limits_what_follows() -> None:
    hub = Hub(facts_of(service()))
    hub.at(0)
    assert hub.at(600) == ["s moves 2 from away to home"]
    assert hub.at(610) == ["s moves 1 from away to home"]
    assert hub.at(620) == []
    assert hub.at(661) == ["s moves 1 from away to home"]


def test_room_that_was_gone_in_between_begins_anew() -> None:
    full = facts_of(service(), workload("other", "q", count=8, running="home"))
    empty = facts_of(service())
    hub = Hub(empty)
    hub.at(0)
    hub.others(**{"team/other": full.workloads["team/other"]})
    hub.at(500, only=("team/other",))
    hub.facts = replace(empty, now=NOW)
    assert hub.at(590) == []
    assert hub.at(700) == []
    assert hub.at(1190) == ["s moves 2 from away to home"]


def moving(**changes: Any) -> Facts:
    facts = facts_of(service(), quota=4)
    one = replace(facts.workloads["team/s"], **changes)
    return replace(facts, workloads={"team/s": one})


def test_nothing_stops_first_while_something_is_missing_already() -> None:
    for facts, want in (
        (moving(), ["s stops 1 in away, then moves to home"]),
        (moving(is_ready=False), []),
        (moving(unavailable_max=0), []),
    ):
        hub = Hub(facts)
        hub.at(0)
        assert hub.at(600) == want


def test_what_gives_way_to_its_own_replacement_is_charged_once() -> None:
    facts = facts_of(service(), quota=4)
    held = facts.workloads["team/s"].held
    assert held is not None
    left = replace(held.placed[0], replicas=1, attempt=1, is_charged=False)
    leaving = replace(facts.workloads["team/s"], releasing=(left,))
    snapshot = Snapshot(replace(facts, workloads={"team/s": leaving}))
    assert snapshot.tree.usage("q") == {("h100", "nvidia.com/gpu"): 4_000}
