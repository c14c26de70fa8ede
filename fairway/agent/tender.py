"""Reconciles each work: accepts the hub's version and takes the next action.

One call at a time reconciles a work. Each call decides the action from what is remembered and seen
(`duties`), so repeated calls and crashes in between do no harm.
"""

from __future__ import annotations

import logging
from zlib import crc32

from fairway.agent.adoption import adopt, with_notes
from fairway.agent.drivers.interface import Driver, DriverFault
from fairway.agent.duties import Duty, WorkFacts, dismisses, duty, goes_on, has_live_pods, verdict
from fairway.agent.hub import Hub
from fairway.agent.memory import Kept, Memory
from fairway.agent.settings import AgentSettings, Rate
from fairway.agent.sight import Sight
from fairway.agent.states import FindKind, Told, gone_state, silenced_state, state_of
from fairway.agent.teller import Teller
from fairway.api.governance import Violation
from fairway.api.reasons import Code, violation_sentence
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.governance.cluster_selectors import ClusterFacts
from fairway.governance.works import refusals

_log = logging.getLogger(__name__)

# A stop or removal that has had no effect by then is requested again.
_PATIENCE_SECONDS = 30.0
_OVER = ("Succeeded", "Failed")
POLICY_VIOLATED = Code.POLICY_VIOLATED.value
_MESSAGE_MOST = 1_024


