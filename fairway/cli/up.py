"""`fairway up`: a hub in this process, until it is told to stop."""

from __future__ import annotations

from pathlib import Path

import click

from fairway.cli.commands import Command

EXAMPLES = """
    fairway up                            a hub on this machine, port 7878
    fairway up --demo                     the same, with a small fleet to look at
    fairway up --data ./hub --port 0      its own folder, any free port
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep objects here."
)
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
    help="Listen on this address; others than loopback need TLS.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Serve with this certificate.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The certificate's key.",
)
@click.option("--demo", is_flag=True, help="Start with a small fleet and some workloads.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to write the log.",
)
@click.option("--verbose", is_flag=True, help="Log every request.")
def up(
    *,
    data: Path | None,
    port: int,
    address: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    demo: bool,
    log_format: str,
    verbose: bool,
) -> int:
    """Start a hub on this machine.

    It keeps everything in one folder and writes a kubeconfig there, which this command finds by
    itself and kubectl takes with --kubeconfig. Stop it with Ctrl-C; nothing is lost.
    """
    from fairway import app  # noqa: PLC0415 - the composition root is for this command only
    from fairway.client.kubeconfig import data_home  # noqa: PLC0415 - as above

    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    return app.up(
        data=data or data_home(),
        port=port,
        address=address,
        tls_certificate=tls_cert,
        tls_key=tls_key,
        demo=demo,
        log_format=log_format,
        verbose=verbose,
    )
