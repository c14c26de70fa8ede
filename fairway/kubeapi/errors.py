"""Failures before a server has answered, in the same tree as its refusals.

Whoever works with a store or a cluster has one thing to catch: ApiError.
"""

from __future__ import annotations

import msgspec

from fairway.api.errors import ApiError, NotFound, Unauthorized, Unavailable, from_status
from fairway.client.errors import ClientError, ConnectionFailed
from fairway.client.wire import Answer

_TEXT_MOST = 512


class Unreachable(Unavailable):
    """Nobody answered; a write may have been done or not."""


def of_client(error: ClientError) -> ApiError:
    """The error that stands for a call that could not be made."""
    if isinstance(error, ConnectionFailed):
        return Unreachable(str(error), details={})
    return Unauthorized(str(error), details={})


def of_answer(answer: Answer) -> ApiError:
    """The error that an answer stands for."""
    try:
        status = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        status = None
    if isinstance(status, dict):
        return from_status(status, answer.status)
    if answer.status == 404:
        # A group that is not served is answered with plain text.
        return NotFound("the server could not find the requested resource", details={})
    text = answer.body.decode(errors="replace").strip()[:_TEXT_MOST]
    return from_status({"message": text}, answer.status)
