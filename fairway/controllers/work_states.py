"""The states of works, from the reports of agents.

A report has the states of many works, in full or as a difference from the last full report. They
are merged here, and followers are called for each work that changed, so the cost of a report is
that of its changes. A difference that does not match the full report is ignored until it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import msgspec

from fairway.api.claim import Claim
from fairway.api.report import WorkState
from fairway.api.report_changes import continues
from fairway.store.interface import Stored
from fairway.store.mirrors import Mirror, Name

# Called with the cluster and the name of a work that changed.
StateFollower = Callable[[str, str], None]


class Known(Protocol):
    """What is known of one work."""

    @property
    def attempt(self) -> int: ...

    @property
    def phase(self) -> str: ...


def has_succeeded(claim: Claim, known_in: Callable[[str], Known | None]) -> bool:
    """Whether all that a claim places has succeeded, and none of its copies lacks a place.

    `known_in` has what is known of the work in a cluster; what it says of another attempt does not
    count.
    """
    known = [(placement, known_in(placement.cluster)) for placement in claim.placements]
    return (
        bool(known)
        and not claim.missing_copies
        and all(
            work is not None
            and work.phase == "Succeeded"
            and work.attempt == (placement.attempt or claim.attempt)
            for placement, work in known
        )
    )


class _Spec(msgspec.Struct, rename="camel"):
    cluster: str
    agent_epoch: int
    sequence: int
    seen_at: datetime
    since_sequence: int | None = None
    chunk: int = 0
    states: tuple[WorkState, ...] = ()
    removed_works: tuple[str, ...] = ()


class _Report(msgspec.Struct):
    """The fields of a report that have states of works; its nodes are skipped."""

    spec: _Spec


_decode = msgspec.json.Decoder(_Report).decode


@dataclass(slots=True)
class _Chunk:
    """The last reports of one chunk of a cluster."""

    whole: _Spec | None = None
    changes: _Spec | None = None
    states: dict[str, WorkState] = field(default_factory=dict)

    def join(self) -> dict[str, WorkState]:
        if self.whole is None:
            return {}
        states = {state.work: state for state in self.whole.states}
        changes = self.changes
        if changes is not None and continues(self.whole, changes):
            for work in changes.removed_works:
                states.pop(work, None)
            states.update({state.work: state for state in changes.states})
        return states


class States:
    """The state of every work that an agent has reported."""

    def __init__(self, reports: Mirror) -> None:
        self.followers: list[StateFollower] = []
        self._chunks: dict[tuple[str, int], _Chunk] = {}
        self._origin: dict[Name, tuple[str, int, bool]] = {}  # report -> (cluster, chunk, whole)
        self._states: dict[str, dict[str, WorkState]] = {}  # by work and cluster
        reports.followers.append(self._follow)

    def get(self, cluster: str, work: str) -> WorkState | None:
        """The state of a work in a cluster; None if no agent has reported it."""
        return self.of_work(work).get(cluster)

    def of_work(self, work: str) -> Mapping[str, WorkState]:
        """The reported states of a work, by cluster."""
        return self._states.get(work) or {}

    def of_cluster(self, cluster: str) -> dict[str, WorkState]:
        states: dict[str, WorkState] = {}
        for (name, _), chunk in self._chunks.items():
            if name == cluster:
                states.update(chunk.states)
        return states

    def _follow(self, name: Name, stored: Stored | None) -> None:
        if stored is None:
            origin = self._origin.pop(name, None)
            if origin is not None:
                self._put(origin, None)
            return
        spec = _decode(stored.raw).spec
        origin = (spec.cluster, spec.chunk, spec.since_sequence is None)
        self._origin[name] = origin
        self._put(origin, spec)

    def _put(self, origin: tuple[str, int, bool], spec: _Spec | None) -> None:
        cluster, number, is_whole = origin
        chunk = self._chunks.setdefault((cluster, number), _Chunk())
        if is_whole:
            chunk.whole = spec
        else:
            chunk.changes = spec
        before, chunk.states = chunk.states, chunk.join()
        for work, state in chunk.states.items():
            if before.pop(work, None) != state:
                self._states.setdefault(work, {})[cluster] = state
                self._tell(cluster, work)
        for work in before:
            self._drop(cluster, work)
            self._tell(cluster, work)

    def _drop(self, cluster: str, work: str) -> None:
        states = self._states.get(work, {})
        states.pop(cluster, None)
        if not states:
            self._states.pop(work, None)

    def _tell(self, cluster: str, work: str) -> None:
        for follow in self.followers:
            follow(cluster, work)
