"""`fairway plan --explain`, on the stories in examples/plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.cli.main import run
from tests.builders import cluster, flavor, queue, workload

PLANS = Path(__file__).parents[2] / "examples" / "plans"
NOW = "1794729600"  # 2026-11-15 08:00 UTC


def told(capsys: pytest.CaptureFixture[str], story: str, *words: str) -> tuple[int, str, str]:
    code = run(["plan", "-f", str(PLANS / story), "--now", NOW, *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_one_workload_is_explained_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "why-waiting", "--explain", "vision/too-much")
    assert code == 0
    assert out == (
        "vision/too-much can never start: queue research can never get this much: it needs"
        " 8 more h100 GPUs than its quota and all that it can borrow.\n"
    )


def test_nodes_in_doubt_are_warned_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    objects = [
        flavor("h100"),
        flavor("fast", nodeLabels={"net": "fast"}),
        queue("q", quotas={"h100": 8, "fast": 8}),
        cluster("west", 8, extra={"net": "fast"}),
        workload("a", "q"),
    ]
    (tmp_path / "fleet.json").write_text("\n---\n".join(json.dumps(object_) for object_ in objects))
    code, out, _ = told(capsys, str(tmp_path))
    warning = (
        "west: 1 node has both flavors fast and h100 of one resource group, and is used for neither"
    )
    assert code == 0
    assert out.endswith(f"\nWarnings:\n  {warning}\n")
    _, out, _ = told(capsys, str(tmp_path), "-o", "json")
    assert [warning["message"] for warning in json.loads(out)["warnings"]] == [warning]


def test_programs_get_the_explanation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "why-waiting", "--explain", "vision/too-wide", "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert (found["state"], found["position"]) == ("Waits", 1)
    assert found["nearest"] == {"cluster": "hangzhou-1", "free": "16", "short": "8"}


def test_a_workload_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "why-waiting", "--explain", "vision/nobody")
    assert (code, out) == (1, "")
    assert "no workload vision/nobody in the files given" in err
