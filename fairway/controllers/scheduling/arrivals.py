"""Which clusters have reported since this hub started, and brought back what it had lost.

A hub that was restored from a backup does not know what was decided since the backup. Its agents
do: they report what runs or has ended, and bring those works back. So after a start the hub plans
nothing, and sends no earlier decisions, until every cluster that was not known to be lost has
reported, every work that it reports is on the hub, and the workloads have taken over what came
back. A cluster that is silent for long enough to count as unready is not waited for any longer. One
whose agent is alive but does not report, or brings nothing back, is waited for only until it would
count as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from fairway.api.cluster import Cluster
from fairway.api.names import ADOPTED, OVER, report_name, work_namespace
from fairway.api.report import WorkState
from fairway.api.report_changes import continues
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.adoption import hides, is_later
from fairway.controllers.context import Context
from fairway.controllers.work_states import has_succeeded
from fairway.store.interface import Stored
from fairway.store.keys import REPORTS, WORKS
from fairway.store.mirrors import Name

# Pending and Unready clusters may have reported since the backup was made.
_AWAITED = ("", "Pending", "Ready", "Held", "Unready")
_ALIVE = ("Ready", "Held")
_LEAVING = ("Stopping", "Gone")  # works that agents do not bring back
_LOOK_SECONDS = 0.2
_ADOPTED = f'"{ADOPTED}"'.encode()


class _Spec(msgspec.Struct, rename="camel"):
    cluster: str
    seen_at: datetime
    agent_epoch: int
    sequence: int
    since_sequence: int | None = None
    chunk: int = 0


class _Report(msgspec.Struct):
    """The fields of a report that say which cluster it is from, from when, and of what part."""

    spec: _Spec


class _WorkSpec(msgspec.Struct):
    attempt: int


class _Work(msgspec.Struct):
    """The attempt of a work; there are many, and most have nothing else of interest."""

    spec: _WorkSpec


_decode = msgspec.json.Decoder(_Report).decode
_decode_work = msgspec.json.Decoder(_Work).decode


class Arrivals:
    """Waits for clusters after a start."""

    def __init__(self, context: Context) -> None:
        self._cache = cache = context.cache
        self._roster = context.roster
        self._states = context.states
        self._clock = clock = context.clock
        self._kinds = context.kinds
        self._started_at = clock.now()
        self._began_at: float | None = None  # when the cache was complete
        self._led_since: float | None = None
        self._heard: set[str] = set()
        self._complete: set[str] = set()  # heard, and everything is brought back
        self._missing: dict[str, str] = {}  # by cluster, a work that was not back when last asked
        self._is_over = False
        cache.mirror(REPORTS).followers.append(self._report_changed)

    def begin(self) -> None:
        """The cache is complete: every later report is new."""
        if self._began_at is None:
            self._began_at = self._clock.now()

    def waits_until(self) -> float | None:
        """When to ask again whether the first plan may be made; None: it may be.

        Only a leader asks: workloads take over nothing while nobody leads.
        """
        if self._is_over or self._began_at is None:
            return None
        now = self._clock.now()
        self._led_since = self._led_since or now
        if any(now < due for due in self._dues(self._began_at, self._led_since)):
            return now + _LOOK_SECONDS
        self._is_over = True
        self._heard.clear()
        self._complete.clear()
        self._missing.clear()
        return None

    def is_waiting(self) -> bool:
        """Whether the hub may not know yet all that runs."""
        return not self._is_over and (self._began_at is None or self.waits_until() is not None)

    def _dues(self, began_at: float, led_since: float) -> Iterator[float]:
        """Until when clusters are waited for that have not reported, or have not brought all back.

        A cluster may have reported before this start, and after that of a hub that was restored.
        """
        health = self._cache.fleet().spec.health
        for cluster in self._cache.all(Cluster):
            name, spec = cluster.metadata.name, cluster.spec
            is_awaited = spec.mode == "Manage" and cluster.status.phase in _AWAITED
            if not is_awaited or not spec.accepted:
                continue
            if name not in self._heard:
                is_alive = cluster.status.phase in _ALIVE
                yield (
                    led_since + health.lost_seconds
                    if is_alive
                    else began_at + health.unready_seconds
                )
            if name not in self._complete and self._has_missing(name):
                yield led_since + health.lost_seconds

    def _has_missing(self, cluster: str) -> bool:
        """Whether works that a cluster reports are yet to be brought back or taken over."""
        # Many ask while the hub waits; most often the same work is still missing.
        known = self._states.get(cluster, self._missing.get(cluster, ""))
        if known is not None and self._is_missing(cluster, known):
            return True
        for name, state in self._states.of_cluster(cluster).items():
            if self._is_missing(cluster, state):
                self._missing[cluster] = name
                return True
        if cluster in self._heard:
            self._complete.add(cluster)
        return False

    def _is_missing(self, cluster: str, state: WorkState) -> bool:
        """Whether a work is yet to be brought back, or to be taken over by its workload."""
        if state.phase in _LEAVING:
            return False
        namespace = work_namespace(cluster)
        stored = self._cache.mirror(WORKS).get((namespace, state.work))
        attempt = _decode_work(stored.raw).spec.attempt if stored is not None else 0
        if stored is None or attempt < state.attempt:
            return True
        is_settled = _ADOPTED not in stored.raw and state.phase != "Succeeded"
        if is_settled and attempt == state.attempt:
            return False
        work = self._roster.work(cluster, state.work)
        if work is None:  # the hub did not decide it
            stranger = self._cache.get(Work, state.work, namespace)
            return stranger is not None and hides(stranger, state)
        if is_settled:
            return False
        reference = work.spec.workload
        workload = self._cache.get(Workload, reference.name, reference.namespace)
        if workload is None:
            return False
        return self._will_take_over(workload, work) or self._will_succeed(workload, state.work)

    def _will_take_over(self, workload: Workload, work: Work) -> bool:
        """Whether a workload has yet to get the claim of a work that an agent brought back."""
        return workload.status.phase not in OVER and is_later(work, workload, self._kinds)

    def _will_succeed(self, workload: Workload, work: str) -> bool:
        """Whether all that a workload holds has succeeded, and the workload has yet to say so.

        Copies that are over while others lack a place say so only once this hub plans.
        """
        claim = workload.status.claim
        if claim is None or workload.spec.tasks is not None:
            return False
        return has_succeeded(claim, lambda cluster: self._states.get(cluster, work))

    def _report_changed(self, _name: Name, stored: Stored | None) -> None:
        if self._is_over or stored is None:
            return
        spec = _decode(stored.raw).spec
        # An agent in this process may have reported before the cache was complete.
        is_new = self._began_at is not None or spec.seen_at.timestamp() >= self._started_at
        if is_new and self._is_readable(spec):
            self._heard.add(spec.cluster)

    def _is_readable(self, spec: _Spec) -> bool:
        """Whether a report is whole, or a difference from the whole one that the hub has."""
        if spec.since_sequence is None:
            return True
        stored = self._cache.mirror(REPORTS).get(("", report_name(spec.cluster, spec.chunk)))
        whole = _decode(stored.raw).spec if stored is not None else None
        return whole is not None and continues(whole, spec)
