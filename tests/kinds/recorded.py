"""Sample manifests, one file a kind, and recorded statuses of them, step by step.

A file of statuses names its sample, and what is different in the object's metadata and spec; each
step has a status as the kind's own controller writes it, and what is read from it.
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
        Sample(f"{file.stem}-{one['metadata']['name']}", one)
        for file in sorted((HERE / "samples").glob("*.yaml"))
        for one in yaml.safe_load_all(file.read_text())
    ]


@dataclass(frozen=True)
class Step:
    """One status of an object, and what it means."""

    name: str
    found: dict
    reads: dict


def steps() -> list[Step]:
    return [
        Step(f"{file.parent.name}: {step['what']}", _object(one, step), step["reads"])
        for file in sorted((HERE / "statuses").rglob("*.yaml"))
        for one in yaml.safe_load_all(file.read_text())
        for step in one["steps"]
    ]


def _object(sequence: dict, step: dict) -> dict:
    documents = list(yaml.safe_load_all((HERE / "samples" / sequence["sample"]).read_text()))
    found = copy.deepcopy(documents[sequence.get("document", 0)])
    found["metadata"].update(sequence.get("metadata", {}))
    found["spec"].update(sequence.get("spec", {}))
    found["status"] = step["status"]
    return found
