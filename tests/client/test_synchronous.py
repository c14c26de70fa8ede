"""The client without `await`, interrupted as by Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from fairway.client.synchronous import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.stop()


def test_a_walk_that_is_interrupted_ends_though_its_last_step_takes_a_while_to_end(
    loop: LoopThread,
) -> None:
    ended: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        yield 1
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.1)
            ended.append("the step")

    walk = loop.iterate(numbers())
    assert next(walk) == 1
    interrupt = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        next(walk)
    interrupt.join()
    assert ended == ["the step"]


def test_a_walk_that_is_interrupted_before_it_waits_ends_as_well(
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        yield 1
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("the step")

    schedule = asyncio.run_coroutine_threadsafe

    def interrupted(*given: Any) -> None:
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", schedule)
        schedule(*given)
        raise KeyboardInterrupt

    walk = loop.iterate(numbers())
    assert next(walk) == 1
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(walk)
    assert ended == ["the step"]
