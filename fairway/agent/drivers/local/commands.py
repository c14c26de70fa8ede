"""Commands beside the processes of a pod: in its folder and its sandbox, with its environment.

A command ends with its container, when the client goes away, or when this process is killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from fairway.agent.drivers.interface import CommandQuery, DriverFault
from fairway.agent.drivers.local.pods import LocalPod
from fairway.agent.drivers.local.supervisor import sandbox
from fairway.clock import Clock
from fairway.loops import end
from fairway.parent_death import death_request
from fairway.streams.requests import Channel, Exchange

Plain = dict[str, Any]
Init = tuple[int, int]  # the first process of a sandbox, and when it started
_READ_BYTES = 32 << 10
_LOOK_SECONDS = 0.5
_BEGIN_SECONDS = 0.02  # between two looks at a sandbox that is being made
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
    box = _Box(query.command, container, await _init_of(pod, container, clock))
    run = _Terminal(box) if query.has_terminal else _Pipes(box)
    await run.start(query)
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
        run.box.confirm(code)
        return code if code >= 0 else 128 - code
    finally:
        _kill(process)
        await end((*beside, *reading))
        run.close()


async def _init_of(pod: LocalPod, container: Plain, clock: Clock) -> Init:
    """The first process of the container's sandbox; none if it has no sandbox."""
    name = container["name"]
    if not container.get("sandbox"):
        return 0, 0
    while not has_ended(pod, name):
        state = pod.state["containers"].get(name, {})
        if state.get("state") != "running":
            break
        if "pid" in state:
            return int(state["pid"]), int(state["start"])
        await clock.sleep(_BEGIN_SECONDS)
    raise DriverFault(f"the container {name} of {pod.name} does not run")


async def _end_with(pod: LocalPod, container: str, process: Process, clock: Clock) -> None:
    while not has_ended(pod, container):
        await clock.sleep(_LOOK_SECONDS)
    _kill(process)


def _kill(process: Process) -> None:
    """Kills a command with everything in its process group; it leads its own session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Box:
    """How a command is run: in the sandbox of its container, if that has one.

    There it joins the processes of the container, and sees the same files.
    """

    def __init__(self, command: Sequence[str], container: Plain, init: Init) -> None:
        self._command = command
        self._container = container
        self._sandbox: Plain | None = container.get("sandbox")
        self._init = init
        self._status = -1

    async def start(
        self,
        prepare: Callable[[], None] | None = None,
        more: Mapping[str, str] | None = None,
        **streams: Any,
    ) -> Process:
        """Starts the command, with `more` variables, and after `prepare` in its own process."""
        env = {**(more or {}), **self._container["env"]}
        held: list[int] = []
        try:
            if self._sandbox is None:
                words, where = list(self._command), self._container["cwd"]
            else:
                words, where = self._enter(env, held), "/"
                prepare = _after(prepare, partial(sandbox.drop_rights, self._sandbox))
                env = self._sandbox["mark"]
            # Last: another user, as the sandbox takes, would undo it.
            prepare = _after(prepare, death_request(os.getpid()) or _nothing)
            return await asyncio.create_subprocess_exec(
                *words,
                cwd=where,
                env=env,
                start_new_session=True,
                pass_fds=held,
                preexec_fn=prepare,
                **streams,
            )
        except (OSError, ValueError) as fault:
            raise DriverFault(f"cannot run {self._command[0]}: {fault}") from fault
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _enter(self, env: Mapping[str, str], held: list[int]) -> list[str]:
        """The words that run the command in the sandbox; they name descriptors that are `held`."""
        assert self._sandbox is not None
        options, spaces = sandbox.join_options(*self._init)
        held += spaces
        self._status, reported = os.pipe()
        held.append(reported)
        options += ("--chdir", self._container["cwd"], "--json-status-fd", str(reported))
        words, file = sandbox.command(self._sandbox, self._command, env, options)
        held.append(file)
        return words

    def confirm(self, code: int) -> None:
        """DriverFault if the sandbox ended because it could not run the command."""
        if self._status < 0 or code != sandbox.FAULT:
            return
        os.set_blocking(self._status, False)
        if not sandbox.has_begun(os.read(self._status, _READ_BYTES)):
            raise DriverFault(f"cannot run {self._command[0]}: it cannot be executed there")

    def close(self) -> None:
        if self._status >= 0:
            os.close(self._status)
            self._status = -1


def _nothing() -> None:
    return


def _after(first: Callable[[], None] | None, then: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        if first is not None:
            first()
        then()

    return both


class _Pipes:
    """A command with stdout and stderr, and with stdin if requested."""

    process: Process

    def __init__(self, box: _Box) -> None:
        self.box = box

    async def start(self, query: CommandQuery) -> None:
        given = PIPE if query.has_input else DEVNULL
        self.process = await self.box.start(stdin=given, stdout=PIPE, stderr=PIPE)

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
        self.box.close()
        if self.process.stdin is not None:
            self.process.stdin.close()


class _Terminal:
    """A command with its own terminal."""

    process: Process

    def __init__(self, box: _Box) -> None:
        self.box = box
        self._ours, self._theirs = os.openpty()

    async def start(self, _query: CommandQuery) -> None:
        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        theirs = self._theirs
        try:
            self.process = await self.box.start(
                take_terminal,
                {"TERM": "xterm"},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
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
        self.box.close()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1


async def _copy(source: asyncio.StreamReader, channel: int, exchange: Exchange) -> None:
    while content := await source.read(_READ_BYTES):
        await exchange.send(channel, content)
