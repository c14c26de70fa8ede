"""Logs of pods, commands in them and their ports, by the cluster's API.

All calls use the identity that makes the work's objects, by default the tenant's service account:
the cluster decides whether that account may. Only pods of works can be reached.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol

import msgspec

from fairway.agent.drivers.interface import (
    CommandQuery,
    Denied,
    DriverFault,
    LogQuery,
    PortQuery,
)
from fairway.agent.drivers.kubernetes import rights
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.pods import OwnPod
from fairway.agent.drivers.kubernetes.works import Kept, Works
from fairway.api.cluster import KubernetesDriver
from fairway.api.errors import ApiError, Forbidden
from fairway.clock import timestamp
from fairway.kubeapi import KubeApi, path_of
from fairway.loops import end
from fairway.store.keys import PODS
from fairway.streams.requests import Channel, Exchange

# Version 5 can signal the end of a command's input; older servers do not know it.
_COMMANDS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_PORTS = ("v4.channel.k8s.io",)
_END_OF = 255  # in version 5: the channel named in the next byte has ended
_PORT_DATA, _PORT_ERROR = 0, 1
_PORT_NUMBER = struct.Struct("<H")  # what a channel begins with
_DATA_BYTES = 16 << 10
_LIVE = ("Ready", "Bound")
_INDEXED = re.compile(r"\d{1,7}-\w{5}")  # the end of the name of a pod of an indexed Job


class _Stream(Protocol):
    """A stream of the API server."""

    @property
    def protocol(self) -> str: ...

    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> bytes | None: ...


class Streaming:
    """Streams between the pods of a cluster and a client."""

    def __init__(
        self, api: KubeApi, settings: KubernetesDriver, works: Works, picture: Picture
    ) -> None:
        self._api = api
        self._settings = settings
        self._works = works
        self._picture = picture

    async def logs(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        kept = self._keep(query.work)
        pod = self._pod(kept, query.pod)
        asked = {"container": _container(pod, query.container)}
        if query.follow:
            asked["follow"] = "true"
        if query.is_previous:
            asked["previous"] = "true"
        if query.tail_lines is not None:
            asked["tailLines"] = str(query.tail_lines)
        if query.since is not None:
            asked["sinceTime"] = timestamp(query.since)
        path = path_of(PODS, pod.seen.name, pod.namespace, "log")
        try:
            opened = self._api_of(kept, pod).stream(path, asked, tells_opening=True)
            async with aclosing(opened) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ApiError as fault:
            raise _describe(fault) from fault

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        kept = self._keep(query.work)
        pod = self._pod(kept, query.pod, is_live=True)
        asked: dict[str, str | tuple[str, ...]] = {
            "command": query.command,
            "container": _container(pod, query.container),
            "stdout": "true",
        }
        if query.has_input:
            asked["stdin"] = "true"
        # A terminal has one stream for output and errors.
        asked["tty" if query.has_terminal else "stderr"] = "true"
        async with self._open(kept, pod, "exec", asked, _COMMANDS) as stream:
            await exchange.begin()
            return await _both(
                _feed_command(stream, exchange, has_input=query.has_input),
                _read_command(stream, exchange),
            )

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        kept = self._keep(query.work)
        pod = self._pod(kept, query.pod, is_live=True)
        asked = {"ports": str(query.port)}
        async with self._open(kept, pod, "portforward", asked, _PORTS) as stream:
            await exchange.begin()
            await _both(_feed_port(stream, exchange), _read_port(stream, exchange))

    @asynccontextmanager
    async def _open(
        self,
        kept: Kept,
        pod: OwnPod,
        what: str,
        asked: dict[str, Any],
        protocols: tuple[str, ...],
    ) -> AsyncIterator[_Stream]:
        path = path_of(PODS, pod.seen.name, pod.namespace, what)
        api = self._api_of(kept, pod)
        try:
            async with api.websocket(path, asked, protocols=protocols) as stream:
                yield stream
        except ApiError as fault:
            raise _describe(fault) from fault

    def _api_of(self, kept: Kept, pod: OwnPod) -> KubeApi:
        if self._settings.act_as == "Tenant" or (kept.work and kept.work.spec.executor):
            return self._api.acting_as(rights.executor_of(kept.work, pod.namespace))
        return self._api

    def _keep(self, work: str) -> Kept:
        kept = self._works.get(work)
        if kept is None:
            raise DriverFault(f"there is no work {work}")
        return kept

    def _pod(self, kept: Kept, name: str, *, is_live: bool = False) -> OwnPod:
        pods = sorted(
            (pod for pod in self._picture.pods.get(kept.label, {}).values() if _is_ours(pod)),
            key=lambda pod: (-pod.seen.attempt, pod.seen.name),
        )
        named = pods_called(pods, name)
        if not named:
            raise DriverFault(f"the work {kept.name} has no pod {name}".rstrip())
        if not is_live:
            return named[0]
        for pod in named:
            if pod.seen.phase in _LIVE:
                return pod
        raise DriverFault(f"the pod {named[0].seen.name} is {named[0].seen.phase}, and runs not")


def pods_called(pods: Sequence[OwnPod], name: str) -> list[OwnPod]:
    """The pods that a name means, the likeliest first.

    Controllers add random suffixes to the names of pods: `train-0` then means `train-0-x7k2p`, and
    `web-1` the second pod named `web-…`.
    """
    if not name:
        return list(pods)
    if exact := [pod for pod in pods if pod.seen.name == name]:
        return exact
    if longer := [pod for pod in pods if pod.seen.name.startswith(f"{name}-")]:
        return longer
    stem, _, place = name.rpartition("-")
    alike = [
        pod
        for pod in pods
        if pod.seen.name.startswith(f"{stem}-")
        and not _INDEXED.fullmatch(pod.seen.name.removeprefix(f"{stem}-"))
    ]
    at = int(place) if stem and place.isdecimal() else len(alike)
    return alike[at : at + 1]


def _is_ours(pod: OwnPod) -> bool:
    """Whether a pod runs something of a tenant; a placeholder pod does not."""
    return not pod.is_placeholder


def _container(pod: OwnPod, name: str) -> str:
    container = name or (pod.containers[0] if pod.containers else "")
    if container not in pod.containers:
        raise DriverFault(f"the pod {pod.seen.name} has no container {container}")
    return container


def _describe(fault: ApiError) -> DriverFault:
    return (Denied if isinstance(fault, Forbidden) else DriverFault)(str(fault))


async def _both(feeding: Coroutine[Any, Any, None], reading: Coroutine[Any, Any, int]) -> int:
    """Feeds and reads concurrently; returns when reading has ended."""
    feeder = asyncio.ensure_future(feeding)
    reader = asyncio.ensure_future(reading)
    try:
        # Feeding fails early if the client has gone, and then nothing reads the output either.
        done, _ = await asyncio.wait((feeder, reader), return_when=asyncio.FIRST_COMPLETED)
        if reader not in done and feeder.exception() is not None:
            feeder.result()
        return await reader
    except OSError as fault:
        raise DriverFault(f"the stream to the pod was cut: {fault}") from fault
    finally:
        await end((feeder, reader))


async def _feed_command(stream: _Stream, exchange: Exchange, *, has_input: bool) -> None:
    while (received := await exchange.receive()) is not None:
        channel, content = received
        if channel == Channel.SIZE and content:
            await stream.send(bytes((channel,)) + content)
        elif channel == Channel.INPUT and has_input:
            if content:
                for at in range(0, len(content), _DATA_BYTES):
                    await stream.send(bytes((channel,)) + content[at : at + _DATA_BYTES])
            elif stream.protocol == _COMMANDS[0]:
                await stream.send(bytes((_END_OF, channel)))
            else:
                raise DriverFault(
                    "the cluster is too old to be told that the input of a command ends"
                )


async def _read_command(stream: _Stream, exchange: Exchange) -> int:
    while (message := await stream.receive()) is not None:
        if not message:
            continue
        channel, content = message[0], message[1:]
        if channel == Channel.STATUS:
            return _exit_code(content)
        if content and channel in (Channel.OUTPUT, Channel.ERRORS):
            await exchange.send(channel, content)
    raise DriverFault("the stream to the pod was cut")


def _exit_code(content: bytes) -> int:
    """The exit code in a Status; DriverFault if the command could not be run at all."""
    try:
        status = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        raise DriverFault(content.decode(errors="replace").strip()) from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdecimal():
            return int(cause["message"])
    raise DriverFault(str(status.get("message") or "the command failed"))


async def _feed_port(stream: _Stream, exchange: Exchange) -> None:
    while (received := await exchange.receive()) is not None:
        channel, content = received
        if channel == Channel.INPUT and not content:
            return  # the protocol has no half-close; the pod still sends its answer
        for at in range(0, len(content), _DATA_BYTES):
            await stream.send(bytes((_PORT_DATA,)) + content[at : at + _DATA_BYTES])


async def _read_port(stream: _Stream, exchange: Exchange) -> int:
    named: set[int] = set()
    while (message := await stream.receive()) is not None:
        if not message:
            continue
        channel, content = message[0], message[1:]
        if channel not in named:
            # Each channel begins with the port number.
            named.add(channel)
            content = content[_PORT_NUMBER.size :]
        if content and channel == _PORT_ERROR:
            raise DriverFault(content.decode(errors="replace").strip())
        if content and channel == _PORT_DATA:
            await exchange.send(Channel.OUTPUT, content)
    await exchange.end(Channel.OUTPUT)
    return 0
