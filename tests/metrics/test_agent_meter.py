"""What pods use comes from the agent of their cluster, over the line by which it is reached."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairway.agent.answers import answer
from fairway.agent.drivers.kubernetes.pod_usage import seconds
from fairway.agent.drivers.simulated.driver import SimulatedDriver
from fairway.clock import SystemClock, VirtualClock
from fairway.hub.agent_lines import Reaching
from fairway.hub.pod_usage import AgentMeter
from fairway.metrics.interface import NoSources, PodUsage, Refused, Unreachable
from fairway.streams.requests import WELL, Ask
from tests.controllers.conftest import clock, store  # noqa: F401 - fixtures
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET


async def test_who_measures_nothing_says_so_and_who_is_not_there_is_unreachable(
    store,  # noqa: F811 - a fixture
    clock: VirtualClock,  # noqa: F811 - a fixture
    tmp_path: Path,
) -> None:
    meter = AgentMeter(NoSources(), SystemClock())
    with pytest.raises(Unreachable, match="does not reach"):
        await meter.of_work("hangzhou", "default.chat")
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await clock.advance(2)
        meter.reach = Reaching(fleet.agents, fleet.plane.cache, clock)
        try:
            with pytest.raises(Refused, match="use nothing"):
                await meter.of_work("hangzhou", "default.chat")
            with pytest.raises(Unreachable, match="no stream of the agent of beijing"):
                await meter.of_work("beijing", "default.chat")
        finally:
            await meter.reach.close()


class Telling(SimulatedDriver):
    """A driver of pods that use something."""

    def __init__(self, pods: tuple[PodUsage, ...]) -> None:
        self._told = pods

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        return self._told


class Recorded:
    """A talk whose other side keeps everything."""

    def __init__(self) -> None:
        self.said = bytearray()

    async def begin(self) -> None: ...

    async def send(self, channel: int, content: bytes) -> None:
        assert len(content) <= 16 << 10
        self.said += content

    async def end(self, channel: int) -> None: ...

    async def receive(self) -> None:
        return None


async def test_an_agent_tells_of_many_pods_in_pieces() -> None:
    pods = tuple(
        PodUsage(
            name=f"chat-{number}",
            started_at=7.5,
            requests={"main": {"cpu": 1000}},
            usage={"main": {"cpu": number}},
        )
        for number in range(1000)
    )
    exchange = Recorded()
    outcome = await answer("here", Telling(pods), Ask(kind="usage", work="w"), exchange)
    assert outcome == WELL
    assert msgspec.json.decode(bytes(exchange.said), type=tuple[PodUsage, ...]) == pods


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30.0), ("1m30.5s", 90.5), ("1h0m0s", 3600.0), ("250ms", 0.25), ("", 0.0)],
)
def test_durations_are_read_as_kubernetes_writes_them(text: str, expected: float) -> None:
    assert seconds(text) == expected
