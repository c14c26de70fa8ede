"""How a hub reaches agents: those inside its process, and those that called it.

It opens talks on a line to either. Agents inside have a line within the process; the others opened
theirs. If a hub has several replicas, an agent calls one, or runs in one; the others ask that
replica (`replicas`) and pass the caller's name with the question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypedDict

import msgspec

from fairway.agent.fleet import Agents
from fairway.api.errors import ApiError, NotFound, Timeout, Unavailable, from_status
from fairway.api.names import work_name
from fairway.api.workload import Workload
from fairway.clock import Clock
from fairway.controllers.cache import Cache
from fairway.hub.replicas import Replicas
from fairway.loops import end
from fairway.server.questions.parameters import LogRequest, PodRequest
from fairway.server.questions.streams import CommandRequest, PortRequest
from fairway.streams import memory
from fairway.streams.line import USUAL, Limits, Line, Socket, Talk
from fairway.streams.relay import relay
from fairway.streams.requests import WELL, Ask, Channel, Outcome, TalkEnded

_log = logging.getLogger(__name__)

_BEGIN_SECONDS = 30.0  # how long to wait for an agent
_REMEMBERED_BYTES_MOST = 64 << 20
# What each replica decided while it led: asked for by the workload and how many.
DECISIONS = "decisions"
_NOT_HERE = Outcome(reason="NotHere", message="the agent has not called this replica")


Memory = Callable[[Ask], Awaitable[bytes]]


class _Shared(TypedDict):
    """What every question contains."""

    pod: str
    container: str
    user: str
    groups: tuple[str, ...]


class Reaching:
    """The agents that one process of a hub reaches."""

    def __init__(
        self,
        agents: Agents,
        cache: Cache,
        clock: Clock,
        *,
        limits: Limits = USUAL,
        replicas: Replicas | None = None,
    ) -> None:
        """`replicas` are the other replicas of the same hub, if there may be any."""
        self._replicas = replicas
        if replicas is not None:
            replicas.serve = self.answer_replica
        self.memory: Memory | None = None  # answers from what this replica remembers
        self._agents = agents
        self._cache = cache
        self._clock = clock
        self._limits = limits
        self._called: dict[str, Line] = {}  # by cluster
        self._inside: dict[str, Line] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Ends every line; agents that called will call again, here or elsewhere."""
        await asyncio.gather(
            *(line.close() for line in self._called.values()), return_exceptions=True
        )
        await end(list(self._running))

    async def take(self, cluster: str, socket: Socket) -> None:
        """Takes the line of an agent that called; its earlier line is closed."""
        line = Line(socket, self._clock, limits=self._limits)
        before = self._called.get(cluster)
        self._called[cluster] = line
        try:
            if before is not None:
                await before.close()
            await line.run()
        finally:
            if self._called.get(cluster) is line:
                del self._called[cluster]

    async def log(self, request: LogRequest) -> Output:
        """Output of one pod of a workload, in the cluster where it runs or ran last."""
        seconds = request.since_seconds
        ask = Ask(
            kind="log",
            work=work_name(request.namespace, request.name),
            follow=request.follow,
            tail_lines=request.tail_lines,
            since=None if seconds is None else self._clock.now() - seconds,
            is_previous=request.is_previous,
            **_share(request),
        )
        return Output(await self._begin(self.clusters_of(request), ask))

    async def open(self, request: CommandRequest | PortRequest) -> Talk:
        """A talk about a pod of a workload, once the agent has begun to answer."""
        work = work_name(request.namespace, request.name)
        match request:
            case CommandRequest():
                ask = Ask(
                    kind="exec",
                    work=work,
                    command=request.command,
                    has_input=request.has_input,
                    has_terminal=request.has_terminal,
                    **_share(request),
                )
            case PortRequest():
                ask = Ask(kind="portforward", work=work, port=request.port, **_share(request))
        return await self._begin(self.clusters_of(request), ask)

    async def ask(self, cluster: str, ask: Ask) -> Talk:
        """A talk with the agent of a cluster, once it has begun to answer."""
        return await self._ask(cluster, ask)

    async def _begin(self, clusters: Sequence[str], ask: Ask) -> Talk:
        """A talk with the first cluster that has such a pod; NotFound if none has."""
        faults: list[ApiError] = []
        for cluster in clusters:
            try:
                return await self._ask(cluster, ask)
            except NotFound as fault:
                faults.append(fault)
            except Unavailable as fault:
                faults.insert(0, fault)  # a cluster that could not be asked might have it
        raise faults[0]

    async def _ask(self, cluster: str, ask: Ask) -> Talk:
        try:
            line = await self._line(cluster)
            if line is not None:
                return await _talk_on(line, ask)
            return await self._asked_elsewhere(cluster, ask)
        except TalkEnded as ended:
            raise _error(cluster, ended.outcome) from ended
        except TimeoutError as fault:
            raise Timeout(f"the agent of {cluster} did not answer in time", details={}) from fault

    async def _asked_elsewhere(self, cluster: str, ask: Ask) -> Talk:
        """A talk through the replica that reaches the agent, if any does."""
        named = msgspec.structs.replace(ask, cluster=cluster)
        if self._replicas is not None:
            async for line in self._replicas.lines():
                try:
                    return await _talk_on(line, named)
                except TalkEnded as ended:
                    if ended.outcome.reason != _NOT_HERE.reason:
                        raise
        raise Unavailable(
            f"no stream of the agent of {cluster} leads to a replica of the hub: it may be about "
            "to open one, or be cut off",
            details={},
        )

    async def ask_replicas(self, ask: Ask) -> list[bytes]:
        """What the other replicas remember; one that does not answer is left out."""
        answers: list[bytes] = []
        if self._replicas is None:
            return answers
        async for line in self._replicas.lines():
            try:
                answer = await Output(await _talk_on(line, ask)).whole(_REMEMBERED_BYTES_MOST)
            except TalkEnded as ended:
                if ended.outcome.reason != _NOT_HERE.reason:
                    _log.warning("a replica does not say what it remembers: %s", ended.outcome)
            except (ApiError, TimeoutError) as fault:
                _log.warning("a replica does not say what it remembers: %r", fault)
            else:
                answers += [answer] if answer is not None else []
        return answers

    async def _recall(self, ask: Ask, talk: Talk) -> Outcome:
        if self.memory is None:
            return _NOT_HERE
        remembered = await self.memory(ask)
        await talk.begin()
        await talk.send(Channel.OUTPUT, remembered)
        return WELL

    async def answer_replica(self, ask: Ask, talk: Talk) -> Outcome:
        """Answers another replica, which has already checked the caller's rights."""
        if ask.kind == DECISIONS:
            return await self._recall(ask, talk)
        line = await self._line(ask.cluster)
        if line is None:
            return _NOT_HERE
        try:
            answering = await _talk_on(line, msgspec.structs.replace(ask, cluster=""))
        except TalkEnded as ended:
            return ended.outcome
        except TimeoutError:
            return Outcome(reason=Timeout.reason, message="the agent did not answer in time")
        try:
            await talk.begin()
        except BaseException:
            await answering.close()
            raise
        return await relay(talk, answering)

    async def _line(self, cluster: str) -> Line | None:
        """The line to an agent that called this replica or runs in it."""
        called = self._called.get(cluster)
        if called is not None:
            return called
        if self._agents.get(cluster) is None:
            return None
        if cluster not in self._inside:
            for gone in [name for name in self._inside if self._agents.get(name) is None]:
                await self._inside.pop(gone).close()
            ours, theirs = memory.pair()
            line = self._inside[cluster] = Line(ours, self._clock, limits=self._limits)
            serving = Line(
                theirs,
                self._clock,
                serve=lambda ask, talk: self._answer(cluster, ask, talk),
                limits=self._limits,
            )
            for other in (line, serving):
                task = asyncio.ensure_future(other.run())
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        return self._inside[cluster]

    async def _answer(self, cluster: str, ask: Ask, talk: Talk) -> Outcome:
        agent = self._agents.get(cluster)
        if agent is None:
            message = f"the agent of {cluster} has ended"
            return Outcome(reason="ServiceUnavailable", message=message)
        return await agent.answer(ask, talk)

    def clusters_of(self, request: PodRequest) -> list[str]:
        """The clusters where it is, that it leaves, or where a copy is over; else where it was."""
        if request.cluster:
            return [request.cluster]
        workload = self._cache.get(Workload, request.name, request.namespace)
        if workload is not None:
            status = workload.status
            placements = (*(status.claim.placements if status.claim else ()), *status.releasing)
            names = [placement.cluster for placement in placements if placement.cluster]
            clusters = list(dict.fromkeys((*names, *status.succeeded_clusters)))
            for past in reversed(status.history):
                clusters = clusters or list(past.clusters)
            if clusters:
                return clusters
        raise NotFound(f"{request.name} has not run anywhere yet", details={})


