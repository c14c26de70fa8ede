"""Answers requests that reach an agent as talks, by its driver.

The hub has already checked the rights of the user. The agent only logs the user of each exec and
port-forward, so that the owners of a cluster can see who was in their pods.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Any

import msgspec

from fairway.agent.drivers.interface import (
    CommandQuery,
    Denied,
    Driver,
    DriverFault,
    LogQuery,
    NotPossible,
    PortQuery,
    WorkSeen,
)
from fairway.agent.pod_lists import page_of
from fairway.clock import Clock
from fairway.metrics.interface import MetricsFault, Sources, Unreachable
from fairway.metrics.measurements import Measurement
from fairway.metrics.measuring import measure
from fairway.streams.requests import WELL, Ask, Channel, Exchange, Outcome

_CHUNK_BYTES = 16 << 10

_log = logging.getLogger(__name__)


async def answer(
    cluster: str, driver: Driver, ask: Ask, exchange: Exchange, seen: WorkSeen | None = None
) -> Outcome:
    """Answers a request; a refusal is an outcome as well.

    `seen` is what the agent last saw of the requested work.
    """
    try:
        match ask.kind:
            case "log":
                await _tell_output(driver, ask, exchange)
            case "exec":
                _log.info(
                    "%s: %s runs %s in pods of %s", cluster, ask.user, ask.command[:1], ask.work
                )
                return Outcome(exit_code=await driver.execute(_command(ask), exchange))
            case "portforward":
                _log.info("%s: %s uses port %d of %s", cluster, ask.user, ask.port, ask.work)
                query = PortQuery(work=ask.work, pod=ask.pod, port=ask.port)
                await driver.forward(query, exchange)
            case "usage":
                await _tell(msgspec.json.encode(await driver.usage(ask.work)), exchange)
            case "pods":
                if seen is None:
                    return Outcome(reason="NotFound", message=f"there is no work {ask.work}")
                page = page_of(seen.pods, after=ask.after, most=ask.most)
                await _tell(msgspec.json.encode(page), exchange)
            case other:
                message = f"this agent is too old to answer {other!r}"
                return Outcome(reason="MethodNotAllowed", message=message)
    except NotPossible as fault:
        return Outcome(reason="MethodNotAllowed", message=str(fault))
    except Denied as fault:
        return Outcome(reason="Forbidden", message=str(fault))
    except DriverFault as fault:
        return Outcome(reason="NotFound", message=str(fault))
    return WELL


async def answer_measurement(
    ask: Ask, exchange: Exchange, *, sources: Sources, clock: Clock
) -> Outcome:
    """Measures for a scorer, from where this agent runs."""
    try:
        measurement = msgspec.json.decode(ask.measurement, type=Measurement)
        samples = await measure(measurement, sources, clock)
    except msgspec.MsgspecError as fault:
        return Outcome(reason="BadRequest", message=f"the measurement is not understood: {fault}")
    except Unreachable as fault:
        return Outcome(reason="ServiceUnavailable", message=str(fault))
    except MetricsFault as fault:
        return Outcome(reason="BadRequest", message=str(fault))
    await _tell(msgspec.json.encode(samples), exchange)
    return WELL


async def _tell(answer: bytes, exchange: Exchange) -> None:
    await exchange.begin()
    for start in range(0, len(answer), _CHUNK_BYTES):
        await exchange.send(Channel.OUTPUT, answer[start : start + _CHUNK_BYTES])


async def _tell_output(driver: Driver, ask: Ask, exchange: Exchange) -> None:
    query = LogQuery(
        work=ask.work,
        pod=ask.pod,
        container=ask.container,
        follow=ask.follow,
        tail_lines=ask.tail_lines,
        since=ask.since,
        is_previous=ask.is_previous,
    )
    output: Any = driver.logs(query)
    async with aclosing(output) as chunks:
        async for chunk in chunks:
            await exchange.begin()
            await exchange.send(Channel.OUTPUT, chunk)


def _command(ask: Ask) -> CommandQuery:
    return CommandQuery(
        work=ask.work,
        pod=ask.pod,
        container=ask.container,
        command=ask.command,
        has_input=ask.has_input,
        has_terminal=ask.has_terminal,
    )
