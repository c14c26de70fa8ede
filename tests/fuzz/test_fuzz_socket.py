"""Bytes on the socket that are hardly HTTP: what only the HTTP library sees is refused as well."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import budget
from tests.fuzz.serving import serving

_SECONDS = 10.0


@dataclass(frozen=True)
class Line:
    """Opens connections to a hub, one for each request."""

    port: int
    token: str
    context: ssl.SSLContext

    def say(self, request: bytes) -> tuple[int, bytes, bytes]:
        """The status, the head and the body of the answer; 0 where the hub just hung up."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=_SECONDS) as plain,
            self.context.wrap_socket(plain, server_hostname="127.0.0.1") as line,
        ):
            line.sendall(request)
            answer = b""
            while chunk := line.recv(65536):
                answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        return (int(words[1]) if len(words) > 1 else 0), head, body

    def ask(
        self, method: str, target: str, *headers: bytes, body: bytes = b""
    ) -> tuple[int, bytes]:
        given = [
            f"{method} {target} HTTP/1.1".encode(errors="surrogateescape"),
            b"Host: hub",
            b"Connection: close",
            b"Authorization: Bearer " + self.token.encode(),
            b"Content-Length: %d" % len(body),
            *headers,
        ]
        status, head, answered = self.say(b"\r\n".join(given) + b"\r\n\r\n" + body)
        assert status != 500, (head, answered)
        if status >= 400:
            assert b"Traceback" not in answered, answered
            assert self.token.encode() not in answered
        return status, head + b"\r\n\r\n" + answered


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    folder = tmp_path_factory.mktemp("hub")
    with serving(folder) as hub:
        context = ssl.create_default_context(cafile=str(folder / "tls" / "ca.crt"))
        port = urlsplit(hub.url).port
        assert port is not None
        yield Line(port, hub.token, context)


ODD_TARGETS = [
    "/%",
    "/%zz",
    "/%00",
    "/%ff%fe",
    "/%ed%a0%80",
    "/api/v1/namespaces/%2e%2e/configmaps",
    "/api/v1/namespaces/default/configmaps/%2F",
    "/api/v1/namespaces/default/configmaps/a%2Fb/status",
    "/api/v1/namespaces/default%0d%0aX: y/configmaps",
    "//api///v1//namespaces",
    "/api/v1/../../version",
    "/api/v1/namespaces?limit=%ff",
    "/api/v1/namespaces?labelSelector=%00&continue=%ed%a0%80",
    "/api/v1/namespaces?&&==&%3D",
    "/api/v1/namespaces?watch=1&timeoutSeconds=1&resourceVersion=%31",
    "*",
    "http://other/api",
    "http://[/api",
    "api",
    "/" + "a" * 20_000,
    "/api?" + "a=b&" * 5_000,
]


@pytest.mark.parametrize("target", ODD_TARGETS, ids=lambda target: target[:40])
def test_an_odd_target_is_answered_plainly(line: Line, target: str) -> None:
    for method in ("GET", "DELETE", "BREW"):
        status, _ = line.ask(method, target)
        assert status


@budget(60)
@given(st.text(alphabet="/%.?&=#;:@\\[]{}|^~+09afAF\x7fé", max_size=40))
def test_any_target_is_answered_plainly(line: Line, target: str) -> None:
    line.ask("GET", "/" + target)


@budget(60)
@given(st.binary(max_size=80))
def test_any_bytes_in_a_header_are_answered_plainly(line: Line, value: bytes) -> None:
    clean = value.replace(b"\r", b"").replace(b"\n", b"")
    for name in (b"Accept", b"Impersonate-User", b"User-Agent", b"Content-Type", b"Audit-Id"):
        line.ask("GET", "/api/v1/namespaces/default", name + b": " + clean)


@budget(60)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_request_do_no_harm(line: Line, sent: bytes) -> None:
    status, _, body = line.say(sent + b"\x00\r\n\r\n")  # never a whole request
    assert status in (0, 400, 404, 405, 413, 414, 431, 501, 505), (status, body)
    assert b"Traceback" not in body
    assert line.ask("GET", "/healthz")[0] == 200


def test_a_warning_cannot_break_out_of_its_header(line: Line) -> None:
    """A field's name is said back in a header; a line break in it would begin another."""
    body = {"metadata": {"name": "w"}, "a\r\nX-Mine: yes": 1, 'b"\\é🐟\u2028': 2}
    status, answer = line.ask(
        "POST",
        "/api/v1/namespaces/default/configmaps",
        b"Content-Type: application/json",
        body=json.dumps(body).encode(),
    )
    head = answer.partition(b"\r\n\r\n")[0]
    assert status == 201
    assert head.count(b"\r\nWarning: 299 - ") == 2
    assert b"\r\nX-Mine" not in head


def test_a_body_beyond_the_limit_is_refused_as_a_status(line: Line) -> None:
    body = b'{"metadata":{"name":"big"},"data":{"a":"' + b"x" * (4 << 20) + b'"}}'
    path = "/api/v1/namespaces/default/configmaps"
    try:
        status, answer = line.ask("POST", path, b"Content-Type: application/json", body=body)
    except (ConnectionError, ssl.SSLError):
        return  # refused before it was sent whole
    assert status == 413
    assert b'"Status"' in answer
