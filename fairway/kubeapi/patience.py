"""When a request is retried, and after how long.

A server that answers 429, or 5xx with Retry-After, did not act on the request: any verb is sent
again. After a broken connection or another 5xx, a write may have happened, so only idempotent
requests are sent again. Waiting times double and have jitter, so that the clients of a server that
comes back do not all return at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from fairway.client.wire import Answer, PatchType, Request

_FIRST_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a request is tried, and how long it waits in between."""

    tries_most: int = 4
    wait_seconds_most: float = 10.0

    def after_answer(self, request: Request, answer: Answer, tries: int) -> float | None:
        """Seconds to wait before the next try; None: the answer is final."""
        if tries >= self.tries_most:
            return None
        asked = answer.retry_after_seconds
        if answer.status == 429 or (answer.status >= 500 and asked is not None):
            wait = self._double(tries) if asked is None else max(asked, self._double(tries))
            return min(wait, self.wait_seconds_most)
        if answer.status >= 500 and is_repeatable(request):
            return self._double(tries)
        return None

    def after_failure(self, request: Request, tries: int, *, is_refused: bool) -> float | None:
        """The same after a connection broke, or was refused, in which case nothing was sent."""
        if tries >= self.tries_most or not (is_refused or is_repeatable(request)):
            return None
        return self._double(tries)

    def _double(self, tries: int) -> float:
        return spread(min(_FIRST_SECONDS * 2.0**tries, self.wait_seconds_most))


def is_repeatable(request: Request) -> bool:
    """Whether the request is idempotent."""
    if request.method == "PATCH":
        return request.content_type == PatchType.APPLY.value
    return request.method in {"GET", "PUT", "DELETE"}


def spread(seconds: float) -> float:
    """A random time between half of `seconds` and all of it."""
    return seconds * (0.5 + random.random() / 2)  # noqa: S311 - spreading, not secrecy
