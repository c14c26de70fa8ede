"""The sampler: every ten seconds it records what the planner and the workloads say.

It writes nothing to the store, so every replica keeps its own history, whether it leads or not, and
any replica can answer. A moment at which the planner does not answer is a gap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fairway.api.errors import ApiError
from fairway.controllers.context import Context
from fairway.controllers.history.answers import Asked, answer
from fairway.controllers.history.book import RESOLUTIONS, Book
from fairway.controllers.history.book_lines import Journal, Keeper
from fairway.controllers.history.samples import Sights
from fairway.controllers.history.services import Services
from fairway.controllers.scheduling.questions import Samples
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.core.explain.samples import Gauges

_log = logging.getLogger(__name__)

_STEP = RESOLUTIONS[0].step


class History:
    """Records the state of the fleet, and answers questions about it."""

    def __init__(self, context: Context, *, scheduler: Scheduler, keeper: Keeper) -> None:
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._journal = Journal(keeper)
        self._services = Services(context.cache)
        self._sights = Sights()
        self.book = Book()
        self.observers: list[Callable[[Gauges], None]] = []  # get what each sample is made from
        self._is_loaded = False

    async def run(self) -> None:
        """Samples until cancelled, at whole tens of seconds."""
        await self._cache.complete()
        if not self._is_loaded:
            self.book, self._is_loaded = self._journal.load() or self.book, True
            self.book.clear()
            self._journal.begin(self.book)
        while True:
            await self._clock.sleep(_STEP - self._clock.now() % _STEP)
            try:
                await self.look()
            except ApiError as fault:
                _log.info("how the fleet stands is not known: %s", fault)

    async def look(self) -> None:
        gauges = await self._scheduler.ask(Samples())
        for observe in self.observers:
            observe(gauges)
        now = self._clock.now()
        is_renumbered = self.book.see(now, self._sights.of(gauges, self._services.see()))
        self._journal.write(self.book, now, is_renumbered=is_renumbered)

    def answer(self, asked: Asked) -> dict[str, Any]:
        return answer(self.book, asked, self._clock.now())
