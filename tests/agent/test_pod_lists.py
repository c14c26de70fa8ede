"""Pods by name, a page at a time, in the order in which people count."""

from __future__ import annotations

import pytest

from fairway.agent.drivers.interface import PodPhase, PodSeen
from fairway.agent.pod_lists import page_of


def pod(name: str, phase: PodPhase = "Ready") -> PodSeen:
    return PodSeen(name=name, pod_set="pod", attempt=1, phase=phase)


MANY = [pod(f"train-{number}") for number in (10, 2, 1, 33, 0)] + [pod("eval-7", "Failed")]

PAGES = {
    "all of them where nobody says how many": ("", 0, ["eval-7", 0, 1, 2, 10, 33], False),
    "the first few, and that there are more": ("", 3, ["eval-7", 0, 1], True),
    "those after a name": ("train-1", 2, [2, 10], True),
    "those after a pod that has gone": ("train-5", 9, [10, 33], False),
    "none after the last": ("train-33", 9, [], False),
}


@pytest.mark.parametrize(("after", "most", "names", "more"), PAGES.values(), ids=PAGES.keys())
def test_a_page_has(after: str, most: int, names: list[str | int], more: bool) -> None:
    found = page_of(MANY, after=after, most=most)
    wanted = [name if isinstance(name, str) else f"train-{name}" for name in names]
    assert ([pod.name for pod in found.pods], found.more) == (wanted, more)
    assert found.phases == {"Failed": 1, "Ready": 5}


def test_a_message_without_end_is_cut() -> None:
    long = PodSeen(name="a", pod_set="pod", attempt=1, phase="Failed", message="no " * 1000)
    assert len(page_of([long]).pods[0].message) == 500
