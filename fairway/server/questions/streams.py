"""Two-way streams: commands in pods, ports of pods, and agents that call their hub.

They are subresources, opened as WebSockets by GET, and need the right `create`:

    workloads/NAME/exec         ?command=…&command=…&stdin&tty, over v5.channel.k8s.io
    workloads/NAME/portforward  ?port=…, over the same: channel 0 to the pod, 1 from it
    clusters/NAME/stream        an agent's, over v1.stream.fairway.dev; see `fairway.streams`

`pod`, `container` and `cluster` choose the pod; without them, it is the first that runs. A stream
ends when the right to it ends, which is checked once a minute. The outcome comes last, as a Status
on channel 3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from fairway.api.errors import ApiError, BadRequest, Forbidden, MethodNotAllowed, Unavailable
from fairway.api.meta import GROUP
from fairway.clock import Clock
from fairway.loops import end
from fairway.schema.node import JsonObject
from fairway.server.objects import Call
from fairway.server.questions.parameters import PodRequest, pod_of
from fairway.server.routes import OPENED
from fairway.server.wire.exchange import Meeting, Response
from fairway.store.interface import Store
from fairway.streams.line import Socket, Talk
from fairway.streams.requests import PROTOCOL, Channel, Outcome, TalkEnded

CHANNELS = "v5.channel.k8s.io"
_END_OF = 255  # followed by the channel that ends
_UPWARD = (Channel.INPUT, Channel.SIZE)
# Whether a stream would still be admitted.
MayStill = Callable[[], Awaitable[bool]]
_AGAIN_SECONDS = 60.0  # between checks of that
_BEAT_SECONDS = 15.0
_COMMAND_BYTES_MOST = 32 << 10
_PORT_MOST = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest(PodRequest):
    """Which command in a pod."""

    command: tuple[str, ...]
    has_input: bool = False
    has_terminal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRequest(PodRequest):
    """Which port of a pod."""

    port: int


class Reach(Protocol):
    """What reaches agents."""

    async def open(self, request: CommandRequest | PortRequest) -> Talk:
        """A talk with the agent of the pod's cluster; returns once the command or port is open."""
        ...

    async def take(self, cluster: str, socket: Socket) -> None:
        """Reaches a cluster's agent by the socket it opened, for as long as the socket lasts."""
        ...


