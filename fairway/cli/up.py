"""`fairway up`: a hub in this process, until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

import click
from rich.text import Text

from fairway import __version__
from fairway.api.errors import ApiError
from fairway.cli import terminal
from fairway.cli.commands import Command
from fairway.cli.encryption import Keys, key_options
from fairway.cli.encryption import read as read_keys
from fairway.cli.limits import Limits, connection_limits, limit_options, shares
from fairway.cli.session import Failure, current, say
from fairway.cli.sign_in import SignIn, sign_in_options
from fairway.cli.sign_in import read as read_sign_in
from fairway.cli.tracing import Tracing, trace_options
from fairway.cli.tracing import read as read_tracing

if TYPE_CHECKING:
    from fairway.app import Hub, HubOptions, OnKubernetes, SignInOptions
    from fairway.clock import Clock

EXAMPLES = """
    fairway up                            a hub on this machine, port 7878
    fairway up --demo                     the same, with a small fleet to look at
    fairway up --data ./hub --port 0      its own folder, any free port
    fairway up --store kubernetes --context hub    objects on a Kubernetes API server
"""


class _More(SignIn, Keys, Limits, Tracing):
    """Options that other modules declare."""


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Data folder.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7878,
    show_default=True,
    metavar="N",
    help="Listen on this port; 0 takes a free one.",
)
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    metavar="IP",
    help="Listen on this address; anything but loopback needs TLS.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TLS certificate to serve with.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The certificate's key.",
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="Extra host name for the generated certificate; repeatable.",
)
@click.option(
    "--store",
    "store",
    type=click.Choice(["embedded", "kubernetes"]),
    default="embedded",
    show_default=True,
    help="Keep objects in the data folder, or on a Kubernetes API server.",
)
@click.option(
    "--replica-address",
    default="",
    metavar="NAME",
    help="With --store kubernetes: where other replicas reach this one, if not at its address.",
)
@click.option(
    "--replica-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="With --store kubernetes: listen for other replicas on this port; 0 for any free one.",
)
@click.option(
    "--lease-seconds",
    type=click.IntRange(3, 300),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="With --store kubernetes: how long after the leader was last heard another leads.",
)
@key_options
@sign_in_options
@limit_options
@trace_options
@click.option(
    "--local-folder",
    "local_folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="FOLDER",
    help="Let pods of local clusters use this folder; repeatable.",
)
@click.option(
    "--trust-local",
    is_flag=True,
    help="Let tenants run pods in local clusters even if this machine cannot isolate them.",
)
@click.option("--demo", is_flag=True, help="Start with a small fleet and some workloads.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to write the log.",
)
@click.option("--verbose", is_flag=True, help="Log every request.")
def up(  # noqa: PLR0913 - one argument for each option
    *,
    data: Path | None,
    port: int,
    address: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    host_names: tuple[str, ...],
    store: str,
    replica_address: str,
    replica_port: int,
    lease_seconds: int,
    local_folders: tuple[Path, ...],
    trust_local: bool,
    demo: bool,
    log_format: str,
    verbose: bool,
    **more: Unpack[_More],
) -> int:
    """Start a hub on this machine.

    It keeps everything in one folder and writes a kubeconfig there, which this command finds by
    itself and kubectl takes with --kubeconfig. Stop it with Ctrl-C; nothing is lost.

    With --store kubernetes, objects are kept by the API server that --kubeconfig and --context
    name (or the pod's own account, KUBECONFIG, ~/.kube/config). Several such hubs may run at once:
    one leads, and another takes over when it is gone.
    """
    # The hub is much larger than the client; only this command loads it.
    import uvloop  # noqa: PLC0415 - as above

    from fairway import app  # noqa: PLC0415 - as above
    from fairway.client.errors import ClientError  # noqa: PLC0415 - as above
    from fairway.client.kubeconfig import data_home  # noqa: PLC0415 - as above
    from fairway.server import logs  # noqa: PLC0415 - as above
    from fairway.server.access.private_files import RefusedFile  # noqa: PLC0415 - as above

    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    # Between the lines of the demo, log problems only.
    level = "DEBUG" if verbose else "WARNING" if demo else "INFO"
    logs.configure("json" if log_format == "json" else "text", level=level)
    options = app.HubOptions(
        data=(data or data_home()).absolute(),
        port=port,
        address=address,
        tls_certificate=tls_cert,
        tls_key=tls_key,
        host_names=host_names,
        has_demo=demo,
        kubernetes=_server() if store == "kubernetes" else None,
        replica_address=replica_address,
        replica_port=replica_port,
        lease_seconds=lease_seconds,
        sign_in=_sign_in(more),
        keys=read_keys(more),
        connections=connection_limits(more),
        shares=shares(more),
        traces=read_tracing(more, os.environ.get),
        local_folders=tuple(folder.absolute() for folder in local_folders),
        trusts_local=trust_local,
    )
    app.settle_files()
    try:
        uvloop.run(_serve(options))
    except (OSError, ApiError, ClientError, RefusedFile, app.RefusedFolder) as error:
        raise Failure(_why_not(error, options)) from error
    return 0


def _sign_in(more: _More) -> SignInOptions:
    from fairway.server.access.private_files import RefusedFile  # noqa: PLC0415 - see above

    try:
        return read_sign_in(more)
    except (OSError, UnicodeDecodeError, RefusedFile) as error:
        raise Failure(str(error)) from error


def _server() -> OnKubernetes:
    """The API server that the global options name."""
    from fairway import app  # noqa: PLC0415 - see above

    session = current()
    return app.OnKubernetes(kubeconfig=session.kubeconfig, context=session.context)


def _why_not(error: Exception, options: HubOptions) -> str:
    """Why a hub did not start, as a sentence with a remedy if there is one."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        place = f"port {options.port} of {options.address}"
        return f"{place} is taken: choose another with --port, or 0 for any free one"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return f"{options.address} is not an address of this machine"
    if isinstance(error, OSError) and error.filename:
        return f"cannot use {error.filename}: {error.strerror}"
    return str(error)


async def _serve(options: HubOptions) -> None:
    """Runs a hub until the process is stopped."""
    from fairway import app  # noqa: PLC0415 - see above
    from fairway.clock import SystemClock  # noqa: PLC0415 - as above
    from fairway.loops import run_steadily  # noqa: PLC0415 - as above

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, ended.set)

    async def run(clock: Clock) -> None:
        nonlocal options
        async with app.open_hub(options, clock=clock) as hub:
            app.settle_memory()
            app.settle_threads()
            options = replace(options, port=urlsplit(hub.url).port or 0)  # also if it starts over
            await _tell_until(ended, hub, options)

    await run_steadily(run, SystemClock())


