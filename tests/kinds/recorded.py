"""Sample manifests, one file a kind, and recorded statuses of them, step by step.

A file of statuses names its sample, and what is different in the object's metadata and spec; each
step has a status as the kind's own controller writes it, and what is read from it. A step may
change metadata and spec further.

Files named recorded-* are recordings: `python -m tests.kinds.record` played the sample before the
real programs that the file names under `recorded` and wrote down each status that a watch told of.
So it is for Job, Deployment, StatefulSet and Pod (Kubernetes' own controllers and scheduler), and
for kinds of other projects (their controllers with their webhooks); what a kubelet says is by
tests.kubernetes.kubelet. The controllers are needed to record, and by no test of what was recorded.
All other files are composed in the form that the kind's controller writes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Sample:
    """One manifest of a file."""

    name: str
    manifest: dict


def samples() -> list[Sample]:
    return [
        Sample(f"{file.stem}-{document['metadata']['name']}", document)
        for file in sorted((HERE / "samples").glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
    ]


@dataclass(frozen=True)
class Step:
    """One status of an object, and what it means."""

    name: str
    found: dict
    reads: dict


def steps() -> list[Step]:
    return [
        Step(
            f"{file.parent.name} {file.stem}: {step['what']}",
            _object(document, step),
            step["reads"],
        )
        for file in sorted((HERE / "statuses").rglob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        for step in document["steps"]
    ]


def _object(sequence: dict, step: dict) -> dict:
    documents = list(yaml.safe_load_all((HERE / "samples" / sequence["sample"]).read_text()))
    found = copy.deepcopy(documents[sequence.get("document", 0)])
    for changed in (sequence, step):
        found["metadata"].update(changed.get("metadata", {}))
        found["spec"] = merged(found["spec"], changed.get("spec", {}))
    found["status"] = step["status"]
    return found


def merged(one: dict, other: dict) -> dict:
    """As a merge patch does it."""
    whole = dict(one)
    for name, value in other.items():
        whole[name] = merged(whole.get(name) or {}, value) if isinstance(value, dict) else value
    return {name: value for name, value in whole.items() if value is not None}
