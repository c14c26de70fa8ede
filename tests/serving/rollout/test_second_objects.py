"""A part of a cluster's replicas in a second object: how many, when, and never too many at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.api.rollout import ClusterRevision
from fairway.serving.rollout.allowance import unavailable_most
from tests.serving.rollout.services import NEW, OLD, Run, World, spec

Pod = tuple[str, bool]  # mark, ready


@dataclass(slots=True)
class TwoObjects(World):
    """Clusters with two Deployments each: both replace their pods by themselves."""

    second: dict[str, list[Pod]] = field(default_factory=dict)
    first: dict[str, list[Pod]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.first = {name: [(OLD, True)] * count for name, count in self.replicas.items()}
        self.second = {name: [] for name in self.replicas}
        self._join()

    def beside(self, cluster: str) -> int:
        return len(self.second[cluster])

    def _join(self) -> None:
        self.pods = {name: self.first[name] + self.second[name] for name in self.replicas}

    def stop_as_many_as_allowed(self, stages: Iterable[ClusterRevision]) -> None:
        for stage in stages:
            name, count = stage.cluster, self.replicas[stage.cluster]
            for pods, mark, size in (
                (self.first[name], stage.base or stage.mark, count - stage.beside),
                (self.second[name], stage.mark, stage.beside),
            ):
                pods.sort(key=lambda pod: not pod[1])
                del pods[size:]
                pods.extend([(mark, False)] * (size - len(pods)))
                for at, pod in enumerate(pods):
                    lacking = sum(not is_ready for _, is_ready in pods)
                    if pod[0] != mark and (not pod[1] or lacking < stage.allowance):
                        pods[at] = (mark, False)
        self._join()

    def start(self) -> None:
        for objects in (self.first, self.second):
            for pods in objects.values():
                pods[:] = [(mark, self.is_good(mark)) for mark, _ in pods]
        self._join()


def run_of(
    replicas: dict[str, int], *, bad: bool = False, is_good: Any = None, **strategy: Any
) -> Run:
    world = TwoObjects(dict(replicas))
    if bad:
        world.is_good = lambda mark: mark == OLD
    more = {"is_divisible": True, "has_second": True}
    return Run(spec(strategy=strategy), world, more=more)


def shown(run: Run) -> list[tuple[str, str, int | None, str, int]]:
    return [
        (stage.cluster, stage.mark, stage.share, stage.base, stage.beside)
        for stage in run.status.clusters
    ]


TEN = {"east": 6, "west": 4}


def test_a_canary_is_a_part_of_the_smallest_cluster_in_a_second_object() -> None:
    run = run_of(TEN, canary={"percent": 10}, soakSeconds=60, maxUnavailable=1)
    run.until("Soaking")
    assert shown(run) == [("east", OLD, None, "", 0), ("west", NEW, 1, OLD, 1)]
    assert run.world.pods["west"].count((NEW, True)) == 1
    run.until("Completed")
    for _ in range(5):
        run.step()
    assert shown(run) == [("east", NEW, None, "", 0), ("west", NEW, None, "", 0)]
    assert run.world.pods == {"east": [(NEW, True)] * 6, "west": [(NEW, True)] * 4}
    assert run.lowest == 9


def test_replicas_change_objects_as_many_at_a_time_as_may_be_unavailable() -> None:
    run = run_of({"east": 10}, canary={"percent": 50}, soakSeconds=60, maxUnavailable=2)
    beside = []
    while run.status.phase != "Soaking":
        run.step()
        beside.append(run.status.clusters[0].beside)
    assert list(dict.fromkeys(beside)) == [2, 4, 5]
    while run.status.clusters[0].beside:
        run.step()
        beside.append(run.status.clusters[0].beside)
    assert list(dict.fromkeys(beside)) == [2, 4, 5, 3, 1, 0]
    assert run.lowest == 8


def test_a_bad_canary_goes_no_further_than_its_first_replicas_and_is_taken_back() -> None:
    run = run_of(TEN, bad=True, canary={"percent": 30}, maxUnavailable=1)
    while run.status.phase != "RolledBack":
        run.step()
        assert sum(stage.beside for stage in run.status.clusters) <= 1
    for _ in range(5):
        run.step()
    assert shown(run) == [("east", OLD, None, "", 0), ("west", OLD, None, "", 0)]
    assert run.world.pods == {"east": [(OLD, True)] * 6, "west": [(OLD, True)] * 4}
    assert run.lowest == 9


def test_batches_may_be_percentages_of_a_cluster() -> None:
    steps = [{"percent": 20}, {"percent": 50}]
    run = run_of({"east": 10}, batches=steps, approval="EachBatch", maxUnavailable=5)
    run.until("AwaitingApproval")
    assert shown(run) == [("east", NEW, 2, OLD, 2)]
    run.step(approved=f"{run.status.revision}.0")
    run.until("AwaitingApproval")
    assert shown(run) == [("east", NEW, 5, OLD, 5)]


def test_a_cluster_that_shrinks_below_its_share_has_them_all_in_the_second() -> None:
    run = run_of({"east": 10}, canary={"percent": 50}, soakSeconds=600, maxUnavailable=5)
    run.until("Soaking")
    run.world.replicas["east"] = 3
    run.step()
    assert run.status.clusters[0].beside <= 3


@pytest.mark.parametrize("is_good", [True, False])
@given(
    replicas=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    percents=st.lists(st.integers(1, 100), max_size=3),
    unavailable=st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_it_never_lacks_more_than_it_may_and_ends_in_one_object(
    is_good: bool, replicas: list[int], percents: list[int], unavailable: int
) -> None:
    places = {f"c{at}": count for at, count in enumerate(replicas)}
    batches = [{"percent": percent} for percent in sorted(percents)]
    run = run_of(
        places, bad=not is_good, canary={"percent": 10}, batches=batches, maxUnavailable=unavailable
    )
    run.until("Completed" if is_good else "RolledBack")
    for _ in range(30):
        run.step()
    total, most = sum(replicas), unavailable_most(run.spec.strategy, sum(replicas))
    assert run.lowest >= total - most
    assert {stage.beside for stage in run.status.clusters} == {0}
    assert run.world.ready == total
