"""Hubs for the browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fairway.app import Hub, HubOptions, SignInOptions, open_hub
from fairway.client import load_access
from fairway.client.access import Access
from fairway.client.synchronous import LoopThread
from tests.waiting import PATIENCE_SECONDS, seen_at_last

VISITOR_TOKEN = "token-of-a-visitor-who-may-do-little"


def demo_hub(data: Path, *, port: int = 0, sign_in: SignInOptions | None = None) -> Iterator[Hub]:
    """A hub in this process with the demo fleet, until the fixture that yields from this ends."""
    loop = LoopThread()
    options = HubOptions(data=data, port=port, has_demo=True, sign_in=sign_in or SignInOptions())
    yield from loop.iterate(_running(options))
    loop.stop()


async def _running(options: HubOptions) -> AsyncGenerator[Hub, None]:
    path = options.data / "tokens.csv"  # written before the start, since it is read again rarely
    path.touch(mode=0o600)
    path.write_text(
        f"token-of-the-administrator,admin,admin,system:masters\n{VISITOR_TOKEN},visitor,visitor\n"
    )
    async with open_hub(options) as hub:
        yield hub


@contextmanager
def hub_process(data: Path, *, port: int) -> Iterator[Access]:
    """A hub as a process of its own, and how to reach it; it ends in order."""
    command = [sys.executable, "-m", "fairway.cli.main", "up"]
    with subprocess.Popen(
        [*command, "--data", str(data), "--port", str(port)],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert any(line.startswith("Stop with") for line in process.stdout)
            yield load_access(str(data / "kubeconfig"))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)


@contextmanager
def told_hub(data: Path, *, port: int, until: tuple[str, ...]) -> Iterator[Access]:
    """A hub that plays the demo's story, from the moment at which it has told all of `until`."""
    story = data / "story.txt"
    data.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fairway.cli.main", "up", "--demo"]
    with (
        story.open("w") as lines,
        subprocess.Popen(
            [*command, "--data", str(data), "--port", str(port)],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=lines,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            for item in until:
                seen_at_last(story.read_text, partial(_tells, item), f"the story to tell: {item}")
            yield load_access(str(data / "kubeconfig"))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)


def _tells(what: str, text: str) -> bool:
    return what in text
