"""The only module of the server that uses the HTTP library.

Requests become `Request`, and a `Response` becomes a body, a chunked stream or a WebSocket. Only
the limits of connections apply here (`connections`); nothing else is decided.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote

from aiohttp import EMPTY_PAYLOAD, ClientError, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError

from fairway.api.errors import ApiError, BadRequest
from fairway.clock import Clock, SystemClock
from fairway.server.documents.page import PREFIX, SAFETY
from fairway.server.wire.bodies import BODY_BYTES_MAX, too_large
from fairway.server.wire.connections import (
    Connection,
    ConnectionLimits,
    Connections,
    Reason,
    Turns,
)
from fairway.server.wire.exchange import ByteStream, Meeting, Request, Response, json_response
from fairway.server.wire.warning_headers import warning_headers
from fairway.sockets import WebSocket

_log = logging.getLogger(__name__)

_PACKED_BYTES = 128 << 10  # smaller bodies are sent faster uncompressed
_HEADER_BYTES_MAX = 64 << 10  # of one header, and of all headers of a request that are on their way
_AHEAD_MAX = 2  # requests of a connection that wait, after which no more is read
# How long streams get to end when the hub stops.
_FAREWELL_SECONDS = 1.0
_SHUTDOWN_SECONDS = 5.0
# How long the rest of a body is read that nobody wants, so that the client reads its refusal.
_LINGERING_SECONDS = 2.0
_BACKLOG = 1_024
_HANDSHAKES_AT_ONCE = 4
_ACCEPTED_AT_ONCE = 64  # so that requests are answered in between
_NO_FILES_SECONDS = 1.0  # without new connections, after there were no files for one
_LOOKS = 4  # for late connections, in the time that they have
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
        limits: ConnectionLimits | None = None,
        headers: dict[str, str] | None = None,
        clock: Clock | None = None,
        closed: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        """`headers` go with every response; `closed` is told of connections that are cut off."""
        self._answer = answer
        self._address = address
        self._port = port
        self._tls = tls
        self._limits = limits or ConnectionLimits()
        self._headers = headers or {}
        self._clock = clock or SystemClock()
        self._files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = self._limits.most_with(self._files)
        self.connections = Connections(self._limits, self._clock, most=self._most, closed=closed)
        self._turns = Turns(_HANDSHAKES_AT_ONCE)
        self._server: web.Server | None = None
        self._listening: list[socket.socket] = []
        self._running: set[asyncio.Task[None]] = set()
        self._streams: set[asyncio.Task[Any]] = set()

    async def start(self) -> int:
        """Starts to listen; returns the port."""
        loop = asyncio.get_running_loop()
        self._server = web.Server(
            self._handle, request_factory=self._make_request, handler_cancellation=True
        )
        for family, address in await _resolve(self._address, self._port):
            listening = socket.create_server(address, family=family, backlog=_BACKLOG)
            listening.setblocking(False)
            self._listening.append(listening)
        for listening in self._listening:
            loop.add_reader(listening, self._accept, listening)
        self._run(self._close_late())
        self._report()
        return int(self._listening[0].getsockname()[1])

    def _report(self) -> None:
        level = logging.WARNING if self._most < self._limits.most else logging.INFO
        said = "%s: at most %d connections at once, and %d files"
        _log.log(level, said, self._address, self._most, self._files)

    async def close(self) -> None:
        """Ends streams, lets requests in flight finish, and stops listening."""
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._listening.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._streams:
            # A stalled reader must not delay the shutdown.
            _, stalled = await asyncio.wait(self._streams, timeout=_FAREWELL_SECONDS)
            for stream in stalled:
                stream.cancel()
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(_SHUTDOWN_SECONDS)

    def _accept(self, listening: socket.socket) -> None:
        """Takes connections here, not in the loop: a client counts from before its handshake."""
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as fault:
                _log.error("no connection can be taken for a moment: %s", fault)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(_NO_FILES_SECONDS, self._listen_again, listening)
                return
            accepted.setblocking(False)
            connection = self.connections.arrive(peer[0], partial(_cut, accepted))
            if connection is None:
                accepted.close()
                continue
            self._turns.add(connection.address, partial(self._begin, accepted, connection))

    def _begin(self, accepted: socket.socket, connection: Connection) -> None:
        if self._listening:
            self._run(self._open(accepted, connection))
        else:
            accepted.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _listen_again(self, listening: socket.socket) -> None:
        if listening in self._listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _open(self, accepted: socket.socket, connection: Connection) -> None:
        """Hands a connection to the HTTP library, after its handshake."""
        loop = asyncio.get_running_loop()
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(
                partial(self._handler, connection), accepted, ssl=self._tls
            )
        except OSError:  # the client left, or did not speak TLS
            self.connections.leave(connection)
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    async def _close_late(self) -> None:
        while True:
            await self._clock.sleep(self._limits.header_seconds / _LOOKS)
            self.connections.close_late()

    def _handler(self, connection: Connection) -> _Handler:
        assert self._server is not None
        return _Handler(
            self._server,
            self.connections,
            connection,
            loop=asyncio.get_running_loop(),
            access_log=None,
            keepalive_timeout=self._limits.idle_seconds,
            lingering_time=_LINGERING_SECONDS,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
        )

    def _make_request(self, *parts: Any) -> web.BaseRequest:
        return _Incoming(*parts, asyncio.get_running_loop(), always=self._headers)

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        handler = incoming.protocol
        assert isinstance(handler, _Handler)
        self.connections.begin(handler.connection)
        try:
            return await self._respond(incoming)
        finally:
            self.connections.rest(handler.connection)

    async def _respond(self, incoming: web.BaseRequest) -> web.StreamResponse:
        request = _request(incoming, self._limits.body_seconds)
        # A request is completed and audited even if its client disconnects.
        answering = asyncio.ensure_future(self._answer(request))
        try:
            response = await asyncio.shield(answering)
        except asyncio.CancelledError:
            self._run(_drop(answering))
            raise
        try:
            if response.meeting is not None:
                return await self._meet(incoming, response.meeting)
            if response.stream is not None:
                return await self._send(incoming, response, response.stream)
            return await self._send_whole(incoming, await _pack(request, response))
        finally:
            if response.seat is not None:
                response.seat.leave()

    async def _send_whole(
        self, incoming: web.BaseRequest, response: Response
    ) -> web.StreamResponse:
        """Sends a body here, not in the library, which would wait forever for a client."""
        answer = _whole(response, incoming.path)
        limits = self._limits
        seconds = limits.stalled_seconds + len(response.body) / limits.bytes_per_second_least
        try:
            async with asyncio.timeout(seconds):
                await answer.prepare(incoming)
                await answer.write_eof()
        except (ConnectionError, TimeoutError):
            if incoming.transport is not None:
                incoming.transport.abort()
        return answer

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
                if response.seat is not None:
                    response.seat.charge(len(chunk))
                async with asyncio.timeout(self._limits.stalled_seconds):
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


class _Handler(web.RequestHandler):
    """One connection, as the library handles it; `connections` is told what happens to it.

    The library limits each header, and how many there are, but not all of them together. So bytes
    are counted until the headers that they belong to are whole. Nor would it stop reading before 32
    requests wait for the one that is being answered.
    """

    __slots__ = ("_body", "_connections", "_head_bytes", "connection")

    def __init__(
        self, server: web.Server, connections: Connections, connection: Connection, **options: Any
    ) -> None:
        super().__init__(server, **options)
        self._connections = connections
        self.connection = connection
        self._max_msg_queue_size = _AHEAD_MAX
        self._msg_queue_resume_size = 1
        self._head_bytes = 0  # of headers that are not whole yet
        self._body: StreamReader = EMPTY_PAYLOAD  # of the last request whose headers are

    def data_received(self, data: bytes) -> None:
        self._connections.receive(self.connection)
        requests, was_whole = self._request_count, self._body.is_eof()
        super().data_received(data)
        if self._request_count != requests and self._messages:
            self._body = self._messages[-1][1]
        elif was_whole and not self._upgraded:
            self._head_bytes += len(data)
            if self._head_bytes > _HEADER_BYTES_MAX:
                self._connections.refuse(self.connection)
            return
        self._head_bytes = 0

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.leave(self.connection)
        super().connection_lost(exc)


class _Incoming(web.BaseRequest):
    """A request whose response does not name the library, whoever makes the response."""

    def __init__(self, *parts: Any, always: dict[str, str]) -> None:
        super().__init__(*parts)
        self._always = always

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)
        response.headers.update(self._always)


async def _drop(answering: asyncio.Future[Response]) -> None:
    """Lets go of a response whose client is gone, once it is there."""
    response = await asyncio.shield(answering)
    if response.seat is not None:
        response.seat.leave()
    if response.stream is not None:
        await response.stream.aclose()


def _cut(accepted: socket.socket) -> None:
    """Ends a connection in any state; what handles it sees that the client is gone."""
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)


async def _resolve(address: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    infos = await asyncio.get_running_loop().getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return [(info[0], info[4]) for info in dict.fromkeys(infos)]


def _request(incoming: web.BaseRequest, body_seconds: float) -> Request:
    url = incoming.rel_url
    return Request(
        method=incoming.method,
        path=unquote(url.raw_path) if "%" in url.raw_path else url.raw_path,
        query=tuple(url.query.items()) if url.raw_query_string else (),
        headers=tuple(incoming.headers.items()),
        source=incoming.remote or "",
        read=partial(_read, incoming, body_seconds) if incoming.body_exists else None,
    )


async def _read(incoming: web.BaseRequest, seconds: float) -> bytes:
    """The body of a request."""
    length = incoming.content_length
    if length is not None and length > BODY_BYTES_MAX:
        raise too_large(BODY_BYTES_MAX)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in incoming.content.iter_any():
                size += len(chunk)
                if size > BODY_BYTES_MAX:
                    raise too_large(BODY_BYTES_MAX)
                chunks.append(chunk)
    except TimeoutError:
        raise BadRequest(f"the body did not come within {seconds:g} seconds") from None
    except (web.RequestPayloadError, HttpProcessingError, ClientError) as fault:
        raise BadRequest("the body of the request cannot be read") from fault
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


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
    for value in warning_headers(response.warnings):
        answer.headers.add("Warning", value)
    return answer
