"""What a history keeps of generated fleets: it changes nothing, adds up, and is always the same."""

from __future__ import annotations

import pytest
from hypothesis import given

from fairway.core.explain.samples import gauges
from fairway.core.snapshot import Snapshot
from fairway.core.transitions import after
from tests.properties.checks import cases, planned, state, turned
from tests.properties.fleets import noted_fleet, seeds


@cases(100)
@given(seeds())
def test_gauges_change_nothing_and_add_up(seed: int) -> None:
    facts = noted_fleet(seed)
    then = after(facts, planned(facts))
    snapshot = Snapshot(then)
    before = state(snapshot)
    found = gauges(snapshot)
    assert state(snapshot) == before, "looking changed the snapshot"
    assert gauges(snapshot) == found
    again = gauges(Snapshot(turned(then)))
    assert again.queues == found.queues
    assert again.places == found.places
    for place in found.places.values():
        assert place.used + place.free == pytest.approx(place.whole)
        assert min(place) >= 0
    assert all(queue.fair >= 0 for queue in found.queues.values())
