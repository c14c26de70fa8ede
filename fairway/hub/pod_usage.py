"""What pods use, and what scorers measure, asked of the agents that a hub reaches."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from fairway.api.errors import ApiError, BadRequest, MethodNotAllowed
from fairway.clock import Clock
from fairway.hub.agent_lines import Output, Reaching
from fairway.metrics.interface import PodUsage, Refused, Sample, Sources, Unreachable
from fairway.metrics.measurements import Measurement
from fairway.metrics.measuring import measure
from fairway.streams.requests import MEASURE, Ask

_HUB = "system:fairway"
_BYTES_MOST = 16 << 20
_SPARE_SECONDS = 5.0  # for the way to the agent and back
T = TypeVar("T")


class AgentMeter:
    """Asks the agent of a cluster; none, until it is given a way to reach agents."""

    def __init__(self, sources: Sources, clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self.reach: Reaching | None = None

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        ask = Ask(kind="usage", work=work, user=_HUB)
        return await self._ask(cluster, ask, tuple[PodUsage, ...])

    async def measure(self, measurement: Measurement, cluster: str = "") -> tuple[Sample, ...]:
        """What the agent of a cluster measured; without a cluster, the hub measures itself."""
        if not cluster:
            return await measure(measurement, self._sources, self._clock)
        wanted = msgspec.json.encode(measurement).decode()
        ask = Ask(kind=MEASURE, work="", user=_HUB, measurement=wanted)
        try:
            async with asyncio.timeout(measurement.seconds + _SPARE_SECONDS):
                return await self._ask(cluster, ask, tuple[Sample, ...])
        except TimeoutError as fault:
            raise Unreachable(f"the agent of {cluster} did not answer in time") from fault

    async def _ask(self, cluster: str, ask: Ask, kind: type[T]) -> T:
        if self.reach is None:
            raise Unreachable("the hub does not reach its agents yet")
        try:
            talk = await self.reach.ask(cluster, ask)
            data = await Output(talk).whole(_BYTES_MOST)
        except (MethodNotAllowed, BadRequest) as fault:
            raise Refused(str(fault)) from fault
        except ApiError as fault:
            raise Unreachable(str(fault)) from fault
        if data is None:
            raise Refused(f"the agent of {cluster} tells more than is read")
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as fault:
            raise Refused(
                f"what the agent of {cluster} tells is not understood: {fault}"
            ) from fault