class Output:
    """A pod's output from an agent, until it ends or the reader closes it."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (received := await self._talk.receive()) is not None:
            if received[1]:
                yield received[1]
        outcome = self._talk.outcome
        if outcome is not None and not outcome.is_well:
            raise from_status({"reason": outcome.reason, "message": outcome.message})

    async def whole(self, bytes_most: int) -> bytes | None:
        """All output, after which the talk is over; None if it exceeds the limit."""
        data = bytearray()
        try:
            async for chunk in self:
                data += chunk
                if len(data) > bytes_most:
                    return None
        finally:
            await self.aclose()
        return bytes(data)

    async def aclose(self) -> None:
        await self._talk.close()


async def _talk_on(line: Line, ask: Ask) -> Talk:
    """A talk once the agent has begun to answer; TalkEnded or TimeoutError if it does not."""
    talk = await line.open(ask)
    try:
        async with asyncio.timeout(_BEGIN_SECONDS):
            await talk.wait_until_begun()
    except BaseException:
        await talk.close()
        raise
    return talk


def _share(request: PodRequest) -> _Shared:
    return {
        "pod": request.pod,
        "container": request.container,
        "user": request.user,
        "groups": request.groups,
    }


def _error(cluster: str, outcome: Outcome) -> ApiError:
    status = {"reason": outcome.reason, "message": f"{cluster}: {outcome.message}"}
    return from_status(status)
