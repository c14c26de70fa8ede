"""What an agent writes to its cluster's status."""

from __future__ import annotations

from fairway.agent.cluster_status import agent_part, patch_from
from fairway.agent.drivers.interface import Observation
from fairway.api.amounts import Amounts
from fairway.api.meta import JsonObject


def part(observation: Observation) -> JsonObject:
    return agent_part(observation, has=Amounts({}), free=Amounts({}))


def test_rules_that_are_not_counted_are_written_and_taken_back() -> None:
    none, some = part(Observation()), part(Observation(uncounted_rules=("team",)))
    assert "uncountedRules" not in patch_from({}, none), "an earlier hub does not know the field"
    assert patch_from(none, some)["uncountedRules"] == ["team"]
    assert patch_from(some, none)["uncountedRules"] == []
