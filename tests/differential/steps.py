"""The script of the differential test, read from `script/*.yaml`.

Each file is a group: it has a namespace of its own and can run beside the others. Each step is a
sentence (`say`), one way to act, and what of the outcome is compared:

    kubectl      the arguments of a kubectl call; `input` is its standard input
    request      a bare call through the official Python client: method, path, body, headers
    client       a function of client_calls.py, for the official Python client
    background   with kubectl: the call goes on, under this name, after `ready` lines
    collect      reads from that call until it printed `lines` lines or `documents` objects

`compare` says how standard output is read: text, lines (in any order), table, json, yaml,
documents (JSON objects one after the other), fields (the tree that `explain` prints, without its
prose) or nothing. `until` repeats a call until its output holds this text, and
`until_it_succeeds` until it succeeds, for what a server does a little later. `since` is the least
kubectl version that can do it, `before` the first that cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SCRIPT = Path(__file__).parent / "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call, and what is compared of its outcome."""

    say: str
    kubectl: str = ""
    request: dict[str, Any] | None = None
    client: str = ""
    collect: str = ""
    background: str = ""
    ready: int = 1
    lines: int = 0
    documents: int = 0
    input: str = ""
    env: dict[str, str] = field(default_factory=dict)
    compare: str = "text"
    only: str = ""  # lines of the output that do not match this are left out
    until: str = ""
    until_it_succeeds: bool = False
    since: str = "1.20"
    before: str = "99.0"

    def can_run(self, version: tuple[int, int]) -> bool:
        """Whether a kubectl of this version knows how to do it."""
        return _version(self.since) <= version < _version(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Steps that follow each other in one namespace."""

    name: str
    about: str
    steps: tuple[Step, ...]
    files: dict[str, str] = field(default_factory=dict)
    published: tuple[str, ...] = ()  # modules whose resource definitions lie in the folder

    @property
    def namespace(self) -> str:
        return f"test-{self.name}"


def groups() -> list[Group]:
    """All groups, in the order of their names."""
    return [load(path) for path in sorted(SCRIPT.glob("*.yaml"))]


def load(path: Path) -> Group:
    """Reads one file of the script; every sentence must be its own."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    steps = tuple(Step(**each) for each in content["steps"])
    sentences = [step.say for step in steps]
    doubled = {each for each in sentences if sentences.count(each) > 1}
    if doubled:
        raise ValueError(f"{path.name}: sentences occur twice: {sorted(doubled)}")
    return Group(
        name=path.stem,
        about=content["about"],
        steps=steps,
        files=content.get("files", {}),
        published=tuple(content.get("published", ())),
    )


def _version(text: str) -> tuple[int, int]:
    major, minor = str(text).split(".")
    return int(major), int(minor)
