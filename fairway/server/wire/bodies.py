"""Bodies of requests: how large they may be, and where they are decoded.

Large bodies are decoded in a thread, so that YAML and protobuf, which take long, do not hold up the
requests of others; JSON holds them up for a tenth of a second at most. What has more values than
any object needs is refused, because everything that follows looks at each value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from fairway.api.errors import TooLarge
from fairway.server.routes import Target
from fairway.server.wire.exchange import Request

BODY_BYTES_MAX = 3 << 20
SMALL_BYTES_MAX = 64 << 10  # where a body holds options only
REVIEW_BYTES_MAX = 256 << 10
YAML_BYTES_MAX = 1 << 20  # takes ten times as long as JSON
VALUES_MAX = 500_000
_THREADS = 2
_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")
_WITH_OBJECTS = ("create", "update", "patch")

T = TypeVar("T")


def bytes_max(target: Target) -> int:
    """How large a body on this target may be."""
    if not target.is_resource or target.verb not in _WITH_OBJECTS or target.subresource == "scale":
        return SMALL_BYTES_MAX
    if target.group in _REVIEWS or target.subresource == "token":
        return REVIEW_BYTES_MAX
    return BODY_BYTES_MAX


async def read_body(request: Request, target: Target) -> Request:
    """The request with its body; refused unread if it says that it is too large."""
    limit = bytes_max(target)
    said = request.header("content-length")
    if said.isdecimal() and int(said) > limit:
        raise too_large(limit)
    request = await request.whole()
    if len(request.body) > limit:
        raise too_large(limit)
    return request


async def decode(body: bytes, read: Callable[[bytes], T]) -> T:
    """What a function reads from a body; in a thread if the body is large."""
    if len(body) <= SMALL_BYTES_MAX:
        return read(body)
    return await asyncio.get_running_loop().run_in_executor(_threads(), _read_large, body, read)


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {limit}")


def _read_large(body: bytes, read: Callable[[bytes], T]) -> T:
    value = read(body)
    _confirm_count(value)
    return value


def _confirm_count(value: Any) -> None:
    """Refuses a value with too many parts."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, dict | list):
            continue
        count += len(item)
        if count > VALUES_MAX:
            raise TooLarge(f"the body has more than {VALUES_MAX} values")
        waiting.extend(item.values() if isinstance(item, dict) else item)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="bodies")
