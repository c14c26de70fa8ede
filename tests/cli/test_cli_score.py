"""`fairway score test` and `fairway get scores`, on a hub that measures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_outcome import Fairway

from fairway.client import Client
from tests.waiting import seen_at_last

SCORER = """
apiVersion: scores.fairway.dev/v1alpha1
kind: Scorer
metadata: {name: carbon}
spec:
  table: {rows: [{value: "%s"}]}
  scale: {worst: "500", best: "0"}
"""
POLICY = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: green}
spec: {scoreMode: Exact, scores: [{scorer: carbon}]}
"""


@pytest.fixture
def carbon(busy: Fairway, busy_client: Client, tmp_path: Path) -> Iterator[Path]:
    """A file with a scorer that a policy uses; it is removed after the test."""
    file = tmp_path / "carbon.yaml"
    file.write_text(SCORER % 250)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    assert busy("apply", "-f", str(policy)).code == 0
    yield file
    busy("delete", "-f", str(file), "-f", str(policy), "--ignore-not-found")


def test_a_scorer_is_tried_before_it_exists_and_shown_once_it_does(
    busy: Fairway, busy_client: Client, carbon: Path
) -> None:
    tried = busy("score", "test", "-f", str(carbon))
    assert tried.code == 0, tried.err
    heading, row, policy = tried.out.splitlines()
    assert heading.split() == ["CLUSTER", "ITEM", "MEASURED", "SCORE", "NOW", "SAMPLES"]
    assert row.split() == ["here", "250", "0", "1"]
    assert policy.startswith("Policy busy-")
    assert policy.endswith("/green would choose the same: here.")
    assert busy("get", "scores").out == "", "nothing is kept"
    assert busy("apply", "-f", str(carbon)).code == 0
    seen_at_last(lambda: busy("get", "scores").out, lambda text: "carbon 0" in text, "the score")
    shown = busy("get", "scorers").out.splitlines()[1].split()
    assert shown[:5] == ["carbon", "Table", "Hub", "60", "1"]
    carbon.write_text(SCORER % 0)
    answer = json.loads(busy("score", "test", "-f", str(carbon), "-o", "json").out)
    (cluster,) = answer["clusters"]
    assert (cluster["value"], cluster["now"]) == (100, 0)
    assert busy("score", "test", "carbon").out.splitlines()[1].split()[2] == "0"


def test_what_is_wrong_with_a_trial_is_one_line(busy: Fairway, carbon: Path) -> None:
    missing = busy("score", "test", "nosuch")
    assert (missing.code, missing.out) == (1, "")
    assert 'scorers.scores.fairway.dev "nosuch" not found' in missing.err
    assert "name a scorer" in busy("score", "test").err
    carbon.write_text(SCORER.replace("best", "bests") % 1)
    wrong = busy("score", "test", "-f", str(carbon))
    assert wrong.code == 1
    assert 'spec.scale.bests: Forbidden: unknown field, did you mean "best"?' in wrong.err
    carbon.write_text(SCORER.replace('table: {rows: [{value: "%s"}]}', "prometheus: {query: up}"))
    failed = busy("score", "test", "-f", str(carbon))
    assert failed.code == 1
    assert "scorer carbon: the fleet names no Prometheus" in failed.err
