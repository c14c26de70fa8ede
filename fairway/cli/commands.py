"""How commands are displayed and found.

`Root` imports a command's module only when it is run, so the table below holds what the overview
needs. `Command` adds the global options to every command, because people write them at the end.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from fairway.cli.session import Session

# Section, then the command, its module and attribute, and its one-line help.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Start here": {
        "up": ("up:up", "Start a hub on this machine"),
        "demo": ("demo:demo", "Play a day of a model service in a minute, simulated"),
        "submit": ("submit:submit", "Submit workloads: native objects of any kind, or Workloads"),
        "run": ("run:run", "Run a command on the fleet, and show its output"),
        "get": ("get:get", "Show objects as a table, YAML or JSON"),
        "describe": ("describe:describe", "Show one object in full, with its events"),
    },
    "See what happens": {
        "logs": ("logs:logs", "Print the output of a workload's pods"),
        "pods": ("pods:pods", "List the pods of a workload in all its clusters"),
        "exec": ("execute:execute", "Run a command in a pod of a workload"),
        "port-forward": ("forward:forward", "Forward local ports to a pod of a workload"),
        "queue": ("queue:queue", "Show queues: what they use, borrow and lend"),
        "cost": ("cost:cost", "Show GPU-hours and cost"),
        "top": ("top:top", "Show clusters, queues and workloads as they are now"),
        "why": ("why:why", "Explain why a workload is pending, and what would help"),
        "history": ("history:history", "Show decisions: admitted, preempted, moved, provisioned"),
        "events": ("events:events", "List events, newest last"),
        "wait": ("wait:wait", "Wait for a condition on objects"),
        "score": ("score:score", "Try a scorer, and see what it would change"),
        "plan": ("plan:plan", "Plan the workloads in files, with reasons"),
    },
    "Workloads": {
        "suspend": ("operate:suspend", "Suspend workloads"),
        "resume": ("operate:resume", "Resume suspended workloads"),
        "cancel": ("operate:cancel", "Cancel workloads for good"),
        "priority": ("operate:priority", "Change the priority of a workload"),
        "move": ("operate:move", "Move a pending workload to another queue"),
        "rebalance": ("rebalance:rebalance", "Divide replicas of services afresh"),
        "rollout": ("rollout:rollout", "Follow, pause, approve and undo new versions of services"),
    },
    "Clusters": {
        "join": ("join:join", "Add a cluster to the fleet"),
        "accept": ("accept:accept", "Accept a cluster whose agent asks to join"),
        "agent": ("agent:agent", "Run the agent of a cluster that the hub cannot reach"),
    },
    "Operate the fleet": {
        "install": ("install:install", "Print manifests that install a hub on Kubernetes"),
        "cordon": ("operate:cordon", "Cordon clusters: nothing new starts there"),
        "drain": ("operate:drain", "Drain clusters: what runs there moves away"),
        "uncordon": ("operate:uncordon", "Uncordon clusters"),
        "hold": ("operate:hold", "Hold queues or workloads"),
        "release": ("operate:release", "Release queues or workloads that are held"),
        "pause": ("operate:pause", "Pause all decisions and actions of the hub"),
        "unpause": ("operate:unpause", "Resume the hub's decisions and actions"),
        "backup": ("backup:backup", "Back up a hub while it runs"),
        "restore": ("backup:restore", "Restore a hub from a backup"),
        "rotate-key": ("encryption:rotate_key", "Encrypt a hub's data with another key"),
        "snapshot": ("snapshot:snapshot", "Dump what decisions are made from, and replay them"),
    },
    "Change objects": {
        "apply": ("apply:apply", "Create or change objects from files"),
        "edit": ("edit:edit", "Change an object in your editor"),
        "patch": ("modify:patch", "Change some fields of an object"),
        "label": ("modify:label", "Add, change or remove labels"),
        "annotate": ("modify:annotate", "Add, change or remove annotations"),
        "scale": ("modify:scale", "Set the number of replicas"),
        "delete": ("delete:delete", "Delete objects"),
    },
    "Learn and move": {
        "explain": ("explain:explain", "Describe the fields of a kind"),
        "api-resources": ("resources:api_resources", "List the kinds that the server serves"),
        "crds": ("resources:crds", "Print Fairway's kinds as definitions for Kubernetes"),
        "export": ("export:export", "Print objects as YAML that can be applied again"),
    },
    "Settings": {
        "config": ("config:config", "Show and choose contexts"),
        "token": ("token:token", "Print the token that signs in to the hub's page"),
        "completion": ("completion:completion", "Print a completion script for your shell"),
        "version": ("version:version", "Show the versions of client and server"),
    },
}


def _set(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value not in (None, ""):
            setattr(context.ensure_object(Session), attribute, value)

    return remember


def _verbosity(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    text = value.removeprefix("=")
    if not text.isdigit():
        raise click.BadParameter(f"{text!r} is not a number", context, parameter)
    context.ensure_object(Session).verbosity = int(text)


def _namespaces(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    from fairway.cli.completion import names_of  # noqa: PLC0415 - only while completing

    return names_of(context, "namespaces", text)


def global_options() -> list[click.Option]:
    """Options of every command, as in kubectl."""
    shared: dict[str, Any] = {"expose_value": False}
    return [
        click.Option(
            ["-n", "--namespace"],
            metavar="NAME",
            callback=_set("namespace_given"),
            shell_complete=_namespaces,
            help="Namespace to use.",
            **shared,
        ),
        click.Option(
            ["--kubeconfig"],
            metavar="FILE",
            callback=_set("kubeconfig"),
            help="Read servers and credentials from this file.",
            **shared,
        ),
        click.Option(
            ["--context"],
            metavar="NAME",
            callback=_set("context"),
            help="Use this context of the kubeconfig.",
            **shared,
        ),
        click.Option(
            ["-s", "--server"],
            metavar="URL",
            callback=_set("server_given"),
            help="Talk to this server instead of the context's.",
            **shared,
        ),
        click.Option(
            ["--token"],
            metavar="TOKEN",
            callback=_set("token_given"),
            help="Use this bearer token instead of the context's credentials.",
            **shared,
        ),
        click.Option(
            ["-v", "--v"],
            metavar="LEVEL",
            callback=_verbosity,
            help="Log level; 6 and above show every request.",
            **shared,
        ),
    ]


class Command(click.Command):
    """A command with the global options, and its examples shown as written."""

    def __init__(self, *args: Any, examples: str = "", misuse_code: int = 1, **kwargs: Any) -> None:
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(*args, **kwargs)
        self.examples = examples
        # A command that returns its program's exit code uses another one for usage errors.
        self.misuse_code = misuse_code
        self.params += global_options()

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not context.allow_interspersed_args:  # some of the words belong to another program
            return super().parse_args(context, args)
        # Words after -- belong to another program as well.
        at = args.index("--") if "--" in args else len(args)
        own = [name for word in args[:at] for name in self._plain(word)]
        return super().parse_args(context, [*own, *args[at:]])

    def _plain(self, word: str) -> list[str]:
        """Converts boolean flags with a value, as kubectl has them: --wait=false is --no-wait."""
        name, equals, value = word.partition("=")
        if not equals or value.lower() not in {"true", "false"}:
            return [word]
        for option in self.params:
            if isinstance(option, click.Option) and option.is_flag and name in option.opts:
                is_true = value.lower() == "true"
                return [name] if is_true else option.secondary_opts[:1]
        return [word]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        shared = {option.name for option in global_options()}
        own: list[tuple[str, str]] = []
        everywhere: list[tuple[str, str]] = []
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                (everywhere if parameter.name in shared else own).append(record)
        for title, records in (("Options", own), ("Options of every command", everywhere)):
            if records:
                with formatter.section(heading(title)):
                    formatter.write_dl(records)


class Root(click.Group):
    """The `fairway` command: finds the others by the table, and shows them in sections."""

    examples = """
        fairway up --demo                      a hub with a small fleet to look at
        fairway submit job.yaml -q research    give a Job to a queue
        fairway run -q research -- ./train     run a command, and see its output
        fairway why train                      see why it waits
        fairway explain workload.spec          learn what can be written there
    """

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        for section in SECTIONS.values():
            if name in section:
                module, attribute = section[name][0].split(":")
                result: click.Command = getattr(
                    importlib.import_module(f"fairway.cli.{module}"), attribute
                )
                return result
        return None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib  # noqa: PLC0415 - only after a mistake

        if self.get_command(context, args[0]) is None and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], self.list_commands(context), n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            context.fail(f"There is no command '{args[0]}'.{hint}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(heading(title)):
                widest = max(len(name) for entry in SECTIONS.values() for name in entry)
                formatter.write_dl(
                    [(name.ljust(widest), line) for name, (_, line) in section.items()]
                )

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(context, formatter)
        records = [item.get_help_record(context) for item in self.get_params(context)]
        with formatter.section(heading("Options of every command")):
            formatter.write_dl([record for record in records if record is not None])

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        formatter.write_paragraph()
        formatter.write_text("`fairway COMMAND --help` tells more about a command.")


def heading(text: str) -> str:
    return click.style(text, bold=True)


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Examples, one per line: the command bright, its explanation dimmed."""
    lines = [line.strip() for line in examples.strip().splitlines() if line.strip()]
    if not lines:
        return
    with formatter.section(heading("Examples")):
        for line in lines:
            command, gap, remark = line.partition("   ")
            spaces = len(gap) + len(remark) - len(remark.lstrip())
            shown = click.style(command, fg="cyan")
            tail = " " * spaces + click.style(remark.strip(), dim=True) if remark else ""
            formatter.write(f"{' ' * formatter.current_indent}{shown}{tail}\n")
