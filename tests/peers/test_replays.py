"""Our decisions against those that real peers made on the same input, as they were recorded.

Where ours is another, `differences.yaml` says so and why; what it says and is not so fails too.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.peers import (
    karmada_replay,
    karmada_scenarios,
    kueue_replay,
    kueue_scenarios,
    ocm_replay,
    ocm_scenarios,
    report,
)
from tests.peers.recording import Recording, recordings

REPLAYS: dict[str, Callable[[Recording], list[str]]] = {
    "kueue": kueue_replay.differences,
    "karmada": karmada_replay.differences,
    "ocm": ocm_replay.differences,
}
SCENARIOS = {
    "kueue": {scenario.name for scenario in kueue_scenarios.SCENARIOS},
    "karmada": {scenario.name for scenario in karmada_scenarios.SCENARIOS},
    "ocm": {scenario.name for scenario in ocm_scenarios.SCENARIOS},
}
KNOWN = report.known()


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(other, id=f"{peer}: {other.name}")
        for peer in REPLAYS
        for other in recordings(peer)
    ],
)
def test_we_decide_as_the_peer_did(recording: Recording) -> None:
    known = KNOWN.get(recording.peer, {}).get(recording.name, {"differences": []})
    assert REPLAYS[recording.peer](recording) == known["differences"]


def test_each_difference_is_of_a_recording_and_has_a_reason() -> None:
    for peer, rows in KNOWN.items():
        names = {recording.name for recording in recordings(peer)}
        assert rows.keys() <= names
        assert all(row["why"] and row["differences"] for row in rows.values())


@pytest.mark.parametrize("peer", REPLAYS)
def test_every_scenario_of_a_peer_is_recorded(peer: str) -> None:
    assert {recording.name for recording in recordings(peer)} == SCENARIOS[peer]


def test_the_page_about_peers_tells_what_was_recorded() -> None:
    assert report.PAGE.read_text(encoding="utf-8") == report.text()


@pytest.mark.parametrize("run", report.RUNS)
def test_what_was_run_with_real_programs_passed(run: str) -> None:
    outcomes = report.outcomes(run)
    assert outcomes
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} == set()
