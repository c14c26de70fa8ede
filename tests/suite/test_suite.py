"""The suite's own rules: what is tried twice, in which order tests run, how long they may take."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reruns import _without_group

ROOT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path

def test_passes_at_the_second_try():
    seen = Path("seen")
    is_second = seen.exists()
    seen.touch()
    assert is_second, "not yet"
"""
SLOW = """
import time
from tests.kubernetes.demand import unlimited

def test_builds_for_long():
    with unlimited():
        time.sleep(1.5)

def test_takes_too_long():
    time.sleep(30)
"""
NAMES = "abcdefgh"
PLUGINS = ("-p", "pytest_rerunfailures", "-p", "pytest_timeout")  # no other is loaded: that is slow


def run(folder: Path, *words: str, plugins: str = "", **environment: str) -> tuple[int, str]:
    """Runs the tests of a folder by themselves, with plugins of this suite."""
    (folder / "conftest.py").write_text(plugins)
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    real: of real parts\n    xdist_group: a chain\n"
    )
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS, *words],
        cwd=folder,
        env={
            **plain,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


REGISTERS = """
from pathlib import Path
from tests.reruns import Reruns

def pytest_configure(config):
    config.pluginmanager.register(Reruns(config, Path("ledger.txt")))
"""


@pytest.mark.parametrize(
    ("known", "status", "told"),
    [
        pytest.param("", 0, "TRIED TWICE", id="a new one is listed"),
        pytest.param(
            "test_it.py::test_passes_at_the_second_try  not yet\n", 1, "CAME BACK",
            id="one that was mended and comes back fails the run",
        ),
    ],
)  # fmt: skip
def test_what_passes_only_at_its_second_try(
    tmp_path: Path, known: str, status: int, told: str
) -> None:
    (tmp_path / "ledger.txt").write_text(known)
    (tmp_path / "test_it.py").write_text(FLAKY)
    found, output = run(tmp_path, "--reruns=1", plugins=REGISTERS, CI="")
    assert found == status, output
    assert f"{told} test_it.py::test_passes_at_the_second_try  AssertionError: not yet" in output
    assert "TRYING AGAIN test_it.py::test_passes_at_the_second_try (call" in output
    assert (tmp_path / "ledger.txt").read_text().count("test_passes_at_the_second_try") == 1


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("tests/test_it.py::test_it@fleet", "tests/test_it.py::test_it"),
        ("tests/test_it.py::test_it[@daily]", "tests/test_it.py::test_it[@daily]"),
        (
            "tests/test_it.py::test_it[@daily]@hub, kubectl 1.20",
            "tests/test_it.py::test_it[@daily]",
        ),
    ],
)
def test_a_test_is_called_by_its_name_whatever_chain_it_is_in(told: str, name: str) -> None:
    assert _without_group(told) == name


def test_a_failure_is_told_as_it_happens(tmp_path: Path) -> None:
    (tmp_path / "ledger.txt").write_text("")
    (tmp_path / "test_it.py").write_text(
        "def test_fails():\n    assert 1 == 2\n\ndef test_later():\n    print('x')\n"
    )
    status, output = run(tmp_path, "-v", plugins=REGISTERS)
    assert status == 1
    told, later = output.index("FAILED test_it.py::test_fails (call"), output.index("test_later")
    assert told < later


def test_pure_tests_come_first_and_long_chains_before_the_rest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.real\ndef test_alone(): pass\n"
        "@pytest.mark.real\n@pytest.mark.xdist_group('long')\n"
        "@pytest.mark.parametrize('n', range(2))\ndef test_chain(n): pass\n"
        "def test_pure(): pass\n"
    )
    assert _order(tmp_path) == ["pure", "chain[0]", "chain[1]", "alone"]


def test_a_seed_makes_an_order_of_its_own(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"test_{name}.py").write_text(
            f"def test_{name}1(): pass\ndef test_{name}2(): pass\n"
        )
    plain, first, again, other = (_order(tmp_path, seed) for seed in ("", "1", "1", "2"))
    assert first == again
    assert len({tuple(plain), tuple(first), tuple(other)}) == 3
    assert sorted(first) == sorted(plain)
    modules = [name[0] for name in first]
    assert all(modules[at] == modules[at + 1] for at in range(0, len(modules), 2))


def test_a_limit_does_not_count_what_is_built(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    status, output = run(tmp_path, "--timeout=1")
    assert status == 1
    assert "1 failed, 1 passed" in output
    assert re.search(r"FAILED test_it.py::test_takes_too_long.*Timeout", output)


def _order(folder: Path, seed: str = "") -> list[str]:
    _, output = run(folder, "-v", plugins="pytest_plugins = ['tests.order']\n", FAIRWAY_ORDER=seed)
    return re.findall(r"::test_(\S+) PASSED", output)
