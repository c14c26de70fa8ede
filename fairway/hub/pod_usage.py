"""What pods use, asked of the agents that a hub reaches."""

from __future__ import annotations

import msgspec

from fairway.api.errors import ApiError, MethodNotAllowed
from fairway.hub.agent_lines import Output, Reaching
from fairway.metrics.interface import PodUsage, Refused, Unreachable
from fairway.streams.requests import Ask

_HUB = "system:fairway"
_BYTES_MOST = 16 << 20
_decode = msgspec.json.Decoder(tuple[PodUsage, ...]).decode


class AgentMeter:
    """Asks the agent of a cluster; none, until it is given a way to reach agents."""

    def __init__(self) -> None:
        self.reach: Reaching | None = None

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        if self.reach is None:
            raise Unreachable("the hub does not reach its agents yet")
        try:
            talk = await self.reach.ask(cluster, Ask(kind="usage", work=work, user=_HUB))
            data = await Output(talk).whole(_BYTES_MOST)
        except MethodNotAllowed as fault:
            raise Refused(str(fault)) from fault
        except ApiError as fault:
            raise Unreachable(str(fault)) from fault
        if data is None:
            raise Refused(f"the agent of {cluster} tells more than is read")
        try:
            return _decode(data)
        except msgspec.MsgspecError as fault:
            raise Refused(
                f"what the agent of {cluster} tells is not understood: {fault}"
            ) from fault
