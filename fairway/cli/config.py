"""`fairway config`: lists contexts, and selects the current one."""

from __future__ import annotations

import click

from fairway.cli.commands import Command, global_options
from fairway.cli.render_table import Grid, show
from fairway.cli.session import Failure, current
from fairway.client import kubeconfig
from fairway.client.kubeconfig import Kubeconfig


@click.group()
def config() -> None:
    """Show and choose contexts.

    A context names a server, who you are there, and a namespace. Contexts come from
    --kubeconfig, else from $KUBECONFIG, else from the hub on this machine, else from
    ~/.kube/config.
    """


config.params += global_options()


@config.command("current-context", cls=Command)
def current_context() -> None:
    """Print the name of the current context."""
    loaded = _load()
    if not loaded.current_context:
        raise Failure("current-context is not set")
    click.echo(loaded.current_context)


@config.command("get-contexts", cls=Command)
def get_contexts() -> None:
    """List the contexts; a star marks the current one."""
    loaded = _load()
    rows = [
        [
            "*" if name == (current().context or loaded.current_context) else "",
            name,
            str(entry.body.get("cluster") or ""),
            str(entry.body.get("user") or ""),
            str(entry.body.get("namespace") or ""),
        ]
        for name, entry in sorted(loaded.contexts.items())
    ]
    show(Grid(["CURRENT", "NAME", "CLUSTER", "USER", "NAMESPACE"], rows))


@config.command("use-context", cls=Command)
@click.argument("name")
def use_context(*, name: str) -> None:
    """Make a context the current one."""
    kubeconfig.use_context(_load(), name)
    click.echo(f'Switched to context "{name}".')


def _load() -> Kubeconfig:
    files = kubeconfig.places(current().kubeconfig)
    if not files:
        raise Failure("no kubeconfig found: start a hub with `fairway up`")
    return kubeconfig.read(files)
