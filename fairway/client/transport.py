"""HTTP to a server: the only module of the client that uses the HTTP library.

One `Transport` is one connection pool with one identity. It knows TLS, tokens and timeouts; it
knows nothing of objects. Errors of the library are raised as `ConnectionFailed`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from fairway import __version__
from fairway.client.access import Access
from fairway.client.credentials import Credentials, Identity
from fairway.client.errors import ConfigError, ConnectionFailed, UpgradeRefused
from fairway.client.wire import JSON, Answer, Request
from fairway.clock import Clock
from fairway.sockets import WebSocket

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
READ_SECONDS = 65.0  # servers time out after 60
CONNECTIONS_MAX = 64
MESSAGE_BYTES_MAX = 1 << 22
_TURNS_TO_CLOSE = 4


class Transport:
    """A connection pool to one server."""

    def __init__(
        self, access: Access, clock: Clock, *, connections_most: int = CONNECTIONS_MAX
    ) -> None:
        self._access = access
        self._connections_most = connections_most
        # Determined once: the library would look it up in a thread at every request.
        self._proxy = access.proxy or _environment_proxy(access.server)
        self._credentials = Credentials(access, clock)
        self._session: aiohttp.ClientSession | None = None
        self._answering: set[aiohttp.ClientResponse] = set()  # being read now
        self._shown: tuple[bytes, bytes] = (b"", b"")
        self._lock = asyncio.Lock()

    @property
    def server(self) -> str:
        return self._access.server

    def show(self, token: str) -> None:
        """Uses another token from now on."""
        self._credentials.show(token)

    async def send(self, request: Request) -> Answer:
        """Sends a request and reads the whole response."""
        limits = aiohttp.ClientTimeout(
            total=None,
            sock_connect=CONNECT_SECONDS,
            sock_read=request.read_timeout_seconds or READ_SECONDS,
        )
        async with self._open(request, limits) as response:
            return await self._read(request, response)

    async def _read(self, request: Request, response: aiohttp.ClientResponse) -> Answer:
        most = request.answer_bytes_max
        if most is None:
            return _whole(response, await response.read())
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > most:
                _break_off(response)
                raise ConnectionFailed(self.server, f"its answer has more than {most} bytes")
        return _whole(response, bytes(body))

    async def stream(
        self, request: Request, *, tells_opening: bool = False
    ) -> AsyncGenerator[bytes | Answer, None]:
        """Chunks as they arrive; or, when the status is not 200, the whole answer as the only item.

        With `tells_opening` an empty chunk comes first, as soon as the response has begun.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=request.read_timeout_seconds
        )
        async with self._open(request, limits) as response:
            if response.status != 200:
                yield _whole(response, await response.read())
                return
            if tells_opening:
                yield b""
            try:
                async for chunk in response.content.iter_any():
                    yield chunk
            finally:
                _break_off(response)

    @asynccontextmanager
    async def websocket(
        self,
        request: Request,
        *,
        protocols: tuple[str, ...] = (),
        beat_seconds: float | None = None,
    ) -> AsyncIterator[WebSocket]:
        """A two-way stream, for exec, attach and port-forward.

        Raises UpgradeRefused when the server answers anything else. With `beat_seconds` the server
        is pinged at that interval; only for streams on which both sides always read.
        """
        identity = await self._credentials.current()
        session = await self._session_for(identity)
        try:
            async with session.ws_connect(
                self._url(request),
                protocols=protocols,
                headers=[*request.headers, *_shown(identity)],
                max_msg_size=MESSAGE_BYTES_MAX,
                heartbeat=beat_seconds,
                proxy=self._proxy,
                server_hostname=self._access.tls_server_name or None,
            ) as socket:
                yield WebSocket(socket, protocol=socket.protocol or "")
        except aiohttp.WSServerHandshakeError as error:
            self._credentials.refuse()
            raise UpgradeRefused(await self._why(request, error.status)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(self.server, error) from error

    async def _why(self, request: Request, status: int) -> Answer:
        """The response to a refused upgrade.

        The library drops that response, so the request is sent again without an upgrade.
        """
        answer = await self.send(replace(request, accept=JSON))
        return answer if answer.status == status else Answer(status=status, body=b"")

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            # The loop closes the sockets of abandoned requests in its next iterations.
            for _ in range(_TURNS_TO_CLOSE):
                await asyncio.sleep(0)

    async def break_off(self) -> None:
        """Aborts every connection: requests in flight fail now, not after a timeout.

        Responses that are being read are aborted first, since closing the pool would leave their
        readers waiting forever.
        """
        for response in self._answering:
            _break_off(response)
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)
        await self.close()

    @asynccontextmanager
    async def _open(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            response = await self._start(request, limits)
            if response.status == 401 and self._credentials.refuse():
                response.release()
                response = await self._start(request, limits)
            async with response:
                self._answering.add(response)
                try:
                    yield response
                finally:
                    self._answering.discard(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(self.server, error) from error

    async def _start(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        identity = await self._credentials.current()
        session = await self._session_for(identity)
        headers = [("Accept", request.accept), *request.headers, *_shown(identity)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        started = time.monotonic()
        response = await session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers=headers,
            timeout=limits,
            proxy=self._proxy,
            server_hostname=self._access.tls_server_name or None,
            allow_redirects=False,
        )
        spent = (time.monotonic() - started) * 1000
        _log.debug("%s %s %d in %.0f ms", request.method, response.url, response.status, spent)
        return response

    def _url(self, request: Request) -> URL:
        """The URL is encoded here, and the library takes it as is, which is the cheapest way."""
        query = _encode(tuple(request.query.items())) if request.query else ""
        return URL(self.server.rstrip("/") + request.path + query, encoded=True)

    async def _session_for(self, identity: Identity) -> aiohttp.ClientSession:
        """The connection pool; replaced when a plug-in returned another certificate."""
        async with self._lock:
            shown = (identity.certificate, identity.key)
            if self._session is not None and shown != self._shown:
                await self.close()
            if self._session is None:
                self._session = await self._make_session(identity)
                self._shown = shown
            return self._session

    async def _make_session(self, identity: Identity) -> aiohttp.ClientSession:
        context: ssl.SSLContext | bool = True
        if self.server.startswith("https:"):
            context = await asyncio.to_thread(_tls, self._access, identity)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections_most, ssl=context),
            headers={"User-Agent": f"fairway/{__version__}"},
        )


def _break_off(response: aiohttp.ClientResponse) -> None:
    """Aborts the connection of a stream that was not read to its end, without a graceful close."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _shown(identity: Identity) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {identity.token}")] if identity.token else []


def _whole(response: aiohttp.ClientResponse, body: bytes) -> Answer:
    header = response.headers.get("Retry-After", "")
    retry_after = float(header) if header.isdigit() else None
    return Answer(
        status=response.status,
        body=body,
        retry_after_seconds=retry_after,
        warnings=tuple(_warned(text) for text in response.headers.getall("Warning", ())),
    )


def _warned(header: str) -> str:
    """The sentence in a header such as `299 - "unknown field \\"spec.x\\""`."""
    _, quote, rest = header.partition('"')
    if not quote:
        return header
    return rest.rstrip().removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


@lru_cache(maxsize=256)
def _encode(query: tuple[tuple[str, str | tuple[str, ...]], ...]) -> str:
    """Cached, since most requests have one of a few queries."""
    return f"?{urlencode(query, doseq=True)}"


def _environment_proxy(server: str) -> str | None:
    """The proxy for a server from the environment, if any."""
    url = URL(server)
    if not url.host or proxy_bypass(url.host):
        return None
    return getproxies().get(url.scheme)


def _tls(access: Access, identity: Identity) -> ssl.SSLContext:
    try:
        authority = access.authority.decode() or None
        context = ssl.create_default_context(cadata=authority)
        if access.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if identity.certificate:
            # The TLS library loads certificates from files only; these exist during this call.
            with tempfile.TemporaryDirectory(prefix="fairway-") as folder:
                certificate, key = Path(folder, "certificate"), Path(folder, "key")
                certificate.write_bytes(identity.certificate)
                key.touch(mode=0o600)
                key.write_bytes(identity.key)
                context.load_cert_chain(certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"the certificates for {access.server} are not usable: {error}"
        ) from error
    return context


def _failure(server: str, error: Exception) -> ConnectionFailed:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = f"its certificate is not trusted ({error.certificate_error})"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return ConnectionFailed(server, "connection refused", is_refused=True)
        case aiohttp.ClientConnectorDNSError():
            why = "its name does not resolve"
        case aiohttp.ClientConnectorError():
            why = error.os_error.strerror or str(error.os_error)
        case TimeoutError():
            why = "it did not answer in time"
        case aiohttp.ServerDisconnectedError():
            why = "it closed the connection"
        case _:
            why = str(error) or type(error).__name__
    return ConnectionFailed(server, why)
