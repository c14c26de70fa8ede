"""What if: a plan on a copy of the snapshot with some changes, beside the plan without them.

Nothing is written, and the planner that decides sees none of it. A separate process works it out,
by the same function that `fairway plan` uses, one question at a time: a large fleet takes a while,
and the hub goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec

from fairway.api.errors import BadRequest, InternalError, Timeout, TooManyRequests
from fairway.controllers.child_processes import start_python
from fairway.controllers.whatif.edits import Change, JsonObject

_SECONDS_MAX = 60.0
_ASKED_MOST = 8  # questions that wait for their turn; more are refused for now


class WhatIf:
    """Answers what if, one question at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._asked = 0

    async def answer(
        self, objects: Sequence[msgspec.Raw | JsonObject], now: float, change: Change
    ) -> JsonObject:
        """The present plan, the changed plan, and which workloads the difference affects."""
        if self._asked >= _ASKED_MOST:
            raise TooManyRequests("others are asking what if; try again in a moment")
        self._asked += 1
        try:
            async with self._turn, asyncio.timeout(_SECONDS_MAX):
                asked = {"now": now, "objects": list(objects), "change": change}
                answer = await _worked_out(msgspec.json.encode(asked))
        except TimeoutError as fault:
            raise Timeout(f"this takes longer than {_SECONDS_MAX:.0f} seconds") from fault
        finally:
            self._asked -= 1
        if "refused" in answer:
            raise BadRequest(str(answer["refused"]))
        return answer


async def _worked_out(question: bytes) -> JsonObject:
    process = await start_python("fairway.controllers.whatif.process")
    try:
        answer, _ = await process.communicate(question)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise InternalError("the plan could not be made; the hub's log says more")
    decoded: JsonObject = msgspec.json.decode(answer)
    return decoded
