"""The only module of the server that uses the HTTP library.

Requests become `Request`, and a `Response` becomes a body, a chunked stream or a WebSocket; nothing
is decided here.
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from fairway.api.errors import ApiError, BadRequest, TooLarge, readable
from fairway.server.documents.page import PREFIX, SAFETY
from fairway.server.wire.exchange import ByteStream, Meeting, Request, Response, json_response
from fairway.sockets import WebSocket

BODY_BYTES_MAX = 3 << 20
_PACKED_BYTES = 128 << 10  # smaller bodies are sent faster uncompressed
_HEADER_BYTES_MAX = 64 << 10
# A stream whose client reads nothing for this long is ended.
_STALLED_SECONDS = 60.0
# How long streams get to end when the hub stops.
_FAREWELL_SECONDS = 1.0
MESSAGE_BYTES_MAX = 1 << 20  # of one message of a two-way stream
_NO_UPGRADE = BadRequest("a WebSocket is needed here, version 13")
Answer = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves an answer function on one address."""

    def __init__(
        self,
        answer: Answer,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        stalled_seconds: float = _STALLED_SECONDS,
    ) -> None:
        self._answer = answer
        self._address = address
        self._port = port
        self._tls = tls
        self._stalled_seconds = stalled_seconds
        self._runner: web.ServerRunner | None = None
        self._streams: set[asyncio.Task[Any]] = set()

    async def start(self) -> int:
        """Starts to listen; returns the port."""
        server = web.Server(
            self._handle,
            access_log=None,
            keepalive_timeout=120.0,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
            handler_cancellation=True,  # a watch ends as soon as its client disconnects
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=5.0)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self._address, self._port, ssl_context=self._tls, backlog=1024
        )
        await site.start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Ends streams, lets requests in flight finish, and stops listening."""
        if self._streams:
            # A stalled reader must not delay the shutdown.
            _, stalled = await asyncio.wait(self._streams, timeout=_FAREWELL_SECONDS)
            for stream in stalled:
                stream.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await _read(incoming)
        except ApiError as error:
            response = json_response(error.status(), status=error.code)
            return _whole(response, incoming.path)
        # A request is completed and audited even if its client disconnects.
        response = await asyncio.shield(self._answer(request))
        if response.meeting is not None:
            return await self._meet(incoming, response.meeting)
        if response.stream is None:
            return _whole(await _pack(request, response), request.path)
        return await self._send(incoming, response, response.stream)

    async def _send(
        self, incoming: web.BaseRequest, response: Response, stream: ByteStream
    ) -> web.StreamResponse:
        answer = web.StreamResponse(status=response.status, headers=_headers(response))
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            answer.enable_chunked_encoding()
            await answer.prepare(incoming)
            async for chunk in stream:
                async with asyncio.timeout(self._stalled_seconds):
                    await answer.write(chunk)
            await answer.write_eof()
        except (ConnectionError, asyncio.CancelledError, TimeoutError, ApiError):
            # The client is gone or reads nothing, the hub is stopping, or the source failed: the
            # missing end of the stream shows the client that it was cut off.
            if incoming.transport is not None:
                incoming.transport.abort()
        finally:
            self._streams.discard(task)
            await stream.aclose()
        return answer

    async def _meet(self, incoming: web.BaseRequest, meeting: Meeting) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            protocols=meeting.protocols,
            heartbeat=meeting.beat_seconds,
            max_msg_size=MESSAGE_BYTES_MAX,
            compress=False,
            timeout=_FAREWELL_SECONDS,
        )
        if not socket.can_prepare(incoming).ok:
            return _whole(json_response(_NO_UPGRADE.status(), status=_NO_UPGRADE.code))
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await socket.prepare(incoming)
            await meeting.hold(WebSocket(socket))
            await socket.close()
        except (ConnectionError, asyncio.CancelledError, TimeoutError):
            if incoming.transport is not None:
                incoming.transport.abort()
        finally:
            self._streams.discard(task)
        return socket


async def _read(incoming: web.BaseRequest) -> Request:
    length = incoming.content_length
    if length is not None and length > BODY_BYTES_MAX:
        raise _too_large()
    body = b""
    if incoming.body_exists:
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in incoming.content.iter_any():
                size += len(chunk)
                if size > BODY_BYTES_MAX:
                    raise _too_large()
                chunks.append(chunk)
        except (web.RequestPayloadError, HttpProcessingError, ClientError) as fault:
            raise BadRequest("the body of the request cannot be read") from fault
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    url = incoming.rel_url
    return Request(
        method=incoming.method,
        path=unquote(url.raw_path) if "%" in url.raw_path else url.raw_path,
        query=tuple(url.query.items()) if url.raw_query_string else (),
        headers=tuple(incoming.headers.items()),
        body=body,
        source=incoming.remote or "",
    )


async def _pack(request: Request, response: Response) -> Response:
    """Compresses large bodies, as kube-apiserver does, in a thread: lists shrink to a seventh.

    The given response is not changed: it may be cached for clients that accept no gzip.
    """
    if len(response.body) < _PACKED_BYTES or "Content-Encoding" in response.headers:
        return response
    headers = {**response.headers, "Vary": "Accept-Encoding"}
    if "gzip" not in request.header("accept-encoding"):
        return replace(response, headers=headers)
    body = await asyncio.to_thread(gzip.compress, response.body, 1, mtime=0)
    return replace(response, body=body, headers={**headers, "Content-Encoding": "gzip"})


def _too_large() -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {BODY_BYTES_MAX}")


def _headers(response: Response) -> dict[str, str]:
    # Responses depend on the identity and change at any time, so no proxy may cache them.
    return {
        "Content-Type": response.content_type,
        "Cache-Control": "no-cache, private",
        "X-Content-Type-Options": "nosniff",
        **response.headers,
    }


def _whole(response: Response, path: str = "") -> web.Response:
    headers = _headers(response)
    if path.startswith(PREFIX):
        headers = {**SAFETY, **headers}  # errors have the page's security policy too
    answer = web.Response(status=response.status, body=response.body, headers=headers)
    for warning in response.warnings:
        # A line break would end the header, and a client could inject headers of its own.
        quoted = readable(warning).replace("\\", "\\\\").replace('"', '\\"')
        answer.headers.add("Warning", f'299 - "{quoted}"')
    return answer
