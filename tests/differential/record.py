"""Writes down what a real kube-apiserver answers to the script.

    python -m tests.differential.record              everything
    python -m tests.differential.record applying     only these groups
    python -m tests.differential.record --check      only compare with what is written down

The recordings are outcomes of our own script in normal form; with them the embedded hub can be
compared in every test run, also where no kube-apiserver can be had.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.differential import comparison, steps
from tests.differential.runner import Run
from tests.kubernetes import binaries, control_plane

RECORDED = Path(__file__).parent / "recorded"


def read(group: str, label: str) -> dict[str, Any] | None:
    """The recorded outcomes of a group for one version of kubectl, if there are any."""
    path = RECORDED / f"{group}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    found = {
        say: outcome
        for say, by_version in content["steps"].items()
        for labels, outcome in by_version.items()
        if label in labels.split()
    }
    return found or None


def write(group: str, outcomes: dict[str, dict[str, Any]], version: str) -> None:
    """Writes outcomes by version of kubectl; versions that agree share one entry."""
    sentences = list(dict.fromkeys(say for each in outcomes.values() for say in each))
    told: dict[str, dict[str, Any]] = {}
    for say in sentences:
        by_outcome: dict[str, list[str]] = {}
        for label in sorted(outcomes):
            if say in outcomes[label]:
                text = json.dumps(outcomes[label][say], sort_keys=True)
                by_outcome.setdefault(text, []).append(label)
        told[say] = {" ".join(labels): json.loads(text) for text, labels in by_outcome.items()}
    # One step a line: compact, and a change of one outcome is a change of one line.
    rows = ",\n".join(
        f"{json.dumps(say)}: {json.dumps(each, ensure_ascii=False)}" for say, each in told.items()
    )
    text = f'{{"kubernetes": "{version}", "steps": {{\n{rows}\n}}}}\n'
    (RECORDED / f"{group}.json").write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Runs the script on a fresh control plane for each kubectl."""
    only_check = "--check" in arguments
    wanted = [each for each in arguments if not each.startswith("--")]
    chosen = [each for each in steps.groups() if not wanted or each.name in wanted]
    outcomes: dict[str, dict[str, dict[str, Any]]] = {each.name: {} for each in chosen}
    for kubectl in (binaries.newest_kubectl(print), binaries.distribution_kubectl(print)):
        with tempfile.TemporaryDirectory() as folder, control_plane.running(Path(folder)) as plane:
            for group in chosen:
                place = Path(folder) / group.name
                place.mkdir()
                run = Run(group=group, kubeconfig=plane.kubeconfig, kubectl=kubectl, folder=place)
                outcomes[group.name][kubectl.label] = run.outcomes()
                print(f"{group.name}, kubectl {kubectl.label}: done", flush=True)
    changed = 0
    for name, by_label in outcomes.items():
        for label, found in by_label.items():
            for difference in comparison.differences(read(name, label) or {}, found):
                changed += 1
                print(f"{name}, kubectl {label}: {difference}")
        if not only_check:
            write(name, by_label, binaries.VERSION)
    return 1 if only_check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
