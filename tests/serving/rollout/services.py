"""Services in a line each, and a world that does what a rollout tells it, well or badly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import convert
from msgspec.structs import replace as with_values

from fairway.api.rollout import ClusterRevision, RolloutSpec, RolloutStatus
from fairway.serving.rollout.advance import advance
from fairway.serving.rollout.case import Answer, ClusterPart, Counted, RolloutCase
from fairway.serving.rollout.history import note_revision

NOW = 1_794_729_600.0
OLD, NEW = "old", "new"


def spec(**values: Any) -> RolloutSpec:
    """A spec as a user would write it."""
    plain = {"workload": {"name": "llm"}, "progressDeadlineSeconds": 60, **values}
    return convert(plain, RolloutSpec)


def place(cluster: str, *counts: tuple[str, int, int], replicas: int, **more: Any) -> ClusterPart:
    """A cluster with so many replicas of each revision, and so many of them ready."""
    by_mark = {mark: Counted(total=total, ready=ready) for mark, total, ready in counts}
    return ClusterPart(cluster=cluster, replicas=replicas, by_mark=by_mark, **more)


@dataclass(slots=True)
class World:
    """Clusters that replace replicas as they are told: at most as many at a time as may lack."""

    replicas: dict[str, int]
    is_good: Callable[[str], bool] = lambda mark: True
    ranks: Mapping[str, int] = field(default_factory=dict)
    pods: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)  # mark, ready

    def __post_init__(self) -> None:
        self.pods = {name: [(OLD, True)] * count for name, count in self.replicas.items()}

    def places(self) -> tuple[ClusterPart, ...]:
        found = []
        for name, count in self.replicas.items():
            marks = {mark for mark, _ in self.pods[name]}
            by_mark = {
                mark: Counted(
                    total=sum(value == mark for value, _ in self.pods[name]),
                    ready=sum(value == mark and is_ready for value, is_ready in self.pods[name]),
                )
                for mark in marks
            }
            rank = self.ranks.get(name, 0)
            group = f"g{rank}"
            found.append(
                ClusterPart(
                    cluster=name,
                    replicas=count,
                    by_mark=by_mark,
                    rank=rank,
                    group=group,
                    beside=self.beside(name),
                )
            )
        return tuple(found)

    def beside(self, cluster: str) -> int:
        """Replicas that a second object has."""
        return 0

    @property
    def ready(self) -> int:
        return sum(is_ready for pods in self.pods.values() for _, is_ready in pods)

    def stop_as_many_as_allowed(self, stages: Iterable[ClusterRevision]) -> None:
        """The worst that a cluster may do: all that may be lacking is, at the same moment."""
        for stage in stages:
            pods = self.pods[stage.cluster]
            share = len(pods) if stage.share is None else min(stage.share, len(pods))
            have = sum(mark == stage.mark for mark, _ in pods)
            for at, (mark, is_ready) in enumerate(pods):
                lacking = sum(not pod for _, pod in pods)
                may = not is_ready or lacking < stage.allowance
                if mark != stage.mark and have < share and may:
                    pods[at] = (stage.mark, False)
                    have += 1

    def start(self) -> None:
        """What can become ready does."""
        for pods in self.pods.values():
            for at, (mark, _) in enumerate(pods):
                pods[at] = (mark, self.is_good(mark))


def case(
    spec_: RolloutSpec, status: RolloutStatus, world: World, now: float, **more: Any
) -> RolloutCase:
    return RolloutCase(
        spec=spec_,
        status=status,
        now=now,
        target=status.history[-1].mark,
        replicas=sum(world.replicas.values()),
        places=world.places(),
        **more,
    )


def begun(spec_: RolloutSpec, world: World, **more: Any) -> RolloutStatus:
    """A service whose old revision is everywhere, and whose new one has just been written."""
    history = note_revision((), OLD, now=NOW, is_unmarked=True)
    status = RolloutStatus(history=history)
    status = advance(case(spec_, status, world, NOW, **more)).status
    assert status.phase == "Completed"
    return with_values(
        status, history=note_revision(status.history, NEW, now=NOW, is_unmarked=False)
    )


@dataclass(slots=True)
class Run:
    """A rollout on a world, moment by moment; what a hub remembers is the status alone."""

    spec: RolloutSpec
    world: World
    more: dict[str, Any] = field(default_factory=dict)
    now: float = NOW
    phases: list[str] = field(default_factory=list)
    status: RolloutStatus = field(default_factory=RolloutStatus)
    lowest: int = 10**9

    def __post_init__(self) -> None:
        self.status = begun(self.spec, self.world, **self.more)

    def step(self, seconds: float = 5.0, answers: tuple[Answer, ...] = (), **more: Any) -> None:
        asked = case(self.spec, self.status, self.world, self.now, **{**self.more, **more})
        self.status = advance(replace(asked, answers=answers)).status
        if not self.phases or self.phases[-1] != self.status.phase:
            self.phases.append(str(self.status.phase))
        self.world.stop_as_many_as_allowed(self.status.clusters)
        self.lowest = min(self.lowest, self.world.ready)
        self.world.start()
        self.now += seconds

    def until(self, phase: str, steps: int = 400) -> None:
        for _ in range(steps):
            self.step()
            if self.status.phase == phase:
                return
        raise AssertionError(self.phases)

    def marks(self) -> dict[str, str]:
        return {cluster.cluster: cluster.mark for cluster in self.status.clusters}
