"""A test that is tried again meets nothing of its first try."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Each server tells when it starts and ends; a test fails if an earlier one used its server.
SUITE = """
import pytest

def server(name):
    print(f"{name} starts")
    yield []
    print(f"{name} ends")

@pytest.fixture(scope="session")
def shared():
    yield from server("session")

@pytest.fixture(scope="module")
def own(shared):
    yield from server("module")

def test_before(shared):
    shared.append("before")

def test_fails_once(shared, own, request):
    left = [*shared, *own]
    shared.append("left behind")
    own.append("left behind")
    print(f"try {request.node.execution_count} meets {left}")
    assert request.node.execution_count == 2

def test_after(shared, own):
    print(f"the next test meets {shared} {own}")
"""


def test_every_fixture_is_made_anew_for_a_second_try(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "tests.retries", "-p", "no:cacheprovider",
            "-c", "/dev/null", "--rootdir", str(tmp_path), "--reruns", "1",
            "-q", "-s", str(tmp_path / "test_it.py"),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.lstrip(".R") for line in done.stdout.splitlines()]
    assert [line for line in said if line.startswith(("session", "module", "try", "the next"))] == [
        "session starts",
        "module starts",
        "try 1 meets ['before']",
        "module ends",
        "session ends",
        "session starts",
        "module starts",
        "try 2 meets []",
        "the next test meets ['left behind'] ['left behind']",
        "module ends",
        "session ends",
    ]
