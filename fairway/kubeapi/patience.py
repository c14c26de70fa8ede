"""When a request is tried again, and after how long.

A server that answers 429, or that names a time to wait, did not act on the request: any verb is
sent again. After a broken connection or another 5xx a write may have been done, so only what is the
same twice as once is sent again. Waiting times double and are spread, so that many clients of a
server that comes back do not come at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from fairway.client.wire import Answer, PatchType, Request

_FIRST_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long a request is tried."""

    tries_most: int = 4
    wait_seconds_most: float = 10.0

    def after_answer(self, request: Request, answer: Answer, tries: int) -> float | None:
        """Seconds to wait before the next try; None: what was answered stands."""
        if tries >= self.tries_most:
            return None
        asked = answer.retry_after_seconds
        if answer.status == 429 or (answer.status >= 500 and asked is not None):
            wait = self._doubling(tries) if asked is None else max(asked, self._doubling(tries))
            return min(wait, self.wait_seconds_most)
        if answer.status >= 500 and is_repeatable(request):
            return self._doubling(tries)
        return None

    def after_failure(self, request: Request, tries: int, *, is_refused: bool) -> float | None:
        """The same after a connection that broke, or was refused: then nothing was sent."""
        if tries >= self.tries_most or not (is_refused or is_repeatable(request)):
            return None
        return self._doubling(tries)

    def _doubling(self, tries: int) -> float:
        return spread(min(_FIRST_SECONDS * 2.0**tries, self.wait_seconds_most))


def is_repeatable(request: Request) -> bool:
    """Whether twice is the same as once, as far as the server's state goes."""
    if request.method == "PATCH":
        return request.content_type == PatchType.APPLY.value
    return request.method in {"GET", "PUT", "DELETE"}


def spread(seconds: float) -> float:
    """Between half of it and all of it, by chance."""
    return seconds * (0.5 + random.random() / 2)  # noqa: S311 - spreading, not secrecy
