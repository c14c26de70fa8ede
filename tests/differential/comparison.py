"""What differs between two outcomes, and which of it is accepted.

`differences.yaml` lists each accepted difference with its reason. A difference that is not listed
fails the test, and so does a listed one that no longer occurs: the list is the truth, both ways.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).parent / "differences.yaml"
STORES = Path(__file__).parent / "store_differences.yaml"
ABSENT = "<absent>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that is not the same on both servers."""

    step: str
    at: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step}\n    at    {self.at}\n    real  {self.real!r}\n    ours  {self.ours!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An entry of the list; `steps` and `at` may hold wildcards."""

    topic: str
    group: str
    steps: tuple[str, ...]
    at: tuple[str, ...]
    why: str
    kubectl: tuple[str, ...] = ()

    def covers(self, difference: Difference) -> bool:
        """Whether this entry speaks of that difference."""
        return any(_matches(difference.step, each) for each in self.steps) and any(
            _matches(difference.at, each) for each in self.at
        )


def topics(listed: Path = LIST) -> list[dict[str, Any]]:
    """A list as it is written, for the documentation."""
    content: list[dict[str, Any]] = yaml.safe_load(listed.read_text(encoding="utf-8")) or []
    return content


def stamps() -> set[str]:
    """Annotations that our hub adds to every object; they are left out before comparing."""
    return {topic["annotation"] for topic in topics() if "annotation" in topic}


def unstamped(outcome: Any, names: set[str]) -> Any:
    """An outcome without those annotations."""
    if isinstance(outcome, list):
        return [unstamped(each, names) for each in outcome]
    if not isinstance(outcome, dict):
        return outcome
    plain = {key: unstamped(each, names) for key, each in outcome.items()}
    written = outcome.get("annotations")
    if isinstance(written, dict) and names & written.keys():
        kept = {key: each for key, each in written.items() if key not in names}
        if kept:
            plain["annotations"] = kept
        else:
            del plain["annotations"]
    return plain


def accepted(listed: Path = LIST) -> list[Accepted]:
    """A whole list, one entry for each group that an entry names."""
    entries = []
    for topic in topics(listed):
        for place in topic.get("where", ()):
            entries.append(
                Accepted(
                    topic=topic["topic"],
                    why=topic["why"],
                    group=place.get("group", ""),
                    steps=tuple(_listed(place.get("steps", "*"))),
                    at=tuple(_listed(place["at"])),
                    kubectl=tuple(str(each) for each in _listed(place.get("kubectl", []))),
                )
            )
    return entries


def differences(real: dict[str, Any], ours: dict[str, Any]) -> Iterator[Difference]:
    """Everything that differs between the outcomes of one group."""
    for step, outcome in real.items():
        for at, value, other in _walk("", outcome, ours.get(step, ABSENT)):
            yield Difference(step=step, at=at, real=value, ours=other)


def _walk(at: str, real: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            inner = f"{at}.{key}" if at else str(key)
            yield from _walk(inner, real.get(key, ABSENT), ours.get(key, ABSENT))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for number, (value, other) in enumerate(zip(real, ours, strict=True)):
            yield from _walk(f"{at}.{number}", value, other)
    elif real != ours:
        yield at, real, ours


def _matches(value: str, pattern: str) -> bool:
    # Square brackets mean themselves: they occur in paths and sentences.
    return fnmatch.fnmatchcase(value, pattern.replace("[", "[[]"))


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
