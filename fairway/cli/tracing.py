"""The options of `fairway up` that say where traces are sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from urllib.parse import unquote, urlsplit

import click

if TYPE_CHECKING:
    from fairway.app import TraceOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PATH = "/v1/traces"
# As the specification of OpenTelemetry has them; those for traces alone go before the others.
_ENDPOINT, _TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_HEADERS, _TRACES_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"


class Tracing(TypedDict):
    """The options as they were given."""

    otlp_endpoint: str
    otlp_headers_file: Path | None
    otlp_ca_file: Path | None


_OPTIONS = (
    click.option(
        "--otlp-endpoint",
        default="",
        metavar="URL",
        help="Send a trace of each workload's life to this OpenTelemetry collector, with names of "
        f"tenants; default: ${_ENDPOINT}.",
    ),
    click.option(
        "--otlp-headers-file",
        type=_FILE,
        metavar="FILE",
        help=f"File with headers for the collector, Name: value, mode 0600; default: ${_HEADERS}.",
    ),
    click.option(
        "--otlp-ca-file",
        type=_FILE,
        metavar="FILE",
        help="CA of the collector's certificate, if not the system's.",
    ),
)


def trace_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read(given: Tracing, environment: Callable[[str], str | None]) -> TraceOptions:
    """The options in the hub's form; UsageError for invalid ones."""
    from fairway.app import TraceOptions  # noqa: PLC0415 - the hub is large; see `up`

    url = _url(given["otlp_endpoint"], environment)
    if not url:
        for name in ("otlp_headers_file", "otlp_ca_file"):
            if given.get(name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{option}: --otlp-endpoint belongs to it.")
        return TraceOptions()
    file = given["otlp_headers_file"]
    options = TraceOptions(
        url=url,
        headers=() if file is not None else _headers(environment),
        headers_file=file,
        authority_file=given["otlp_ca_file"],
    )
    try:
        options.read_headers()
    except (OSError, ValueError) as fault:
        raise click.UsageError(f"--otlp-headers-file: {fault}") from fault
    return options


def _url(endpoint: str, environment: Callable[[str], str | None]) -> str:
    """Where requests go: an endpoint is a base, unless it is for traces alone."""
    whole = environment(_TRACES_ENDPOINT) or ""
    if not endpoint and whole:
        return _checked(whole, _TRACES_ENDPOINT)
    source = "--otlp-endpoint" if endpoint else _ENDPOINT
    base = endpoint or environment(_ENDPOINT) or ""
    if not base:
        return ""
    base = _checked(base, source).rstrip("/")
    return base if base.endswith(_PATH) else base + _PATH


def _checked(url: str, source: str) -> str:
    try:
        parts = urlsplit(url)
        is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        is_plain = is_address = has_port = False
    if not (is_plain and is_address and has_port):
        raise click.UsageError(f"{source}: {url!r} is not an address such as https://NAME:4318")
    return url


def _headers(environment: Callable[[str], str | None]) -> tuple[tuple[str, str], ...]:
    """Headers as OpenTelemetry writes them: key=value,key=value, with encoded values."""
    from fairway.hub.trace_collector import header  # noqa: PLC0415 - see above

    source = _TRACES_HEADERS if environment(_TRACES_HEADERS) else _HEADERS
    result = []
    for part in (environment(source) or "").split(","):
        name, equals, value = part.partition("=")
        if not part.strip():
            continue
        if not equals:
            raise click.UsageError(f"{source}: expected KEY=VALUE,KEY=VALUE")
        try:
            result.append(header(name.strip(), unquote(value.strip())))
        except ValueError as fault:
            raise click.UsageError(f"{source}: {fault}") from fault
    return tuple(result)
