"""docs/peers.md: which real programs of others were run, at which versions, and what came of it.

All of it is read from what was recorded, so that the page can be made anew by anybody, and every
run of the tests sees whether it is up to date.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from tests.peers.recording import HERE, Recording, recordings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "peers.md"
DIFFERENCES = Path(__file__).parent / "differences.yaml"
TITLES = {
    "kueue": "Kueue: which workloads are admitted, with which flavors, and which are evicted",
    "karmada": "Karmada: how many replicas each cluster gets",
    "ocm": "Open Cluster Management: which clusters are chosen",
}
RUNS = {
    "operators": "Operators, in a member of a fleet",
    "e2e": "Frameworks, as workloads on local clusters",
}
_HEAD = """# Real peers

Fairway is tested against real programs of other projects: its decisions are compared with theirs,
and it runs their operators and frameworks. They are too heavy for every test run, so `make peers`
and `make e2e` build or install them, play the scenarios below, and record the results under
`tests/peers`. Every test run replays the recorded decisions and compares ours with them. This page
is generated from the recordings.

Peers are built from their Go modules at the versions named, and run on a real kube-apiserver with
its etcd. "same" means that our core decided exactly as the peer did, step by step, on the same
input.
"""
_TAIL = """## Not run

Volcano v1.15.0: its module takes its API from a folder that the published module lacks, and no
published `volcano.sh/apis` has that version. Statuses of Volcano's jobs are recorded from its
controllers v1.10.0, by `python -m tests.kinds.record`, and every test run reads them.
"""


def known() -> dict[str, Any]:
    """Differences that are known, by peer and scenario."""
    found: dict[str, Any] = yaml.safe_load(DIFFERENCES.read_text()) or {}
    return found


def outcomes(run: str) -> dict[str, str]:
    """What came of each test of a run, as it was kept."""
    found: dict[str, str] = yaml.safe_load((HERE / f"{run}.yaml").read_text())["tests"]
    return found


def text() -> str:
    """The page."""
    parts = [_HEAD]
    for peer, title in TITLES.items():
        rows = list(recordings(peer))
        if rows:
            parts += [f"## {title}\n", _scenarios(rows, known().get(peer, {}))]
    for name, title in RUNS.items():
        path = HERE / f"{name}.yaml"
        if path.exists():
            parts += [f"## {title}\n", _run(yaml.safe_load(path.read_text()))]
    return "\n".join([*parts, _TAIL])


def _scenarios(rows: Sequence[Recording], different: Mapping[str, Any]) -> str:
    programs = sorted({row.recorded for row in rows})
    lines = [
        f"{', '.join(programs)}; {len(rows)} scenarios, {len(rows) - len(different)} the same."
    ]
    lines += ["", "| scenario | outcome |", "|---|---|"]
    for other in rows:
        row = different.get(other.name)
        lines.append(f"| {other.name} | {'same' if row is None else 'differs: ' + row['why']} |")
    return "\n".join([*lines, ""])


def _run(found: Mapping[str, Any]) -> str:
    programs = ", ".join(f"{name} {version}" for name, version in found["programs"].items())
    lines = [f"{programs}.", "", "| test | outcome |", "|---|---|"]
    lines += [f"| {name} | {outcome} |" for name, outcome in found["tests"].items()]
    return "\n".join([*lines, ""])


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")


def run_tests(
    name: str, paths: Sequence[str], programs: Mapping[str, str], environment: Mapping[str, str]
) -> bool:
    """Runs tests and keeps what came of each; tells whether all passed."""
    log = HERE / f"{name}.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(
        [*command, f"--junitxml={log}"], check=False, cwd=ROOT, env=dict(environment)
    )
    tests = {_sentence(item): _outcome(item) for item in ElementTree.parse(log).iter("testcase")}
    log.unlink()
    content = {"programs": dict(programs), "tests": tests}
    (HERE / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False, width=120))
    return done.returncode == 0


def _sentence(case: ElementTree.Element) -> str:
    return str(case.get("name")).removeprefix("test_").replace("_", " ")


def _outcome(case: ElementTree.Element) -> str:
    worst = {item.tag for item in case} & {"failure", "error", "skipped"}
    return sorted(worst)[0] if worst else "passed"