class Tender:
    """Reconciles the works of one cluster."""

    def __init__(
        self,
        memory: Memory,
        sight: Sight,
        driver: Driver,
        hub: Hub,
        teller: Teller,
        *,
        find_kind: FindKind,
        clock: Clock,
        settings: AgentSettings,
    ) -> None:
        self.settings = settings
        self.offered: dict[str, Work] = {}  # what the hub has
        self.knows_hub = False  # whether all works of the hub are known
        self.cluster: ClusterFacts | None = None  # what selectors look at; None: not heard yet
        self._memory = memory
        self._sight = sight
        self._driver = driver
        self._hub = hub
        self._teller = teller
        self._find_kind = find_kind
        self._clock = clock
        self._applied: dict[str, tuple[Work, float]] = {}
        self._asked: dict[str, tuple[Duty, float]] = {}
        self._failures: dict[str, tuple[int, float]] = {}  # how many, and when to try again
        self._dismissed: set[str] = set()  # works that the hub deleted, and has not lost
        self._deletions = Rate()

    @property
    def may_act(self) -> bool:
        """Whether the cluster may be changed: only in mode Manage."""
        return self._memory.mode == "Manage"

    def offer(self, name: str, work: Work | None, *, is_deleted: bool = False) -> None:
        """Takes the work as the hub has it now; `is_deleted` if the hub is known to delete it."""
        if work is not None:
            self.offered[name] = work
            self._dismissed.discard(name)
            return
        before, kept = self.offered.pop(name, None), self._memory.works.get(name)
        if is_deleted and before is not None and (kept is None or dismisses(before, kept)):
            self._dismissed.add(name)

    def needs(self, name: str) -> bool:
        """Whether a work needs an action, by a cheap check."""
        kept = self._memory.works.get(name)
        if kept is None:
            return name in self.offered or self._sight.work(name) is not None
        return self._duty(name, kept) != "Nothing"

    async def tend(self, name: str) -> float | None:
        """Takes the next action for a work; returns when to reconcile it again, if at all."""
        if not self.may_act:
            self._teller.look([name])
            return None
        await self._accept(name)
        kept = self._memory.works.get(name)
        if kept is None:
            return await self._tend_unknown(name)
        state = self._teller.final_state(name)
        if state is not None:
            await self._memory.end(name, state)
            kept = self._memory.works[name]
        again_at: float | None = None
        if self._sight.observation is not None:
            again_at = await self._do(self._duty(name, kept), name, kept)
        if self._sight.is_fresh(name):
            self._teller.look([name])  # otherwise the next look shows the effect
        return again_at

    async def _accept(self, name: str) -> None:
        offered = self.offered.get(name)
        if offered is None:
            return
        kept = self._memory.works.get(name)
        is_here = kept is None and self._is_here(offered)
        result = verdict(offered, kept, self._memory.term, is_here=is_here)
        if result == "Accepted" and (broken := self._broken_rules(offered, kept)):
            message = "; ".join(map(violation_sentence, broken))[:_MESSAGE_MOST]
            _log.info("%s: the work %s is refused: %s", self._hub.cluster, name, message)
            self._teller.refuse(name, POLICY_VIOLATED, message)
            return
        if result == "Accepted":
            await self._memory.keep(offered, goes_on=goes_on(offered, kept))
            self._asked.pop(name, None)
            self._failures.pop(name, None)
        if result in ("Accepted", "Known"):
            self._teller.accept(name)
        else:
            _log.info("%s: the work %s is refused: %s", self._hub.cluster, name, result)
            self._teller.refuse(name, result)

    def _is_here(self, offered: Work) -> bool:
        """Whether a work is in the cluster as it says."""
        seen = self._sight.work(offered.metadata.name)
        return seen is not None and seen.attempt == offered.spec.attempt

    def _broken_rules(self, offered: Work, kept: Kept | None) -> list[Violation]:
        """What fleet policies do not allow in a work; what already runs is the hub's to stop."""
        if kept is None and self._sight.work(offered.metadata.name) is not None:
            return []
        before = kept.work.spec if kept is not None else None
        return refusals(offered.spec, before, self.cluster)

    def _duty(self, name: str, kept: Kept) -> Duty:
        applied, at = self._applied.get(name, (None, 0.0))
        is_fresh, seen = self._sight.is_fresh(name), self._sight.work(name)
        is_there = seen is not None or not is_fresh
        is_due = self._clock.now() >= at + self._drift(name)
        result = duty(
            WorkFacts(
                kept=kept,
                seen=seen,
                is_on_hub=name in self.offered or not self.knows_hub,
                is_dismissed=name in self._dismissed,
                is_applied=applied is kept.work and is_there and not is_due,
                is_frozen=self._teller.is_frozen(name),
                silent_seconds=self._hub.silent_seconds(),
            )
        )
        # Only a look that began after the last action shows whether pods or objects are left.
        return "Nothing" if result in ("Gone", "Forget", "Remove") and not is_fresh else result

    async def _do(self, what: Duty, name: str, kept: Kept) -> float | None:
        now = self._clock.now()
        _, again_at = self._failures.get(name, (0, 0.0))
        if what != "Nothing" and now < again_at:
            return again_at
        asked, at = self._asked.get(name, ("Nothing", 0.0))
        if what in ("Stop", "Remove") and asked == what and now < at + _PATIENCE_SECONDS:
            return at + _PATIENCE_SECONDS
        match what:
            case "Nothing":
                return self._next_look(name, kept)
            case "PutBack":
                await self._hub.put_back(kept.work, has_ended=kept.ended is not None)
                return None
            case "Forget":
                await self._forget(name)
                return None
            case "Gone":
                await self._memory.end(name, gone_state(kept))
                return None
            case "StopSince":
                seconds = self._hub.silent_seconds()
                await self._memory.end(name, silenced_state(kept, seconds=seconds, now=now))
                return await self._touch("Stop", name, kept)
            case "Stop" if kept.work.spec.tombstone:
                delay = self._deletions.take(self.settings.deletions_per_second, now)
                return now + delay if delay else await self._touch(what, name, kept)
            case _:
                return await self._touch(what, name, kept)

    async def _touch(self, what: Duty, name: str, kept: Kept) -> float | None:
        """Has the driver act; if it fails, records why and retries later."""
        work, now = kept.work, self._clock.now()
        try:
            match what:
                case "Apply":
                    await self._driver.apply(with_notes(work))
                    self._applied[name] = (work, now)
                case "Stop":
                    await self._driver.stop(name, work.spec.stop)
                case _:
                    await self._driver.remove(name)
        except DriverFault as fault:
            return self._fail(name, fault)
        finally:
            self._sight.touch(name)
        self._asked[name] = (what, now)
        self._failures.pop(name, None)
        self._teller.fault(name, "")
        return self._next_look(name, kept) if what == "Apply" else now + _PATIENCE_SECONDS

    def _fail(self, name: str, fault: DriverFault) -> float:
        failures, _ = self._failures.get(name, (0, 0.0))
        delay = min(self.settings.retry_seconds * 2.0**failures, self.settings.retry_seconds_max)
        again_at = self._clock.now() + delay
        self._failures[name] = (failures + 1, again_at)
        self._teller.fault(name, str(fault) or type(fault).__name__)
        return again_at

    def _next_look(self, name: str, kept: Kept) -> float | None:
        """When the next action may change by the passage of time alone."""
        if kept.ended is not None or kept.work.spec.tombstone:
            return None
        moments = []
        if name in self._applied and not self._teller.is_frozen(name):
            moments.append(self._applied[name][1] + self._drift(name))
        limit = kept.work.spec.stop_when_silent_seconds
        if limit is not None:
            moments.append(self._hub.silent_at(limit))
        return min(moments, default=None)

    def _drift(self, name: str) -> float:
        """How long until a work is applied again; spread by name, to avoid bursts."""
        return self.settings.drift_seconds * (0.75 + crc32(name.encode()) % 1000 / 2000)

    async def _tend_unknown(self, name: str) -> float | None:
        """Adopts what runs in the cluster but is unknown to the hub and to memory."""
        seen = self._sight.work(name)
        if seen is None and self._sight.is_fresh(name):
            self._drop(name)
        if seen is None or not self._sight.is_fresh(name) or not self.knows_hub:
            return None
        if name in self.offered:
            return None  # the hub's version was refused
        work = adopt(
            seen,
            cluster=self._hub.cluster,
            namespace=self._hub.namespace,
            term=self._memory.term,
        )
        if work is None:
            return None
        state = state_of(
            Kept(work=work), seen, Told(), find_kind=self._find_kind, now=self._clock.now()
        )
        if any(pod.phase == "Terminating" for pod in seen.pods) and not has_live_pods(seen):
            return None  # it is stopping: what is brought back would start again
        if state.phase in _OVER or not has_live_pods(seen):
            return await self._touch("Remove", name, Kept(work=work))
        await self._memory.keep(work)
        self._applied[name] = (self._memory.works[name].work, self._clock.now())
        await self._hub.put_back(work)
        self._teller.look([name])
        return None

    async def _forget(self, name: str) -> None:
        await self._memory.forget(name)
        self._drop(name)

    def _drop(self, name: str) -> None:
        """Drops what is kept of a work that has nothing left in memory or in the cluster."""
        self._teller.look([name])
        for table in (self._applied, self._asked, self._failures):
            table.pop(name, None)
        self._dismissed.discard(name)
