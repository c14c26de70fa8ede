"""The scheduler: what wakes it, and what it then does.

Every object that a decision may depend on is fed to the planner as it changes; a change wakes the
scheduler at once. It then plans in parts, and commits each part before the next. Only the leader
plans; a follower keeps its planner fed, so that it can take over at once.

Why a workload waits is written to its status as a code, after a short delay, at a limited rate and
only if it changed: people read it, and a workload that starts at once needs no such write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_fields
from datetime import UTC, datetime
from itertools import islice

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.cluster import Cluster, pools_of
from fairway.api.errors import ApiError, NotFound, Unavailable
from fairway.api.flavor import Flavor
from fairway.api.names import namespace_and_name
from fairway.api.reasons import Reason
from fairway.api.workload import Workload
from fairway.controllers.context import Context
from fairway.controllers.kept_lines import LineKeeper, NoLineKeeper
from fairway.controllers.scheduling import breaker_limits
from fairway.controllers.scheduling.arrivals import Arrivals
from fairway.controllers.scheduling.breaker_limits import Restrained
from fairway.controllers.scheduling.claims import Batch
from fairway.controllers.scheduling.commit import (
    BY_SCHEDULER,
    Committer,
    Outcome,
    deals_of,
    write_status,
)
from fairway.controllers.scheduling.decisions import Decisions
from fairway.controllers.scheduling.never_starts import with_never
from fairway.controllers.scheduling.planner import PlannerFault, PlannerLost
from fairway.controllers.scheduling.planner_state import Fed, Planned, SetAside
from fairway.controllers.scheduling.questions import Question, T
from fairway.controllers.scheduling.record import RecordingPlanner
from fairway.controllers.terms import NotLeader
from fairway.loops import Alarm
from fairway.store import keys
from fairway.store.interface import ResourceKey, Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Follower, Mirror, Name, is_newer
from fairway.view.prices import node_price

_log = logging.getLogger(__name__)

FED = (
    keys.FLEETS,
    keys.PRIORITY_CLASSES,
    keys.NAMESPACES,
    keys.FLEET_POLICIES,
    keys.KIND_RULES,
    keys.VOLUME_CLAIMS,
    keys.DEVICE_CLAIMS,
    keys.DEVICE_CLAIM_TEMPLATES,
    keys.FLAVORS,
    keys.QUEUES,
    keys.POLICIES,
    keys.CLUSTER_SCORES,
    keys.CLUSTERS,
    keys.REPORTS,
    keys.WORKLOADS,
)
_FED_MOST = 250  # events in one message to the planner; more would delay other calls
_AGAIN_SECONDS = 1.0  # until the next plan, if the term was not written or writes are unsure
_BACK_OFF_SECONDS = 0.05  # after a plan of which nothing was written; doubles
_BACK_OFF_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of the scheduler."""

    budget: int = 1_000  # decisions in one part of a plan
    code_after_seconds: float = 2.0  # how long a workload waits before its code is written
    codes_per_second: float = 50.0
    codes_most: int = 100_000  # that wait to be written; further ones are dropped until they change


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """What is to be written of a workload that waits."""

    code: str
    due: float
    never: Reason | None = None


Observer = Callable[[Planned, Outcome, int], None]
TimeObserver = Callable[[Planned, float], None]


