"""Who answers what is asked of a hub: its control plane, and its agents for output of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from fairway.app.agents import Logs
from fairway.controllers.plane import ControlPlane
from fairway.controllers.whatif import WhatIf, read_change
from fairway.schema.node import JsonObject
from fairway.server.questions import LogRequest


class HubAnswers:
    """Answers for the server."""

    def __init__(self, plane: ControlPlane, logs: Logs) -> None:
        self._plane = plane
        self._logs = logs
        self._whatif = WhatIf()

    async def explain(self, namespace: str, name: str) -> JsonObject | None:
        return await self._plane.explain(namespace, name)

    async def decisions(self, workload: str, most: int) -> list[JsonObject]:
        return await self._plane.decisions(workload, most)

    async def standing(self) -> JsonObject:
        return await self._plane.standing()

    async def snapshot(self) -> JsonObject:
        return await self._plane.snapshot()

    async def whatif(self, change: JsonObject) -> JsonObject:
        wanted = read_change(change)
        snapshot = await self._plane.snapshot()
        now = float(snapshot["metadata"]["annotations"]["fairway.dev/now"])
        objects = [msgspec.json.decode(one) for one in snapshot["items"]]
        return await self._whatif.answer(objects, now, wanted)

    def log(self, request: LogRequest) -> AsyncIterator[bytes]:
        return self._logs.read(request)
