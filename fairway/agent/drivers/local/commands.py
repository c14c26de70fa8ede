"""Commands beside the processes of a pod: in its folder, with its environment, as its user.

A command ends with its container, or when the client goes away: nothing of it is left.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Any

import msgspec

from fairway.agent.drivers.interface import CommandQuery, DriverFault
from fairway.agent.drivers.local.pods import LocalPod
from fairway.clock import Clock
from fairway.loops import end
from fairway.streams.requests import Channel, Exchange

Plain = dict[str, Any]
_READ_BYTES = 32 << 10
_LOOK_SECONDS = 0.5
_SIDE_MOST = 1_000  # rows or columns of a terminal


def container_of(pod: LocalPod, name: str) -> Plain:
    """A container of a pod by name, or its first main one."""
    for container in pod.plan["containers"]:
        if container["name"] == name or (not name and container["role"] == "main"):
            result: Plain = container
            return result
    raise DriverFault(f"the pod {pod.name} has no container {name}")


def has_ended(pod: LocalPod, container: str) -> bool:
    pod.look()
    state = pod.state.get("containers", {}).get(container, {})
    return pod.is_over or state.get("state") == "ended"


async def run_beside(
    pod: LocalPod, container: Plain, query: CommandQuery, exchange: Exchange, clock: Clock
) -> int:
    """Runs a command to its end; returns its exit code as a shell would."""
    if has_ended(pod, container["name"]) or not pod.state:
        raise DriverFault(f"the container {container['name']} of {pod.name} does not run")
    run = _Terminal() if query.has_terminal else _Pipes()
    await run.start(container, query)
    process = run.process
    await exchange.begin()
    reading = [asyncio.ensure_future(item) for item in run.read(exchange)]
    beside = [
        asyncio.ensure_future(run.feed(exchange)),
        asyncio.ensure_future(_end_with(pod, container["name"], process, clock)),
    ]
    try:
        code = await process.wait()
        await asyncio.wait(reading)
        for item in reading:
            item.result()
        return code if code >= 0 else 128 - code
    finally:
        _kill(process)
        await end((*beside, *reading))
        run.close()


async def _end_with(pod: LocalPod, container: str, process: Process, clock: Clock) -> None:
    while not has_ended(pod, container):
        await clock.sleep(_LOOK_SECONDS)
    _kill(process)


def _kill(process: Process) -> None:
    """Kills a command with everything in its process group; it leads its own session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _start(container: Plain, query: CommandQuery, **streams: Any) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *query.command,
            cwd=container["cwd"],
            env=container["env"],
            start_new_session=True,
            **streams,
        )
    except (OSError, ValueError) as fault:
        raise DriverFault(f"cannot run {query.command[0]}: {fault}") from fault


class _Pipes:
    """A command with stdout and stderr, and with stdin if requested."""

    process: Process

    async def start(self, container: Plain, query: CommandQuery) -> None:
        given = PIPE if query.has_input else DEVNULL
        self.process = await _start(container, query, stdin=given, stdout=PIPE, stderr=PIPE)

    def read(self, exchange: Exchange) -> list[Any]:
        assert self.process.stdout is not None, "a pipe"
        assert self.process.stderr is not None, "a pipe"
        return [
            _copy(self.process.stdout, Channel.OUTPUT, exchange),
            _copy(self.process.stderr, Channel.ERRORS, exchange),
        ]

    async def feed(self, exchange: Exchange) -> None:
        given = self.process.stdin
        while (received := await exchange.receive()) is not None:
            channel, content = received
            if channel != Channel.INPUT or given is None:
                continue
            with suppress(ConnectionError):  # a command need not read all its input
                if content:
                    given.write(content)
                    await given.drain()
                else:
                    given.close()

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()


class _Terminal:
    """A command with its own terminal."""

    process: Process

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()

    async def start(self, container: Plain, query: CommandQuery) -> None:
        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        theirs = self._theirs
        env = {"TERM": "xterm", **container["env"]}
        try:
            self.process = await _start(
                {**container, "env": env},
                query,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                preexec_fn=take_terminal,
            )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(theirs)

    def read(self, exchange: Exchange) -> list[Any]:
        return [self._read(exchange)]

    async def _read(self, exchange: Exchange) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        os.set_blocking(self._ours, False)
        loop.add_reader(self._ours, readable.set)
        try:
            while True:
                try:
                    content = os.read(self._ours, _READ_BYTES)
                except BlockingIOError:
                    readable.clear()
                    await readable.wait()
                    continue
                except OSError:
                    return  # the other side is closed
                if not content:
                    return
                await exchange.send(Channel.OUTPUT, content)
        finally:
            loop.remove_reader(self._ours)

    async def feed(self, exchange: Exchange) -> None:
        while (received := await exchange.receive()) is not None:
            channel, content = received
            if channel == Channel.SIZE and content:
                self._resize(content)
            elif channel == Channel.INPUT:
                await self._type(content or b"\x04")  # Ctrl-D ends the input

    async def _type(self, content: bytes) -> None:
        while content:
            try:
                content = content[os.write(self._ours, content) :]
            except BlockingIOError:
                await asyncio.sleep(_LOOK_SECONDS)  # the command does not read its input now
            except OSError:
                return

    def _resize(self, content: bytes) -> None:
        try:
            size = msgspec.json.decode(content, type=dict[str, int])
        except msgspec.MsgspecError:
            return
        sides = [min(max(size.get(item, 0), 0), _SIDE_MOST) for item in ("Height", "Width")]
        with suppress(OSError):
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", *sides, 0, 0))

    def close(self) -> None:
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1


async def _copy(source: asyncio.StreamReader, channel: int, exchange: Exchange) -> None:
    while content := await source.read(_READ_BYTES):
        await exchange.send(channel, content)