class Scheduler:
    """The scheduling controller."""

    def __init__(
        self,
        context: Context,
        *,
        planner: RecordingPlanner,
        settings: Settings,
        keeper: LineKeeper | None = None,
    ) -> None:
        """`keeper` keeps decisions for the next hub."""
        self.decisions = Decisions(keeper or NoLineKeeper())
        self._store = context.store
        self._cache = context.cache
        self._planner = planner
        self._terms = context.terms
        self._clock = context.clock
        self._shared = context.shared
        self._notes = context.notes
        self._settings = settings
        self._committer = Committer(
            context.store, self._latest, lambda: context.terms.is_leader, tell=context.notes.tell
        )
        self._alarm = Alarm(context.clock)
        self._arrivals = Arrivals(context)
        context.shared.awaits_clusters = self._arrivals.is_waiting
        # Events for the planner: the latest of each object, after its removal if it had one.
        self._pending: dict[tuple[ResourceKey, Name, bool], Fed] = {}
        self._echoes: dict[Name, Stored] = {}  # written, and not yet delivered by the watch
        self._unsure: dict[str, str] = {}  # see `Outcome`
        self._failures = 0  # plans in a row of which nothing was written
        self._has_run = self._is_lost = self._is_closed = self._may_plan = False
        # What is to be written of workloads that wait; of those that can never start it is urgent.
        self._codes: dict[str, _Word] = {}
        self._urgent: dict[str, _Word] = {}
        self._code_alarm = Alarm(context.clock)
        self.observers: list[Observer] = []
        self.time_observers: list[TimeObserver] = []  # get each part of a plan, with its seconds
        self.failure_observers: list[Callable[[], None]] = []  # called when a planner failed
        for kind in FED:
            mirror = context.cache.mirror(kind)
            mirror.followers.append(self._follower(mirror))

    def _follower(self, mirror: Mirror) -> Follower:
        last: dict[Name, Stored] = {}
        kind = mirror.kind

        def follow(name: Name, stored: Stored | None) -> None:
            if kind == WORKLOADS and self._is_behind(name, stored):
                return  # the watch delivers the version that we wrote soon
            self._pending.pop((kind, name, False), None)
            if stored is not None:
                last[name] = stored
                self._pending[kind, name, False] = Fed(stored.raw)
            elif name in last:
                self._pending[kind, name, True] = Fed(last.pop(name).raw, is_removed=True)
            self._alarm.mark()

        return follow

    def _is_behind(self, name: Name, stored: Stored | None) -> bool:
        """Whether an event is older than our own write; if not, the write is no longer awaited."""
        echo = self._echoes.get(name)
        if echo is not None and stored is not None and is_newer(echo, stored):
            return True
        self._echoes.pop(name, None)
        return False

    def _latest(self, name: Name) -> Stored | None:
        """A workload as the watch delivered it, or as we wrote it since."""
        return self._echoes.get(name) or self._cache.mirror(WORKLOADS).get(name)

    async def _forget(self, keys: Iterable[str]) -> None:
        """Drops decisions that were not written; earlier writes still hold, delivered or not."""
        forgotten = sorted(keys)
        await self._planner.forget(forgotten)
        for key in forgotten:
            name = namespace_and_name(key)
            echo = self._echoes.get(name)
            if echo is not None:
                self._pending[WORKLOADS, name, False] = Fed(echo.raw)

    def begin(self) -> None:
        """Plans from now on, as long as its replica leads."""
        self._may_plan = True
        self._alarm.mark()

    def cease(self) -> None:
        self._may_plan = False

    def _leads(self) -> bool:
        return self._may_plan and self._terms.is_leader

    async def run(self) -> None:
        """Plans whenever there is something to plan, until cancelled."""
        await self._feed_as_read()
        self._arrivals.begin()
        if self._has_run:
            await self._restart()  # it failed, and may have assumed writes that never came
        self._has_run = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_codes())
            wake_at: float | None = None
            while True:
                try:
                    if self._is_lost:
                        await self._restart()
                    await self._feed()
                    if not self._leads() or self._cache.fleet().spec.paused:
                        # A scheduler that does not plan is woken by events, not by an old timer.
                        wake_at = None
                    elif (awaited := self._arrivals.waits_until()) is not None:
                        wake_at = awaited
                    else:
                        wake_at = await self._plan()
                    if self._planner.wants_restart:
                        await self._restart()
                except PlannerLost as fault:
                    _log.error("the planner is lost, another one begins: %s", fault)
                    self._count_failure()
                    await self._restart()
                    continue
                except PlannerFault:
                    self._count_failure()
                    raise
                await self._alarm.wait(wake_at)

    async def _feed_as_read(self) -> None:
        """Waits until the cache is complete; meanwhile feeds the planner what was read."""
        complete = asyncio.ensure_future(self._cache.complete())
        complete.add_done_callback(lambda _: self._alarm.mark())
        try:
            while not complete.done():
                await self._feed()
                await self._alarm.wait()
        except PlannerLost as fault:
            _log.error("the planner is lost, another one begins: %s", fault)
            self._count_failure()
            self._is_lost = True
            await complete
        finally:
            complete.cancel()

    async def _restart(self) -> None:
        """Starts a new planner and feeds it all objects."""
        await self._planner.restart(self._everything, _FED_MOST)

    def _count_failure(self) -> None:
        for observe in self.failure_observers:
            observe()

    def _everything(self) -> list[Fed]:
        self._is_lost = False
        self._pending.clear()
        self._unsure.clear()
        return [
            Fed((self._echoes.get(name, stored) if kind == WORKLOADS else stored).raw)
            for kind in FED
            for name, stored in self._cache.mirror(kind).items()
        ]

    async def _feed(self) -> None:
        while self._pending:
            await self._planner.feed(self._take)

    def _take(self) -> list[Fed]:
        """The next events for the planner.

        They are taken only when it is ready for them, so none is lost if the caller is cancelled.
        """
        return [self._pending.pop(pair) for pair in list(islice(self._pending, _FED_MOST))]

    async def _plan(self) -> float | None:
        """Plans and commits until nothing is left to decide; returns when to plan again."""
        while True:
            await self._make_sure()
            began = self._clock.monotonic()
            planned = await self._planner.plan(self._clock.now(), self._settings.budget)
            for observe_time in self.time_observers:
                observe_time(planned, self._clock.monotonic() - began)
            outcome = Outcome()
            if planned.steps or planned.reservations or planned.refused:
                try:
                    outcome = await self._commit(planned)
                except (NotLeader, ApiError, OSError) as fault:
                    # Nothing was written yet: the term would have been the first write.
                    _log.warning("what was planned is dropped, the term is not ours: %r", fault)
                    await self._forget(
                        {*planned.refused, *(step.workload for step in planned.steps)}
                    )
                    return self._clock.now() + _AGAIN_SECONDS
            self._note_codes(planned)
            await self._tell_of(planned.set_aside)
            is_futile = bool(outcome.refused) and not outcome.stored
            self._failures = self._failures + 1 if is_futile else 0
            if is_futile:
                return self._clock.now() + self._back_off()
            if planned.is_done and not outcome.refused:
                return self._clock.now() + _AGAIN_SECONDS if self._unsure else planned.wake_at
            await self._feed()

    async def _tell_of(self, set_aside: Sequence[SetAside]) -> None:
        """Reports the objects that are set aside because they cannot be decoded."""
        for other in set_aside:
            _log.error(
                "%s %s/%s is set aside: %s", other.kind, other.namespace, other.name, other.fault
            )
            for mirror in (self._cache.mirror(kind) for kind in FED):
                stored = mirror.get((other.namespace, other.name))
                if stored is None or stored.object().get("kind") != other.kind:
                    continue
                await self._notes.warn(stored.object(), "Unreadable", other.fault)

    def _back_off(self) -> float:
        doubled: float = _BACK_OFF_SECONDS * 2 ** min(self._failures, 10)
        return min(doubled, _BACK_OFF_SECONDS_MAX)

    async def _commit(self, planned: Planned) -> Outcome:
        term = await self._terms.advance()
        batch = Batch(
            now=planned.now,
            term=term,
            fleet=self._cache.fleet().spec,
            priorities=planned.priorities,
            queues=planned.queues,
            run_limits=planned.run_limits,
        )
        for fault in planned.faults or ():
            _log.error("a plan breaks a rule, and is carried out all the same: %s", fault)
        allowed = self._restrain(planned)
        outcome = await self._committer.commit(with_fields(planned, steps=allowed.steps), batch)
        for workload, stored in outcome.stored.items():
            self._await_echo(workload, stored)
        for name, nanos in breaker_limits.count_steps(
            allowed.steps, outcome.written, self._price_of
        ):
            self._shared.spend(name, nanos)
        if allowed.refused:
            # The core learns of an open breaker from the fleet's status, and then plans again.
            _log.warning("breakers are open, and stop decisions: %s", allowed.refused)
            await self._forget(allowed.refused.keys() - outcome.refused.keys())
        if outcome.refused:
            _log.info("%d decisions were not written: %s", len(outcome.refused), outcome.refused)
            unheard = outcome.awaited | outcome.unsure.keys()
            self._unsure.update(outcome.unsure)
            await self._forget(outcome.refused.keys() - unheard)
        refused = allowed.refused.keys() | outcome.refused.keys()
        self.decisions.note(planned, refused - outcome.unsure.keys())
        for observe in self.observers:
            observe(planned, outcome, term)
        return outcome

    def _await_echo(self, name: Name, stored: Stored) -> None:
        """Remembers a write until the watch delivers it: a planner that restarts needs it."""
        before = self._cache.mirror(WORKLOADS).get(name)
        if before is not None and is_newer(stored, before):
            self._echoes[name] = stored

    async def _make_sure(self) -> None:
        """Reads from the store whether failed writes took effect; until then they count as done."""
        for key, version in list(self._unsure.items()):
            namespace, name = namespace_and_name(key)
            try:
                stored = await self._store.get(WORKLOADS, name, namespace)
            except NotFound:
                del self._unsure[key]  # the watch delivers the removal soon
                continue
            except (ApiError, OSError) as fault:
                _log.info("%s: whether it was written is not known yet: %s", key, fault)
                return
            self._unsure.pop(key, None)
            self._await_echo((namespace, name), stored)
            if stored.object()["metadata"]["resourceVersion"] == version:
                await self._forget([key])

    def _restrain(self, planned: Planned) -> Restrained:
        return breaker_limits.restrain(
            deals_of(planned.steps),
            self._shared.breakers,
            self._cache.fleet().spec.breakers,
            now=self._clock.now(),
            price_of=self._price_of,
        )

    def _price_of(self, cluster: str, pool: str) -> int:
        """The hourly price of one node of a pool; 0 if it has no price."""
        known = self._cache.get(Cluster, cluster)
        for other in pools_of(known) if known is not None else ():
            if known is not None and other.name == pool:
                return node_price(known, other, self._cache.all(Flavor)) or 0
        return 0

    async def ask(self, question: Question[T]) -> T:
        """Answers a question from the current state of the hub."""
        with self._guard_answer():
            await self._feed()
            return await self._planner.ask(question, self._clock.now())

    @contextmanager
    def _guard_answer(self) -> Iterator[None]:
        """Asks for a retry while the hub starts or ends; replaces a planner that failed."""
        if self._is_closed or not self._has_run:
            raise _later("the hub is starting or ending")
        try:
            yield
        except (PlannerLost, PlannerFault) as fault:
            _log.error("the planner failed to answer: %s", fault)
            self._count_failure()
            self._is_lost = True
            self._alarm.mark()
            raise _later("the planner restarts") from fault

    async def close(self) -> None:
        """Stops the planner; answers no more questions."""
        self._is_closed = True
        await self._planner.close()

    # Codes for why workloads wait.

    def _note_codes(self, planned: Planned) -> None:
        for step in planned.steps:
            self._codes.pop(step.workload, None)
            self._urgent.pop(step.workload, None)
        now = self._clock.now()
        for key, code in planned.codes.items():
            self._urgent.pop(key, None)
            before, never = self._codes.get(key), planned.never.get(key)
            if never is not None:
                self._codes.pop(key, None)
                self._urgent[key] = _Word(code=code, never=never, due=now)
            elif before is not None or len(self._codes) < self._settings.codes_most:
                due = before.due if before else now + self._settings.code_after_seconds
                self._codes[key] = _Word(code=code, due=due)
        if planned.codes:
            self._code_alarm.mark()

    async def _write_codes(self) -> None:
        while True:
            words = self._urgent or self._codes
            if not words:
                await self._code_alarm.wait()
                continue
            key, word = next(iter(words.items()))
            if self._clock.now() < word.due:
                await self._code_alarm.wait(word.due)
                continue
            del words[key]
            if self._leads() and await self._write_code(key, word):
                await self._clock.sleep(1 / self._settings.codes_per_second)
            else:
                await asyncio.sleep(0)  # 100,000 codes without a write must not block the loop

    async def _write_code(self, key: str, word: _Word) -> bool:
        stored = self._cache.mirror(WORKLOADS).get(namespace_and_name(key))
        if stored is None:
            return False
        body = stored.object()
        workload = codec.decode(body, Workload)
        status = workload.status
        if status.claim is not None or status.phase not in (None, "Waiting"):
            return False
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        changed = replace(
            with_never(workload, status, word.never, moment),
            phase="Waiting",
            reason=word.code,
            message=status.message if status.reason == word.code else "",
            queued_at=status.queued_at or workload.metadata.creation_timestamp,
        )
        if status == replace(changed, queued_at=status.queued_at):
            return False
        try:
            await write_status(self._store, body, changed, BY_SCHEDULER)
            self._notes.tell(workload, changed)
        except (ApiError, OSError) as fault:
            _log.debug("%s: its code was not written: %s", key, fault)
            again = self._clock.now() + self._settings.code_after_seconds
            words = self._codes if word.never is None else self._urgent
            words.setdefault(key, with_fields(word, due=again))
        return True


def _later(why: str) -> Unavailable:
    return Unavailable(f"{why}, ask again in a moment", details={"retryAfterSeconds": 1})
