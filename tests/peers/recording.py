"""Recordings: what a peer was given and what it decided, one file a scenario.

    tests/peers/recorded/<peer>/<scenario>.yaml

A file names the program and its version, the objects that it was given, and after each step the
statuses that it wrote. Moments and identities are left out, so that a second recording of the same
decisions is the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
HERE = Path(__file__).parent / "recorded"
_VARYING = frozenset(
    {
        "lastTransitionTime",
        "lastScheduledTime",
        "lastProbeTime",
        "creationTimestamp",
        "observedGeneration",
        "schedulerObservedGeneration",
        "resourceVersion",
        "uid",
        "managedFields",
        "generation",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One scenario as a peer decided it."""

    peer: str
    name: str
    recorded: str  # the program and its version
    content: Json


def recordings(peer: str) -> Iterator[Recording]:
    for path in sorted((HERE / peer).glob("*.yaml")):
        content: Json = yaml.safe_load(path.read_text())
        yield Recording(
            peer=peer, name=content["scenario"], recorded=content["recorded"], content=content
        )


def write(peer: str, scenario: str, recorded: str, content: Mapping[str, Any]) -> Path:
    """Writes a recording; its file is named by the scenario, which is a sentence."""
    words = "".join(item if item.isalnum() else " " for item in scenario.lower()).split()
    path = HERE / peer / f"{'-'.join(words)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"scenario": scenario, "recorded": recorded, **lasting(content)}
    path.write_text(yaml.dump(whole, Dumper=_Plain, sort_keys=False, width=100))
    return path


def lasting(value: Any) -> Any:
    """The value without what is different each time."""
    match value:
        case dict():
            return {key: lasting(other) for key, other in value.items() if key not in _VARYING}
        case list() | tuple():
            return [lasting(item) for item in value]
        case _:
            return value


class _Plain(yaml.SafeDumper):
    """Writes the same value twice rather than refer to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
