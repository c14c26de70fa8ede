"""The options of `fairway up` that say where traces are sent, and traces that arrive there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from test_cli_up import running

from fairway.app import TraceOptions
from fairway.cli.tracing import Tracing, read, trace_options
from fairway.client import Client
from tests.controllers.test_running import FLEET, job
from tests.tracing.decoding import Decoded, decode_request
from tests.waiting import PATIENCE_SECONDS, seen_at_last


def given(*words: str, **environment: str) -> TraceOptions:
    """What a hub would be told; UsageError as a person would see it."""
    found: list[TraceOptions] = []

    @click.command()
    @trace_options
    def command(**options: object) -> None:
        found.append(read(Tracing(**options), environment.get))  # type: ignore[typeddict-item] # click makes them

    CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    return found[0]


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_traces_are_off_unless_a_collector_is_named() -> None:
    assert given() == TraceOptions()
    assert given(OTEL_EXPORTER_OTLP_HEADERS="a=b").url == ""


@pytest.mark.parametrize(
    ("words", "environment", "url"),
    [
        (["--otlp-endpoint=http://c:4318"], {}, "http://c:4318/v1/traces"),
        (["--otlp-endpoint=https://c/otlp/"], {}, "https://c/otlp/v1/traces"),
        (["--otlp-endpoint=https://c/v1/traces"], {}, "https://c/v1/traces"),
        ([], {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        (
            [],
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:4318/otlp",
            },
            "http://t:4318/otlp",
        ),
        (
            ["--otlp-endpoint=http://c"],
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t"},
            "http://c/v1/traces",
        ),
    ],
    ids=["a base", "a base with a path", "whole", "environment", "for traces", "option first"],
)
def test_where_requests_go(words: list[str], environment: dict[str, str], url: str) -> None:
    assert given(*words, **environment).url == url


def test_headers_come_from_a_file_that_is_read_again(tmp_path: Path) -> None:
    file = secret(tmp_path / "headers", "# ours\n\nAuthorization: Bearer a:b\nX-Scope: fleet\n")
    options = given(
        "--otlp-endpoint=http://c",
        f"--otlp-headers-file={file}",
        OTEL_EXPORTER_OTLP_HEADERS="Authorization=no",
    )
    assert options.read_headers() == (("Authorization", "Bearer a:b"), ("X-Scope", "fleet"))
    secret(file, "Authorization: Bearer new")
    assert options.read_headers() == (("Authorization", "Bearer new"),)


def test_headers_come_from_the_environment() -> None:
    options = given(
        "--otlp-endpoint=http://c", OTEL_EXPORTER_OTLP_HEADERS="Authorization=Basic%20YTpi, x=y=z,"
    )
    assert options.read_headers() == (("Authorization", "Basic YTpi"), ("x", "y=z"))
    assert "YTpi" not in repr(options)


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["--otlp-endpoint=c:4318"], {}, "--otlp-endpoint: 'c:4318' is not an address"),
        (["--otlp-endpoint=grpc://c:4317"], {}, "is not an address"),
        (["--otlp-endpoint=https://me:pw@c"], {}, "is not an address"),
        (["--otlp-endpoint=https://c:port"], {}, "is not an address"),
        ([], {"OTEL_EXPORTER_OTLP_ENDPOINT": "c"}, "OTEL_EXPORTER_OTLP_ENDPOINT: 'c'"),
        ([f"--otlp-ca-file={__file__}"], {}, "--otlp-ca-file: --otlp-endpoint belongs to it"),
        (["--otlp-endpoint=http://c"], {"OTEL_EXPORTER_OTLP_HEADERS": "abc"}, "KEY=VALUE"),
        (
            ["--otlp-endpoint=http://c"],
            {"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0D%0AHost: d"},
            "other signs than text",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], environment: dict[str, str], said: str
) -> None:
    with pytest.raises(click.UsageError, match=said):
        given(*words, **environment)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("Authorization: Bearer s3cret", 0o644, "chmod 600"),
        ("Bearer s3cret", 0o600, "has no colon"),
        ("my header: s3cret", 0o600, "'my header' is not a header"),
    ],
)
def test_a_file_of_headers_that_cannot_be_used_is_named_and_not_shown(
    tmp_path: Path, text: str, mode: int, said: str
) -> None:
    file = secret(tmp_path / "headers", text, mode)
    with pytest.raises(click.UsageError, match=said) as raised:
        given("--otlp-endpoint=http://c", f"--otlp-headers-file={file}")
    assert "s3cret" not in str(raised.value)


@dataclass(kw_only=True)
class Arrived:
    """What came to a collector."""

    url: str = ""
    tokens: set[str] = field(default_factory=set)
    spans: list[Decoded] = field(default_factory=list)


@contextmanager
def collecting() -> Iterator[Arrived]:
    arrived = Arrived()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.tokens.add(self.headers["Authorization"])
            arrived.spans += decode_request(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    arrived.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield arrived
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_a_hub_sends_traces_and_the_last_ones_when_it_is_stopped(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    headers = secret(tmp_path / "headers", "Authorization: Bearer s3cret")
    with (
        collecting() as arrived,
        running(
            data, f"--otlp-endpoint={arrived.url}", f"--otlp-headers-file={headers}"
        ) as process,
    ):
        with Client.connect(str(data / "kubeconfig")) as client:
            for body in yaml.safe_load_all(FLEET + "---" + job("train", seconds=600)):
                client.apply(body)
            names = seen_at_last(
                lambda: [span.name for span in arrived.spans],
                lambda names: "starting" in names,
                "a trace",
            )
            assert names == ["waiting", "starting"]
            client.patch("workloads.fairway.dev", "train", {"spec": {"cancelled": True}})
            seen_at_last(
                lambda: client.get("workloads.fairway.dev", "train")["status"]["phase"],
                lambda phase: phase == "Cancelled",
                "its end",
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        output, faults = process.communicate()
    assert [span.name for span in arrived.spans] == ["waiting", "starting", "running", "workload"]
    assert arrived.tokens == {"Bearer s3cret"}
    assert "s3cret" not in output + faults
    assert f"with their names, are sent to {arrived.url}/v1/traces" in output + faults
