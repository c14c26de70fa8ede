"""Connections that do nothing, or do it slowly, take places of their own address only."""

from __future__ import annotations

import asyncio
import json
import resource
from functools import partial
from pathlib import Path

import pytest

from fairway.app import HubOptions, open_hub, settle_files
from fairway.clock import VirtualClock
from fairway.server.access import certificates
from fairway.server.wire.connections import Connection, ConnectionLimits, Connections, Turns
from fairway.server.wire.exchange import Request, Response
from fairway.server.wire.http import HttpServer
from tests.attack.hubs import PATH, Attacked, Caller, attacked, unverified
from tests.waiting import seen

TEN = ConnectionLimits(most=30, by_address=20, idle_by_address=10, header_seconds=10)


async def ok(_: Request) -> Response:
    return Response()


class Place:
    """What clients have open, and what was closed."""

    def __init__(self, limits: ConnectionLimits = TEN) -> None:
        self.clock = VirtualClock()
        self.connections = Connections(limits, self.clock)
        self.closed: list[str] = []

    def open(self, name: str, address: str = "10.0.0.1") -> Connection | None:
        return self.connections.arrive(address, lambda: self.closed.append(name))

    def open_all(self, count: int, address: str = "10.0.0.1") -> list[Connection]:
        opened = [self.open(f"{address}/{number}", address) for number in range(count)]
        return [connection for connection in opened if connection is not None]


def test_the_eleventh_idle_connection_closes_the_oldest_idle_one() -> None:
    place = Place()
    first, *_ = place.open_all(10)
    place.connections.begin(first)  # a request of it is being answered
    assert place.open("new") is not None
    assert place.closed == []
    assert place.open("newer") is not None
    assert place.closed == ["10.0.0.1/1"]
    place.connections.rest(first)
    assert place.closed == ["10.0.0.1/1", "10.0.0.1/2"]


def test_an_address_has_a_limit_of_requests_that_are_being_answered() -> None:
    place = Place()
    for _ in range(2):
        for connection in place.open_all(10):
            place.connections.begin(connection)
    assert place.open("more") is None
    assert place.closed == []
    assert place.open("other", "10.0.0.2") is not None


def test_in_a_full_hub_the_address_with_the_most_idle_connections_makes_room() -> None:
    place = Place()
    for number in range(2, 6):
        place.open_all(7, f"10.0.0.{number}")
    place.open_all(2)
    assert len(place.connections) == 30
    assert place.open("new", "10.0.0.9") is not None
    assert place.closed == ["10.0.0.2/0"]
    assert len(place.connections) == 30


def test_a_hub_full_of_requests_that_are_being_answered_takes_no_more() -> None:
    place = Place(ConnectionLimits(most=2))
    for connection in place.open_all(2):
        place.connections.begin(connection)
    assert place.open("new", "10.0.0.9") is None


async def test_handshakes_of_one_address_do_not_keep_another_waiting() -> None:
    begun: list[str] = []
    turns = Turns(2)
    for number in range(6):
        turns.add("a", partial(begun.append, f"a{number}"))
    turns.add("b", partial(begun.append, "b0"))
    while len(begun) < 7:
        await asyncio.sleep(0)
    assert begun == ["a0", "b0", "a1", "a2", "a3", "a4", "a5"]


async def test_headers_have_an_end_and_bytes_do_not_delay_it() -> None:
    place = Place()
    slow, busy, kept = place.open_all(3)
    place.connections.begin(busy)
    place.connections.begin(kept)
    place.connections.rest(kept)
    for _ in range(9):
        await place.clock.advance(1.0)
        place.connections.receive(slow)
    place.connections.receive(kept)  # the first byte of its next request
    await place.clock.advance(1.0)
    place.connections.close_late()
    assert place.closed == ["10.0.0.1/0"]
    await place.clock.advance(9.0)
    place.connections.close_late()
    assert place.closed == ["10.0.0.1/0", "10.0.0.1/2"]
    assert len(place.connections) == 1


async def test_a_client_of_one_header_byte_at_a_time_is_cut_off(tmp_path: Path) -> None:
    clock = VirtualClock()
    tls = certificates.server_context(certificates.generate_certificate(tmp_path, ()))
    server = HttpServer(ok, tls=tls, clock=clock, limits=TEN)
    port = await server.start()
    silent = Caller(*await asyncio.open_connection("127.0.0.1", port))  # begins no handshake
    slow = Caller(*await asyncio.open_connection("127.0.0.1", port, ssl=unverified()))
    for byte in b"GET / HTTP/1.1":
        slow.write(bytes([byte]))
        await clock.advance(0.1)
    assert len(server.connections) == 2
    await clock.advance(10.0)
    assert await slow.until_closed() == await silent.until_closed() == b""
    assert len(server.connections) == 0
    for client in (slow, silent):
        client.leave()
    await server.close()


async def test_many_large_headers_are_not_kept(tmp_path: Path) -> None:
    async with attacked(tmp_path) as target:
        stranger, waiting = await target.caller(), await target.caller()
        stranger.write(b"GET /version HTTP/1.1\r\nHost: hub\r\n")
        waiting.send("ada", "GET", f"{PATH}?watch=true")  # and the next request meanwhile
        waiting.write(b"GET /version HTTP/1.1\r\nHost: hub\r\n")
        assert (await waiting.head()).status == 200
        for caller in (stranger, waiting):
            for number in range(5):
                caller.write(b"X-%d: %s\r\n" % (number, b"a" * 20_000))
                await asyncio.sleep(0)
            assert await caller.until_closed() == b""
        user = await target.caller()
        metrics = (await user.call("root", "GET", "/metrics")).body.decode()
        assert 'fairway_connections_closed_total{reason="large"} 2.0' in metrics


