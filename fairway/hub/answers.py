"""Answers to questions of a hub: from its control plane, and from agents for output of pods."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairway.api import codec
from fairway.api.discretion import MayLook
from fairway.api.errors import BadRequest, NotFound
from fairway.api.scores import SCORES_GROUP, Scorer
from fairway.controllers.history.answers import Asked
from fairway.controllers.plane import ControlPlane
from fairway.controllers.scheduling.decisions import merge
from fairway.controllers.timeline.picture import Wanted
from fairway.controllers.whatif.edits import confirm_seen, places_of, read_change
from fairway.controllers.whatif.whatif import WhatIf
from fairway.hub.agent_lines import DECISIONS, Output, Reaching
from fairway.hub.pod_lists import PodLists
from fairway.schema.node import JsonObject
from fairway.server.questions.history import HistoryRequest
from fairway.server.questions.parameters import LogRequest, PodsRequest, TimelineRequest
from fairway.store.embedded.object_checks import object_faults
from fairway.streams.requests import Ask


class HubAnswers:
    """Answers for the server."""

    def __init__(self, plane: ControlPlane, reaching: Reaching) -> None:
        self._plane = plane
        self._reaching = reaching
        self._pods = PodLists(reaching)
        self._whatif = WhatIf()
        reaching.memory = self._describe

    async def explain(self, namespace: str, name: str, may: MayLook) -> JsonObject | None:
        return await self._plane.explain(namespace, name, may)

    async def decisions(self, workload: str, most: int) -> list[JsonObject]:
        """Recent decisions of all replicas: each remembers what it decided while it led."""
        own = await self._plane.decisions(workload, most)
        ask = Ask(kind=DECISIONS, work=workload, most=most)
        others = [msgspec.json.decode(item) for item in await self._reaching.ask_replicas(ask)]
        return merge(own, *others, most=most)

    async def _describe(self, ask: Ask) -> bytes:
        return msgspec.json.encode(await self._plane.decisions(ask.work, ask.most))

    async def standing(self) -> JsonObject:
        return await self._plane.standing()

    async def traffic(self, namespace: str, name: str) -> JsonObject:
        return await self._plane.share(namespace, name)

    async def snapshot(self) -> JsonObject:
        return await self._plane.snapshot()

    async def timeline(self, request: TimelineRequest, sees: Callable[[str], bool]) -> JsonObject:
        timeline = self._plane.timeline
        start, end = request.between(timeline.now())
        wanted = Wanted(by=request.by, start=start, end=end, most=request.most)
        return await timeline.answer(wanted, sees)

    async def whatif(self, change: JsonObject, may: MayLook) -> JsonObject:
        wanted = read_change(change)
        confirm_seen(wanted, may)
        faults = object_faults(places_of(wanted))
        if faults:
            raise BadRequest("\n  ".join(["a hub would not accept these objects:", *faults]))
        snapshot = await self._plane.snapshot()
        now = float(snapshot["metadata"]["annotations"]["fairway.dev/now"])
        return await self._whatif.answer(snapshot["items"], now, wanted)

    async def score(self, scorer: JsonObject) -> JsonObject:
        name = str((scorer.get("metadata") or {}).get("name") or "")
        if "spec" not in scorer:  # one that exists, by its name
            known = self._plane.cache.get(Scorer, name)
            if known is None:
                raise NotFound(f'scorers.{SCORES_GROUP} "{name}" not found', details={})
            return await self._plane.scores.trials.try_out(known)
        faults = object_faults([("the scorer", scorer)])
        if faults or scorer.get("kind") != Scorer.__name__:
            raise BadRequest("\n  ".join(["a Scorer is expected", *faults]))
        return await self._plane.scores.trials.try_out(codec.decode(scorer, Scorer))

    async def pods(self, request: PodsRequest) -> JsonObject:
        return await self._pods.answer(request)

    async def history(self, request: HistoryRequest) -> JsonObject:
        return self._plane.history.answer(
            Asked(
                series=request.series,
                names=request.names,
                since=request.since,
                points=request.points,
            )
        )

    async def log(self, request: LogRequest) -> Output:
        return await self._reaching.log(request)
