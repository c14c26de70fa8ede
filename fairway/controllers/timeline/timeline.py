"""The answer to a timeline question: past spans, lasting spans, and what is ahead.

The planner's answer is cached for a while, longer the more it cost: a page that polls all day takes
only a small part of the planner's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairway.api.amounts import MILLI, is_accelerator
from fairway.api.cluster import Cluster
from fairway.api.errors import Unavailable
from fairway.controllers.context import Context
from fairway.controllers.kept_lines import LineKeeper
from fairway.controllers.scheduling.expected_starts import Ahead
from fairway.controllers.scheduling.questions import ExpectedStarts, Standings, Supplies
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.timeline.picture import Drawn, MayName, Wanted, of_ahead, of_span, picture
from fairway.controllers.timeline.spans import Spans

_KEPT_SECONDS = 3.0
_TIMES_RESTED = 20.0  # the planner is left alone for this many times as long as it took

Rooms = Mapping[str, Mapping[str, int]]  # cluster or queue -> flavor -> thousandths of GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The planner's answer."""

    ahead: list[Ahead] = field(default_factory=list)
    clusters: Rooms = field(default_factory=dict)
    queues: Rooms = field(default_factory=dict)


class Timeline:
    """Answers which workload had which GPUs when."""

    def __init__(
        self, context: Context, *, scheduler: Scheduler, keeper: LineKeeper | None = None
    ) -> None:
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self.spans = Spans(context.cache, context.clock, keeper)
        self._known = _Known()
        self._fresh_until = float("-inf")
        self._asking = asyncio.Lock()

    def now(self) -> float:
        return self._clock.now()

    async def ahead(self) -> list[Ahead]:
        """The starts that are expected, as the timeline shows them."""
        return (await self._asked()).ahead

    async def answer(self, wanted: Wanted, may_name: MayName) -> dict[str, Any]:
        known = await self._asked()
        now = self._clock.now()
        rooms = known.clusters if wanted.by == "cluster" else known.queues
        result = await picture(
            self._draw(wanted, known, now), wanted, rooms=rooms, may_name=cache(may_name)
        )
        return {
            "now": now,
            "by": wanted.by,
            "from": wanted.start,
            "to": wanted.end,
            "since": self.spans.since,
            **result,
        }

    def _draw(self, wanted: Wanted, known: _Known, now: float) -> Iterator[Drawn]:
        # Gathered at once, so that a span that ends meanwhile is not drawn twice.
        lasting, ended = list(self.spans.open_spans()), list(self.spans.ended_after(wanted.start))
        held = {span.workload for span in lasting}
        yield from (of_span(span, now) for span in lasting)
        yield from (of_span(span, now) for span in ended)
        ahead = [expected for expected in known.ahead if expected.workload not in held]
        yield from of_ahead(ahead, self.spans.reserved)

    async def _asked(self) -> _Known:
        """The planner's answer, asked again once the cached one expires."""
        async with self._asking:
            began = self._clock.monotonic()
            if began < self._fresh_until:
                return self._known
            try:
                self._known = await self._ask()
            except Unavailable:
                if self._fresh_until < 0:
                    raise  # it has never answered yet
            ended = self._clock.monotonic()
            self._fresh_until = ended + max(_KEPT_SECONDS, _TIMES_RESTED * (ended - began))
            return self._known

    async def _ask(self) -> _Known:
        clusters: dict[str, dict[str, int]] = {
            cluster.metadata.name: {} for cluster in self._cache.all(Cluster)
        }
        for (cluster, flavor), gpus in (await self._scheduler.ask(Supplies())).items():
            clusters.setdefault(cluster, {})[flavor] = gpus
        standings = await self._scheduler.ask(Standings())
        parents = {standing.parent for standing in standings}
        queues = {
            standing.queue: {
                each.flavor: each.nominal // MILLI
                for each in standing.holdings
                if is_accelerator(each.resource)
            }
            for standing in standings
            if standing.queue not in parents
        }
        starts = await self._scheduler.ask(ExpectedStarts())
        return _Known(ahead=starts, clusters=clusters, queues=queues)
