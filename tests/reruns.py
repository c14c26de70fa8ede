"""Tests that had to be tried twice, and failures as they happen, first tries among them.

CI tries once more what fails (docs/decisions/0017). A test that passes only then is listed in
`reruns.txt`, beside this file, with what it said; whoever mends it leaves the line there. A test
whose name is listed and that needs a second try again fails the run: its cause was not found.
A run outside CI adds new names to the file by itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LEDGER = Path(__file__).with_name("reruns.txt")
_SAID_MOST = 400


def listed(text: str) -> set[str]:
    """The names of tests in a ledger; what follows two spaces says why."""
    lines = (line.strip() for line in text.splitlines())
    return {line.partition("  ")[0] for line in lines if line and not line.startswith("#")}


class Reruns:
    """What was tried twice in this run; lives where reports come together."""

    def __init__(self, config: pytest.Config, ledger: Path = LEDGER) -> None:
        self._config = config
        self._ledger = ledger
        self._said: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _without_group(report.nodeid)
        if report.outcome == "rerun":
            self._said.setdefault(name, _first_error(report))
            self._tell(f"TRYING AGAIN {name} ({report.when}, {report.duration:.0f} s)")
            self._tell(report.longreprtext)
        elif report.failed:
            self._tell(f"FAILED {name} ({report.when}, {report.duration:.0f} s)")
            self._tell(report.longreprtext)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        known = listed(self._ledger.read_text(encoding="utf-8"))
        for name, said in self._said.items():
            came_back = name in known
            self._tell(f"{'CAME BACK' if came_back else 'TRIED TWICE'} {name}  {said}")
            if came_back:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif not os.environ.get("CI"):
                with self._ledger.open("a", encoding="utf-8") as file:
                    file.write(f"{name}  {said}\n")

    def _tell(self, text: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reruns(config), "fairway-reruns")


def _without_group(name: str) -> str:
    """A test's name without the chain that xdist appends; ids may have the same sign in them."""
    test, sign, group = name.rpartition("@")
    return test if sign and "]" not in group else name


def _first_error(report: pytest.TestReport) -> str:
    lines = [line.strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return (lines or [""])[0].removeprefix("E").strip()[:_SAID_MOST]
