"""`fairway exec`: runs a command in a pod of a workload."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click
import msgspec

from fairway.cli import pod_streams, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.session import current, say
from fairway.client.asynchronous import AsyncClient
from fairway.client.wire import Query
from fairway.loops import end
from fairway.streams.requests import Channel

EXAMPLES = """
    fairway exec train -- nvidia-smi                     in its first pod that runs
    fairway exec -it job/train -- bash                   a shell, with this terminal
    fairway exec train --pod train-1 -c main -- ps aux   in this pod and container
    fairway exec -i train -- sh -c 'cat >data' <data     the standard input goes along
"""
_READ_BYTES = 32 << 10


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.argument("command", nargs=-1, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option(
    "-i", "--stdin", "has_input", is_flag=True, help="Pass standard input to the command."
)
@click.option("-t", "--tty", "has_terminal", is_flag=True, help="Give the command a terminal.")
@click.option("--pod", default="", metavar="NAME", help="Pod; default: the first that runs.")
@click.option("-c", "--container", default="", metavar="NAME", help="Container.")
@click.option("--cluster", default="", metavar="NAME", help="Cluster.")
def execute(
    *,
    word: str,
    command: tuple[str, ...],
    has_input: bool,
    has_terminal: bool,
    pod: str,
    container: str,
    cluster: str,
) -> int:
    """Run a command in a pod of a workload.

    WORKLOAD is a workload, or the native object that it stands for, such as job/train. The exit
    code is the command's.
    """
    if not command:
        raise click.UsageError("Write the command behind --, such as: -- ls -l")
    session = current()
    workload = workloads.find(session, word)
    if has_terminal and not sys.stdin.isatty():
        say("The standard input is no terminal, so the command gets none.")
        has_terminal = False
    query: dict[str, str | tuple[str, ...]] = {
        **pod_streams.where(pod, container, cluster),
        "command": command,
        "stdout": "true",
    }
    if has_input:
        query["stdin"] = "true"
    query["tty" if has_terminal else "stderr"] = "true"
    name, namespace = workloads.name_of(workload), workload["metadata"]["namespace"]

    async def run() -> int:
        async with (
            AsyncClient(session.find_access()) as client,
            pod_streams.open_stream(client, "exec", name, namespace, query) as stream,
        ):
            with _raw() if has_terminal and has_input else _plain():
                return await _converse(stream, query)

    return asyncio.run(run())


async def _converse(stream: pod_streams.PodStream, query: Query) -> int:
    beside = []
    if "stdin" in query:
        beside.append(asyncio.ensure_future(_feed(stream)))
    if "tty" in query:
        beside.append(asyncio.ensure_future(_tell_size(stream)))
    outputs = {Channel.OUTPUT: sys.stdout.buffer, Channel.ERRORS: sys.stderr.buffer}
    try:
        while True:
            channel, content = await stream.receive()
            if channel == Channel.STATUS:
                return pod_streams.exit_code(content)
            if channel in outputs:
                outputs[Channel(channel)].write(content)
                outputs[Channel(channel)].flush()
    finally:
        await end(beside)


async def _feed(stream: pod_streams.PodStream) -> None:
    """Forwards the standard input, as fast as it is read."""
    loop = asyncio.get_running_loop()
    parts: asyncio.Queue[bytes] = asyncio.Queue(1)

    def read() -> None:
        # A separate thread, which may still wait for a key when everything else has ended.
        with suppress(RuntimeError):  # all else is over
            while True:
                content = os.read(sys.stdin.fileno(), _READ_BYTES)
                asyncio.run_coroutine_threadsafe(parts.put(content), loop).result()
                if not content:
                    return

    threading.Thread(target=read, daemon=True).start()
    with suppress(ConnectionError):  # the receiving side reports how it ended
        while content := await parts.get():
            await stream.send(Channel.INPUT, content)
        await stream.end(Channel.INPUT)


async def _tell_size(stream: pod_streams.PodStream) -> None:
    """Sends the size of the terminal, now and whenever it changes."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    changed.set()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            size = shutil.get_terminal_size()
            message = {"Width": size.columns, "Height": size.lines}
            await stream.send(Channel.SIZE, msgspec.json.encode(message))
    except ConnectionError:
        return
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


@contextmanager
def _raw() -> Iterator[None]:
    """Sends every key to the command, and restores this terminal afterwards."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setraw(keyboard)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _plain() -> Iterator[None]:
    yield
