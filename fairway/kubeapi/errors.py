"""Errors of calls that got no answer, in the same tree as the server's refusals.

Callers that use a store or a cluster catch one class: ApiError.
"""

from __future__ import annotations

import msgspec

from fairway.api.errors import ApiError, NotFound, Unauthorized, Unavailable, from_status
from fairway.client.errors import ClientError, ConnectionFailed
from fairway.client.wire import Answer

_TEXT_MOST = 512


class Unreachable(Unavailable):
    """The server did not answer; a write may or may not have happened."""


def of_client(error: ClientError) -> ApiError:
    """The error for a call that could not be made."""
    if isinstance(error, ConnectionFailed):
        return Unreachable(str(error), details={})
    return Unauthorized(str(error), details={})


def of_answer(answer: Answer) -> ApiError:
    """The error for a response with an error status."""
    try:
        status = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        status = None
    if isinstance(status, dict):
        return from_status(status, answer.status)
    if answer.status == 404:
        # For a group that it does not serve, the server answers with plain text.
        return NotFound("the server could not find the requested resource", details={})
    text = answer.body.decode(errors="replace").strip()[:_TEXT_MOST]
    return from_status({"message": text}, answer.status)
