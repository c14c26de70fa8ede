"""HTTP itself: sizes, chunks, connections, and clients that behave badly."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import urlsplit

import pytest
from hub_calls import Caller, config_map, until

from fairway.app import Hub
from fairway.server.wire.bodies import BODY_BYTES_MAX
from fairway.server.wire.connections import ConnectionLimits
from fairway.server.wire.exchange import Request, Response
from fairway.server.wire.http import HttpServer
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def in_chunks(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def raw(hub: Hub, *requests: bytes) -> bytes:
    """What a hub answers to bytes, until it closes the connection."""
    where = urlsplit(hub.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=context)
    for request in requests:
        writer.write(request)
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await reader.read()
    writer.transport.abort()
    return answer


def head(hub: Hub, line: str, *headers: str) -> bytes:
    lines = [line + " HTTP/1.1", "Host: hub", f"Authorization: Bearer {hub.token}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize("is_chunked", [False, True], ids=["of known length", "in chunks"])
async def test_a_body_over_the_limit_is_too_large(
    call: Caller, path: str, is_chunked: bool
) -> None:
    body = json.dumps(config_map("one", a="x" * BODY_BYTES_MAX)).encode()
    answer = await call("POST", path, in_chunks(body, 1 << 16) if is_chunked else io.BytesIO(body))
    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")
    assert (await call("GET", f"{path}/one")).status == 404


async def test_a_small_body_that_unpacks_to_a_large_one_is_too_large(
    call: Caller, path: str
) -> None:
    body = gzip.compress(json.dumps(config_map("one", a="x" * BODY_BYTES_MAX)).encode())
    assert len(body) < 10_000
    answer = await call("POST", path, body, headers={"Content-Encoding": "gzip"})
    assert answer.status == 413


async def test_bodies_come_in_chunks_and_packed(call: Caller, path: str) -> None:
    body = json.dumps(config_map("one")).encode()
    assert (await call("POST", path, in_chunks(body, 7))).status == 201
    packed = gzip.compress(json.dumps(config_map("two")).encode())
    answer = await call("POST", path, packed, headers={"Content-Encoding": "gzip"})
    assert (answer.status, answer.json["metadata"]["name"]) == (201, "two")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(["Content-Encoding: gzip", "Content-Length: 4"], b"abcd", id="not packed"),
        pytest.param(["Transfer-Encoding: chunked"], b"zz\r\nabc\r\n", id="not a chunk"),
        pytest.param(["Content-Length: x"], b"", id="not a length"),
        pytest.param(["Content-Length: 2", "Content-Length: 3"], b"abc", id="two lengths"),
        pytest.param(["Content-Length: 3"], b"\xff\xfe{", id="not text"),
        pytest.param(["Content-Length: 0"], b"", id="nothing"),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_bad_request(
    hub: Hub, path: str, headers: list[str], body: bytes
) -> None:
    answer = await raw(hub, head(hub, f"POST {path}", "Connection: close", *headers) + body)
    assert answer.split(b"\r\n")[0].endswith(b" 400 Bad Request")
    assert b"Traceback" not in answer


async def test_a_body_nested_without_end_is_a_bad_request(call: Caller, path: str) -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    assert (await call("POST", path, deep)).status == 400
    listed = {"metadata": {"name": "x"}, "data": {"a": "1"}, "b": json.loads("[" * 500 + "]" * 500)}
    assert (await call("POST", path, listed)).status in (201, 400)


async def test_head_has_the_headers_and_no_body(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    got = await call("GET", f"{path}/one")
    only = await call("HEAD", f"{path}/one")
    assert (only.status, only.body) == (200, b"")
    assert only.headers["Content-Length"] == str(len(got.body))
    assert (await call("HEAD", f"{path}/none")).status == 404


async def test_a_connection_serves_one_request_after_another(hub: Hub, path: str) -> None:
    answer = await raw(
        hub,
        head(hub, f"GET {path}"),
        head(hub, f"GET {path}/none"),
        head(hub, "GET /version", "Connection: close"),
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.count(b"HTTP/1.1 404 Not Found") == 1


async def test_answers_are_not_for_keeping(call: Caller, path: str) -> None:
    answer = await call("GET", path)
    assert answer.headers["Cache-Control"] == "no-cache, private"


async def test_a_write_whose_client_goes_is_done_and_written_down(
    call: Caller, hub: Hub, path: str, namespace: str
) -> None:
    where = urlsplit(hub.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    body = json.dumps(config_map("left")).encode()
    _, writer = await asyncio.open_connection(where.hostname, where.port, ssl=context)
    writer.write(head(hub, f"POST {path}", f"Content-Length: {len(body)}") + body)
    await writer.drain()
    await until(lambda: hub.store.uid_of(("", "configmaps"), (namespace, "left")) is not None)
    writer.transport.abort()
    assert (await call("GET", f"{path}/left")).status == 200
    await asyncio.to_thread(hub.api.audit_log.flush)
    assert '"name":"left"' in (hub.kubeconfig.parent / "audit.log").read_text()


class Endless:
    """A stream that goes on for as long as it is read."""

    def __init__(self) -> None:
        self.is_closed = False

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        while True:
            yield b"x" * 100_000

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_client_that_takes_nothing_is_given_up() -> None:
    stream = Endless()

    async def answer(request: Request) -> Response:
        return Response(stream=stream)

    server = HttpServer(answer, limits=ConnectionLimits(stalled_seconds=0.2))
    port = await server.start()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.transport.pause_reading()
    writer.write(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n")
    await until(lambda: stream.is_closed)
    writer.transport.abort()
    await server.close()


async def test_a_client_that_takes_nothing_does_not_hold_up_the_end() -> None:
    stream = Endless()

    async def answer(request: Request) -> Response:
        return Response(stream=stream)

    server = HttpServer(answer)
    port = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n")
    await reader.readline()
    writer.transport.pause_reading()
    async with asyncio.timeout(4):
        await server.close()
    assert stream.is_closed
    writer.transport.abort()


@pytest.mark.parametrize(
    ("accepted", "size", "packed"),
    [
        pytest.param("gzip, br", 200_000, True, id="a large answer is packed for who can unpack"),
        pytest.param("identity", 200_000, False, id="nobody gets what they cannot unpack"),
        pytest.param("gzip", 2_000, False, id="a small answer is sent as it is"),
    ],
)
async def test_answers_are_packed_if_it_pays(
    call: Caller, path: str, accepted: str, size: int, packed: bool
) -> None:
    await call("POST", path, config_map("large", a="x" * size))
    answer = await call("GET", path, headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("Content-Encoding") == "gzip") == packed
    assert answer.json["items"][0]["data"]["a"] == "x" * size


async def test_a_document_that_is_kept_is_not_packed_for_those_who_cannot_unpack(
    call: Caller,
) -> None:
    for accepted in ("gzip", "identity"):
        answer = await call("GET", "/openapi/v2", headers={"Accept-Encoding": accepted})
        assert (answer.headers.get("Content-Encoding") == "gzip") == (accepted == "gzip")
        assert answer.json["swagger"] == "2.0"
