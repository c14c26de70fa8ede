"""`fairway cost`: usage and its cost."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click

from fairway.api.costs import CostAccount, Use
from fairway.cli import render_objects, render_table, terminal
from fairway.cli.commands import Command
from fairway.cli.options import Duration
from fairway.cli.render_table import Grid
from fairway.cli.session import Failure, current, say
from fairway.core.costs.reports import BY, By, Line, Report, hours, money, report

EXAMPLES = """
    fairway cost                              queues, over the past seven days
    fairway cost --by workload --since 24h    workloads, today and yesterday
    fairway cost --by team --since 2026-11-01 --until 2026-11-30
    fairway cost --by cluster                 with what stood idle
    fairway cost -o csv > november.csv        for a spreadsheet
"""
_FORMS = ("table", "json", "yaml", "csv")
_PLACES = ("cluster", "flavor")


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--by", type=click.Choice(BY), default="queue", help="What to group by.")
@click.option("--since", default="7d", metavar="WHEN", help="A date, or how long ago: 7d, 24h.")
@click.option("--until", default="", metavar="WHEN", help="A date, or how long ago; else today.")
@click.option("-o", "--output", type=click.Choice(_FORMS), default="table", help="How to show it.")
def cost(*, by: str, since: str, until: str, output: str) -> int:
    """Show GPU-hours and money, by queue, namespace, team, workload, cluster or flavor.

    Accounts are kept by the day, in UTC. LOST is the part of what was used whose work a preemption
    has cost. LENT is what a queue owns and others used. IDLE is what no workload claimed.
    """
    first, last = _day(since), _day(until) if until else _today()
    if last < first:
        raise Failure(f"--until {last} is before --since {first}")
    accounts = [
        cost_account
        for cost_account in current().client.kind(CostAccount).list()
        if first <= cost_account.metadata.name <= last
    ]
    result = report((row for account in accounts for row in account.spec.rows), cast("By", by))
    currency = next((account.spec.currency for account in accounts), "")
    if output == "csv":
        click.echo(_csv(result, currency), nl=False)
    elif output != "table":
        plain = _plain(result, first=first, last=last, currency=currency)
        click.echo(render_objects.render(output, [plain], is_single=True))
    elif not accounts:
        say(f"No accounts from {first} to {last}")
    else:
        terminal.write([f"From {first} to {last}, in {currency}", ""])
        render_table.show(_grid(result), with_headings=True)
    return 0


def _grid(report: Report) -> Grid:
    """A table with the columns that apply to its grouping."""
    columns = ["GPU-HOURS", "COST", "LOST", "LOST COST"]
    if report.by in ("queue", "flavor"):
        columns.append("LENT")
    if report.by in _PLACES:
        columns += ["IDLE", "IDLE COST"]
    lines = [line for line in report.lines if _is_shown(report, line)]
    rows = [[line.name, *_cells(line, columns)] for line in (*lines, report.total)]
    return Grid([report.by.upper(), *columns], rows)


def _is_shown(report: Report, line: Line) -> bool:
    """Whether a line has anything that the table shows; idle capacity belongs to places only."""
    uses: tuple[Use, ...] = ("Used", "Lost", "Lent")
    if report.by in _PLACES:
        uses = (*uses, "Idle")
    return any(line.of(use).gpu_time or line.of(use).money for use in uses)


def _cells(line: Line, columns: list[str]) -> list[str]:
    used, lost, lent, idle = (line.of(item) for item in ("Used", "Lost", "Lent", "Idle"))
    cells = {
        "GPU-HOURS": hours(used),
        "COST": money(used),
        "LOST": hours(lost),
        "LOST COST": money(lost),
        "LENT": hours(lent),
        "IDLE": hours(idle),
        "IDLE COST": money(idle),
    }
    return [cells[column] for column in columns]


def _plain(report: Report, *, first: str, last: str, currency: str) -> dict[str, Any]:
    return {
        "since": first,
        "until": last,
        "by": report.by,
        "currency": currency,
        "lines": [line.render() for line in report.lines],
        "total": report.total.render(),
    }


def _csv(report: Report, currency: str) -> str:
    """All columns, one line each; no total, because a spreadsheet makes its own."""
    out = io.StringIO()
    lines = [{**line.render(), "currency": currency} for line in report.lines]
    columns = list(lines[0]) if lines else [*report.total.render(), "currency"]
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writerow({column: report.by if column == "name" else column for column in columns})
    writer.writerows(lines)
    return out.getvalue()


def _today() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d")


def _day(text: str) -> str:
    """The day of a date, or of a duration ago."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).strftime("%Y-%m-%d")
    except ValueError:
        seconds = Duration().convert(text, None, None)
    moment = datetime.fromtimestamp(time.time(), UTC) - timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%d")
