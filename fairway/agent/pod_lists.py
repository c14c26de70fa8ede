"""The pods of a work by name, a page at a time.

A work may have thousands of pods. Whoever asks gets how many are in which phase, all of them, and
as many of the pods as are wanted, in the order of their names as people count: 2 before 10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from fairway.agent.drivers.interface import PodSeen

_MOST = 2_000
_MESSAGE_MOST = 500
_NUMBERS = re.compile(r"(\d+)")


class PodPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some of the pods of a work, and how many there are of each sort."""

    pods: tuple[PodSeen, ...]
    phases: dict[str, int]  # of all pods, those on other pages as well
    more: bool = False  # whether there are pods after these


def page_of(pods: Sequence[PodSeen], *, after: str = "", most: int = 0) -> PodPage:
    """Pods after one of a name, which may be gone by now; without a name, the first."""
    ordered = sorted(pods, key=lambda pod: _order(pod.name))
    rest = [pod for pod in ordered if not after or _order(pod.name) > _order(after)]
    count = min(most or _MOST, _MOST)
    return PodPage(
        pods=tuple(replace(pod, message=pod.message[:_MESSAGE_MOST]) for pod in rest[:count]),
        phases=dict(sorted(Counter(pod.phase for pod in pods).items())),
        more=len(rest) > count,
    )


def _order(name: str) -> tuple[tuple[str, ...], tuple[int, ...], str]:
    """Names that differ in numbers alone are in the order of the numbers."""
    parts = _NUMBERS.split(name)
    return tuple(parts[::2]), tuple(int(part) for part in parts[1::2]), name
