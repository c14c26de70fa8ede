"""WebSockets for either end of a connection: whole messages, and a simple end."""

from __future__ import annotations

from aiohttp import ClientWebSocketResponse, WSMsgType
from aiohttp.web import WebSocketResponse


class WebSocket:
    """A two-way stream of whole messages; a broken connection ends it."""

    def __init__(
        self, socket: ClientWebSocketResponse | WebSocketResponse, *, protocol: str = ""
    ) -> None:
        """`protocol` is the negotiated subprotocol; empty: none."""
        self._socket = socket
        self.protocol = protocol

    async def send(self, message: bytes) -> None:
        """Returns once there is room for more; raises OSError if the connection is gone."""
        await self._socket.send_bytes(message)

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""
        while True:
            result = await self._socket.receive()
            match result.type:
                case WSMsgType.BINARY:
                    return bytes(result.data)
                case WSMsgType.TEXT:
                    return str(result.data).encode()
                case WSMsgType.PING | WSMsgType.PONG:
                    continue
                case _:
                    return None

    async def close(self) -> None:
        await self._socket.close()
