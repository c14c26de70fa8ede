"""The entry point: runs a command and turns every failure into one readable line.

Nothing here may show a traceback to a person; a bug of ours is reported as such, with the way to
see more.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from fairway import __version__
from fairway.cli.commands import Root, global_options
from fairway.cli.session import Session, say


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    click.echo(f"fairway {__version__}")
    context.exit()


root = Root(
    "fairway",
    params=[
        *global_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show this program's version.",
        ),
    ],
    help=(
        "Fairway decides which cluster each AI workload runs on, when, and at whose expense.\n\n"
        "This command starts a hub and talks to one; kubectl works on a hub too."
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)


def main() -> NoReturn:
    """Runs `fairway` with the process's arguments."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs `fairway` with arguments; returns the exit code."""
    session = Session()
    try:
        code = root.main(
            arguments,
            "fairway",
            standalone_mode=False,
            obj=session,
            color=False if os.environ.get("NO_COLOR") else None,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return 1
    except click.ClickException as error:
        return _show_misuse(error)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it; Python must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _show_failure(error, session)
    finally:
        session.close()
    return code if isinstance(code, int) else 0


def _show_misuse(error: click.ClickException) -> int:
    if isinstance(error, click.UsageError):
        say(f"error: {error.format_message()}")
        if error.ctx is not None:
            say(f"See '{error.ctx.command_path} --help'.")
        return int(getattr(error.ctx.command if error.ctx else None, "misuse_code", 1))
    error.show()
    return error.exit_code


def _show_failure(error: Exception, session: Session) -> int:
    from fairway.api.errors import ApiError  # noqa: PLC0415 - help starts fast without it
    from fairway.client.errors import ClientError, ConnectionFailed  # noqa: PLC0415 - as above

    match error:
        case ApiError():
            say(f"Error from server ({error.reason}): {error.message}")
        case ConnectionFailed():
            say(f"error: {error}")
            if error.is_refused:
                say(_advice(session))
        case ClientError():
            say(f"error: {error}")
        case _:
            if session.verbosity >= 6:
                raise error
            detail = " ".join(str(error).split())
            say(f"error: this is a fault in fairway: {type(error).__name__}: {detail}")
            say("Run it again with -v 6 to see where, and please report it.")
    return 1


def _advice(session: Session) -> str:
    where = f" ({session.source} names it.)" if session.source else ""
    return (
        f"Is the hub running? Start it with `fairway up`, or choose another with --context.{where}"
    )


if __name__ == "__main__":
    main()
