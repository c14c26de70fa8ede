"""Generated fleets: whoever asks when a workload starts gets the same answer."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairway.controllers.scheduling.expected_starts import ahead
from fairway.core.explain.explain import explain
from tests.properties.checks import cases
from tests.properties.fleets import noted_fleet, seeds

PROVISION_SECONDS = 300.0  # of every pool


@cases(10)
@given(seeds(), st.sampled_from([1, 2, 20]))
def test_an_explanation_gives_the_start_that_the_timeline_shows(seed: int, depth: int) -> None:
    """The explanation of one workload, and the expected starts of all, at any depth."""
    facts = noted_fleet(seed)
    facts = replace(facts, settings=replace(facts.settings, forecast_depth=depth))
    shown = {item.workload: item.start for item in ahead(facts)}
    for key, workload in facts.workloads.items():
        if not workload.is_waiting:
            continue
        found = explain(facts, key)
        if found.state == "Waits":
            assert found.start == shown.get(key), key
        elif found.state == "Starts" and key in shown:
            # Now, or as soon as new nodes are there.
            assert shown[key] in (facts.now, facts.now + PROVISION_SECONDS), key
        else:
            assert key not in shown, key
