"""The pods of a work by name, a page at a time.

A work may have thousands of pods. A page has the number of pods in each phase, over all pods, and
the requested number of pods in natural order of their names: 2 before 10.
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
    """Some pods of a work, and how many of its pods are in each phase."""

    pods: tuple[PodSeen, ...]
    phases: dict[str, int]  # of all pods, on all pages
    more: bool = False  # whether there are pods after these


def page_of(pods: Sequence[PodSeen], *, after: str = "", most: int = 0) -> PodPage:
    """Pods after the pod named `after`, which may be gone by now; the first pods without a name."""
    ordered = sorted(pods, key=lambda pod: _order(pod.name))
    rest = [pod for pod in ordered if not after or _order(pod.name) > _order(after)]
    count = min(most or _MOST, _MOST)
    return PodPage(
        pods=tuple(replace(pod, message=pod.message[:_MESSAGE_MOST]) for pod in rest[:count]),
        phases=dict(sorted(Counter(pod.phase for pod in pods).items())),
        more=len(rest) > count,
    )


def _order(name: str) -> tuple[tuple[str, ...], tuple[int, ...], str]:
    """Sorts names that differ only in numbers by those numbers."""
    parts = _NUMBERS.split(name)
    return tuple(parts[::2]), tuple(int(part) for part in parts[1::2]), name
