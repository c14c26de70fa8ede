"""Waiting in real time, for what real processes and servers do.

Nothing sleeps for a fixed time and then looks: a test says what it waits for, goes on as soon as
that is so, and fails with what was last seen once nobody would wait any longer. The patience only
tells a slow machine from one on which it never happens. Looks cost processor time, of servers too:
the longer it takes, the rarer they are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from fairway.agent.drivers.interface import Driver, Observation
from fairway.api.codec import decode
from fairway.api.workload import Workload
from fairway.client import AsyncClient
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Scope

PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.02  # after the first look
_PAUSE_SECONDS_MOST = 0.2
T = TypeVar("T")


async def seen(look: Callable[[], Awaitable[T]], is_so: Callable[[T], bool], what: str) -> T:
    """Looks, again and again, until it is so."""
    found: T | None = None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            pauses = _pauses()
            while not is_so(found := await look()):
                await asyncio.sleep(next(pauses))
            return found
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}: {found}") from None


def seen_at_last(look: Callable[[], T], is_so: Callable[[T], bool], what: str) -> T:
    """As `seen`, for tests that are not asynchronous themselves."""
    until = time.monotonic() + PATIENCE_SECONDS
    pauses = _pauses()
    while not is_so(found := look()):
        assert time.monotonic() < until, f"waited in vain for {what}: {found}"
        time.sleep(next(pauses))
    return found


def _pauses() -> Iterator[float]:
    """Seconds between one look and the next."""
    pause = _PAUSE_SECONDS
    while True:
        yield pause
        pause = min(1.3 * pause, _PAUSE_SECONDS_MOST)


async def observed(driver: Driver, holds: Callable[[Observation], bool], what: str) -> Observation:
    """Looks at a cluster whenever something may have changed there, until it is so."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    observation = await driver.observe()
    while not holds(observation):
        left = deadline - loop.time()
        try:
            await asyncio.wait_for(driver.wait_for_change(), max(left, 0.01))
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}: {observation.works}") from None
        observation = await driver.observe()
    return observation


async def followed(
    client: AsyncClient,
    name: str,
    is_so: Callable[[Workload], bool] | str,
    what: str = "",
    *,
    namespace: str,
) -> Workload:
    """Follows a workload until it is so, or in a phase."""
    wanted = (lambda item: item.status.phase == is_so) if isinstance(is_so, str) else is_so
    scope = Scope(namespace=namespace, fields=f"metadata.name={name}")
    last: Workload | None = None
    try:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(client.watch(WORKLOADS, scope=scope)) as events,
        ):
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    last = decode(event.object, Workload)
                    if wanted(last):
                        return last
    except TimeoutError:
        status = None if last is None else last.status
        raise AssertionError(f"waited in vain for {what or is_so}: {status}") from None
    raise AssertionError("a watch never ends")
