"""A collector that takes OTLP over HTTP: protobuf, posted to `/v1/traces`.

By the specification 429, 502, 503 and 504 may succeed later, after the seconds in `Retry-After` if
there are any; every other refusal is final. Headers may hold a token, so they are read for each
request: a token that is replaced on disk is used at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fairway import __version__
from fairway.client.access import Access
from fairway.client.errors import ClientError
from fairway.client.transport import Transport
from fairway.client.wire import Answer, Request
from fairway.clock import Clock
from fairway.tracing.encoding import encode_request, read_rejection
from fairway.tracing.interface import Later, Refused
from fairway.tracing.spans import Attributes

_log = logging.getLogger(__name__)

_PROTOBUF = "application/x-protobuf"
_PASSING = (429, 502, 503, 504)
_ANSWER_SECONDS = 30.0
_SHOWN_MOST = 300  # characters shown of a collector's message
_RESOURCE: Attributes = {"service.name": "fairway", "service.version": __version__}

Headers = tuple[tuple[str, str], ...]


def no_headers() -> Headers:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a collector is, and what it is shown."""

    url: str  # of the requests, with their path
    headers: Callable[[], Headers] = no_headers  # OSError or ValueError if they cannot be read
    authority: bytes = field(default=b"", repr=False)  # PEM to trust; empty: the system's own


class OtlpCollector:
    """One collector."""

    def __init__(self, address: Address, clock: Clock) -> None:
        parts = urlsplit(address.url)
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._headers = address.headers
        access = Access(server=self.address, authority=address.authority)
        self._transport = Transport(access, clock, connections_most=1)

    async def send(self, spans: Sequence[bytes]) -> None:
        try:
            headers = self._headers()
        except (OSError, ValueError) as fault:
            raise Later(f"its headers cannot be read: {fault}") from fault
        request = Request(
            method="POST",
            path=self._path,
            body=encode_request(_RESOURCE, ("fairway", __version__), spans),
            content_type=_PROTOBUF,
            accept=_PROTOBUF,
            headers=headers,
            read_timeout_seconds=_ANSWER_SECONDS,
        )
        try:
            answer = await self._transport.send(request)
        except ClientError as fault:
            raise Later(str(fault)) from fault
        self._take(answer)

    def _take(self, answer: Answer) -> None:
        if answer.status in _PASSING:
            raise Later(_said(answer), after_seconds=answer.retry_after_seconds)
        if not 200 <= answer.status < 300:
            raise Refused(_said(answer))
        rejected, why = read_rejection(answer.body)
        if rejected:
            _log.warning("%s rejected %d trace spans: %s", self.address, rejected, _shown(why))

    async def close(self) -> None:
        await self._transport.close()


def _said(answer: Answer) -> str:
    text = _shown(answer.body.decode(errors="replace"))
    return f"it answered {answer.status}: {text}" if text else f"it answered {answer.status}"


def _shown(text: str) -> str:
    """What may be shown of a message, which may be protobuf."""
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= _SHOWN_MOST else f"{text[:_SHOWN_MOST]}…"
