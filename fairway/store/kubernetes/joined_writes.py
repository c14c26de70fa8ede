"""Joins status writes that wait for one another.

An object's status often changes faster than a busy server accepts changes. While one status patch
is in flight, further ones of the same writer are joined: a merge after a merge is one merge, and a
replacement of the whole status replaces everything before it. Each caller gets the response of the
write that contained its patch. Patches that name a version, and all others, are sent as they are.
Waiting writes are bounded by the number of their callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fairway.store.interface import Patch, Stored, Write

Answer = tuple[Stored, bool]
Send = Callable[[Patch], Awaitable[Answer]]


@dataclass(slots=True)
class _Waiting:
    """A patch that is sent once the one before it is answered."""

    patch: Patch
    answer: asyncio.Future[Answer]


class Joining:
    """Sends joinable status writes of each object and writer one after another."""

    def __init__(self) -> None:
        self._waiting: dict[object, _Waiting | None] = {}  # has a key while a patch is in flight
        self.joined = 0

    async def send(self, key: object, patch: Patch, send: Send) -> Answer:
        """Sends a patch, or joins it to one that waits."""
        if key not in self._waiting:
            self._waiting[key] = None
            return await self._carry(key, patch, send)
        waiting = self._waiting[key]
        joined = joined_patch(waiting.patch, patch) if waiting is not None else None
        if waiting is None or joined is None:
            return await self._queue(key, waiting, patch, send)
        waiting.patch = joined
        self.joined += 1
        return await asyncio.shield(waiting.answer)

    async def _queue(
        self, key: object, waiting: _Waiting | None, patch: Patch, send: Send
    ) -> Answer:
        """Makes a patch the waiting one; if another waits that it cannot join, sends it at once."""
        if waiting is not None:
            return await send(patch)
        mine = _Waiting(patch, asyncio.get_running_loop().create_future())
        self._waiting[key] = mine
        return await asyncio.shield(mine.answer)

    async def _carry(self, key: object, patch: Patch, send: Send) -> Answer:
        """Sends a patch, then starts a task for the one that waits."""
        try:
            return await send(patch)
        finally:
            following = self._waiting.pop(key)
            if following is not None:
                self._waiting[key] = None
                task = asyncio.ensure_future(self._carry(key, following.patch, send))
                task.add_done_callback(lambda done: _hand_over(done, following.answer))


def is_joinable(patch: Patch, subresource: str, write: Write) -> bool:
    """Whether a patch sets a status regardless of its old value."""
    if subresource != "status" or write.dry_run:
        return False
    return _replace(patch) is not None or (
        patch.type == "merge" and isinstance(patch.body, dict) and set(patch.body) == {"status"}
    )


def joined_patch(first: Patch, second: Patch) -> Patch | None:
    """One patch with the effect of two in turn; None if there is none."""
    if _replace(second) is not None:
        return second
    if first.type == "merge" and second.type == "merge":
        return Patch(type="merge", body=_merge(first.body, second.body))
    return None


def _replace(patch: Patch) -> dict[str, Any] | None:
    """The operation of a JSON patch that replaces a whole status, if it is one."""
    if patch.type != "json" or not isinstance(patch.body, list) or len(patch.body) != 1:
        return None
    operation: dict[str, Any] = patch.body[0]
    is_whole = operation.get("op") == "add" and operation.get("path") == "/status"
    return operation if is_whole else None


def _merge(first: Any, second: Any) -> Any:
    """Two merge patches as one; a null stays, since it removes something."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    return {
        **first,
        **{key: _merge(first.get(key), value) for key, value in second.items()},
    }


def _hand_over(done: asyncio.Future[Answer], answer: asyncio.Future[Answer]) -> None:
    if answer.done():
        return
    if done.cancelled():
        answer.cancel()
    elif (fault := done.exception()) is not None:
        answer.set_exception(fault)
        answer.exception()  # the callers may be gone
    else:
        answer.set_result(done.result())
