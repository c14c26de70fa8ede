"""Keeps one connection from an agent to its hub, and answers requests over it.

The hub cannot reach an agent behind NAT, so the agent opens the connection. When the connection
ends, the agent opens another after a backoff, which is short if the last connection lasted long.
"""

from __future__ import annotations

import logging
import random
from contextlib import suppress

from fairway.agent.fleet import Agents
from fairway.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from fairway.clock import Clock
from fairway.kubeapi import KubeApi, path_of
from fairway.store.keys import CLUSTERS
from fairway.streams.line import USUAL, Limits, Line, Talk
from fairway.streams.requests import PROTOCOL, Ask, Outcome

_log = logging.getLogger(__name__)

_BEAT_SECONDS = 15.0  # between pings to the hub
_BACK_OFF_SECONDS = 0.5
_BACK_OFF_SECONDS_MAX = 30.0
_REFUSED_SECONDS = 300.0  # until a hub that refused the stream is asked again
_LASTED_SECONDS = 60.0  # a connection that lasted this long resets the backoff


class Caller:
    """Keeps a connection from the agent of one cluster to its hub. `run` it until cancelled."""

    def __init__(
        self,
        hub: KubeApi,
        cluster: str,
        agents: Agents,
        clock: Clock,
        *,
        limits: Limits = USUAL,
    ) -> None:
        self._hub = hub
        self._cluster = cluster
        self._agents = agents
        self._clock = clock
        self._limits = limits
        self._told = ""  # the last message logged, so that none is repeated

    async def run(self) -> None:
        back_off = _BACK_OFF_SECONDS
        while True:
            began = self._clock.monotonic()
            wait = None
            try:
                await self._call()
                self._tell("the stream to the hub ended, and is opened again")
            except (Forbidden, NotFound, MethodNotAllowed) as fault:
                wait = _REFUSED_SECONDS
                self._tell(f"the hub takes no stream from this agent: {fault}")
            except (ApiError, OSError) as fault:
                self._tell(f"no stream to the hub: {fault}")
            if self._clock.monotonic() - began >= _LASTED_SECONDS:
                back_off = _BACK_OFF_SECONDS
            # Jitter: agents that lost a hub at the same time do not all reconnect at once.
            spread = 0.5 + random.random()  # noqa: S311 - not a secret
            await self._clock.sleep((wait or back_off) * spread)
            back_off = min(2 * back_off, _BACK_OFF_SECONDS_MAX)

    async def _call(self) -> None:
        path = path_of(CLUSTERS, self._cluster, subresource="stream")
        opened = self._hub.websocket(path, protocols=(PROTOCOL,), beat_seconds=_BEAT_SECONDS)
        async with opened as socket:
            line = Line(socket, self._clock, serve=self._answer, limits=self._limits)
            self._tell("a stream to the hub is open")
            with suppress(OSError):
                await line.run()

    async def _answer(self, ask: Ask, talk: Talk) -> Outcome:
        agent = self._agents.get(self._cluster)
        if agent is None:
            message = f"the agent of {self._cluster} is about to start"
            return Outcome(reason="ServiceUnavailable", message=message)
        return await agent.answer(ask, talk)

    def _tell(self, what: str) -> None:
        if what != self._told:
            self._told = what
            _log.info("%s: %s", self._cluster, what)
