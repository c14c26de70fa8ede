"""The stories in examples/plans: what `fairway plan` says of each, word for word.

A story that changes is looked at by a person: `python -m tests.core.test_stories` writes them anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORIES = sorted(path.name for path in (ROOT / "examples" / "plans").iterdir() if path.is_dir())
TOLD = Path(__file__).parent / "stories"
NOW = "1794729600"  # 2026-11-15 08:00 UTC


def tell(story: str, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "fairway.cli.main",
        "plan",
        "-f",
        str(ROOT / "examples" / "plans" / story),
        "--now",
        NOW,
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_told_as_before(story: str) -> None:
    assert tell(story) == (TOLD / f"{story}.txt").read_text()


@pytest.mark.parametrize("story", STORIES)
def test_a_story_for_programs_has_the_documented_form(story: str) -> None:
    plan = json.loads(tell(story, "-o", "json"))
    assert set(plan) >= {"now", "steps", "waiting"}
    for step in plan["steps"]:
        assert step["action"] in ("Admit", "Preempt", "Provision", "Move")
        assert step["workload"].count("/") == 1
        for placement in step.get("placements", ()):
            assert {"cluster", "podSets"} <= set(placement)
    for item in plan["waiting"]:
        assert item["reasons"]
        for reason in item["reasons"]:
            assert reason["code"]
            assert reason["message"]


if __name__ == "__main__":
    for name in STORIES:
        (TOLD / f"{name}.txt").write_text(tell(name))
