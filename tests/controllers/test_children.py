"""Processes of the hub run our code and nobody else's, in whatever folder the hub was started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairway
from fairway.controllers.child_processes import start_python
from fairway.controllers.scheduling.planner import ProcessPlanner
from fairway.controllers.scheduling.planner_state import Planned
from fairway.controllers.whatif.edits import read_change
from fairway.controllers.whatif.whatif import WhatIf

NOW = 1_800_000_000.0
# Standard, installed, native and our own: what the children import first, and what they use later.
NAMES = ("json", "pickle", "struct", "traceback", "msgspec", "numpy", "sitecustomize", "fairway")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules that leave a mark when they are imported."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        code = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n"
        (tmp_path / name / "__init__.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "imported"


@pytest.fixture(params=["", ":", ":/nowhere", "/nowhere::/elsewhere"])
def python_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", request.param)
    return str(request.param)


@pytest.mark.usefixtures("python_path")
async def test_the_planner_imports_nothing_from_the_current_folder(trap: Path) -> None:
    planner = ProcessPlanner()
    try:
        assert isinstance(await planner.plan(NOW, 10), Planned)
    finally:
        await planner.close()
    assert not trap.exists()


@pytest.mark.usefixtures("python_path")
async def test_what_if_imports_nothing_from_the_current_folder(trap: Path) -> None:
    answer = await WhatIf().answer([], NOW, read_change({"lose": []}))
    assert "after" in answer
    assert not trap.exists()


def test_the_trap_catches_a_child_that_is_started_without_care(trap: Path) -> None:
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert trap.read_text().split() == ["json"]


async def test_a_child_has_what_was_installed_beside_python_on_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os, sys\ndef main():\n    sys.stdout.write(os.path.dirname(fairway.__file__))\n"
    (tmp_path / "extra.py").write_text(f"import fairway\n{code}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(tmp_path)]))
    process = await start_python("extra")
    told, _ = await process.communicate()
    assert told.decode() == str(Path(fairway.__file__).parent)
