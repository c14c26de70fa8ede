"""How a queue stood, on a terminal."""

from __future__ import annotations

import pytest
from cli_outcome import Fairway

from fairway.cli import past
from fairway.cli.render_table import plain_layout, plain_lines

ANSWER = {
    "step": 900,
    "times": [0, 900, 1800, 2700],
    "found": [
        {
            "name": "research",
            "values": {
                "used": [None, 0, 8, 16],
                "fair": [None, 8, 8, 8],
                "waiting": [None, 0, 0, 0],
                "running": [None, 0, 1, 2],
            },
            "parts": [
                {
                    "name": "h100",
                    "values": {
                        "nominal": [None, 8, 8, 8],
                        "used": [None, 0, 8, 16],
                        "borrowed": [None, 0, 0, 8],
                        "lent": [None, 0, 0, 0],
                    },
                }
            ],
        }
    ],
}


def test_each_number_of_a_queue_is_a_line_of_bars() -> None:
    grid = past.grid(ANSWER)
    assert plain_lines(grid, plain_layout(grid)) == [
        "WHAT            NOW   LEAST   MOST   OVER TIME",
        "in use          16    0       16      ▁▅█",
        "fair share      8     8       8       ███",
        "waiting         0     0       0       ▁▁▁",
        "running         2     0       2       ▁▅█",
        "h100 nominal    8     8       8       ███",
        "h100 used       16    0       16      ▁▅█",
        "h100 borrowed   8     0       8       ▁▁█",
    ]
    assert past.title(ANSWER) == "research, 4 steps of 15m, the last is now"


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        ([], ""),
        ([None, None], "  "),
        ([0, 0], "▁▁"),
        ([1, None, 2, 4, 7], "▂ ▃▅█"),
    ],
)
def test_bars_go_from_nothing_to_the_most(line: list[float | None], drawn: str) -> None:
    assert past.bars(line) == drawn


def test_one_says_whose_past_is_meant(fairway: Fairway) -> None:
    refused = fairway("queue", "--last", "1h")
    assert refused.code == 1
    assert "say whose: fairway queue QUEUE --last 12h" in refused.err
