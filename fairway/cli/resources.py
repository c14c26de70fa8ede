"""`api-resources` and `crds`: the kinds of a server, and those of Fairway itself."""

from __future__ import annotations

import click

from fairway.cli import options, render_table
from fairway.cli.commands import Command
from fairway.cli.render_table import Grid
from fairway.cli.session import current
from fairway.client.catalogue import Served

HEADINGS = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]


@click.command("api-resources", cls=Command)
@click.option("--api-group", default=None, metavar="GROUP", help="Only of this group.")
@click.option("--categories", default="", metavar="NAMES", help="Only of these categories.")
@click.option(
    "--namespaced",
    type=bool,
    default=None,
    metavar="BOOL",
    help="Only namespaced kinds, or only others.",
)
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
@options.output()
def api_resources(
    *,
    api_group: str | None,
    categories: str,
    namespaced: bool | None,
    no_headers: bool,
    output: str,
) -> int:
    """List the kinds the server knows."""
    wanted = set(filter(None, categories.split(",")))
    resources = [
        resource
        for resource in current().client.catalogue().preferred()
        if (api_group is None or resource.group == api_group)
        and (namespaced is None or resource.namespaced == namespaced)
        and wanted <= set(resource.categories)
    ]
    resources.sort(key=lambda resource: (resource.group, resource.plural))
    if output == "name":
        for resource in resources:
            click.echo(resource.qualified)
        return 0
    is_wide = output == "wide"
    headings = [*HEADINGS, *(["VERBS", "CATEGORIES"] if is_wide else [])]
    grid = Grid(headings, [_row(resource, is_wide) for resource in resources])
    render_table.show(grid, with_headings=not no_headers)
    return 0


@click.command(cls=Command)
def crds() -> None:
    """Print Fairway's kinds as definitions for a Kubernetes cluster.

    Needs no server. A hub knows its kinds already; a Kubernetes cluster that is to be one learns
    them with `fairway crds | kubectl apply -f -`.
    """
    from fairway.api.crds import as_yaml, for_kubernetes  # noqa: PLC0415 - only this command needs it

    click.echo("---\n".join(as_yaml(entry) for entry in for_kubernetes()), nl=False)


def _row(resource: Served, is_wide: bool) -> list[str]:
    row = [
        resource.plural,
        ",".join(resource.short_names),
        resource.api_version,
        str(resource.namespaced).lower(),
        resource.kind,
    ]
    return [*row, ",".join(resource.verbs), ",".join(resource.categories)] if is_wide else row
