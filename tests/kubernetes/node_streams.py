"""What a kubelet serves besides output: commands in containers, and ports of pods.

Commands are real processes of this machine, and ports of a pod are ports of this machine, since no
container is started. The protocols are Kubernetes' own: for commands the fifth version of its
channels, which can say that an input ends, and for ports the fourth.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from typing import Any

from aiohttp import WSMsgType, web

Json = dict[str, Any]
INPUT, OUTPUT, ERRORS, STATUS, END_OF = 0, 1, 2, 3, 255
_READ_BYTES = 8 << 10
_PORT = struct.Struct("<H")


async def serve_command(request: web.Request) -> web.WebSocketResponse:
    """Runs a command as a container would, until it ends or the client goes."""
    query = request.query
    has_input = query.get("input") == "1"
    socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
    await socket.prepare(request)
    process = await asyncio.create_subprocess_exec(
        *query.getall("command"),
        stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "POD": request.match_info["pod"]},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    feeding = asyncio.ensure_future(_feed(socket, process))
    outputs = [(process.stdout, OUTPUT), (process.stderr, ERRORS)]
    copying = asyncio.gather(*(_copy(value, socket, channel) for value, channel in outputs))
    try:
        await asyncio.wait((copying, feeding), return_when=asyncio.FIRST_COMPLETED)
        if not copying.done():
            return socket  # the client has gone
        code = await process.wait()
        await socket.send_bytes(bytes((STATUS,)) + json.dumps(_status(code)).encode())
        await socket.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        for item in (copying, feeding):
            item.cancel()
        await asyncio.gather(copying, feeding, return_exceptions=True)
    return socket


async def _feed(socket: web.WebSocketResponse, process: asyncio.subprocess.Process) -> None:
    """Passes on what the client says, until it has gone."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or process.stdin is None:
            continue
        with contextlib.suppress(ConnectionError):
            if message.data == bytes((END_OF, INPUT)):
                process.stdin.close()
            elif message.data[:1] == bytes((INPUT,)):
                process.stdin.write(message.data[1:])
                await process.stdin.drain()


async def _copy(source: asyncio.StreamReader, socket: web.WebSocketResponse, channel: int) -> None:
    while content := await source.read(_READ_BYTES):
        await socket.send_bytes(bytes((channel,)) + content)


def _status(code: int) -> Json:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def serve_port(request: web.Request) -> web.WebSocketResponse:
    """Connects to a port; two channels for it, each of which begins with its number."""
    port = int(request.query["port"])
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes((channel,)) + _PORT.pack(port))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as fault:
        await socket.send_bytes(b"\x01" + f"error forwarding port {port}: {fault}".encode())
        await socket.close()
        return socket
    copying = asyncio.ensure_future(_copy(reader, socket, 0))
    sending = asyncio.ensure_future(_send(socket, writer))
    try:
        await asyncio.wait((copying, sending), return_when=asyncio.FIRST_COMPLETED)
        await socket.close()
    finally:
        for item in (copying, sending):
            item.cancel()
        await asyncio.gather(copying, sending, return_exceptions=True)
        writer.close()
    return socket


async def _send(socket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data[:1] == b"\x00":
            writer.write(message.data[1:])
            await writer.drain()
