"""Text from values: tables for terminals, ages, JSONPath."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.cli import ages, workloads
from fairway.cli.options import Duration
from fairway.cli.render_table import Grid, Printer, rich_layout, rich_lines, without_empty
from fairway.schema import jsonpath

WORKLOADS = Grid(
    ["NAME", "QUEUE", "PRIORITY", "PHASE", "REASON", "CLUSTERS", "AGE"],
    [
        ["llama-pretrain-70b", "research", "100", "Running", "", "hangzhou-1", "5m"],
        ["resnet", "research", "0", "Waiting", "QuotaExceeded", "", "42s"],
        ["sweep", "playground", "0", "Failed", "ProgramFailed", "cloud-east", "3d"],
    ],
)
EVENTS = Grid(
    ["LAST SEEN", "TYPE", "OBJECT", "MESSAGE"],
    [["42s", "Warning", "workload/resnet", "Queue research lacks 56 nvidia.com/gpu of h100."]],
)


def drawn(grid: Grid, width: int) -> str:
    lines = rich_lines(grid, rich_layout(grid, width))
    return "\n".join(line.plain.rstrip() for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    rows = [
        "NAME                 QUEUE        PRIORITY   PHASE       REASON          CLUSTERS     AGE",
        "llama-pretrain-70b   research     100        ● Running   -               hangzhou-1   5m",
        "resnet               research     0          ○ Waiting   QuotaExceeded   -            42s",
        "sweep                playground   0          ✗ Failed    ProgramFailed   cloud-east   3d",
    ]
    assert drawn(WORKLOADS, 120).splitlines() == rows


def test_a_narrow_one_cuts_headings_and_long_cells_but_no_names_and_states() -> None:
    shown = drawn(WORKLOADS, 72)
    assert max(map(len, shown.splitlines())) <= 72
    assert shown.splitlines()[0].split() == [
        "NAME",
        "QUEUE",
        "PRI…",
        "PHASE",
        "REASON",
        "CLUSTERS",
        "AGE",
    ]
    assert "llama-pretrain-70b" in shown
    assert "○ Waiting" in shown
    assert "QuotaEx…" in shown or "QuotaE…" in shown or "QuotaExc…" in shown


def test_what_cannot_fit_leaves_out_columns_that_say_nothing() -> None:
    grid = Grid(
        ["NAME", "PHASE", "NODES", "GPUS", "REGION"],
        [["a-rather-long-name", "", "3", "", "east"], ["b", "", "4", "", "west"]],
    )
    assert without_empty(grid, 80) == grid
    narrow = without_empty(grid, 36)
    assert narrow.headings == ["NAME", "PHASE", "NODES", "REGION"]
    assert narrow.rows == [["a-rather-long-name", "", "3", "east"], ["b", "", "4", "west"]]


def test_sentences_go_on_below_themselves() -> None:
    assert drawn(EVENTS, 72) == (
        "LAST SEEN  TYPE       OBJECT           MESSAGE\n"
        "42s        ▲ Warning  workload/resnet  Queue research lacks 56\n"
        "                                       nvidia.com/gpu of h100."
    )


def test_states_differ_by_symbol_as_well_as_by_colour() -> None:
    lines = rich_lines(WORKLOADS, rich_layout(WORKLOADS, 120), with_headings=False)
    signs = [line.plain.split()[3] for line in lines]
    styles = [
        str(next(span.style for span in line.spans if line.plain[span.start] in "●○✗"))
        for line in lines
    ]
    assert signs == ["●", "○", "✗"]
    assert styles == ["green", "yellow", "bold red"]


def test_rows_that_come_later_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    printer.show(Grid(["NAME", "AGE"], [["first", "1s"]]))
    printer.show(Grid(["NAME", "AGE"], [["b", "2s"]]), with_headings=False)
    printer.show(Grid(["NAME", "AGE"], [["much-longer", "3s"]]), with_headings=False)
    assert capsys.readouterr().out == ("NAME    AGE\nfirst   1s\nb       2s\nmuch-longer   3s\n")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (312, "5m12s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (47 * 3600, "47h"),
        (3 * 86400 + 7200, "3d2h"),
        (90 * 86400, "90d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_an_age_is_short(seconds: float, shown: str) -> None:
    assert ages.span(seconds) == shown


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("250ms", 0.25), ("15", 15), ("-1s", -1)]
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"app.test/name": "x"}},
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
    "status": {"ready": True},
}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        pytest.param("{.metadata.name}", "a", id="a field"),
        pytest.param(".metadata.name", "a", id="without braces"),
        pytest.param("{.status.ready}", "true", id="a boolean as JSON"),
        pytest.param(r"{.metadata.labels.app\.test/name}", "x", id="a key with a dot"),
        pytest.param("{.metadata.labels['app.test/name']}", "x", id="a key in quotes"),
        pytest.param("{.spec.ports[*].port}", "80 443", id="all of a list"),
        pytest.param("{.spec.ports[-1].name}", "https", id="the last of a list"),
        pytest.param("{.spec.ports[0:1].port}", "80", id="a slice"),
        pytest.param('{.spec.ports[?(@.name=="https")].port}', "443", id="a filter"),
        pytest.param("{.spec.ports[?(@.port>100)].name}", "https", id="a comparison"),
        pytest.param("{..port}", "80 443", id="any depth"),
        pytest.param("{.missing.deep}", "", id="nothing there"),
        pytest.param("name: {.metadata.name}!", "name: a!", id="text around it"),
        pytest.param(
            r"{range .spec.ports[*]}{.name}={.port}{'\n'}{end}",
            "http=80\nhttps=443\n",
            id="a range",
        ),
    ],
)
def test_a_template_is_filled_in(template: str, shown: str) -> None:
    assert jsonpath.render(template, POD) == shown


@pytest.mark.parametrize("template", ["{.a", "{.a[}", "{range .a}", "{end}", "{.a[?(@.b==c)]}"])
def test_a_broken_template_is_refused(template: str) -> None:
    with pytest.raises(jsonpath.PathError):
        jsonpath.render(template, {"a": [{"b": 1}]})


@pytest.mark.parametrize(
    ("explanation", "shown"),
    [
        (
            {"state": "Starts", "clusters": ["here"], "message": "starts now in here"},
            "waits in queue research: about to start in here",
        ),
        (
            {"state": "Runs", "clusters": ["a", "b"], "message": "runs in a and b"},
            "waits in queue research: about to start in a and b",
        ),
        ({"state": "Starts", "message": "starts now"}, "waits in queue research: about to start"),
        ({"state": "Waits", "message": "needs 4 GPUs"}, "waits in queue research: needs 4 GPUs"),
        ({}, "waits in queue research"),
    ],
)
def test_a_workload_that_waits_does_not_start_at_the_same_time(
    explanation: dict[str, Any], shown: str
) -> None:
    workload = {
        "metadata": {"name": "a"},
        "spec": {"queue": "research"},
        "status": {"phase": "Waiting"},
    }
    assert workloads.line(workload, workloads.why_waiting(explanation)) == shown