async def test_requests_ahead_of_an_answer_are_not_read() -> None:
    async def answer(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    server = HttpServer(answer)
    client = Caller(*await asyncio.open_connection("127.0.0.1", await server.start()))
    for _ in range(60):
        client.send("", "GET", "/", f"X-Large: {'a' * 50_000}")
        await asyncio.sleep(0.005)
    assert server._server is not None
    (handler,) = server._server.connections
    assert 1 <= len(handler._messages) <= 8  # of one piece that was read
    client.leave()
    await server.close()


async def test_requests_ahead_of_an_answer_are_answered_in_turn(tmp_path: Path) -> None:
    async with attacked(tmp_path) as target:
        user = await target.caller()
        for number in range(20):
            user.send("ada", "GET", f"{PATH}/absent-{number}")
        for number in range(20):
            assert f"absent-{number}" in (await user.answer()).body.decode()


async def test_large_bodies_in_pieces_are_no_headers(tmp_path: Path) -> None:
    async with attacked(tmp_path) as target:
        user = await target.caller()
        for number in range(3):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"it": "x" * 300_000}}
            content = json.dumps(body).encode()
            lines = ("Content-Type: application/json", f"Content-Length: {len(content)}")
            user.send("ada", "POST", PATH, *lines)
            for start in range(0, len(content), 50_000):
                user.write(content[start : start + 50_000])
                await asyncio.sleep(0.001)
            assert (await user.answer()).status == 201
            assert (await user.call("ada", "GET", f"{PATH}/large-{number}")).status == 200


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    limits = ConnectionLimits(body_seconds=0.2)
    async with attacked(tmp_path, connections=limits) as target:
        slow = await target.caller()
        slow.send("ada", "POST", PATH, "Content-Type: application/json", "Content-Length: 9")
        slow.write(b"{")
        answer = await slow.answer()
        assert (answer.status, b"did not come within" in answer.body) == (400, True)
        assert await slow.until_closed() == b""


async def test_idle_and_slow_connections_lock_nobody_out(tmp_path: Path) -> None:
    limits = ConnectionLimits(most=12, by_address=8, idle_by_address=4)
    async with attacked(tmp_path, connections=limits) as target:
        user = await target.caller()
        assert (await user.call("ada", "GET", PATH)).status == 200
        watcher = await target.caller()
        watcher.send("ada", "GET", f"{PATH}?watch=true")
        assert (await watcher.head()).status == 200
        for number in range(30):
            slow = await target.caller(source=f"127.0.0.{2 + number % 3}")
            slow.write(b"GET / HTTP/1.1\r\nHost:")
        assert (await user.call("ada", "GET", PATH)).status == 200
        other = await target.caller(source="127.0.0.3")  # the address of an attacker
        assert (await other.call("eve", "GET", PATH)).status == 200
        assert (await user.call("ada", "POST", PATH, NEW)).status == 201
        assert await watcher.reader.readuntil(b"ADDED")
        metrics = (await user.call("root", "GET", "/metrics")).body.decode()
        assert 'fairway_connections_closed_total{reason="replaced"}' in metrics


NEW = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}


async def test_an_answer_that_nobody_takes_is_given_up() -> None:
    async def answer(_: Request) -> Response:
        return Response(body=b"x" * (64 << 20))

    limits = ConnectionLimits(stalled_seconds=0.1, bytes_per_second_least=1 << 30)
    server = HttpServer(answer, limits=limits)
    port = await server.start()
    client = Caller(*await asyncio.open_connection("127.0.0.1", port))
    client.write(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n")
    await client.head()

    async def open_connections() -> int:
        return len(server.connections)

    await seen(open_connections, lambda count: count == 0, "the end of the connection")
    client.leave()
    await server.close()


async def test_no_response_names_the_library(tmp_path: Path) -> None:
    async with attacked(tmp_path) as target:
        caller = await target.caller()
        caller.send("ada", "GET", PATH)
        watcher = await target.caller()
        watcher.send("ada", "GET", f"{PATH}?watch=true")
        broken = await target.caller()
        broken.write(b"\x00\r\n\r\n")
        for one, status in ((caller, 200), (watcher, 200), (broken, 400)):
            answer = await one.head()
            assert (answer.status, answer.headers.get("server")) == (status, None)
            assert "strict-transport-security" not in answer.headers, "self-signed"


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        pytest.param("server", True, id="signed by an authority"),
        pytest.param("ca", False, id="signed by itself"),
    ],
)
async def test_browsers_stay_with_https_where_they_can_trust_it(
    tmp_path: Path, name: str, is_told: bool
) -> None:
    certificates.generate_certificate(tmp_path, ())
    options = HubOptions(
        data=tmp_path / "hub",
        port=0,
        has_controllers=False,
        tls_certificate=tmp_path / "tls" / f"{name}.crt",
        tls_key=tmp_path / "tls" / f"{name}.key",
    )
    async with open_hub(options) as hub:
        caller = await Attacked(hub).caller()
        answer = await caller.call("", "GET", "/livez")
        assert ("strict-transport-security" in answer.headers) is is_told
        caller.leave()


@pytest.mark.parametrize(
    ("files", "most"), [(256, 128), (4_096, 3_072), (20_000, 8_192), (1, 1), (-1, 8_192)]
)
def test_there_are_no_more_connections_than_files(files: int, most: int) -> None:
    assert ConnectionLimits().most_with(files) == most


def test_a_hub_opens_as_many_files_as_it_may() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 512), before[1]))
    try:
        settle_files()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert hard == before[1]
        assert soft == min(hard, 1 << 16) if hard != resource.RLIM_INFINITY else 1 << 16
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
