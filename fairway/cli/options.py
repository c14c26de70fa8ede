"""Options that several commands share, and the types behind them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from fairway.clock import parse_timestamp

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """`90s`, `5m`, `1h30m`; a bare number means seconds. In seconds, as a float."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float | int):
            return float(value)
        sign, text = (-1.0, value[1:]) if value.startswith("-") else (1.0, value)
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return sign * float(text)
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is not a duration; write 90s, 5m or 1h30m", param, ctx)
        return sign * sum(float(number) * _UNITS[unit] for number, unit in parts)


class Moment(click.ParamType[float]):
    """`2026-11-15T08:00:00Z`, `2026-11-15 08:00`, `2026-11-15`, or seconds since 1970.

    A time without a zone is in the local one, as commands show times; a date is its first moment.
    In seconds since 1970, as a float.
    """

    name = "moment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float | int):
            return float(value)
        try:
            if re.fullmatch(r"\d+(\.\d+)?", value):
                datetime.fromtimestamp(float(value), UTC)  # what no date can show is no moment
                return float(value)
            return parse_timestamp(value)
        except (ValueError, OverflowError, OSError):
            return self.fail(
                f"{value!r} is not a time; write 2026-11-15T08:00:00Z, '2026-11-15 08:00',"
                " 2026-11-15, or seconds since 1970",
                param,
                ctx,
            )


class OutputForm(click.ParamType[str]):
    """`-o`: how to show objects."""

    name = "form"
    words = ("table", "wide", "json", "yaml", "name")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in {"", *self.words} or value.startswith("jsonpath="):
            return str(value)
        allowed = ", ".join([*self.words, "jsonpath=TEMPLATE"])
        return self.fail(f"{value!r} is not one of {allowed}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        words = [*self.words, "jsonpath="]
        return [
            click.shell_completion.CompletionItem(word)
            for word in words
            if word.startswith(incomplete)
        ]


def output(default: str = "table") -> Callable[[F], F]:
    return click.option(
        "-o",
        "--output",
        type=OutputForm(),
        default=default,
        metavar="FORM",
        help="table, wide, json, yaml, name or jsonpath=TEMPLATE.",
    )


selector = click.option(
    "-l", "--selector", default="", metavar="LABELS", help="Only objects with these labels: a=b,c."
)
field_selector = click.option(
    "--field-selector", default="", metavar="FIELDS", help="Only objects with these field values."
)
all_namespaces = click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
files = click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="A file or folder of YAML or JSON; - is the standard input.",
)
recursive = click.option(
    "-R", "--recursive", is_flag=True, help="Look into the folders of a folder too."
)
dry_run = click.option(
    "--dry-run",
    "dry_run",
    type=click.Choice(["none", "server"]),
    default="none",
    is_flag=False,
    flag_value="server",
    help="server: check everything and change nothing.",
)
