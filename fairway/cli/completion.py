"""`fairway completion`, and what the shell may complete.

Kinds and names come from the server; while completing, any failure means no suggestions, because
there is no place to report it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from fairway.cli.commands import Command
from fairway.cli.session import Session

if TYPE_CHECKING:
    from fairway.client.catalogue import Catalogue

EXAMPLES = """
    source <(fairway completion bash)                                   this shell only
    fairway completion zsh > "${fpath[1]}/_fairway"                     every zsh
    fairway completion fish > ~/.config/fish/completions/fairway.fish   every fish
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, kinds and names."""
    from fairway.cli.main import root  # noqa: PLC0415 - the root imports commands, not they it

    result = get_completion_class(shell)
    if result is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    made = result(root, {}, "fairway", "_FAIRWAY_COMPLETE")
    # The base class checks the version by starting a shell; printing the script needs none.
    click.echo(made.source_template % made.source_vars())


def complete_targets(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Kinds first, then names of that kind; or names after `KIND/`."""
    given = context.params.get(parameter.name or "") or ()
    if "/" in text:
        kind, _, start = text.partition("/")
        return [CompletionItem(f"{kind}/{name}") for name in names_of(context, kind, start)]
    if given:
        return [CompletionItem(name) for name in names_of(context, given[0], text)]
    return complete_kinds(context, parameter, text)


def complete_kinds(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """The plural names of the kinds that the server serves."""
    session = context.ensure_object(Session)
    try:
        catalogue: Catalogue = session.client.catalogue()
    except Exception:
        return []
    finally:
        session.close()
    head, comma, last = text.rpartition(",")
    words = sorted(
        {resource.plural for resource in catalogue.preferred() if "list" in resource.verbs}
    )
    return [CompletionItem(f"{head}{comma}{word}") for word in words if word.startswith(last)]


def names_of(context: click.Context, kind: str, start: str) -> list[str]:
    """The names of a kind's objects with this prefix."""
    from fairway.client.wire import Scope  # noqa: PLC0415 - only while completing

    session = context.ensure_object(Session)
    try:
        served = session.client.resolve(kind)
        namespace = session.namespace if served.namespaced else None
        items = session.client.list(served, scope=Scope(namespace=namespace)).items
    except Exception:
        return []
    finally:
        session.close()
    names = (str(item["metadata"]["name"]) for item in items)
    return [name for name in names if name.startswith(start)]


def complete_workloads(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Names of workloads."""
    return [CompletionItem(name) for name in names_of(context, "workloads.fairway.dev", text)]


def complete_clusters(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Names of clusters."""
    return [CompletionItem(name) for name in names_of(context, "clusters.fairway.dev", text)]


def complete_queues(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Names of queues."""
    return [CompletionItem(name) for name in names_of(context, "queues.fairway.dev", text)]
