"""Silence of agents by the hub's own clock, and the nodes that are set aside."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairway.api.cluster import AvoidedNode, Cluster, ClusterStatus
from fairway.api.fleet import Health
from fairway.controllers.clusters.health import (
    Heard,
    NodeAside,
    Observation,
    aside,
    changes_at,
    first_look,
    next_status,
    phase_of,
    returns_at,
)
from tests.controllers.lives import NOW, moment
from tests.controllers.test_works import cluster

HEALTH = Health(unready_seconds=40, lost_seconds=300)


def heard(silent: float, *, since_up: bool = True) -> Observation:
    return Observation(heard=Heard("t", silent, NOW, NOW - silent if since_up else None))


@pytest.mark.parametrize(
    ("found", "observation", "expected"),
    [
        (cluster("a"), Observation(heard=None), "Pending"),
        (cluster("a", accepted=False), heard(0), "Pending"),
        (cluster("a"), heard(39), "Ready"),
        (cluster("a"), heard(40), "Unready"),
        (cluster("a"), heard(300), "Lost"),
        (cluster("a", hold="Hold"), heard(0), "Held"),
        (cluster("a", hold="Hold"), heard(300), "Lost"),
        (cluster("a", {"phase": "Lost"}), heard(0, since_up=False), "Lost"),
        (cluster("a", {"phase": "Lost"}), heard(0), "Ready"),
    ],
    ids=[
        "no agent ever lived",
        "nobody agreed to it yet",
        "it was heard of late",
        "it has been silent for a while",
        "it has been silent for long",
        "it is held",
        "it is held and lost",
        "a hub that starts knows no better than the one before",
        "it is back",
    ],
)
def test_the_phase_when(found: Cluster, observation: Observation, expected: str) -> None:
    assert phase_of(found, observation, HEALTH) == expected


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (Observation(heard=Heard("t", 300, NOW, NOW, is_cut_off=True)), "does not answer it"),
        (Observation(heard=Heard("t", 300, NOW, NOW)), ""),
        (Observation(heard=Heard("t", 0, NOW, NOW, is_cut_off=True)), ""),
    ],
    ids=["its agent lives, and is cut off", "nobody knows why", "it was heard just now"],
)
def test_the_silence_of_a_cluster_is_told_as_well_as_it_is_known(
    observation: Observation, message: str
) -> None:
    status = next_status(cluster("a"), observation, HEALTH, NOW)
    assert status is not None
    (ready,) = [condition for condition in status.conditions if condition.type == "Ready"]
    assert ready.message.endswith(message)
    assert bool(ready.message) == bool(message)


class TestSilence:
    def test_it_grows_while_the_hub_looks(self) -> None:
        found = first_look("t", NOW)
        for step in range(1, 5):
            found = found.look("t", NOW + 10 * step)
        assert found.silent_seconds == 40

    def test_time_in_which_the_hub_was_down_does_not_count(self) -> None:
        found = first_look("t", NOW).look("t", NOW + 5).look("t", NOW + 9_999)
        assert found.silent_seconds == 5

    def test_a_clock_that_is_set_back_does_not_count(self) -> None:
        assert first_look("t", NOW).look("t", NOW - 60).silent_seconds == 0

    def test_a_heartbeat_ends_it(self) -> None:
        found = first_look("t", NOW).look("t", NOW + 10).look("u", NOW + 20)
        assert (found.silent_seconds, found.last_seen_at) == (0, NOW + 20)

    def test_when_it_changes_the_phase(self) -> None:
        times = [changes_at(heard(silent), HEALTH) for silent in (10, 50, 400)]
        assert times == [NOW + 30, NOW + 250, None]


class TestStatus:
    def test_nothing_is_written_where_nothing_changed(self) -> None:
        first = next_status(cluster("a"), heard(0), HEALTH, NOW)
        assert first is not None
        again = replace(cluster("a"), status=first)
        assert next_status(again, heard(3), HEALTH, NOW + 3) is None

    def test_rules_that_are_not_counted_are_told_until_they_are(self) -> None:
        rules = tuple(f"n{number}" for number in range(10))
        found = replace(cluster("a"), status=ClusterStatus(uncounted_rules=rules))
        status = next_status(found, heard(0), HEALTH, NOW)
        assert status is not None
        told = status.conditions[1]
        assert (told.type, told.status, told.reason) == ("RulesCounted", "False", "TooManyRules")
        assert told.message.endswith(": n0, n1, n2, n3, n4, n5, n6, n7 and 2 more")
        assert next_status(replace(found, status=status), heard(3), HEALTH, NOW + 3) is None
        counted = replace(found, status=replace(status, uncounted_rules=()))
        status = next_status(counted, heard(6), HEALTH, NOW + 6)
        assert status is not None
        assert [condition.type for condition in status.conditions] == ["Ready"]

    def test_a_lost_cluster_is_unknown_since_then(self) -> None:
        status = next_status(cluster("a"), heard(300), HEALTH, NOW)
        assert status is not None
        shown = [
            (condition.type, condition.status, condition.reason) for condition in status.conditions
        ]
        assert (status.phase, shown) == ("Lost", [("Ready", "Unknown", "Lost")])


class TestNodesAside:
    def node(self, name: str, until: float | None) -> AvoidedNode:
        return AvoidedNode(name=name, until=moment(until) if until else None)

    def test_they_come_go_and_stay_for_the_longer_time(self) -> None:
        before = [self.node("old", NOW), self.node("n1", NOW + 60), self.node("n2", NOW + 900)]
        added = [
            NodeAside(cluster="a", node=self.node("n1", NOW + 600)),
            NodeAside(cluster="a", node=self.node("n2", NOW + 600)),
            NodeAside(cluster="a", node=self.node("n0", None)),
        ]
        found = aside(before, added, NOW)
        assert found == (
            self.node("n0", None),
            self.node("n1", NOW + 600),
            self.node("n2", NOW + 900),
        )

    def test_past_the_limit_those_that_come_back_first_are_let_go(self) -> None:
        before = [self.node(f"n{number:04d}", NOW + 1 + number) for number in range(1025)]
        found = aside(before, [], NOW)
        assert (len(found), found[0].name) == (1024, "n0001")

    def test_when_the_next_comes_back(self) -> None:
        status = cluster("a").status
        assert returns_at(status) is None
