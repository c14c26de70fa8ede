"""Runs scorers when they are due, and writes scores and statuses.

A scorer runs at once when it is created or changed and when the hub starts, and then again and
again; each pause differs from the interval by a tenth at most, so that scorers do not all run
together. A run that fails keeps the last scores until they expire; then they are missing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from zlib import crc32

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.meta import ObjectMeta, OwnerReference
from fairway.api.scores import ClusterScore, ClusterScoreSpec, Scorer, ScoreValue
from fairway.controllers.context import Context
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.scores.failure_rates import FailureRates
from fairway.controllers.scores.readings import Key, Reading
from fairway.controllers.scores.running import Runner
from fairway.controllers.scores.trial import Trials
from fairway.controllers.scores.written import (
    Run,
    is_due,
    is_status_due,
    merged,
    status_of,
    values_of,
)
from fairway.controllers.statuses import with_status
from fairway.loops import Loop
from fairway.metrics.measurements import Measurer
from fairway.store.interface import Stored, Write
from fairway.store.keys import CLUSTER_SCORES, SCORERS
from fairway.store.mirrors import Name

_WRITE = Write(user="system:fairway", manager="fairway-scores")
_AT_ONCE = 8  # scorers that run at the same time
_WRITE_SECONDS = 15.0  # between two writes of the scores of a cluster
_JITTER = 0.1

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class _Line:
    """What is known of one scorer."""

    uid: str
    generation: int = 0
    runs: int = 0
    at: float = 0.0  # of the last run that had values
    readings: dict[Key, Reading] = field(default_factory=dict)
    scores: dict[str, tuple[ScoreValue, ...]] = field(default_factory=dict)  # by cluster


class Scores:
    """The controller of scores."""

    def __init__(
        self, context: Context, *, scheduler: Scheduler, measuring: Measuring, measurer: Measurer
    ) -> None:
        self._store = context.store
        self._cache = context.cache
        self._clock = context.clock
        self._runner = Runner(
            context, measuring=measuring, measurer=measurer, rates=FailureRates(context.cache)
        )
        self.trials = Trials(context, runner=self._runner, scheduler=scheduler)
        self._lines: dict[str, _Line] = {}
        self._written_at: dict[str, float] = {}  # by cluster
        self._runs: Loop[str] = Loop(
            "scorers", self._run, clock=context.clock, width=_AT_ONCE, forgets=True
        )
        self._writes: Loop[str] = Loop("scores", self._write, clock=context.clock, forgets=True)
        context.cache.mirror(SCORERS).followers.append(self._scorer_changed)

    async def run(self) -> None:
        """Runs scorers until cancelled; what was measured under another leader is in the store."""
        self._lines.clear()
        self._written_at.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._writes.run(name for _, name in self._cache.names(CLUSTER_SCORES))
            )
            tasks.create_task(self._runs.run(name for _, name in self._cache.names(SCORERS)))

    def _scorer_changed(self, name: Name, stored: Stored | None) -> None:
        line = self._lines.get(name[1])
        scorer = self._cache.get(Scorer, name[1]) if stored is not None else None
        if scorer is None:
            for cluster in self._lines.pop(name[1], _Line(uid="")).scores:
                self._writes.mark(cluster)
        elif (
            line is None
            or line.uid != scorer.metadata.uid
            or line.generation != scorer.metadata.generation
        ):
            self._runs.mark(name[1])

    # Runs.

    async def _run(self, name: str) -> float | None:
        scorer = self._cache.get(Scorer, name)
        if scorer is None:
            return None
        line = self._line(scorer)
        began = self._clock.now()
        run = await self._runner.run(scorer.spec, line.readings)
        if self._lines.get(name) is not line:
            return None  # it was deleted, or made again, meanwhile
        line.runs += 1
        self._keep(name, scorer, line, run)
        await self._write_status(name, run)
        return began + _pause(name, line.runs, scorer.spec.interval_seconds)

    def _line(self, scorer: Scorer) -> _Line:
        name, uid = scorer.metadata.name, scorer.metadata.uid
        line = self._lines.get(name)
        if line is None or line.uid != uid:
            line = self._lines[name] = _Line(uid=uid)
        if line.generation != scorer.metadata.generation:
            line.readings = {}  # what an earlier version of it measured may mean something else
        line.generation = scorer.metadata.generation
        return line

    def _keep(self, name: str, scorer: Scorer, line: _Line, run: Run) -> None:
        """Keeps what a run yielded; a cluster for which it failed keeps its last scores."""
        if run.fault:
            return
        known = {place for place, _ in run.readings}
        kept = {key: value for key, value in line.readings.items() if key[0] in run.faults}
        line.readings = {**kept, **run.readings}
        scores = {cluster: line.scores[cluster] for cluster in run.faults if cluster in line.scores}
        for cluster in known:
            scores[cluster] = values_of(name, scorer.spec, cluster, run)
        changed = scores.keys() | line.scores.keys()
        line.scores, line.at = scores, run.at
        for cluster in changed:
            self._writes.mark(cluster)

    async def _write_status(self, name: str, run: Run) -> None:
        stored = self._cache.mirror(SCORERS).get(("", name))
        if stored is None:
            return
        body = stored.object()
        scorer = codec.decode(body, Scorer)
        status = status_of(scorer, run, self._clock.now())
        if is_status_due(scorer.status, status):
            await self._store.update(
                SCORERS, with_status(body, status), subresource="status", write=_WRITE
            )

    # Writes.

    async def _write(self, cluster: str) -> float | None:
        """Writes the scores of a cluster, unless they were written a moment ago."""
        now = self._clock.now()
        due = self._written_at.get(cluster, float("-inf")) + _WRITE_SECONDS
        if now < due:
            return due
        stored = self._cache.mirror(CLUSTER_SCORES).get(("", cluster))
        before = ClusterScoreSpec()
        if stored is not None:
            before = codec.decode(stored.raw, ClusterScore).spec
        fresh = {
            name: line.scores.get(cluster, ()) for name, line in self._lines.items() if line.at
        }
        known = {name for _, name in self._cache.names(SCORERS)}
        wanted = merged(before, fresh, known, now)
        if not is_due(before, wanted, now):
            return None
        if stored is None:
            owner = self._cache.get(Cluster, cluster)
            if owner is None:
                return None
            made = ClusterScore(metadata=_metadata(owner), spec=wanted)
            await self._store.create(CLUSTER_SCORES, codec.to_plain(made), write=_WRITE)
        else:
            body = {**stored.object(), "spec": codec.to_plain(wanted)}
            await self._store.update(CLUSTER_SCORES, body, write=_WRITE)
        self._written_at[cluster] = now
        return None


def _metadata(cluster: Cluster) -> ObjectMeta:
    """Scores go with their cluster."""
    owner = OwnerReference(
        api_version=cluster.api_version,
        kind=cluster.kind,
        name=cluster.metadata.name,
        uid=cluster.metadata.uid,
    )
    return ObjectMeta(name=cluster.metadata.name, owner_references=(owner,))


def _pause(name: str, runs: int, interval: float) -> float:
    """The seconds until the next run: the interval, and up to a tenth more or less."""
    part = crc32(f"{name}/{runs}".encode()) / 2**32  # from 0 to 1, the same for the same run
    return interval * (1 + _JITTER * (2 * part - 1))