async def _tell_until(ended: asyncio.Event, hub: Hub, options: HubOptions) -> None:
    """Welcomes the user, and shows the demo if there is one, until the process is stopped."""
    if _has_others(options) and not hub.is_encrypted:
        say(f"Secrets are not encrypted in {options.data}; see --encryption-key-file.")
    if options.traces.url:
        say(f"Traces of workloads, with their names, are sent to {options.traces.url}.")
    terminal.write(welcome(hub.url, options.data, hub.kubeconfig, has_demo=options.has_demo))
    demo = asyncio.ensure_future(_show_demo(hub)) if options.has_demo else None
    try:
        await ended.wait()
    finally:
        if demo is not None:
            demo.cancel()
            await asyncio.gather(demo, return_exceptions=True)
    say("Stopping; everything is kept.")


def _has_others(options: HubOptions) -> bool:
    """Whether a hub keeps objects of people other than the one who started it."""
    is_own = options.has_demo or options.address in ("127.0.0.1", "::1", "localhost")
    return options.kubernetes is None and not is_own


async def _show_demo(hub: Hub) -> None:
    """Plays and describes the demo; its failure must not end the hub."""
    from fairway.cli.demonstration import tell  # noqa: PLC0415 - see above
    from fairway.clock import SystemClock  # noqa: PLC0415 - as above
    from fairway.demo.event_lines import Telling  # noqa: PLC0415 - as above

    assert hub.plane is not None, "a hub with a demo decides"
    try:
        await Telling(hub.store, SystemClock(), explain=hub.plane.explain, tell=tell).run()
    except Exception:
        logging.getLogger(__name__).exception("the demo failed; the hub goes on")


def welcome(url: str, data: Path, kubeconfig: Path, *, has_demo: bool = False) -> list[Text | str]:
    """What a person needs to know about a hub that has just started."""
    is_found = kubeconfig == _default_kubeconfig()
    option = "" if is_found else f" --kubeconfig {_short(kubeconfig)}"
    demo = ("get workloads -A -w", "queue", "top", "history")
    commands = demo if has_demo else ("get fairway -A",)
    return [
        Text.assemble(("Fairway ", "bold"), (__version__, "bold"), (" is up.", "bold green")),
        "",
        _pair("Page", f"{url}/"),
        _pair("API", url),
        _pair("Data", str(data)),
        _pair("Kubeconfig", str(kubeconfig)),
        "",
        "In another terminal:",
        # The token itself is not shown: terminal output is kept, copied and recorded.
        Text.assemble(
            (f"  {_own_name()} token{option}", "cyan"), ("   to sign in to the page with", "dim")
        ),
        *(Text(f"  {_own_name()} {command}{option}", style="cyan") for command in commands),
        Text(f"  kubectl get workloads -A --kubeconfig {_short(kubeconfig)}", style="cyan"),
        "",
        "Stop with Ctrl-C.",
    ]


def _own_name() -> str:
    """How a person calls this program from here: by name if it is on the path."""
    if shutil.which("fairway"):
        return "fairway"
    return str(_short(Path(sys.argv[0]))) if sys.argv[0].endswith("fairway") else "fairway"


def _short(path: Path) -> Path:
    """A path relative to here, if that is shorter."""
    with suppress(ValueError):
        return path.absolute().relative_to(Path.cwd())
    return path


def _default_kubeconfig() -> Path:
    from fairway.client.kubeconfig import data_home  # noqa: PLC0415 - see above

    return data_home() / "kubeconfig"


def _pair(key: str, value: str) -> Text:
    return Text.assemble((f"  {key:<11}", "dim"), value)
