"""The scheduler: what wakes it, and what it does then.

Everything that a decision may look at is fed to the planner as it changes; a change wakes the
scheduler at once. It then plans part by part, and commits each part before the next. Only the
leader plans; a follower keeps its planner fed, so that it can take over in a moment.

Why workloads wait is written as a code, after they have waited a little, at a limited rate and only
where it changed: it is worth a write for a person to read, not for a workload that starts at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_fields
from itertools import islice

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.cluster import Cluster, pools_of
from fairway.api.errors import ApiError, NotFound, Unavailable
from fairway.api.flavor import Flavor
from fairway.api.names import namespace_and_name
from fairway.api.workload import Workload
from fairway.clock import Clock
from fairway.controllers.cache import Cache
from fairway.controllers.object_events import Notes
from fairway.controllers.scheduling import breaker_limits
from fairway.controllers.scheduling.arrivals import Arrivals
from fairway.controllers.scheduling.breaker_limits import Restrained
from fairway.controllers.scheduling.claims import Context
from fairway.controllers.scheduling.commit import (
    BY_SCHEDULER,
    Committer,
    Outcome,
    deals_of,
    write_status,
)
from fairway.controllers.scheduling.planner import PlannerFault, PlannerLost
from fairway.controllers.scheduling.planner_state import Fed, Planned, SetAside
from fairway.controllers.scheduling.questions import Question, T
from fairway.controllers.scheduling.record import RecordingPlanner
from fairway.controllers.shared_state import SharedState
from fairway.controllers.terms import NotLeader, Terms
from fairway.loops import Alarm
from fairway.store import keys
from fairway.store.interface import ResourceKey, Store, Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Follower, Mirror, Name, is_newer
from fairway.view.prices import node_price

_log = logging.getLogger(__name__)

FED = (
    keys.FLEETS,
    keys.PRIORITY_CLASSES,
    keys.NAMESPACES,
    keys.KIND_RULES,
    keys.VOLUME_CLAIMS,
    keys.FLAVORS,
    keys.QUEUES,
    keys.POLICIES,
    keys.CLUSTERS,
    keys.REPORTS,
    keys.WORKLOADS,
)
_FED_MOST = 250  # events in one message to the planner; more would keep others waiting
_AGAIN_SECONDS = 1.0  # until a plan whose term could not be written is made anew
_BACK_OFF_SECONDS = 0.05  # after a plan of which nothing could be written; doubles
_BACK_OFF_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is done at a time."""

    budget: int = 1_000  # decisions in one part of a plan
    code_after_seconds: float = 2.0  # how long a workload waits before it is told why
    codes_per_second: float = 50.0
    codes_most: int = 100_000  # that wait to be written; more are told when they change again


Observer = Callable[[Planned, Outcome, int], None]


