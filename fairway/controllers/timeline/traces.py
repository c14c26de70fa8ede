"""Traces: follows the lives of all workloads, and hands on what has ended of them.

Every replica follows, whether or not it leads, so that the next leader goes on where the last one
stopped. What had ended when a process read the first list was for others to tell, who saw it.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.api.names import work_name
from fairway.controllers.context import Context
from fairway.controllers.glance import glance
from fairway.controllers.timeline.lives import Followed, Life, born, deleted, follow, made
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name
from fairway.tracing.spans import TraceSpan


class Traces:
    """The lives of all workloads that the store has."""

    def __init__(self, context: Context, tell: Callable[[TraceSpan], None]) -> None:
        self._clock = context.clock
        self._states = context.states
        self._roster = context.roster
        self._tell = tell
        self._lives: dict[Name, Life] = {}
        self._mirror = context.cache.mirror(WORKLOADS)
        self._mirror.followers.append(self._workload_changed)
        context.states.followers.append(self._state_changed)

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        now = self._clock.now()
        before = self._lives.get(name)
        if stored is None:
            if before is not None:
                del self._lives[name]
                self._hand_on(deleted(before, now))
            return
        seen = glance(stored)
        if seen is None:
            return
        if before is not None and before.uid != seen.metadata.uid:
            self._hand_on(deleted(before, now))
            before = None
        followed = follow(before or born(seen, now), seen, now)
        if before is not None or self._mirror.is_complete.is_set():
            self._hand_on(followed)
        self._lives[name] = self._with_pods(name, followed.life, now)

    def _with_pods(self, name: Name, life: Life, now: float) -> Life:
        """A life with what is reported already; a report may come before the decision is seen."""
        for cluster, _ in life.expected if life.stage == "starting" else ():
            state = self._states.get(cluster, work_name(*name))
            if state is not None:
                life = made(life, cluster, state, now)
        return life

    def _state_changed(self, cluster: str, work: str) -> None:
        name = self._roster.workload_of(work)
        life = self._lives.get(name) if name is not None else None
        if name is None or life is None or life.stage != "starting":
            return
        self._lives[name] = self._with_pods(name, life, self._clock.now())

    def _hand_on(self, followed: Followed) -> None:
        for span in followed.spans:
            self._tell(span)
