"""Logs and metrics: readable, and free of secrets."""

from __future__ import annotations

import errno
import io
import logging
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest

from fairway.api.errors import InsufficientStorage
from fairway.server import logs
from fairway.server.access.redaction import redact
from fairway.server.logs import fields

_WEB_TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.DEF-123", "Authorization: Bearer [hidden]"),
        ("header 'authorization: bearer abcdef'", "header 'authorization: bearer [hidden]'"),
        ("Basic dXNlcjpwYXNz", "Basic [hidden]"),
        ("GET /api?watch=1&access_token=abc&x=1", "GET /api?watch=1&access_token=[hidden]&x=1"),
        ('"GET /x?token=abc"', '"GET /x?token=[hidden]"'),
        (f"odd {_WEB_TOKEN} text", "odd [hidden] text"),
        (
            "base64url.bearer.authorization.k8s.io.YWJj",
            "base64url.bearer.authorization.k8s.io.[hidden]",
        ),
        ("GET /api/v1/namespaces/x/secrets/token", "GET /api/v1/namespaces/x/secrets/token"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A log stream; the loggers are put back as they were."""
    root, access = logging.getLogger(), logging.getLogger("aiohttp.access")
    before, level, access_level = list(root.handlers), root.level, access.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    access.setLevel(access_level)


def test_a_line_of_text_has_a_sentence_and_named_fields(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    logging.getLogger("fairway.server").info(
        "listening", extra=fields(port=8001, note="two words", empty="")
    )
    _, _, rest = stream.getvalue().partition(" ")
    assert rest == 'INFO    fairway.server: listening port=8001 note="two words" empty=""\n'


def test_a_line_of_json_has_the_same(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    logging.getLogger("fairway.server").warning('said "%s"', "hi", extra=fields(port=8001))
    record = msgspec.json.decode(stream.getvalue())
    assert record.pop("time").endswith("Z")
    assert record == {
        "level": "warning",
        "logger": "fairway.server",
        "message": 'said "hi"',
        "port": 8001,
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_token_is_written_in_a_sentence_a_field_or_a_traceback(
    stream: io.StringIO, form: Literal["text", "json"]
) -> None:
    logs.configure(form, stream=stream)
    try:
        int("Bearer secret-one")
    except ValueError:
        logging.getLogger("any.library").exception(
            'GET "/x?token=secret-two"', extra=fields(header="Bearer secret-three")
        )
    written = stream.getvalue()
    assert "ValueError" in written
    assert "secret-" not in written
    if form == "json":
        assert msgspec.json.decode(written)["header"] == "Bearer [hidden]"


def test_a_line_break_from_outside_begins_no_record(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    logging.getLogger("x").info("a\nb\x1b[31m", extra=fields(agent="c\nd"))
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


def test_records_below_the_level_are_left_out(stream: io.StringIO) -> None:
    logs.configure(level="warning", stream=stream)
    logging.getLogger("x").info("quiet")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("form", ["text", "json"])
def test_bytes_that_are_no_text_spoil_no_line(
    stream: io.StringIO, form: Literal["text", "json"]
) -> None:
    logs.configure(form, stream=stream)
    logging.getLogger("x").info("odd \udcff", extra=fields(agent="\udcff"))
    stream.getvalue().encode()
    if form == "json":
        assert msgspec.json.decode(stream.getvalue())["message"] == "odd ?"
    else:
        assert "odd \\udcff" in stream.getvalue()


def test_a_full_disk_is_told_once_a_minute_by_each_part(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    full = OSError(errno.ENOSPC, "No space left on device")
    for fault in (full, InsufficientStorage("the disk is full"), full):
        for name in ("one", "other"):
            logging.getLogger(name).warning("cannot write: %s", fault)
    logging.getLogger("one").warning("cannot write: %s", OSError(errno.EIO, "broken"))
    lines = [line.partition(" cannot")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        " write: [Errno 28] No space left on device",
        " write: [Errno 28] No space left on device",
        " write: [Errno 5] broken",
    ]
