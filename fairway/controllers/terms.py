"""Terms: which replica leads, and the number that fences off earlier leaders.

One Lease holds both: its holder is the leader, its count of transitions the term. Every batch of
decisions first advances the term by compare-and-swap. A leader that was paused finds that its
version of the lease is old and stops; writes that it may already have on their way carry a lower
term, which agents refuse.

A follower takes over when the lease has not changed for its duration, measured by its own clock
from the moment it saw the last change: clocks of two machines are never compared. Durations are
measured by a monotonic clock, so a step of the machine's time ends and prolongs nothing. The leader
itself stops trusting its lease a third earlier, so that neither a drifting clock nor its writes on
their way overlap with its successor.

Deleting the lease loses its term. The replica that creates it again continues above every term that
it ever saw, in the lease or in what was decided under it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from fairway.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from fairway.api.meta import JsonObject
from fairway.clock import Clock, micro_timestamp
from fairway.loops import Alarm, end
from fairway.store.interface import Store, Write
from fairway.store.keys import LEASES

NAME = "fairway-term"
_TERM_MOST = 1 << 30  # a lease counts to twice this at most; a higher term is wrong
_BELIEVED = 2 / 3  # of the lease's duration, for which the leader trusts it
_RENEWED = 1 / 5  # of the lease's duration, after which the leader renews it
_RELEASE_SECONDS = 3.0  # how long a replica that ends waits for a store that does not answer
_HOLDER = "holderIdentity"
_WRITE = Write(user="system:fairway", manager="fairway-leader")

_log = logging.getLogger(__name__)


class NotLeader(Exception):
    """Another replica leads, or may lead; nothing more is to be decided or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The identity of a replica, and how long its leadership lasts without renewal."""

    identity: str
    namespace: str = "fairway-system"
    duration_seconds: float = 15.0
    takes_over_at_once: bool = False  # where no other replica can have the store


class Terms:
    """The leadership of one replica."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        *,
        decided_under: Callable[[], int] = lambda: 0,
    ) -> None:
        """`decided_under` finds the highest term of anything that was decided."""
        self._store = store
        self._clock = clock
        self._settings = settings
        self._lease: JsonObject | None = None
        self._decided_under = decided_under
        self._highest = 0  # of the terms seen in the lease
        # Times of the monotonic clock.
        self._seen_at = 0.0  # when the lease was last seen to change
        self._led_until = float("-inf")
        self._resigned = Alarm(clock)
        self._may_release = False  # it led when it was ended
        self._writing = asyncio.Lock()  # a renewal must not overtake a batch
        self.term = 0

    @property
    def identity(self) -> str:
        return self._settings.identity

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads, as far as it can know by itself."""
        return self._clock.monotonic() < self._led_until

    async def campaign(self) -> None:
        """Returns once this replica leads."""
        while not await self._try_():
            await self._clock.sleep(self._settings.duration_seconds / 5)
        _log.info("%s leads, term %d", self._settings.identity, self.term)

    async def keep(self) -> None:
        """Renews the leadership until it is lost."""
        renewing = asyncio.ensure_future(self._renew_often())
        renewing.add_done_callback(lambda _: self._resigned.mark())
        try:
            while self.is_leader and not renewing.done():
                # A renewal that is never answered must not keep the leadership from ending.
                left = self._led_until - self._clock.monotonic()
                await self._resigned.wait(self._clock.now() + left)
            if renewing.done():
                renewing.result()
        finally:
            self._may_release = self.is_leader
            self.resign()
            await end([renewing])

    async def release(self) -> None:
        """Lets another replica lead at once, after everything this replica had under way has ended.

        The term stays in the lease: the next leader continues above it.
        """
        if not self._may_release or self._lease is None:
            return
        self._may_release = False
        spec = {key: value for key, value in self._lease["spec"].items() if key != _HOLDER}
        try:
            async with self._writing, asyncio.timeout(_RELEASE_SECONDS):
                await self._store.update(
                    LEASES,
                    {**self._lease, "spec": spec},
                    namespace=self._settings.namespace,
                    write=_WRITE,
                )
        except (ApiError, OSError, TimeoutError) as fault:
            _log.warning("the leadership ends by itself only: %s", fault)

    async def _renew_often(self) -> None:
        while True:
            await self._clock.sleep(self._settings.duration_seconds * _RENEWED)
            try:
                await self._renew()
            except NotLeader:
                return
            except (ApiError, OSError) as fault:
                _log.warning("cannot renew the leadership: %s", fault)

    async def advance(self) -> int:
        """The next term, for one batch of decisions; raises NotLeader if another replica leads."""
        async with self._writing:
            if not self.is_leader:
                raise NotLeader
            await self._write(self.term + 1)
            return self.term

    async def rise_above(self, term: int) -> None:
        """Takes a term above one that agents know: a restored hub is behind its agents."""
        async with self._writing:
            if not self.is_leader:
                raise NotLeader
            if self.term <= term < _TERM_MOST:
                _log.warning("agents have heard of term %d, ours was %d", term, self.term)
                await self._write(term + 1)

    async def _renew(self) -> None:
        async with self._writing:
            await self._write(self.term)

    def resign(self) -> None:
        self._led_until = float("-inf")
        self._resigned.mark()

    async def _try_(self) -> bool:
        try:
            return await self._try()
        except (ApiError, OSError) as fault:
            _log.warning("cannot find out who leads: %s", fault)
            return False

    async def _try(self) -> bool:
        try:
            stored = await self._store.get(LEASES, NAME, self._settings.namespace)
        except NotFound:
            return self._is_over(self._lease) and await self._make()
        result = stored.object()
        before = self._lease
        if before is None or _version(before) != _version(result):
            self._lease, self._seen_at = result, self._clock.monotonic()
            self._highest = max(self._highest, _term(result))
        if not self._may_take(result, is_first_look=before is None):
            return False
        self.term = _term(result)
        try:
            await self._write(self.term + 1)
        except NotLeader:
            return False
        return True

    def _may_take(self, lease: JsonObject, *, is_first_look: bool) -> bool:
        spec = lease["spec"]
        if self._settings.takes_over_at_once or not spec.get(_HOLDER):
            return True
        return not is_first_look and self._is_over(lease)

    def _is_over(self, lease: JsonObject | None) -> bool:
        """Whether the holder of the lease, as last seen, no longer leads."""
        if lease is None or self._settings.takes_over_at_once:
            return True
        duration = float(
            lease["spec"].get("leaseDurationSeconds") or self._settings.duration_seconds
        )
        return self._clock.monotonic() - self._seen_at > duration

    async def _make(self) -> bool:
        term = max(self._highest, self.term, self._decided_under()) + 1
        body: JsonObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": self._settings.namespace},
            "spec": self._spec(term),
        }
        started = self._clock.monotonic()
        try:
            stored = await self._store.create(
                LEASES, body, namespace=self._settings.namespace, write=_WRITE
            )
        except AlreadyExists:
            return False
        self._win(stored.object(), term, started)
        return True

    async def _write(self, term: int) -> None:
        """Writes the lease as its leader; the version makes it a compare-and-swap."""
        assert self._lease is not None, "a lease is read before it is written"
        body = {**self._lease, "spec": {**self._lease["spec"], **self._spec(term)}}
        started = self._clock.monotonic()  # the leadership counts from before the write
        try:
            stored = await self._store.update(
                LEASES, body, namespace=self._settings.namespace, write=_WRITE
            )
        except (Conflict, NotFound) as fault:
            self.resign()
            raise NotLeader from fault
        self._win(stored.object(), term, started)

    def _win(self, lease: JsonObject, term: int, started: float) -> None:
        self._lease, self.term, self._seen_at = lease, term, started
        self._led_until = started + self._settings.duration_seconds * _BELIEVED

    def _spec(self, term: int) -> JsonObject:
        now = micro_timestamp(self._clock.now())
        return {
            _HOLDER: self._settings.identity,
            "leaseDurationSeconds": int(self._settings.duration_seconds),
            "renewTime": now,
            "leaseTransitions": term,
        }


def _term(lease: JsonObject) -> int:
    return int(lease["spec"].get("leaseTransitions") or 0)


def _version(lease: JsonObject) -> str:
    return str(lease["metadata"]["resourceVersion"])
