"""Requests answered with JSON or an error, with retries.

A server that answers 429, or 5xx with Retry-After, did not act on the request, so any request is
retried. After a broken connection only reads are retried, since a write may have been done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fairway.api.errors import ApiError, from_status
from fairway.client.errors import ConnectionFailed
from fairway.client.transport import Transport
from fairway.client.wire import Answer, Object, Request
from fairway.clock import Clock

TRIES_MAX = 5
WAIT_SECONDS_MAX = 30.0


class Calls:
    """JSON requests to one server."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self.transport = transport
        self._clock = clock
        # Called with each warning of a response, such as that a field is deprecated.
        self.on_warning: Callable[[str], None] = lambda _: None

    async def json(self, request: Request) -> Object:
        """The response as an object; raises the error that the response describes."""
        answer = await self.bytes(request)
        try:
            decoded = msgspec.json.decode(answer)
        except msgspec.DecodeError as error:
            raise ConnectionFailed(
                self.transport.server, f"it does not speak the Kubernetes API ({error})"
            ) from error
        if not isinstance(decoded, dict):
            raise ConnectionFailed(self.transport.server, "it does not speak the Kubernetes API")
        return decoded

    async def bytes(self, request: Request) -> bytes:
        """The body of the response; raises the error that the response describes."""
        tries = 0
        while True:
            tries += 1
            try:
                answer = await self.transport.send(request)
            except ConnectionFailed as error:
                if request.method != "GET" or error.is_refused or tries >= 2:
                    raise
                await self._clock.sleep(0.1)
                continue
            if answer.status < 400:
                for warning in answer.warnings:
                    self.on_warning(warning)
                return answer.body
            wait = _wait_seconds(answer, request, tries)
            if wait is None or tries >= TRIES_MAX:
                raise refusal(answer)
            await self._clock.sleep(wait)


def refusal(answer: Answer) -> ApiError:
    """The error that a response describes."""
    try:
        status: Any = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        status = {"message": answer.body.decode(errors="replace").strip()[:512]}
    return from_status(status if isinstance(status, dict) else {}, answer.status)


def _wait_seconds(answer: Answer, request: Request, tries: int) -> float | None:
    """How long to wait before the next try; None: do not retry."""
    doubling = min(0.25 * 2.0**tries, WAIT_SECONDS_MAX)
    asked = answer.retry_after_seconds
    if answer.status == 429 or (answer.status >= 500 and asked is not None):
        return min(doubling if asked is None else asked, WAIT_SECONDS_MAX)
    if answer.status in {502, 503, 504} and request.method == "GET":
        return doubling
    return None