class Talks:
    """Opens two-way streams."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.reach: Reach | None = None

    def answers(self, call: Call) -> bool:
        target = call.target
        return target.group == GROUP and (target.plural, target.subresource) in OPENED

    async def answer(self, call: Call, may_still: MayStill) -> Response:
        target, reach = call.target, self.reach
        if call.request.method != "GET":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        if reach is None:
            raise Unavailable("this hub reaches no agents, or is about to start or to end")
        result = (await self._store.get(call.key, target.name, call.namespace)).object()
        if target.subresource == "stream":
            meeting = self._call(target.name, result, reach, may_still)
        else:
            meeting = self._talk(call, reach, may_still)
        # Last: a client that repeats the request without an upgrade learns why it was refused.
        if call.request.header("upgrade").lower() != "websocket":
            raise BadRequest("a WebSocket is needed here")
        return Response(status=101, meeting=meeting)

    def _talk(self, call: Call, reach: Reach, may_still: MayStill) -> Meeting:
        """A stream from a client to a pod."""
        request = _command(call) if call.target.subresource == "exec" else _port(call)

        async def hold(socket: Socket) -> None:
            await self._while_allowed(_talk(reach, request, socket), may_still)

        return Meeting(hold=hold, protocols=(CHANNELS,))

    def _call(self, cluster: str, body: JsonObject, reach: Reach, may_still: MayStill) -> Meeting:
        """The stream of an agent that calls its hub."""
        spec = body["spec"]
        if (spec.get("kubernetes") or {}).get("connection") != "Pull":
            raise Forbidden(f"the hub looks after {cluster} by itself", details={})
        if not spec.get("accepted", True):
            raise Forbidden(f"{cluster} is not accepted", details={})

        async def hold(socket: Socket) -> None:
            with suppress(ConnectionError):
                await self._while_allowed(reach.take(cluster, socket), may_still)

        return Meeting(hold=hold, protocols=(PROTOCOL,), beat_seconds=_BEAT_SECONDS)

    async def _while_allowed(self, work: Coroutine[Any, Any, None], may_still: MayStill) -> None:
        """Runs a stream until it ends, or until it would no longer be admitted."""
        working = asyncio.ensure_future(work)
        looking = asyncio.ensure_future(self._until_refused(may_still))
        try:
            await asyncio.wait((working, looking), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            await end((working, looking))

    async def _until_refused(self, may_still: MayStill) -> None:
        while await may_still():
            await self._clock.sleep(_AGAIN_SECONDS)


def _command(call: Call) -> CommandRequest:
    command = call.request.parameters("command")
    if not command or not command[0]:
        raise BadRequest("command: required, one for each word")
    if sum(len(name) for name in command) > _COMMAND_BYTES_MOST:
        raise BadRequest(f"command: at most {_COMMAND_BYTES_MOST} bytes in all")
    if any("\0" in name for name in command):
        raise BadRequest("command: a command has no zero bytes")
    return CommandRequest(
        **pod_of(call),
        command=command,
        has_input=bool(call.request.flag("stdin")),
        has_terminal=bool(call.request.flag("tty")),
    )


def _port(call: Call) -> PortRequest:
    given = call.request.parameter("port")
    if not given.isdecimal() or not 0 < int(given) <= _PORT_MOST:
        raise BadRequest(f"port: expected a number from 1 to {_PORT_MOST}, got {given!r}")
    return PortRequest(**pod_of(call), port=int(given))


async def _talk(reach: Reach, request: CommandRequest | PortRequest, socket: Socket) -> None:
    """Carries a talk between an agent and a client, until either ends it."""
    try:
        talk = await reach.open(request)
    except ApiError as error:
        with suppress(ConnectionError):
            await socket.send(bytes((Channel.STATUS,)) + msgspec.json.encode(error.status()))
        return
    ways = [asyncio.ensure_future(task(socket, talk)) for task in (_up, _down)]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            if way.done():
                way.result()
    except ConnectionError:
        return  # the client has gone
    finally:
        await talk.close()
        await end(ways)


async def _up(socket: Socket, talk: Talk) -> None:
    """From the client to the agent; returns when the client is gone."""
    try:
        while (message := await socket.receive()) is not None:
            if len(message) == 2 and message[0] == _END_OF:
                await talk.end(message[1])
            elif len(message) > 1 and message[0] in _UPWARD:
                await talk.send(message[0], message[1:])
    except TalkEnded:
        await asyncio.Event().wait()  # `_down` sends the outcome


async def _down(socket: Socket, talk: Talk) -> None:
    """From the agent to the client, with the outcome at the end."""
    while (received := await talk.receive()) is not None:
        channel, content = received
        end_of = bytes((_END_OF, channel))
        await socket.send(bytes((channel,)) + content if content else end_of)
    outcome = talk.outcome or Outcome()
    await socket.send(bytes((Channel.STATUS,)) + msgspec.json.encode(status_of(outcome)))


def status_of(outcome: Outcome) -> JsonObject:
    """The outcome of a talk as a Status, in Kubernetes' form."""
    status: JsonObject = {"apiVersion": "v1", "kind": "Status", "metadata": {}}
    if outcome.is_well and not outcome.exit_code:
        return {**status, "status": "Success"}
    if outcome.is_well:
        code = str(outcome.exit_code)
        return {
            **status,
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": f"command terminated with non-zero exit code: {code}",
            "details": {"causes": [{"reason": "ExitCode", "message": code}]},
        }
    failed = {"status": "Failure", "reason": outcome.reason, "message": outcome.message}
    return {**status, **failed}