class Scheduler:
    """The scheduling controller."""

    def __init__(
        self,
        *,
        store: Store,
        cache: Cache,
        planner: RecordingPlanner,
        terms: Terms,
        clock: Clock,
        board: SharedState | None = None,
        notes: Notes | None = None,
        settings: Settings = Settings(),  # noqa: B008 - frozen
    ) -> None:
        self._store = store
        self._cache = cache
        self._planner = planner
        self._terms = terms
        self._clock = clock
        self._board = board or SharedState(clock)
        self._notes = notes or Notes(store, clock)
        self._settings = settings
        self._committer = Committer(store, self._latest, lambda: terms.is_leader)
        self._alarm = Alarm(clock)
        self._arrivals = Arrivals(cache, clock)
        if board is not None:
            board.awaits_clusters = self._arrivals.is_waiting
        # What the planner is to be told: of each object the last, after its removal if it had one.
        self._pending: dict[tuple[ResourceKey, Name, bool], Fed] = {}
        self._echoes: dict[Name, Stored] = {}  # what was written and is not told of yet
        self._unsure: dict[str, str] = {}  # see `Outcome`
        self._failures = 0  # plans in a row of which nothing could be written
        self._has_run = self._is_lost = self._is_closed = self._may_plan = False
        self._codes: dict[str, tuple[str, float]] = {}  # workload -> (code, when to write it)
        self._code_alarm = Alarm(clock)
        self.observers: list[Observer] = []
        for kind in FED:
            mirror = cache.mirror(kind)
            mirror.followers.append(self._follower(mirror))

    def _follower(self, mirror: Mirror) -> Follower:
        last: dict[Name, Stored] = {}
        kind = mirror.kind

        def follow(name: Name, stored: Stored | None) -> None:
            if kind == WORKLOADS and self._is_behind(name, stored):
                return  # of what was written since one is told in a moment
            self._pending.pop((kind, name, False), None)
            if stored is not None:
                last[name] = stored
                self._pending[kind, name, False] = Fed(stored.raw)
            elif name in last:
                self._pending[kind, name, True] = Fed(last.pop(name).raw, is_removed=True)
            self._alarm.mark()

        return follow

    def _is_behind(self, name: Name, stored: Stored | None) -> bool:
        """Whether a workload is told of as it was before we wrote it; else nothing is awaited."""
        echo = self._echoes.get(name)
        if echo is not None and stored is not None and is_newer(echo, stored):
            return True
        self._echoes.pop(name, None)
        return False

    def _latest(self, name: Name) -> Stored | None:
        """A workload as it was told of, or as we wrote it since."""
        return self._echoes.get(name) or self._cache.mirror(WORKLOADS).get(name)

    async def _forget(self, keys: Iterable[str]) -> None:
        """These were not written; what was written of them before still holds, told of or not."""
        forgotten = sorted(keys)
        await self._planner.forget(forgotten)
        for key in forgotten:
            name = namespace_and_name(key)
            echo = self._echoes.get(name)
            if echo is not None:
                self._pending[WORKLOADS, name, False] = Fed(echo.raw)

    def begin(self) -> None:
        """From now on it plans, as long as its replica leads."""
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
            await self._restart()  # it failed somewhere, and may have assumed what never came
        self._has_run = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_codes())
            wake_at: float | None = None
            while True:
                try:
                    if self._is_lost:
                        await self._restart()
                    await self._feed()
                    awaited = self._arrivals.waits_until()
                    if awaited is not None:
                        wake_at = awaited
                    elif self._leads() and not self._cache.fleet().spec.paused:
                        wake_at = await self._plan()
                    else:
                        # Who does not plan is woken by an event, never by the hour of an old plan.
                        wake_at = None
                    if self._planner.wants_restart:
                        await self._restart()
                except PlannerLost as fault:
                    _log.error("the planner is lost, another one begins: %s", fault)
                    await self._restart()
                    continue
                await self._alarm.wait(wake_at)

    async def _feed_as_read(self) -> None:
        """Waits until all there is was read; meanwhile the planner takes in what is read."""
        complete = asyncio.ensure_future(self._cache.complete())
        complete.add_done_callback(lambda _: self._alarm.mark())
        try:
            while not complete.done():
                await self._feed()
                await self._alarm.wait()
        except PlannerLost as fault:
            _log.error("the planner is lost, another one begins: %s", fault)
            self._is_lost = True
            await complete
        finally:
            complete.cancel()

    async def _restart(self) -> None:
        """Another planner, fed with everything there is."""
        await self._planner.restart(self._everything, _FED_MOST)

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
        """What the planner is told next; asked for only once it listens, so nothing is lost if
        whoever feeds it is cancelled while waiting for that."""
        return [self._pending.pop(pair) for pair in list(islice(self._pending, _FED_MOST))]

    async def _plan(self) -> float | None:
        """Plans and commits until nothing is left to decide; when to look again."""
        while True:
            await self._make_sure()
            planned = await self._planner.plan(self._clock.now(), self._settings.budget)
            outcome = Outcome()
            if planned.steps or planned.reservations:
                try:
                    outcome = await self._commit(planned)
                except (NotLeader, ApiError, OSError) as fault:
                    # Nothing was written yet: the first thing that is would be the term.
                    _log.warning("what was planned is dropped, the term is not ours: %r", fault)
                    dropped = {step.workload for step in planned.steps}
                    self._planner.take_back(dropped, planned.now)
                    await self._forget(dropped)
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
        """Says of objects that cannot be read that they are set aside, and why."""
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
        context = Context(
            now=planned.now,
            term=term,
            fleet=self._cache.fleet().spec,
            priorities=planned.priorities,
            queues=planned.queues,
        )
        for fault in planned.faults or ():
            _log.error("a plan breaks a rule, and is carried out all the same: %s", fault)
        allowed = self._restrain(planned)
        outcome = await self._committer.commit(with_fields(planned, steps=allowed.steps), context)
        for workload, stored in outcome.stored.items():
            self._await_echo(workload, stored)
        for name, nanos in breaker_limits.count_steps(
            allowed.steps, outcome.written, self._price_of
        ):
            self._board.spend(name, nanos)
        if allowed.refused:
            # The core is told of an open breaker by the fleet's status, and then plans again.
            _log.warning("breakers are open, and stop decisions: %s", allowed.refused)
            await self._forget(allowed.refused.keys() - outcome.refused.keys())
        if outcome.refused:
            _log.info("%d decisions were not written: %s", len(outcome.refused), outcome.refused)
            unheard = outcome.awaited | outcome.unsure.keys()
            self._unsure.update(outcome.unsure)
            await self._forget(outcome.refused.keys() - unheard)
        refused = allowed.refused.keys() | outcome.refused.keys()
        self._planner.take_back(refused - outcome.unsure.keys(), planned.now)
        for observe in self.observers:
            observe(planned, outcome, term)
        return outcome

    def _await_echo(self, name: Name, stored: Stored) -> None:
        """A planner that begins before it is told of this must know of it all the same."""
        before = self._cache.mirror(WORKLOADS).get(name)
        if before is not None and is_newer(stored, before):
            self._echoes[name] = stored

    async def _make_sure(self) -> None:
        """Asks the store what became of writes that failed; until it answers they count."""
        for key, version in list(self._unsure.items()):
            namespace, name = namespace_and_name(key)
            try:
                stored = await self._store.get(WORKLOADS, name, namespace)
            except NotFound:
                del self._unsure[key]  # which is told in a moment
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
            self._board.breakers,
            self._cache.fleet().spec.breakers,
            now=self._clock.now(),
            price_of=self._price_of,
        )

    def _price_of(self, cluster: str, pool: str) -> int:
        """The price of one node of a pool for an hour; one that has none costs nothing."""
        known = self._cache.get(Cluster, cluster)
        for other in pools_of(known) if known is not None else ():
            if known is not None and other.name == pool:
                return node_price(known, other, self._cache.all(Flavor)) or 0
        return 0

    async def ask(self, question: Question[T]) -> T:
        """Answers a question by what the hub knows now."""
        with self._answering():
            await self._feed()
            return await self._planner.ask(question, self._clock.now())

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Whoever asks too early or too late is told to ask again, and a planner that is lost, or
        that may have lost its way, is replaced."""
        if self._is_closed or not self._has_run:
            raise _later("the hub is starting or ending")
        try:
            yield
        except (PlannerLost, PlannerFault) as fault:
            _log.error("the planner failed to answer: %s", fault)
            self._is_lost = True
            self._alarm.mark()
            raise _later("the planner begins anew") from fault

    async def close(self) -> None:
        """Answers nothing from now on."""
        self._is_closed = True
        await self._planner.close()

    # Codes of why workloads wait.

    def _note_codes(self, planned: Planned) -> None:
        for step in planned.steps:
            self._codes.pop(step.workload, None)
        due = self._clock.now() + self._settings.code_after_seconds
        for key, code in planned.codes.items():
            if len(self._codes) < self._settings.codes_most or key in self._codes:
                self._codes[key] = (code, self._codes.get(key, ("", due))[1])
        if planned.codes:
            self._code_alarm.mark()

    async def _write_codes(self) -> None:
        while True:
            if not self._codes:
                await self._code_alarm.wait()
                continue
            key, (code, due) = next(iter(self._codes.items()))
            if self._clock.now() < due:
                await self._clock.sleep(due - self._clock.now())
                continue
            del self._codes[key]
            if self._leads() and await self._write_code(key, code):
                await self._clock.sleep(1 / self._settings.codes_per_second)
            else:
                await asyncio.sleep(0)  # a hundred thousand that need no write keep nobody waiting

    async def _write_code(self, key: str, code: str) -> bool:
        stored = self._cache.mirror(WORKLOADS).get(namespace_and_name(key))
        if stored is None:
            return False
        body = stored.object()
        workload = codec.decode(body, Workload)
        status = workload.status
        if status.claim is not None or status.phase not in (None, "Waiting"):
            return False
        if status.reason == code and status.phase == "Waiting":
            return False
        changed = replace(
            status,
            phase="Waiting",
            reason=code,
            queued_at=status.queued_at or workload.metadata.creation_timestamp,
        )
        try:
            await write_status(self._store, body, changed, BY_SCHEDULER)
        except (ApiError, OSError) as fault:
            _log.debug("%s: its code was not written: %s", key, fault)
            again = self._clock.now() + self._settings.code_after_seconds
            self._codes.setdefault(key, (code, again))
        return True


def _later(why: str) -> Unavailable:
    return Unavailable(f"{why}, ask again in a moment", details={"retryAfterSeconds": 1})
