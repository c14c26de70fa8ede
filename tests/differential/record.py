"""Writes down what a real kube-apiserver answers to the script.

    python -m tests.differential.record              everything
    python -m tests.differential.record applying     only these groups
    python -m tests.differential.record --check      only compare with what is written down

The recordings are outcomes of our own script in normal form; with them the embedded hub can be
compared in every test run, also where no kube-apiserver can be had.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
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


def write(group: steps.Group, outcomes: dict[str, dict[str, Any]], version: str) -> None:
    """Writes outcomes by version of kubectl; versions that agree share one entry."""
    told: dict[str, dict[str, Any]] = {}
    for say in (step.say for step in group.steps):
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
    (RECORDED / f"{group.name}.json").write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Runs the script with each kubectl, each on a control plane of its own."""
    only_check = "--check" in arguments
    wanted = [each for each in arguments if not each.startswith("--")]
    chosen = [each for each in steps.groups() if not wanted or each.name in wanted]
    kubectls = (binaries.newest_kubectl(print), binaries.distribution_kubectl(print))
    changed = 0
    with contextlib.ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in kubectls]
        planes = [stack.enter_context(control_plane.running(folder)) for folder in folders]
        workers = stack.enter_context(ThreadPoolExecutor(len(kubectls)))
        for group in chosen:
            runs = []
            for kubectl, plane in zip(kubectls, planes, strict=True):
                place = plane.folder / group.name
                place.mkdir()
                run = Run(group=group, kubeconfig=plane.kubeconfig, kubectl=kubectl, folder=place)
                runs.append((kubectl.label, workers.submit(run.outcomes)))
            outcomes = {label: run.result() for label, run in runs}
            changed += _tell(group.name, outcomes)
            if not only_check:
                write(group, outcomes, binaries.VERSION)
    return 1 if only_check and changed else 0


def _tell(group: str, outcomes: dict[str, dict[str, Any]]) -> int:
    """Prints what is not as it was recorded, and what never came."""
    changed = 0
    for label, found in outcomes.items():
        print(f"{group}, kubectl {label}: {len(found)} steps", flush=True)
        for say, outcome in found.items():
            if "never" in outcome:
                print(f"  never came: {say}: {outcome}")
        for difference in comparison.differences(read(group, label) or {}, found):
            changed += 1
            print(f"  changed: {difference}")
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
