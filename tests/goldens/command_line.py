"""Every command with its arguments and options, and the exit codes of some calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import click

from fairway.cli.main import root, run

_CALLS = (
    [],
    ["--help"],
    ["--version"],
    ["no-such-command"],
    ["--no-such-option", "get", "workloads"],
    ["get", "--no-such-option"],
    ["submit"],
    ["submit", "--no-such-option"],
    ["run", "--no-such-option"],
    ["-s", "http://127.0.0.1:1", "get", "workloads"],
    ["--kubeconfig", "no-such-file", "get", "workloads"],
)


def text() -> str:
    """All of it, a command and its parameters a paragraph."""
    context = click.Context(root, info_name="fairway")
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        codes = [f"{run(call)}  {' '.join(('fairway', *call))}" for call in _CALLS]
    return "\n\n".join((*_commands(context, root), "\n".join(("Exit codes", *codes)))) + "\n"


def _commands(context: click.Context, command: click.Command) -> Iterator[str]:
    everywhere = set() if command is root else set(map(_parameter, root.params))
    yield "\n".join(
        (context.command_path, *sorted(set(map(_parameter, command.params)) - everywhere))
    )
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from _commands(click.Context(found, parent=context, info_name=name), found)


def _parameter(parameter: click.Parameter) -> str:
    names = "/".join((*parameter.opts, *parameter.secondary_opts))
    facts = [parameter.param_type_name, names, _type(parameter.type)]
    facts += [f"env={parameter.envvar}"] if parameter.envvar else []
    facts += ["required"] if parameter.required else []
    facts += [f"nargs={parameter.nargs}"] if parameter.nargs != 1 else []
    facts += ["multiple"] if parameter.multiple else []
    if isinstance(parameter, click.Option) and parameter.is_flag:
        facts.append("flag")
    elif isinstance(parameter.default, str | int | float) and parameter.default != "":
        facts.append(f"default={parameter.default}")
    return "  " + " ".join(facts)


def _type(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return kind.name
